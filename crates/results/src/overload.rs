//! Latency is compared only among trials with comparable success.
//!
//! A load on a schedule marks a trial in which it failed more than 1 % of the requests
//! or did fewer than 99 % of those offered. What such a trial measures as latency is
//! the length of its queue, or the speed of its errors. Its block is left out of the
//! comparisons of latency; where that happens to more than a tenth of the blocks, the
//! two arms are not compared by latency at all but by goodput: what was answered well,
//! a second. (Leaving out many blocks would let an arm choose its best ones.)
//!
//! Each load of a trial has a mark of its own. Those of a co-runner begin with its name, as all its metrics do.

use model::{Better, Trial};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The mark that the loads give: 1 or 0.
pub const MARK: &str = "overloaded";
/// Metric that is compared instead of latency.
pub const GOODPUT: &str = "requests_per_sec";
/// One of so many blocks may be left out.
const LEFT_OUT_AT_MOST: usize = 10;

/// The blocks that two arms have in common, and those with an overloaded trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overload {
    /// Numbers of the blocks with an overloaded trial, by how the metrics of the load begin.
    blocks: BTreeMap<String, BTreeSet<u32>>,
    /// Number of all blocks that were looked at.
    pub of: usize,
}

impl Overload {
    /// Overload of an arm and its baseline in a cell.
    pub fn from_trials<'a>(
        trials: impl IntoIterator<Item = &'a Trial>,
        cell: usize,
        arm: usize,
        baseline: usize,
    ) -> Overload {
        let mut ran = [BTreeSet::new(), BTreeSet::new()];
        let mut overloaded = BTreeMap::new();
        for trial in trials {
            let place = &trial.place;
            if place.cell != cell || !trial.is_ok() || ![arm, baseline].contains(&place.arm) {
                continue;
            }
            ran[usize::from(place.arm == arm)].insert(place.block);
            add_marks(&mut overloaded, trial);
        }
        let both: BTreeSet<u32> = ran[0].intersection(&ran[1]).copied().collect();
        for blocks in overloaded.values_mut() {
            blocks.retain(|block| both.contains(block));
        }
        Overload {
            blocks: overloaded,
            of: both.len(),
        }
    }

    /// Overload of one arm alone in a cell.
    pub fn of_arm<'a>(
        trials: impl IntoIterator<Item = &'a Trial>,
        cell: usize,
        arm: usize,
    ) -> Overload {
        let is_here = |t: &&Trial| t.place.cell == cell && t.place.arm == arm && t.is_ok();
        let mut overload = Overload::default();
        for trial in trials.into_iter().filter(is_here) {
            overload.of += 1;
            add_marks(&mut overload.blocks, trial);
        }
        overload
    }

    /// Metrics that decide between the two arms, among those that were named to decide. Goodput takes the place of the
    /// latencies of a load that is not carried, where one of them was to decide or the load is the first.
    pub fn deciding_metrics<'a>(
        &self,
        named: &'a [String],
        trials: &[&Trial],
    ) -> Vec<Cow<'a, str>> {
        let begins = self
            .blocks
            .keys()
            .filter(|begin| self.forbids_latency(begin));
        let decides = |begin: &&String| {
            begin.is_empty() || named.iter().any(|name| name.starts_with(begin.as_str()))
        };
        let goodput = begins.filter(decides);
        let goodput: Vec<String> = goodput.map(|begin| format!("{begin}{GOODPUT}")).collect();
        let named = named.iter().map(String::as_str);
        let is_latency = |name: &str| {
            let mut measured = trials.iter().filter_map(|trial| trial.metric(name));
            measured
                .next()
                .is_some_and(|m| is_latency(&m.unit, m.better))
        };
        let is_queue = |name: &str| self.forbids_latency(name) && is_latency(name);
        let is_goodput = |name: &str| goodput.iter().any(|found| found == name);
        let others = named.filter(|name| !is_goodput(name) && !is_queue(name));
        let others: Vec<&str> = others.collect();
        let all = goodput.into_iter().map(Cow::Owned);
        all.chain(others.into_iter().map(Cow::Borrowed)).collect()
    }

    /// The goodput of the load which this metric is of.
    pub fn name_goodput(&self, metric: &str) -> String {
        let begin = self.find_load(metric).map_or("", |(begin, _)| begin);
        format!("{begin}{GOODPUT}")
    }

    /// Number of blocks that are overloaded for the load which this metric is of.
    pub fn count_blocks(&self, metric: &str) -> usize {
        self.find_load(metric).map_or(0, |(_, blocks)| blocks.len())
    }

    /// The load which this metric is of: how its metrics begin, and its blocks.
    fn find_load(&self, metric: &str) -> Option<(&str, &BTreeSet<u32>)> {
        let loads = self.blocks.iter();
        let fitting = loads.filter(|(begin, _)| metric.starts_with(begin.as_str()));
        let own = fitting.max_by_key(|(begin, _)| begin.len());
        own.map(|(begin, blocks)| (begin.as_str(), blocks))
    }

    /// Too many blocks are overloaded for a latency of the load, which this metric is of, to say anything.
    pub fn forbids_latency(&self, metric: &str) -> bool {
        self.count_blocks(metric) * LEFT_OUT_AT_MOST > self.of
    }
}

