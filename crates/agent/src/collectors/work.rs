//! Work of antagonists that keep count of it in a file in memory ([`load::WORK_COUNTS`]). It costs
//! them nothing within the window, and a count is there even where nobody lets them run.

use super::def::{At, Collected, Collecting, CollectorDef, nothing_missing};
use super::memory_files;
use collect::tasks::Pid;
use model::{MetricDef, Role};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

const WORK_PER_SEC: MetricDef = MetricDef::explaining(
    "antagonist_work_per_sec",
    "1/s",
    "Thousands of operations that all antagonists of the kind `burnwait` did in a second.",
);

pub const DEF: CollectorDef = CollectorDef {
    name: "work",
    text: "work that antagonists of the kind burnwait did (counts in their memory)",
    usual: true,
    metrics: &[WORK_PER_SEC],
    logs: &[],
    limit: Duration::ZERO,
    missing: nothing_missing,
    start: |_| Some(Box::<Work>::default()),
};

/// Counts of one moment.
#[derive(Debug)]
struct Reading {
    at: Instant,
    /// Work of each antagonist; `None` where it could not be read.
    kops: Vec<Option<u64>>,
}

#[derive(Debug, Default)]
struct Work {
    counts: Vec<File>,
    first: Option<Reading>,
    last: Option<Reading>,
}

impl Collecting for Work {
    fn begin_window(&mut self, at: &At) {
        let antagonists = at
            .leaders
            .iter()
            .filter(|(role, _)| *role == Role::Antagonist);
        let found = antagonists.filter_map(|(_, pid)| counts_of(at.root, *pid));
        self.counts = found.collect();
        self.first = Some(self.read());
    }

    fn end_window(&mut self, _: &At) {
        self.last = Some(self.read());
    }

    fn collected_results(&self) -> Collected {
        let figure = self
            .per_sec()
            .map(|value| WORK_PER_SEC.to_measurement(value));
        figure.into_iter().collect::<Vec<_>>().into()
    }
}

impl Work {
    fn read(&self) -> Reading {
        let kops = |counts: &File| load::kops_in(counts).ok();
        Reading {
            at: Instant::now(),
            kops: self.counts.iter().map(kops).collect(),
        }
    }

    /// `None` where no antagonist counts, or a count could not be read.
    fn per_sec(&self) -> Option<f64> {
        let (first, last) = self.first.as_ref().zip(self.last.as_ref())?;
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        if first.kops.is_empty() || seconds <= 0.0 {
            return None;
        }
        let both = first.kops.iter().zip(&last.kops);
        let within = both.map(|(first, last)| Some((*last)?.saturating_sub((*first)?)));
        let sum = within.sum::<Option<u64>>()?;
        Some(sum as f64 / seconds)
    }
}

/// The file in which a process keeps count, if it does.
fn counts_of(root: &Path, pid: Pid) -> Option<File> {
    let mut found = memory_files::find_files(root, pid, load::WORK_COUNTS);
    found.pop_first().map(|(_, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn work(first: &[Option<u64>], last: &[Option<u64>]) -> Option<f64> {
        let begin = Instant::now();
        let reading = |at, kops: &[Option<u64>]| {
            Some(Reading {
                at,
                kops: kops.to_vec(),
            })
        };
        let work = Work {
            counts: Vec::new(),
            first: reading(begin, first),
            last: reading(begin + Duration::from_secs(2), last),
        };
        work.per_sec()
    }

    #[test]
    fn work_is_that_of_all_within_the_window_by_the_second() {
        assert_eq!(
            work(&[Some(10), Some(100)], &[Some(30), Some(140)]),
            Some(30.0)
        );
        assert_eq!(work(&[Some(10)], &[Some(10)]), Some(0.0));
        assert_eq!(work(&[], &[]), None);
        assert_eq!(work(&[Some(1), None], &[Some(2), Some(3)]), None);
    }

    #[test]
    fn a_process_without_counts_has_none() {
        assert!(counts_of(Path::new("/"), std::process::id() as Pid).is_none());
    }
}
