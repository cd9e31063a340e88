//! The bounds that scx_microquanta promises, each measured on a real kernel, one
//! after another under one attached scheduler.
//!
//! A share is judged by the kernel's count of CPU time, a wait by the clock. Both
//! are strict, so the machine must have its CPUs for itself: a real one without
//! other work, or a guest with one CPU whose clock counts instructions, in which
//! time that the host takes from the guest does not pass. On a shared or otherwise
//! emulated machine set `MICROQUANTA_SHARED_CPUS=1`: then one wait in a hundred may
//! be longer, and shares may be 10 % off. tests/tests/e2e/microquanta.rs boots a guest
//! of each kind.

mod bounds;
mod choice;
mod hardship;
mod load;
mod machine;

use machine::Scheduler;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

/// A sentence and what shows it.
type Bound = (&'static str, fn(&Scheduler));

const BOUNDS: &[Bound] = &[
    (
        "under contention the share is runtime over period",
        bounds::contended_share,
    ),
    (
        "a throttled task waits no longer than period minus runtime",
        bounds::throttled_wait,
    ),
    (
        "a woken task with credit does not wait for the others",
        bounds::woken_wait,
    ),
    (
        "the others are not starved however many want to go first",
        bounds::no_starvation,
    ),
    ("alone a task has the whole CPU", bounds::alone),
    ("several tasks on a CPU take turns", bounds::turns),
    ("credit of an idle time is bounded", bounds::credit),
    ("the rest is scheduled by weight", bounds::weight),
    (
        "weights hold whatever runs on another CPU",
        bounds::weight_beside,
    ),
    (
        "nobody of the rest starves when tasks that may run anywhere come",
        bounds::newcomers,
    ),
    (
        "nobody of the rest waits for long, whatever the weights",
        bounds::overdue,
    ),
    (
        "four that may run anywhere share what is left to them",
        bounds::evened_out_beside_quanta,
    ),
    (
        "who waits for a CPU that a real-time task has goes to another",
        bounds::beside_real_time,
    ),
    (
        "three that may run anywhere share two CPUs evenly",
        bounds::evened_out,
    ),
    (
        "parameters change while it runs and bad ones change nothing",
        bounds::update,
    ),
    (
        "a task wakes on an idle CPU, else on one without its like",
        bounds::wakes_where,
    ),
    (
        "a task wakes on an idle core before an idle thread of one",
        bounds::wakes_on_core,
    ),
    (
        "an idle CPU takes what is throttled elsewhere",
        bounds::idle_cpu_helps,
    ),
    (
        "tasks are chosen by thread name as it changes",
        choice::by_thread,
    ),
    ("tasks are chosen by process name", choice::by_process),
    ("tasks are chosen by cgroup as they move", choice::by_cgroup),
    (
        "every CPU has its statistics, and they agree with the kernel's",
        choice::statistics,
    ),
    ("it survives CPUs that go and come", hardship::hotplug),
    ("it survives storms of threads", hardship::storms),
    (
        "it survives its parameters at their limits",
        hardship::limits,
    ),
];

/// Without a scheduler, or each with its own.
const APART: &[(&str, fn())] = &[
    (
        "bad parameters are refused before anything is attached",
        hardship::refused,
    ),
    (
        "it detaches cleanly under load, and when it is killed",
        hardship::detach,
    ),
];

fn main() -> ExitCode {
    if let Some(why) = machine::obstacle() {
        println!("skipped: {why}");
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str()));
    let mut failed = 0;
    for (name, show) in APART.iter().filter(|(name, _)| is_wanted(name)) {
        failed += usize::from(!holds(name, show));
    }
    let bounds: Vec<&Bound> = BOUNDS.iter().filter(|(name, _)| is_wanted(name)).collect();
    if !bounds.is_empty() {
        failed += under_one_scheduler(&bounds);
    }
    println!("{failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

/// How many of them fail.
fn under_one_scheduler(bounds: &[&Bound]) -> usize {
    let start = Instant::now();
    let scheduler = Scheduler::start("20ms", "5ms");
    println!("attached after {:.1?}", start.elapsed());
    let failed = bounds.iter().filter(|(name, show)| {
        !holds(name, || {
            show(&scheduler);
            scheduler.assert_attached();
        })
    });
    let failed = failed.count();
    failed + usize::from(!holds("and it is attached to the end", || scheduler.stop()))
}

fn holds(name: &str, show: impl FnOnce()) -> bool {
    println!("- {name}");
    let start = Instant::now();
    let good = catch_unwind(AssertUnwindSafe(show)).is_ok();
    let word = if good { "ok" } else { "FAILED" };
    println!("  {word}, {:.1?}", start.elapsed());
    good
}
