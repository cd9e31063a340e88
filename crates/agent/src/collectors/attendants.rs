//! CPU time of what a trial brings along: the sched_ext scheduler's own process, and
//! the kernel's threads, which work for whatever makes system calls (RCU, softirqs,
//! writeback). Neither is a stranger that somebody could stop.

use collect::tasks::{self, Pid};
use std::path::Path;

/// The kernel's threads are the children of this one, see kthreadd() in kernel/kthread.c.
const KTHREADD: Pid = 2;

#[derive(Debug, Default)]
pub struct Attendants {
    scheduler: Option<Pid>,
    kernel_threads: Vec<Pid>,
}

/// Since they were started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttendantTimes {
    pub scheduler_ns: Option<u64>,
    pub kernel_ns: u64,
}

impl Attendants {
    /// Of the kernel's threads, which are thousands on large machines, those that have
    /// ever run for a tick.
    pub fn find(root: &Path, scheduler: Option<Pid>) -> Self {
        let all = tasks::all(root).into_iter();
        let stats = all.filter_map(|pid| tasks::stat(root, pid));
        let busy = stats.filter(|stat| {
            // Its time is in that of the soft interrupts.
            let counted_as_interrupt = stat.command.starts_with("ksoftirqd/");
            stat.parent == KTHREADD && stat.cpu_ns() > 0 && !counted_as_interrupt
        });
        Attendants {
            scheduler,
            kernel_threads: busy.map(|stat| stat.pid).collect(),
        }
    }

    pub fn read(&self, root: &Path) -> AttendantTimes {
        let cpu_ns = |pid: &Pid| Some(tasks::stat(root, *pid)?.cpu_ns());
        AttendantTimes {
            scheduler_ns: self.scheduler.as_ref().and_then(cpu_ns),
            kernel_ns: self.kernel_threads.iter().filter_map(cpu_ns).sum(),
        }
    }
}

impl AttendantTimes {
    pub fn since(self, earlier: AttendantTimes) -> AttendantTimes {
        let scheduler = self.scheduler_ns.zip(earlier.scheduler_ns);
        AttendantTimes {
            scheduler_ns: scheduler.map(|(now, before)| now.saturating_sub(before)),
            kernel_ns: self.kernel_ns.saturating_sub(earlier.kernel_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::tree;
    use std::fs;

    /// A line of `/proc/PID/stat` with 100 ticks a second.
    fn stat(pid: Pid, command: &str, parent: Pid, ticks: u64) -> String {
        let rest = "0 0 0 0 0 0 0 0";
        format!("{pid} ({command}) S {parent} 1 1 {rest} {ticks} 0 0 0 0 0 0 0 7\n")
    }

    #[test]
    fn the_scheduler_and_the_kernels_threads_are_read_and_nobody_else() {
        let root = tree(&[
            ("proc/2/stat", &stat(2, "kthreadd", 0, 5)),
            ("proc/15/stat", &stat(15, "rcu_preempt", 2, 100)),
            ("proc/16/stat", &stat(16, "ksoftirqd/0", 2, 100)),
            ("proc/17/stat", &stat(17, "cpuhp/0", 2, 0)),
            ("proc/300/stat", &stat(300, "scx_rusty", 1, 200)),
            ("proc/301/stat", &stat(301, "cc1", 1, 400)),
        ]);
        let attendants = Attendants::find(root.path(), Some(300));
        assert_eq!(attendants.kernel_threads, [15]);
        let first = attendants.read(root.path());
        fs::write(
            root.path().join("proc/15/stat"),
            stat(15, "rcu_preempt", 2, 150),
        )
        .unwrap();
        fs::write(
            root.path().join("proc/300/stat"),
            stat(300, "scx_rusty", 1, 210),
        )
        .unwrap();
        let spent = attendants.read(root.path()).since(first);
        assert_eq!(spent.kernel_ns, 500_000_000);
        assert_eq!(spent.scheduler_ns, Some(100_000_000));
    }

    #[test]
    fn an_arm_without_a_scheduler_has_no_time_of_one() {
        let root = tree(&[]);
        let attendants = Attendants::find(root.path(), None);
        assert_eq!(attendants.read(root.path()), AttendantTimes::default());
    }
}
