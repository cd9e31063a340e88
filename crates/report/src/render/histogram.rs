//! The HdrHistogram interval logs (`*.hlog`) of trials, and percentile curves.
//!
//! The trials of an arm are merged for pictures and export only: no interval and
//! no verdict comes from pooled samples. Values are nanoseconds.

use crate::hlog::{FEWEST_BEYOND, add_log, count_intervals, new_histogram, read_intervals};
use hdrhistogram::Histogram;
use results::{ResultSet, StoredTrial};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Blocks that are drawn by themselves; more would be a smear and a large file.
const MOST_BLOCKS: usize = 12;
/// Fewer intervals in a trial show nothing over time.
const FEWEST_INTERVALS: usize = 3;
/// The median on the axis of curves.
pub const MEDIAN: f64 = std::f64::consts::LOG10_2;
/// Points of a curve for each factor of ten towards 100 %.
const POINTS_PER_DECADE: u32 = 16;

/// All logs of one name, of one arm in one cell.
#[derive(Debug)]
pub struct Group {
    /// Index in the plan.
    pub cell: usize,
    /// Name of the file without its ending: `wakeup`.
    pub name: String,
    /// Index in the experiment.
    pub arm: usize,
    logs: Vec<PathBuf>,
}

/// Contents of the logs of a group.
#[derive(Debug)]
pub struct Merged {
    pub histogram: Histogram<u64>,
    /// Some of the trials by themselves, evenly chosen.
    pub blocks: Vec<Curve>,
    /// Empty where trials have too few intervals.
    pub over_time: OverTime,
    /// Logs that could not be read, and why.
    pub problems: Vec<String>,
}

/// The intervals of all trials, by their number: so many neighbours in one that there are
/// never more than [`MOST_POINTS`].
#[derive(Debug)]
pub struct OverTime {
    width: usize,
    pooled: Vec<Histogram<u64>>,
}

/// More points are no better picture, and each takes up to half a megabyte.
const MOST_POINTS: usize = 100;

impl OverTime {
    fn new() -> OverTime {
        OverTime {
            width: 1,
            pooled: Vec::new(),
        }
    }

    /// The one that this interval counts for.
    fn at(&mut self, interval: usize) -> Result<&mut Histogram<u64>, String> {
        while interval / self.width >= MOST_POINTS {
            self.halve()?;
        }
        let index = interval / self.width;
        if self.pooled.len() <= index {
            self.pooled.resize_with(index + 1, new_histogram);
        }
        Ok(&mut self.pooled[index])
    }

    fn halve(&mut self) -> Result<(), String> {
        let mut pairs = std::mem::take(&mut self.pooled).into_iter();
        while let Some(mut first) = pairs.next() {
            if let Some(second) = pairs.next() {
                first.add(second).map_err(|e| e.to_string())?;
            }
            self.pooled.push(first);
        }
        self.width *= 2;
        Ok(())
    }

    /// (number of the interval, p99) of those with enough samples for it.
    pub fn p99_points(&self) -> Vec<(f64, f64)> {
        const ENOUGH: f64 = 100.0 * FEWEST_BEYOND;
        let middle = (self.width as f64 + 1.0) / 2.0;
        let placed = self.pooled.iter().enumerate();
        placed
            .map(|(index, pooled)| ((index * self.width) as f64 + middle, pooled))
            .filter(|(_, pooled)| pooled.len() as f64 >= ENOUGH)
            .map(|(x, pooled)| (x, pooled.value_at_quantile(0.99) as f64))
            .collect()
    }
}

/// Points (−log10(1 − quantile), value), from the median on: 1 is 90 %, 2 is 99 %.
pub type Curve = Vec<(f64, f64)>;

/// `make` of every group, in the order of cells, names and arms. The logs are read
/// on all CPUs, and one group is in memory at a time on each.
pub fn map_groups<T: Send>(
    results: &ResultSet,
    make: impl Fn(&Group, Merged) -> T + Sync,
) -> Vec<T> {
    let groups = groups(results);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        while let Some((index, group)) = take_next(&groups, &next) {
            made.push((index, make(group, merge(group))));
        }
        made
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let handles: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut made = work();
        for handle in handles {
            match handle.join() {
                Ok(more) => made.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    });
    made.sort_by_key(|(index, _)| *index);
    made.into_iter().map(|(_, made)| made).collect()
}

fn take_next<'a>(groups: &'a [Group], next: &AtomicUsize) -> Option<(usize, &'a Group)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    groups.get(index).map(|group| (index, group))
}

fn groups(results: &ResultSet) -> Vec<Group> {
    let mut by_key: BTreeMap<(usize, String, usize), Vec<PathBuf>> = BTreeMap::new();
    for stored in results.trials.iter().filter(|stored| stored.trial.is_ok()) {
        let place = &stored.trial.place;
        for (name, path) in logs_of(stored) {
            let key = (place.cell, name, place.arm);
            by_key.entry(key).or_default().push(path);
        }
    }
    by_key
        .into_iter()
        .map(|((cell, name, arm), logs)| Group {
            cell,
            name,
            arm,
            logs,
        })
        .collect()
}

/// A trial without files, or whose directory is gone, has no logs.
fn logs_of(stored: &StoredTrial) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(&stored.dir) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "hlog"))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .collect()
}