/// The marks of a trial, with how the metrics begin of the load that gave each.
fn list_marks(trial: &Trial) -> impl Iterator<Item = (&str, bool)> {
    let metrics = trial.result.metrics.iter();
    metrics.filter_map(|found| {
        let begin = found.metric.strip_suffix(MARK)?;
        let is_own = begin.is_empty() || begin.ends_with('_');
        is_own.then_some((begin, found.value > 0.0))
    })
}

fn add_marks(blocks: &mut BTreeMap<String, BTreeSet<u32>>, trial: &Trial) {
    for (begin, is_overloaded) in list_marks(trial) {
        let of_load = blocks.entry(begin.to_owned()).or_default();
        if is_overloaded {
            of_load.insert(trial.place.block);
        }
    }
}

/// True if the load that this metric is of marked the trial as overloaded.
pub fn is_overloaded(trial: &Trial, metric: &str) -> bool {
    let fitting = list_marks(trial).filter(|(begin, _)| metric.starts_with(begin));
    let own = fitting.max_by_key(|(begin, _)| begin.len());
    own.is_some_and(|(_, is_overloaded)| is_overloaded)
}

/// True if any load of the trial marked it as overloaded.
pub fn has_overload(trial: &Trial) -> bool {
    list_marks(trial).any(|(_, is_overloaded)| is_overloaded)
}

/// Times that the load measured, and that a queue makes long.
pub fn is_latency(unit: &str, better: Better) -> bool {
    unit == "ns" && better == Better::Lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::trial;
    use model::Measurement;

    fn marked(block: u32, arm: usize, mark: f64) -> Trial {
        let mut trial = trial(block, arm, 1.0);
        trial.result.metrics.push(Measurement {
            metric: MARK.to_owned(),
            unit: "count".to_owned(),
            better: Better::Neither,
            value: mark,
            own: None,
        });
        trial
    }

    fn overload(marks: &[(f64, f64)]) -> Overload {
        let blocks = marks.iter().zip(1..);
        let trials: Vec<Trial> = blocks
            .flat_map(|((baseline, arm), block)| {
                [marked(block, 0, *baseline), marked(block, 1, *arm)]
            })
            .collect();
        Overload::from_trials(&trials, 0, 1, 0)
    }

    #[test]
    fn a_block_is_overloaded_if_either_of_its_trials_is() {
        let found = overload(&[(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]);
        assert_eq!(found.blocks[""], BTreeSet::from([2, 3, 4]));
        assert_eq!(found.of, 4);
        assert!(found.forbids_latency("wakeup_p99"));
    }

    #[test]
    fn one_of_ten_blocks_may_be_overloaded() {
        let mut marks = vec![(0.0, 0.0); 9];
        marks.push((0.0, 1.0));
        assert!(!overload(&marks).forbids_latency("wakeup_p99"));
        marks[0].1 = 1.0;
        assert!(overload(&marks).forbids_latency("wakeup_p99"));
    }

    #[test]
    fn goodput_decides_in_the_place_of_forbidden_latency() {
        let trials = [marked(1, 0, 0.0), marked(1, 1, 1.0)];
        let trials: Vec<&Trial> = trials.iter().collect();
        let named = ["wakeup_p99", "cpu_time"].map(str::to_owned);
        let found = Overload::from_trials(trials.iter().copied(), 0, 1, 0);
        assert_eq!(
            found.deciding_metrics(&named, &trials),
            [GOODPUT, "cpu_time"]
        );
        let none = Overload::default();
        assert_eq!(
            none.deciding_metrics(&named, &trials),
            ["wakeup_p99", "cpu_time"]
        );
    }

    #[test]
    fn an_overload_is_that_of_the_load_which_a_metric_is_of() {
        let marked = |block: u32, arm: usize| {
            let mut trial = marked(block, arm, 0.0);
            let of_co_runner = Measurement {
                metric: format!("web_{MARK}"),
                value: 1.0,
                ..trial.result.metrics[trial.result.metrics.len() - 1].clone()
            };
            trial.result.metrics.push(of_co_runner);
            trial
        };
        let trials = [marked(1, 0), marked(1, 1)];
        let found = Overload::from_trials(&trials, 0, 1, 0);
        assert!(found.forbids_latency("web_request_p99"));
        assert!(!found.forbids_latency("request_p99"));
        assert!(!found.forbids_latency("webs_request_p99"));
        assert!(is_overloaded(&trials[0], "web_request_p99"));
        assert!(!is_overloaded(&trials[0], "request_p99"));
        assert!(has_overload(&trials[0]));
    }

    #[test]
    fn an_arm_by_itself_is_overloaded_whatever_its_baseline_is() {
        let trials = [marked(1, 0, 0.0), marked(1, 1, 1.0), marked(2, 1, 0.0)];
        let found = Overload::of_arm(&trials, 0, 1);
        assert_eq!((found.count_blocks("wakeup_p99"), found.of), (1, 2));
        assert!(found.forbids_latency("wakeup_p99"));
        assert!(!Overload::of_arm(&trials, 0, 0).forbids_latency("wakeup_p99"));
    }

    #[test]
    fn a_load_that_gives_no_mark_is_never_overloaded() {
        let trials = [trial(1, 0, 1.0), trial(1, 1, 1.0)];
        let found = Overload::from_trials(&trials, 0, 1, 0);
        assert_eq!(found.count_blocks("wakeup_p99"), 0);
        assert!(!found.forbids_latency("wakeup_p99"));
        assert!(!Overload::default().forbids_latency("wakeup_p99"));
    }
}
