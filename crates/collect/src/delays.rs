//! How long tasks ran and how long they waited for a CPU:
//! `/proc/PID/task/TID/schedstat` (Documentation/scheduler/sched-stats.rst), which
//! needs `CONFIG_SCHED_INFO` and is always on where it is there.

use crate::tasks::{self, Pid};
use std::collections::BTreeMap;
use std::path::Path;

/// Of one task, or of many together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delays {
    pub run_ns: u64,
    /// Runnable but not running.
    pub wait_ns: u64,
    /// How often it was given a CPU.
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
    fn since(self, earlier: Delays) -> Delays {
        Delays {
            run_ns: self.run_ns.saturating_sub(earlier.run_ns),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            timeslices: self.timeslices.saturating_sub(earlier.timeslices),
        }
    }
}

/// Every thread of a process tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeDelays {
    threads: BTreeMap<Pid, Delays>,
}

impl TreeDelays {
    pub fn read(root: &Path, leader: Pid) -> Self {
        let threads = tasks::tree(root, leader).into_iter().flat_map(|pid| {
            let threads = tasks::threads(root, pid).into_iter();
            threads.filter_map(move |tid| Some((tid, read(root, pid, tid)?)))
        });
        TreeDelays {
            threads: threads.collect(),
        }
    }

    /// What the threads that are there now did since `earlier`; `None` without any.
    /// Threads that ended in between took their figures along.
    pub fn since(&self, earlier: &TreeDelays) -> Option<Delays> {
        let within = self.threads.iter().map(|(tid, now)| {
            let before = earlier.threads.get(tid).copied().unwrap_or_default();
            now.since(before)
        });
        (!self.threads.is_empty()).then(|| within.sum())
    }
}

fn read(root: &Path, pid: Pid, tid: Pid) -> Option<Delays> {
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
    use crate::fixture::tree;

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
        assert_eq!(last.since(&first), Some(expected));
    }

    #[test]
    fn a_tree_that_is_gone_has_no_figures() {
        assert_eq!(threads(&[]).since(&TreeDelays::default()), None);
    }

    #[test]
    fn this_process_has_run() {
        let own = std::process::id() as Pid;
        let now = TreeDelays::read(Path::new("/"), own);
        match now.since(&TreeDelays::default()) {
            Some(delays) => assert!(delays.run_ns > 0),
            None => println!("skipped: this kernel has no schedstat of tasks"),
        }
    }
}
