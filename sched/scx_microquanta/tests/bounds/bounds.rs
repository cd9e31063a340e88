//! Shares and waits.

use crate::load::{cpu_times, free_spinners, longest, share, shares, sleeper, spinner};
use crate::machine::{Scheduler, Statistics, command, cores, cpus, is_shared, last_cpu};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(2);

/// Beyond period minus runtime: the timer, two switches, and what the kernel
/// does with interrupts off.
const SLACK: Duration = Duration::from_millis(2);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// For what was begun to be in force: several periods.
pub fn settle() {
    std::thread::sleep(ms(200));
}

#[track_caller]
pub fn assert_near(measured: f64, expected: f64, tolerance: f64) {
    let tolerance = if is_shared() { 0.1 } else { tolerance };
    println!("  {measured:.4}, expected {expected:.4} within {tolerance}");
    assert!(
        (measured - expected).abs() <= tolerance,
        "{measured:.4} is not within {tolerance} of {expected:.4}"
    );
}

/// The window is not aligned with periods, which is up to 0.5 % for the longest.
pub fn contended_share(scheduler: &Scheduler) {
    let quanta = spinner("quanta", last_cpu());
    let rest = spinner("rest", last_cpu());
    for (period, runtime, expected) in [
        ("20ms", "5ms", 0.25),
        ("20ms", "15ms", 0.75),
        ("4ms", "2ms", 0.5),
        ("100ms", "10ms", 0.1),
    ] {
        scheduler.update(period, runtime);
        settle();
        print!("  {runtime} of {period}: ");
        assert_near(share(&[&quanta, &rest], WINDOW), expected, 0.02);
    }
}

pub fn throttled_wait(scheduler: &Scheduler) {
    scheduler.update("40ms", "10ms");
    let rest = spinner("rest", last_cpu());
    let quanta = spinner("quanta", last_cpu());
    std::thread::sleep(WINDOW);
    let gaps = quanta.stop();
    drop(rest);
    let worst = longest(&gaps);
    println!("  {} waits, worst {worst:?}", gaps.len());
    assert!(gaps.len() > 20, "it was never throttled");
    assert!(worst <= ms(30) + SLACK, "it waited {worst:?}");
}

/// A sleeper uses far less than its share, so it always has credit.
pub fn woken_wait(scheduler: &Scheduler) {
    scheduler.update("100ms", "20ms");
    let rest: Vec<_> = (0..2).map(|_| spinner("rest", last_cpu())).collect();
    let mut statistics = Statistics::open();
    let quanta = sleeper("quanta", Some(last_cpu()));
    std::thread::sleep(WINDOW);
    let cpu = statistics.cpu(last_cpu());
    let wakeups = quanta.stop().len();
    drop(rest);
    let worst = Duration::from_nanos(cpu.worst_wait_ns);
    println!("  {wakeups} wakeups, worst wait {worst:?}");
    assert!(cpu.nr_wakeups > 100 && worst > Duration::ZERO, "{cpu:?}");
    let bound = if is_shared() { ms(80) + SLACK } else { SLACK };
    assert!(worst <= bound, "it waited {worst:?}");
}

pub fn no_starvation(scheduler: &Scheduler) {
    scheduler.update("20ms", "15ms");
    let rest = spinner("rest", last_cpu());
    let quanta: Vec<_> = (0..3).map(|_| spinner("quanta", last_cpu())).collect();
    let all: Vec<_> = std::iter::once(&rest).chain(&quanta).collect();
    settle();
    assert_near(share(&all, WINDOW), 0.25, 0.02);
}

pub fn alone(scheduler: &Scheduler) {
    scheduler.update("20ms", "2ms");
    let quanta = spinner("quanta", last_cpu());
    settle();
    let start = Instant::now();
    let time = cpu_times(&[&quanta], WINDOW)[0];
    assert_near(
        time.as_secs_f64() / start.elapsed().as_secs_f64(),
        1.0,
        0.02,
    );
}

pub fn turns(scheduler: &Scheduler) {
    scheduler.update("20ms", "10ms");
    let quanta: Vec<_> = (0..3).map(|_| spinner("quanta", last_cpu())).collect();
    let all: Vec<_> = quanta.iter().collect();
    settle();
    print!("  alone: ");
    assert_near(share(&all, WINDOW), 1.0 / 3.0, 0.02);
    let _rest = spinner("rest", last_cpu());
    settle();
    print!("  beside others: ");
    assert_near(share(&all, WINDOW), 1.0 / 3.0, 0.02);
}

