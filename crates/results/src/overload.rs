//! Latency is compared only among trials with comparable success.
//!
//! A load on a schedule marks a trial in which it failed more than 1 % of the requests
//! or did fewer than 99 % of those offered. What such a trial measures as latency is
//! the length of its queue, or the speed of its errors. Its block is left out of the
//! comparisons of latency; where that happens to more than a tenth of the blocks, the
//! two arms are not compared by latency at all but by goodput: what was answered well,
//! a second. (Leaving out many blocks would let an arm choose its best ones.)

use model::{Better, Trial};
use std::collections::BTreeSet;

/// The mark that the loads give: 1 or 0.
pub const MARK: &str = "overloaded";
/// Metric that is compared instead of latency.
pub const GOODPUT: &str = "requests_per_sec";
/// One of so many blocks may be left out.
const LEFT_OUT_AT_MOST: usize = 10;

/// The blocks that two arms have in common, and those with an overloaded trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overload {
    /// Numbers of the blocks with an overloaded trial.
    pub blocks: BTreeSet<u32>,
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
        let mut overloaded = BTreeSet::new();
        for trial in trials {
            let place = &trial.place;
            if place.cell != cell || !trial.is_ok() || ![arm, baseline].contains(&place.arm) {
                continue;
            }
            ran[usize::from(place.arm == arm)].insert(place.block);
            if is_overloaded(trial) {
                overloaded.insert(place.block);
            }
        }
        let both: BTreeSet<u32> = ran[0].intersection(&ran[1]).copied().collect();
        Overload {
            blocks: overloaded.intersection(&both).copied().collect(),
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
            if is_overloaded(trial) {
                overload.blocks.insert(trial.place.block);
            }
        }
        overload
    }

    /// Metrics that decide between the two arms, among those that were named to decide.
    pub fn deciding_metrics<'a>(&self, named: &'a [String], trials: &[&Trial]) -> Vec<&'a str> {
        let named = named.iter().map(String::as_str);
        if !self.forbids_latency() {
            return named.collect();
        }
        let is_latency = |name: &str| {
            let mut measured = trials.iter().filter_map(|trial| trial.metric(name));
            measured
                .next()
                .is_some_and(|m| is_latency(&m.unit, m.better))
        };
        let others = named.filter(|name| *name != GOODPUT && !is_latency(name));
        [GOODPUT].into_iter().chain(others).collect()
    }

    /// Too many blocks are overloaded for latency to say anything.
    pub fn forbids_latency(&self) -> bool {
        self.blocks.len() * LEFT_OUT_AT_MOST > self.of
    }
}

/// True if the load marked the trial as overloaded.
pub fn is_overloaded(trial: &Trial) -> bool {
    trial.metric(MARK).is_some_and(|mark| mark.value > 0.0)
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
        assert_eq!(found.blocks, BTreeSet::from([2, 3, 4]));
        assert_eq!(found.of, 4);
        assert!(found.forbids_latency());
    }

    #[test]
    fn one_of_ten_blocks_may_be_overloaded() {
        let mut marks = vec![(0.0, 0.0); 9];
        marks.push((0.0, 1.0));
        assert!(!overload(&marks).forbids_latency());
        marks[0].1 = 1.0;
        assert!(overload(&marks).forbids_latency());
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
    fn an_arm_by_itself_is_overloaded_whatever_its_baseline_is() {
        let trials = [marked(1, 0, 0.0), marked(1, 1, 1.0), marked(2, 1, 0.0)];
        let found = Overload::of_arm(&trials, 0, 1);
        assert_eq!((found.blocks.len(), found.of), (1, 2));
        assert!(found.forbids_latency());
        assert!(!Overload::of_arm(&trials, 0, 0).forbids_latency());
    }

    #[test]
    fn a_load_that_gives_no_mark_is_never_overloaded() {
        let trials = [trial(1, 0, 1.0), trial(1, 1, 1.0)];
        let found = Overload::from_trials(&trials, 0, 1, 0);
        assert_eq!(found.blocks, BTreeSet::new());
        assert!(!found.forbids_latency());
        assert!(!Overload::default().forbids_latency());
    }
}
