//! Pace of some process trees: their threads' times, switches and migrations since the last look, and
//! the events of the sched_ext scheduler. All of it is in /proc and /sys and disturbs nobody but the CPU
//! that reads it.

use crate::delays::{self, Delays};
use crate::sched_ext;
use crate::tasks::{self, Pid};
use model::Pace;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Threads of more than this are not looked at: part of them would be other figures.
pub const MOST_THREADS: usize = 64;

/// One look.
#[derive(Debug)]
pub struct Look {
    at: Instant,
    threads: BTreeMap<Pid, (Delays, Option<u64>)>,
    events: BTreeMap<String, u64>,
}

impl Look {
    /// Looks at the trees of these processes; `None` where there are no threads, or too many.
    pub fn read(root: &Path, leaders: &[Pid]) -> Option<Look> {
        let mut threads = BTreeMap::new();
        for leader in leaders {
            let room = MOST_THREADS + 1 - threads.len();
            for tid in tasks::threads_of_tree(root, *leader, room) {
                // Below /proc, a thread has a place by its own number, too.
                if let Some(delays) = delays::read(root, tid, tid) {
                    threads.insert(tid, (delays, tasks::read_migrations(root, tid, tid)));
                }
            }
            if threads.len() > MOST_THREADS {
                return None;
            }
        }
        (!threads.is_empty()).then(|| Look {
            at: Instant::now(),
            threads,
            events: sched_ext::read_events(root),
        })
    }

    /// Counts from an earlier look on. Threads that ended in between took their figures along.
    pub fn count_since(&self, earlier: &Look) -> Pace {
        let mut pace = Pace {
            over_ns: model::whole_nanos(self.at.duration_since(earlier.at)),
            sched_ext: self.events_since(earlier),
            ..Pace::default()
        };
        for (tid, (delays, moves)) in &self.threads {
            let (before, moved) = earlier.threads.get(tid).copied().unwrap_or_default();
            let delays = delays.count_since(before);
            pace.run_ns += delays.run_ns;
            pace.run_delay_ns += delays.wait_ns;
            pace.switches += delays.timeslices;
            let moves = moves.map(|now| now.saturating_sub(moved.unwrap_or_default()));
            let so_far = pace.migrations.unwrap_or_default();
            pace.migrations = moves.map(|more| so_far + more).or(pace.migrations);
        }
        pace
    }

    fn events_since(&self, earlier: &Look) -> BTreeMap<String, u64> {
        let grown = self.events.iter().map(|(name, now)| {
            // Another scheduler counts from 0 on.
            let before = earlier.events.get(name).filter(|before| *before <= now);
            (name.clone(), now - before.copied().unwrap_or_default())
        });
        grown.filter(|(_, more)| *more > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Spinner(Child);

    impl Drop for Spinner {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn start(script: &str) -> Spinner {
        Spinner(Command::new("sh").args(["-c", script]).spawn().unwrap())
    }

    #[test]
    fn a_process_that_burns_is_seen_to_run_and_one_that_sleeps_is_not() {
        let root = Path::new("/");
        let (burns, sleeps) = (start("while :; do :; done"), start("exec sleep 1000"));
        let pid = |of: &Spinner| Pid::try_from(of.0.id()).unwrap();
        let Some(first) = Look::read(root, &[pid(&burns)]) else {
            return ::tests::skipped("this kernel has no schedstat of tasks");
        };
        let pace = loop {
            let pace = Look::read(root, &[pid(&burns)])
                .unwrap()
                .count_since(&first);
            if pace.run_ns > 50_000_000 {
                break pace;
            }
            std::thread::yield_now();
        };
        // One thread, and clocks that are not read at the same instant.
        assert!(pace.run_ns < 2 * pace.over_ns, "{pace:?}");
        let before = Look::read(root, &[pid(&sleeps)]).unwrap();
        let asleep = loop {
            let look = Look::read(root, &[pid(&sleeps)]).unwrap();
            let pace = look.count_since(&before);
            if pace.over_ns > 50_000_000 {
                break pace;
            }
        };
        assert!(asleep.run_ns < asleep.over_ns / 2, "{asleep:?}");
    }

    #[test]
    fn too_many_threads_and_a_process_that_is_gone_have_no_figures() {
        let files: Vec<(String, &str)> = (1..=MOST_THREADS + 1)
            .flat_map(|tid| {
                let own = format!("proc/{tid}/task/{tid}/schedstat");
                [(own, "1 2 3\n"), (format!("proc/1/task/{tid}/x"), "")]
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let root = ::tests::tree(&files);
        assert!(Look::read(root.path(), &[1]).is_none());
        assert!(Look::read(root.path(), &[2]).is_some());
        assert!(Look::read(root.path(), &[4000]).is_none());
    }

    #[test]
    fn what_a_thread_did_before_is_not_counted_and_a_new_one_counts_whole() {
        let look = |threads: &[(Pid, u64, u64)], events: &[(&str, u64)]| Look {
            at: Instant::now(),
            threads: threads
                .iter()
                .map(|(tid, ns, moves)| {
                    let delays = Delays {
                        run_ns: *ns,
                        wait_ns: ns / 10,
                        timeslices: ns / 100,
                    };
                    (*tid, (delays, Some(*moves)))
                })
                .collect(),
            events: events.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect(),
        };
        let first = look(
            &[(1, 1000, 5), (2, 400, 1)],
            &[("A", 3), ("B", 9), ("C", 4)],
        );
        let last = look(
            &[(1, 1500, 8), (3, 200, 2)],
            &[("A", 5), ("B", 9), ("C", 1)],
        );
        let pace = last.count_since(&first);
        assert_eq!(
            (pace.run_ns, pace.run_delay_ns, pace.switches),
            (700, 70, 7)
        );
        assert_eq!(pace.migrations, Some(5));
        let events = [("A".to_owned(), 2), ("C".to_owned(), 1)];
        assert_eq!(pace.sched_ext, events.into());
    }
}
