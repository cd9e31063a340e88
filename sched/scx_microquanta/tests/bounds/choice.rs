//! Which tasks are chosen, and what is said about them.

use crate::bounds::settle;
use crate::load::spinner;
use crate::machine::{CGROUP, Scheduler, Statistics, cpus, last_cpu};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

fn chosen() -> u64 {
    Statistics::open().number_of_tasks()
}

/// A process of another program that wants the CPU.
fn busy(program: &Path) -> Child {
    let mut command = Command::new(program);
    let child = command.args(["-c", "while :; do :; done"]).spawn();
    child.expect("start a shell")
}

fn end(mut child: Child) {
    child.kill().expect("stop the process");
    child.wait().expect("wait for the process");
}

pub fn by_thread(_: &Scheduler) {
    let thread = spinner("other", last_cpu());
    settle();
    assert_eq!(chosen(), 0);
    thread.rename("quanta-now");
    settle();
    assert_eq!(chosen(), 1, "under the new name");
    thread.rename("other");
    settle();
    assert_eq!(chosen(), 0, "under the old name again");
}

pub fn by_process(_: &Scheduler) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("chosen-process");
    std::os::unix::fs::symlink("/bin/sh", &program).expect("a link to a shell");
    let child = busy(&program);
    settle();
    let found = chosen();
    end(child);
    assert_eq!(found, 1);
}

pub fn by_cgroup(_: &Scheduler) {
    let child = busy(Path::new("/bin/sh"));
    let pid = child.id().to_string();
    let moved_to = |directory: &str| {
        let file = Path::new(directory).join("cgroup.procs");
        fs::write(file, &pid).expect("move the process");
        settle();
        chosen()
    };
    let inside = moved_to(CGROUP);
    let outside = moved_to("/sys/fs/cgroup");
    end(child);
    assert_eq!((inside, outside), (1, 0));
}

pub fn statistics(scheduler: &Scheduler) {
    scheduler.update("20ms", "5ms");
    let quanta = spinner("quanta", last_cpu());
    let rest = spinner("rest", last_cpu());
    settle();
    let mut statistics = Statistics::open();
    let before = [quanta.cpu_time(), rest.cpu_time()];
    std::thread::sleep(Duration::from_secs(1));
    let after = [quanta.cpu_time(), rest.cpu_time()];
    let all = statistics.all();
    assert_eq!(all.len(), cpus(), "{all:?}");
    let cpu = &all[&last_cpu()];
    println!("  {cpu:?}");
    let near = |ns: u64, of: usize| {
        let kernels = (after[of] - before[of]).as_nanos() as f64;
        (ns as f64 / kernels - 1.0).abs() < 0.1
    };
    assert!(near(cpu.quanta_ns, 0), "{:?}", after[0] - before[0]);
    assert!(near(cpu.rest_ns, 1), "{:?}", after[1] - before[1]);
    assert!((45..=56).contains(&cpu.nr_throttled), "50 periods");
    let throttled = cpu.throttled_ns as f64 / 1e9;
    assert!((0.65..0.85).contains(&throttled), "15 of every 20 ms");
}
