//! Hardships that the scheduler has to survive.

use crate::bounds::{assert_near, settle};
use crate::load::{cpu_times, free_spinners, share, sleeper, spinner};
use crate::machine::{Scheduler, Statistics, command, cpus, last_cpu, sched_ext};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn hotplug(scheduler: &Scheduler) {
    let online = format!("/sys/devices/system/cpu/cpu{}/online", last_cpu());
    if cpus() < 2 || !Path::new(&online).exists() {
        return println!("  skipped: needs a CPU that can be taken offline");
    }
    scheduler.update("20ms", "5ms");
    let sleepers: Vec<_> = (0..8).map(|_| sleeper("quanta-woken", None)).collect();
    // Some of them wait for the CPU when it goes.
    let free = free_spinners(6);
    for _ in 0..3 {
        let _quanta = spinner("quanta", last_cpu());
        let _rest = spinner("rest", last_cpu());
        settle();
        fs::write(&online, "0").expect("take the CPU offline");
        settle();
        fs::write(&online, "1").expect("bring it back");
        settle();
        scheduler.assert_attached();
    }
    drop((sleepers, free));
    let quanta = spinner("quanta", last_cpu());
    let rest = spinner("rest", last_cpu());
    settle();
    print!("  afterwards: ");
    assert_near(share(&[&quanta, &rest], Duration::from_secs(1)), 0.25, 0.02);
}

pub fn storms(scheduler: &Scheduler) {
    scheduler.update("1ms", "500us");
    let start = Instant::now();
    let mut storms = 0;
    while start.elapsed() < Duration::from_secs(3) {
        let threads: Vec<_> = (0..200).map(short_thread).collect();
        for thread in threads {
            thread.join().expect("the thread did not panic");
        }
        storms += 1;
    }
    println!("  {storms} storms of 200 threads");
    settle();
    let left = Statistics::open().number_of_tasks();
    assert_eq!(left, 0, "tasks that ended are still counted");
}

fn short_thread(number: usize) -> std::thread::JoinHandle<()> {
    let name = ["quanta", "rest"][number % 2];
    let thread = std::thread::Builder::new().name(name.to_owned());
    let work = || std::thread::sleep(Duration::from_micros(500));
    thread.spawn(work).expect("start a thread")
}

/// Both kinds of task get on, whatever is left for them.
pub fn limits(scheduler: &Scheduler) {
    if cpus() < 2 {
        return println!("  skipped: needs a CPU that has time for the test itself");
    }
    let quanta = spinner("quanta", last_cpu());
    let rest = spinner("rest", last_cpu());
    // In debt for as much as it may be, a task waits for three periods.
    for (period, runtime, window) in [
        ("2us", "1us", 1),
        ("40us", "20us", 1),
        ("10us", "9us", 1),
        ("1s", "990ms", 2),
        ("1s", "1us", 4),
    ] {
        scheduler.update(period, runtime);
        settle();
        let times = cpu_times(&[&quanta, &rest], Duration::from_secs(window));
        let (quanta, rest) = (times[0], times[1]);
        println!("  {runtime} of {period}: quanta {quanta:?}, rest {rest:?}");
        assert!(times.iter().all(|t| *t > Duration::ZERO), "{times:?}");
        scheduler.assert_attached();
    }
    drop((quanta, rest));
    scheduler.update("20ms", "5ms");
}

pub fn refused() {
    for (args, why) in [
        (
            ["--period", "40us", "--runtime", "40us"],
            "leaves the other tasks",
        ),
        (
            ["--period", "40us", "--runtime", "50us"],
            "choose a shorter runtime",
        ),
        (["--period", "1us", "--runtime", "1us"], "out of range"),
        (["--period", "2s", "--runtime", "1us"], "out of range"),
        (
            ["--cgroup", "no-such-group", "--runtime", "5us"],
            "not a cgroup",
        ),
    ] {
        let (good, text) = command(&args);
        assert!(!good && text.contains(why), "{args:?}: {text}");
    }
    assert_eq!(sched_ext("state"), "disabled");
}

pub fn detach() {
    let _quanta = spinner("quanta", last_cpu());
    let _rest = spinner("rest", last_cpu());
    Scheduler::start("2ms", "1ms").stop();
    Scheduler::start("2ms", "1ms").kill();
}