/// After a second without micro-quanta tasks, the first four periods hold at most
/// two more periods' runtime than any other four (and one, because the window is
/// not aligned with them).
pub fn credit(scheduler: &Scheduler) {
    scheduler.update("100ms", "10ms");
    let _rest = spinner("rest", last_cpu());
    std::thread::sleep(WINDOW / 2);
    let quanta = spinner("quanta", last_cpu());
    let start = Instant::now();
    std::thread::sleep(ms(400));
    let (used, elapsed) = (quanta.cpu_time(), start.elapsed());
    println!("  {used:?} in the first {elapsed:?}");
    let periods = elapsed.as_secs_f64() / 0.1;
    let bound = Duration::from_secs_f64(0.01 * (periods + 3.0)) + SLACK;
    assert!(used <= bound, "more than {bound:?}");
}

pub fn weight(scheduler: &Scheduler) {
    scheduler.update("20ms", "5ms");
    let heavy = spinner("heavy", last_cpu());
    let light = spinner("light", last_cpu());
    light.set_nice(5);
    settle();
    // Weights 1024 and 335, see sched_prio_to_weight in kernel/sched/core.c.
    assert_near(share(&[&heavy, &light], WINDOW), 0.753, 0.02);
}

/// Pinned to CPU 0: one that is very light, one that is very heavy, or many. Virtual
/// time there goes 70 times as fast as the clock, an 87th, or a tenth.
const BESIDE: [(&str, i32, usize); 3] = [("light", 19, 1), ("heavy", -20, 1), ("many", 0, 10)];

pub fn weight_beside(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs two CPUs");
    }
    scheduler.update("20ms", "5ms");
    for (what, nice, number) in BESIDE {
        let beside: Vec<_> = (0..number).map(|_| spinner("beside", 0)).collect();
        beside.iter().for_each(|b| b.set_nice(nice));
        let heavy = spinner("heavy", last_cpu());
        let light = spinner("light", last_cpu());
        light.set_nice(5);
        settle();
        // The scheduler's own program waits with PAUSE for a moment. A QEMU that emulates
        // CPUs in turns (before 8.1) has the turn of all others pass in each.
        let used = || beside.iter().map(|b| b.cpu_time()).sum::<Duration>() + scheduler.cpu_time();
        let (before, start) = (used(), Instant::now());
        print!("  {what}: ");
        assert_near(share(&[&heavy, &light], WINDOW), 0.753, 0.02);
        let taken = (used() - before).as_secs_f64() / start.elapsed().as_secs_f64();
        println!("  of the other CPU, with the scheduler's program: {taken:.4}");
        // Emulated CPUs may take turns.
        assert!(taken > if is_shared() { 0.3 } else { 0.95 });
    }
}

/// After CPUs were apart for a while, with virtual times that went differently.
pub fn newcomers(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs two CPUs");
    }
    scheduler.update("20ms", "5ms");
    for (what, nice, number) in BESIDE {
        let mut all: Vec<_> = (0..number).map(|_| spinner("beside", 0)).collect();
        all.iter().for_each(|b| b.set_nice(nice));
        all.push(spinner("pinned", last_cpu()));
        std::thread::sleep(WINDOW);
        all.extend(free_spinners(2));
        let all: Vec<_> = all.iter().collect();
        let times = cpu_times(&all, WINDOW + WINDOW / 2);
        println!("  {what}: {times:.3?}");
        // At the least, a slice after the wait that the lightest may have.
        assert!(times.iter().all(|t| *t >= ms(2)), "one was starved");
    }
}

/// By weight alone the lightest would wait for minutes beside the heaviest, and the
/// kernel would end the scheduler after five seconds.
pub fn overdue(scheduler: &Scheduler) {
    scheduler.update("20ms", "15ms");
    let lightest: Vec<_> = (0..30).map(|_| spinner("lightest", last_cpu())).collect();
    lightest.iter().for_each(|light| light.set_nice(19));
    let _quanta = spinner("quanta", last_cpu());
    settle();
    let heaviest = spinner("heaviest", last_cpu());
    heaviest.set_nice(-20);
    std::thread::sleep(WINDOW * 4);
    drop(heaviest);
    let gaps = lightest.into_iter().map(|light| longest(&light.stop()));
    let worst = gaps.max().unwrap_or_default();
    println!("  worst wait {worst:?}");
    assert!(worst <= ms(3000), "one waited {worst:?}");
}

/// Windows in which four tasks on two CPUs have to become even once.
const WINDOWS_TO_EVEN: u32 = 5;

/// On CPU 0 they have a quarter.
pub fn evened_out_beside_quanta(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs two CPUs");
    }
    scheduler.update("20ms", "15ms");
    let _quanta = spinner("quanta", 0);
    let free = free_spinners(4);
    let free: Vec<_> = free.iter().collect();
    settle();
    // Two and two would be a tenth for those on CPU 0. Where the host has little time for the
    // emulated CPUs it takes them longer to be evened out.
    let is_even = (0..WINDOWS_TO_EVEN).any(|_| {
        let parts = shares(&free, WINDOW);
        println!("  {parts:.3?}");
        parts.iter().all(|part| *part > 0.15)
    });
    assert!(is_even, "one got less in every window");
}