fn merge(group: &Group) -> Merged {
    let every = group.logs.len().div_ceil(MOST_BLOCKS).max(1);
    let mut buffer = Vec::new();
    let mut merged = Merged {
        histogram: new_histogram(),
        blocks: Vec::new(),
        over_time: OverTime::new(),
        problems: Vec::new(),
    };
    for (index, path) in group.logs.iter().enumerate() {
        let drawn = index % every == 0 && group.logs.len() > 1;
        if let Err(why) = merged.add(path, drawn, &mut buffer) {
            merged
                .problems
                .push(format!("{}: {why}", within_trials(path)));
        }
    }
    merged
}

/// `00042-wakeup-100%-b7-batch/wakeup.hlog`: the same wherever the results lie.
fn within_trials(path: &Path) -> String {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    names[names.len().saturating_sub(2)..].join("/")
}

impl Merged {
    fn add(&mut self, path: &Path, drawn: bool, buffer: &mut Vec<u8>) -> Result<(), String> {
        let text = results::files::read(path).map_err(|e| e.to_string())?;
        if count_intervals(&text) >= FEWEST_INTERVALS {
            for (index, interval) in read_intervals(&text).enumerate() {
                interval?.add_to(self.over_time.at(index)?, buffer)?;
            }
        }
        if !drawn {
            return add_log(&text, &mut self.histogram, buffer);
        }
        let mut one = new_histogram();
        add_log(&text, &mut one, buffer)?;
        self.blocks.push(percentile_curve(&one));
        self.histogram.add(one).map_err(|e| e.to_string())
    }
}

/// The percentile curve, as far as enough samples lie beyond it.
pub fn percentile_curve(histogram: &Histogram<u64>) -> Curve {
    let samples = histogram.len() as f64;
    let end = (samples / FEWEST_BEYOND).log10();
    let step = 1.0 / f64::from(POINTS_PER_DECADE);
    // Negative, and so 0, without samples.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "some steps for each decade of a u64"
    )]
    let last = (end / step).floor() as u32;
    let median = Some(MEDIAN).filter(|median| *median <= end);
    let steps = (1..=last).map(|n| f64::from(n) * step);
    let steps = median.into_iter().chain(steps.filter(|x| *x > MEDIAN));
    let mut wanted = steps
        .map(|x| (x, samples * (1.0 - 10f64.powf(-x))))
        .peekable();
    // One pass over the counts: asking for each quantile would walk them each time.
    let mut points = Curve::new();
    let mut below = 0.0;
    for bucket in histogram.iter_recorded() {
        below += bucket.count_since_last_iteration() as f64;
        while let Some((x, _)) = wanted.next_if(|(_, needed)| *needed <= below) {
            points.push((x, bucket.value_iterated_to() as f64));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_where_too_few_samples_lie_beyond() {
        let mut histogram = new_histogram();
        (1..=1000).for_each(|value| histogram.saturating_record(value));
        let points = percentile_curve(&histogram);
        // 99 % of 1000 samples leaves 10 beyond, 99.9 % leaves one.
        assert_eq!(points.first(), Some(&(MEDIAN, 500.0)));
        assert_eq!(points.last().map(|point| point.0), Some(2.0));
        assert_eq!(points.last().map(|point| point.1), Some(990.0));
    }

    #[test]
    fn a_curve_gives_the_quantiles_of_the_histogram() {
        let mut histogram = new_histogram();
        (1..=100_000u64).for_each(|n| histogram.saturating_record(n * n));
        for (x, value) in percentile_curve(&histogram) {
            let quantile = 1.0 - 10f64.powf(-x);
            let expected = histogram.value_at_quantile(quantile) as f64;
            assert!(
                (value / expected - 1.0).abs() < 2e-3,
                "{quantile}: {value} {expected}"
            );
        }
    }

    #[test]
    fn intervals_without_enough_samples_are_left_out_over_time() {
        let of = |samples: u64| {
            let mut histogram = new_histogram();
            (0..samples).for_each(|_| histogram.saturating_record(7));
            histogram
        };
        let over_time = OverTime {
            width: 1,
            pooled: vec![of(1_000), of(999), of(5_000)],
        };
        assert_eq!(over_time.p99_points(), [(1.0, 7.0), (3.0, 7.0)]);
    }

    #[test]
    fn many_intervals_are_pooled_with_their_neighbours() {
        let mut over_time = OverTime::new();
        for interval in 0..1_000 {
            let histogram = over_time.at(interval).unwrap();
            histogram.saturating_record_n(1 + interval as u64 / 500, 500);
        }
        assert_eq!(over_time.width, 16);
        let points = over_time.p99_points();
        assert_eq!(points.len(), 63);
        assert_eq!(points[0], (8.5, 1.0));
        assert_eq!(points[62], (1000.5, 2.0));
        let samples: u64 = over_time.pooled.iter().map(Histogram::len).sum();
        assert_eq!(samples, 500_000, "none is lost");
    }

    #[test]
    fn too_few_samples_have_no_curve() {
        let mut histogram = new_histogram();
        assert!(percentile_curve(&histogram).is_empty());
        (0..9).for_each(|_| histogram.saturating_record(5));
        assert!(percentile_curve(&histogram).is_empty());
    }

    #[test]
    fn a_damaged_log_is_a_problem_and_not_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wakeup.hlog");
        fs::write(&path, "0.0,1.0,2.0,HISTnotbase64!\n").unwrap();
        let merged = merge(&Group {
            cell: 0,
            name: "wakeup".to_owned(),
            arm: 0,
            logs: vec![path, dir.path().join("absent.hlog")],
        });
        assert_eq!(merged.problems.len(), 2);
        assert!(merged.histogram.is_empty());
    }
}
