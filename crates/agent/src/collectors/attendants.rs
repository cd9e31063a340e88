//! CPU time of what a trial brings along: the sched_ext scheduler's own process, and
//! the kernel's threads, which work for whatever makes system calls (RCU, softirqs,
//! writeback). Neither is a stranger that somebody could stop. And the names of the strangers that
//! used most: a daemon that did the work of a command is one of them.

use collect::tasks::{self, Pid, TaskStat};
use std::collections::BTreeMap;
use std::path::Path;

/// The kernel's threads are the children of this one, see kthreadd() in kernel/kthread.c.
const KTHREADD: Pid = 2;

#[derive(Debug, Default)]
pub struct Attendants {
    scheduler: Option<Pid>,
    /// CPU time when the window opened, of those that had any before.
    first: BTreeMap<Pid, u64>,
    /// CPU time of all other processes before the load was started.
    strangers: BTreeMap<Pid, u64>,
}

/// Within the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttendantTimes {
    pub scheduler_ns: Option<u64>,
    pub kernel_ns: u64,
}

impl Attendants {
    /// The scheduler, and those threads of the kernel that ran for a tick before. Large
    /// machines have thousands of kernel threads; only these are looked at when the window
    /// opens.
    pub fn find(root: &Path, scheduler: Option<Pid>) -> Self {
        let (threads, others): (Vec<TaskStat>, Vec<TaskStat>) =
            processes(root).partition(|stat| stat.parent == KTHREADD);
        let busy = threads
            .iter()
            .filter(|stat| is_counted(stat) && stat.cpu_ns() > 0);
        Attendants {
            scheduler,
            first: busy
                .map(|stat| stat.pid)
                .chain(scheduler)
                .map(|pid| (pid, 0))
                .collect(),
            strangers: others
                .iter()
                .map(|stat| (stat.pid, stat.cpu_ns()))
                .collect(),
        }
    }

    pub fn begin_window(&mut self, root: &Path) {
        for (pid, cpu_ns) in &mut self.first {
            *cpu_ns = tasks::read_stat(root, *pid).map_or(0, |stat| stat.cpu_ns());
        }
    }

    /// Looks at all, also those that began to run within the window.
    pub fn end_window(&self, root: &Path) -> AttendantTimes {
        let since = |stat: TaskStat| {
            let before = self.first.get(&stat.pid).copied().unwrap_or(0);
            stat.cpu_ns().saturating_sub(before)
        };
        let scheduler = self.scheduler.and_then(|pid| tasks::read_stat(root, pid));
        AttendantTimes {
            scheduler_ns: scheduler.map(since),
            kernel_ns: processes(root).filter(is_counted).map(since).sum(),
        }
    }

    /// CPU time of processes since the load was started.
    pub fn spent_by(&self, root: &Path, processes: &[Pid]) -> u64 {
        let stats = processes
            .iter()
            .filter_map(|pid| tasks::read_stat(root, *pid));
        stats.map(|stat| self.spent(&stat)).sum()
    }

    fn spent(&self, stat: &TaskStat) -> u64 {
        let before = self.strangers.get(&stat.pid).copied().unwrap_or(0);
        stat.cpu_ns().saturating_sub(before)
    }

    /// Names of the processes that used most CPU time since the load was started, and are neither
    /// the kernel's, the scheduler's, this process, started by it nor `reached` by the arm. They are in alphabetical order, so
    /// that trials with the same strangers have the same words.
    pub fn busiest_strangers(&self, root: &Path, reached: &[Pid]) -> Vec<String> {
        let own = std::process::id().cast_signed();
        let ours = tasks::process_tree(root, own);
        let is_stranger = |stat: &TaskStat| {
            let pid = stat.pid;
            let is_known = ours.contains(&pid) || reached.contains(&pid);
            stat.parent != KTHREADD && Some(pid) != self.scheduler && !is_known
        };
        let mut spent: BTreeMap<String, u64> = BTreeMap::new();
        for stat in processes(root).filter(is_stranger) {
            *spent.entry(stat.command.clone()).or_default() += self.spent(&stat);
        }
        let most = spent.values().copied().max().unwrap_or(0);
        // Those that count: the busiest, and what used a tenth of its time.
        let mut named: Vec<(String, u64)> = spent.into_iter().collect();
        named.retain(|(_, ns)| *ns > 0 && ns.saturating_mul(10) >= most);
        named.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        named.truncate(NAMED_STRANGERS);
        let mut names: Vec<String> = named.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    }
}

/// Strangers that a warning names.
const NAMED_STRANGERS: usize = 3;

fn processes(root: &Path) -> impl Iterator<Item = TaskStat> {
    let all = tasks::list_processes(root).into_iter();
    all.filter_map(move |pid| tasks::read_stat(root, pid))
}

/// True for the kernel's threads but those whose time is in that of the soft interrupts.
fn is_counted(stat: &TaskStat) -> bool {
    stat.parent == KTHREADD && !stat.command.starts_with("ksoftirqd/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;
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
            ("proc/18/stat", &stat(18, "kworker/0:1", 2, 900)),
            ("proc/300/stat", &stat(300, "scx_rusty", 1, 200)),
            ("proc/301/stat", &stat(301, "cc1", 1, 400)),
        ]);
        let mut attendants = Attendants::find(root.path(), Some(300));
        attendants.begin_window(root.path());
        let set = |pid: Pid, command: &str, parent, ticks| {
            let file = root.path().join(format!("proc/{pid}/stat"));
            fs::write(file, stat(pid, command, parent, ticks)).unwrap();
        };
        set(15, "rcu_preempt", 2, 150);
        set(17, "cpuhp/0", 2, 20);
        set(300, "scx_rusty", 1, 210);
        set(301, "cc1", 1, 500);
        fs::remove_file(root.path().join("proc/18/stat")).unwrap();
        let spent = attendants.end_window(root.path());
        assert_eq!(spent.kernel_ns, 700_000_000);
        assert_eq!(spent.scheduler_ns, Some(100_000_000));
    }

    #[test]
    fn the_strangers_that_worked_most_are_named_in_alphabetical_order() {
        let root = tree(&[
            ("proc/2/stat", &stat(2, "kthreadd", 0, 5)),
            ("proc/18/stat", &stat(18, "kworker/0:1", 2, 0)),
            ("proc/40/stat", &stat(40, "dockerd", 1, 500)),
            ("proc/41/stat", &stat(41, "cron", 1, 900)),
            ("proc/300/stat", &stat(300, "scx_rusty", 1, 0)),
        ]);
        let attendants = Attendants::find(root.path(), Some(300));
        for (pid, command, parent, ticks) in [
            (18, "kworker/0:1", 2, 800),
            (40, "dockerd", 1, 600),
            (41, "cron", 1, 901),
            (50, "runc", 1, 300),
            (300, "scx_rusty", 1, 700),
        ] {
            let directory = root.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("stat"), stat(pid, command, parent, ticks)).unwrap();
        }
        assert_eq!(
            attendants.busiest_strangers(root.path(), &[]),
            ["dockerd", "runc"]
        );
    }

    #[test]
    fn an_arm_without_a_scheduler_has_no_time_of_one() {
        let root = tree(&[]);
        let mut attendants = Attendants::find(root.path(), None);
        attendants.begin_window(root.path());
        assert_eq!(
            attendants.end_window(root.path()),
            AttendantTimes::default()
        );
    }
}