pub fn beside_real_time(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs two CPUs");
    }
    scheduler.update("20ms", "5ms");
    let free = spinner("free", 0);
    let pinned = spinner("pinned", last_cpu());
    let real_time = spinner("real-time", 0);
    real_time.set_real_time();
    free.allow_all_cpus();
    settle();
    assert_near(share(&[&free, &pinned], WINDOW), 0.5, 0.1);
}

pub fn evened_out(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs two CPUs");
    }
    scheduler.update("20ms", "5ms");
    let free = free_spinners(3);
    let free: Vec<_> = free.iter().collect();
    settle();
    for part in shares(&free, WINDOW) {
        assert_near(part, 1.0 / 3.0, 0.02);
    }
}

pub fn update(scheduler: &Scheduler) {
    scheduler.update("20ms", "4ms");
    let quanta = spinner("quanta", last_cpu());
    let rest = spinner("rest", last_cpu());
    let (good, text) = command(&["--update", "--runtime", "25ms"]);
    assert!(!good && text.contains("runtime of 25000000 ns"), "{text}");
    assert_near(share(&[&quanta, &rest], WINDOW), 0.2, 0.02);
    let (good, text) = command(&["--update", "--runtime", "12ms"]);
    assert!(
        good && text.contains("12000000 ns of every 20000000 ns"),
        "{text}"
    );
    settle();
    assert_near(share(&[&quanta, &rest], WINDOW), 0.6, 0.02);
}

pub fn wakes_where(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs two CPUs");
    }
    scheduler.update("20ms", "10ms");
    let _quanta: Vec<_> = (1..cpus()).map(|cpu| spinner("quanta", cpu)).collect();
    settle();
    print!("  CPU 0 idle: ");
    assert_near(wakes_on_first(), 1.0, 0.1);
    let _rest = spinner("rest", 0);
    settle();
    print!("  CPU 0 with others: ");
    assert_near(wakes_on_first(), 1.0, 0.1);
}

/// Share of its wakeups that a task spends on CPU 0.
fn wakes_on_first() -> f64 {
    part_on(&woken(None), &[0])
}

/// The first core has one of the others on its first thread, and woken ones start on
/// its second, which is idle; then every core has one.
pub fn wakes_on_core(scheduler: &Scheduler) {
    let cores = cores();
    if cores.len() < 2 || cores.iter().any(|core| core.len() < 2) {
        return println!("  skipped: needs two cores of two threads");
    }
    // Where it disturbs nothing: it is no idler, see weight_beside.
    scheduler.allow_cpus(cores[0][0]..=cores[0][0]);
    let _one = spinner("rest", cores[0][0]);
    settle();
    print!("  an idle core: ");
    assert_near(part_on(&woken(Some(cores[0][1])), &cores[0]), 0.0, 0.1);
    let _all: Vec<_> = cores[1..].iter().map(|c| spinner("rest", c[0])).collect();
    settle();
    print!("  an idle thread: ");
    let threads: Vec<usize> = cores.iter().map(|core| core[1]).collect();
    assert_near(part_on(&woken(Some(cores[0][1])), &threads), 1.0, 0.1);
    scheduler.allow_cpus(0..=last_cpu());
}

/// The CPUs of a task that wakes up again and again; it starts on this one.
fn woken(first: Option<usize>) -> Vec<usize> {
    let woken = sleeper("quanta-woken", first);
    woken.allow_all_cpus();
    std::thread::sleep(WINDOW / 2);
    woken.stop()
}

fn part_on(cpus: &[usize], wanted: &[usize]) -> f64 {
    let number = cpus.iter().filter(|cpu| wanted.contains(cpu)).count();
    number as f64 / cpus.len().max(1) as f64
}

/// One that may run anywhere starts where it is throttled, and CPU 0 is idle but
/// for the test itself.
pub fn idle_cpu_helps(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs two CPUs");
    }
    scheduler.update("100ms", "10ms");
    let rest = spinner("rest", last_cpu());
    let quanta = spinner("quanta", last_cpu());
    settle();
    quanta.allow_all_cpus();
    settle();
    let times = cpu_times(&[&quanta, &rest], WINDOW);
    println!("  quanta {:?}, rest {:?}", times[0], times[1]);
    // Its share where it is throttled is a tenth.
    let bound = WINDOW.mul_f64(if is_shared() { 0.15 } else { 0.9 });
    assert!(times[0] > bound, "a CPU was idle");
}
