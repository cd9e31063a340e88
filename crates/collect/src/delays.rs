//! Time that tasks ran, and time that they waited for a CPU: `/proc/PID/task/TID/schedstat`
//! (Documentation/scheduler/sched-stats.rst), which needs `CONFIG_SCHED_INFO` and is always on
//! where it is there.

use crate::tasks::{self, Pid};
use std::collections::BTreeMap;
use std::path::Path;

/// Times of one task, or of many together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delays {
    /// Time on a CPU.
    pub run_ns: u64,
    /// Runnable but not running.
    pub wait_ns: u64,
    /// Number of times that it was given a CPU.
    pub timeslices: u64,
}

impl std::iter::Sum for Delays {
    fn sum<I: Iterator<Item = Delays>>(all: I) -> Delays {
        all.fold(Delays::default(), |sum, one| Delays {
            run_ns: sum.run_ns + one.run_ns,
            wait_ns: sum.wait_ns + one.wait_ns,
            timeslices: sum.timeslices + one.timeslices,
        })
    }
}

impl Delays {
    /// Times from an earlier reading of the same task on.
    pub fn count_since(self, earlier: Delays) -> Delays {
        Delays {
            run_ns: self.run_ns.saturating_sub(earlier.run_ns),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            timeslices: self.timeslices.saturating_sub(earlier.timeslices),
        }
    }
}

/// A thread that ended takes its figures along. More CPU time than this beyond what
/// the threads that are left tell of, and theirs are not those of the tree.
const MOST_MISSING_PERCENT: u64 = 10;
/// `/proc/PID/stat` counts in hundredths of a second.
const STAT_NS: u64 = 20_000_000;

/// Every thread of a process tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeDelays {
    threads: BTreeMap<Pid, Delays>,
    /// CPU time by process, with that of threads that ended.
    cpu_ns: BTreeMap<Pid, u64>,
}

impl TreeDelays {
    /// Times of the threads of the process `leader` and of all its descendants, as they are now.
    pub fn read(root: &Path, leader: Pid) -> Self {
        let mut found = TreeDelays::default();
        for pid in tasks::process_tree(root, leader) {
            if let Some(stat) = tasks::read_stat(root, pid) {
                found.cpu_ns.insert(pid, stat.cpu_ns());
            }
            let threads = tasks::list_threads(root, pid).into_iter();
            let delays = threads.filter_map(|tid| Some((tid, read(root, pid, tid)?)));
            found.threads.extend(delays);
        }
        found
    }

    /// CPU time since `earlier` of the processes that are there now, also of their
    /// threads that ended in between.
    pub fn cpu_ns_since(&self, earlier: &TreeDelays) -> u64 {
        let since = |(pid, now): (&Pid, &u64)| {
            let before = earlier.cpu_ns.get(pid).copied().unwrap_or_default();
            now.saturating_sub(before)
        };
        self.cpu_ns.iter().map(since).sum()
    }

    /// Times of the threads that are there now, counted from `earlier`; `None` without any, and
    /// where other threads of these processes ended in between and had a part in the work.
    /// Processes that ended are not seen.
    pub fn delays_since(&self, earlier: &TreeDelays) -> Option<Delays> {
        let within = self.threads.iter().map(|(tid, now)| {
            let before = earlier.threads.get(tid).copied().unwrap_or_default();
            now.count_since(before)
        });
        let within: Delays = within.sum();
        let expected_ns = self.cpu_ns_since(earlier) / 100 * (100 - MOST_MISSING_PERCENT);
        let is_whole = within.run_ns + STAT_NS >= expected_ns;
        (!self.threads.is_empty() && is_whole).then_some(within)
    }
}

/// Times of one thread; `None` if it is gone, or the kernel does not count them.
pub fn read(root: &Path, pid: Pid, tid: Pid) -> Option<Delays> {
    let text = crate::read_trimmed(&root.join(format!("proc/{pid}/task/{tid}/schedstat")))?;
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some(Delays {
        run_ns: fields.next()?.ok()?,
        wait_ns: fields.next()?.ok()?,
        timeslices: fields.next()?.ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn threads(files: &[(&str, &str)]) -> TreeDelays {
        let root = tree(files);
        TreeDelays::read(root.path(), 7)
    }

    #[test]
    fn threads_are_added_up_from_where_each_began() {
        let first = threads(&[
            ("proc/7/task/7/schedstat", "100 10 1\n"),
            ("proc/7/task/8/schedstat", "1000 500 50\n"),
        ]);
        let last = threads(&[
            ("proc/7/task/8/schedstat", "1300 700 60\n"),
            ("proc/7/task/9/schedstat", "40 4 2\n"),
        ]);
        let expected = Delays {
            run_ns: 340,
            wait_ns: 204,
            timeslices: 12,
        };
        assert_eq!(last.delays_since(&first), Some(expected));
    }

    #[test]
    fn threads_that_took_a_part_of_the_work_along_leave_no_figures() {
        let stat = |ticks: u32| {
            format!("7 (load) S 1 7 7 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100 0 0\n")
        };
        let at = |ticks: u32, own: &str| {
            threads(&[
                ("proc/7/stat", &stat(ticks)),
                ("proc/7/task/7/schedstat", own),
            ])
        };
        let first = at(0, "0 0 0\n");
        // A second of CPU time, of which the thread that is left had 10 ms.
        assert_eq!(at(100, "10000000 5 2\n").delays_since(&first), None);
        assert!(at(100, "950000000 5 2\n").delays_since(&first).is_some());
        assert!(at(1, "1000 5 2\n").delays_since(&first).is_some());
    }

    #[test]
    fn a_tree_that_is_gone_has_no_figures() {
        assert_eq!(threads(&[]).delays_since(&TreeDelays::default()), None);
    }

    #[test]
    fn this_process_has_run() {
        let own = std::process::id() as Pid;
        let now = TreeDelays::read(Path::new("/"), own);
        match now.delays_since(&TreeDelays::default()) {
            Some(delays) => assert!(delays.run_ns > 0),
            None => ::tests::skipped("this kernel has no schedstat of tasks"),
        }
    }
}
