//! From trials to the numbers that are judged: one log-ratio a block.
//!
//! Only trials that are ok count, and only blocks in which both arms have one:
//! a block is the independent unit, and its two trials ran close together. Latency of
//! an overloaded trial is not compared (see [`crate::overload`]), nor two bounds of the
//! same kind (see [`crate::bound`]). A percentage of 0 counts as a very small one, so that an arm
//! under which a worker gets nothing can be compared, too.

use crate::bound::{Bound, find_bound};
use crate::overload::{is_latency, is_overloaded};
use model::{Measurement, Own, Scale, Trial};
use std::collections::BTreeMap;

/// Least percentage that is told from 0. Whoever starves gets 0 % of what is due, and 0 has no
/// ratio: without this, the blocks in which an arm is at its worst would be left out.
pub const LEAST_PERCENT: f64 = 0.01;

/// Least value of a metric that is told from 0; 0 where there is none. The percentages of schedlab are shares
/// of what is due, of which a ratio is asked; those that experiments define may be anything.
pub(crate) fn least_of(measured: &Measurement) -> f64 {
    match (measured.unit.as_str(), &measured.own) {
        ("%", None) => LEAST_PERCENT,
        _ => 0.0,
    }
}

/// One block in which an arm and its baseline were both measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Number of the block.
    pub block: u32,
    /// Value of the metric in the baseline's trial.
    pub baseline: f64,
    /// Value of the metric in the arm's trial.
    pub arm: f64,
    /// Least value that is told from 0: in a ratio a smaller one counts as much.
    pub least: f64,
}

impl Pair {
    /// `ln(arm / baseline)`; `None` where a ratio has no meaning, because a value
    /// is not a positive finite number.
    pub fn log_ratio(&self) -> Option<f64> {
        let [baseline, arm] = self.ratio_values();
        let x = (arm / baseline).ln();
        (arm > 0.0 && baseline > 0.0 && x.is_finite()).then_some(x)
    }

    /// Arm minus baseline; `None` where one of them is no finite number.
    pub fn difference(&self) -> Option<f64> {
        let difference = self.arm - self.baseline;
        difference.is_finite().then_some(difference)
    }

    /// Log-ratio or difference.
    pub fn shift(&self, scale: Scale) -> Option<f64> {
        match scale {
            Scale::Ratio => self.log_ratio(),
            Scale::Difference => self.difference(),
        }
    }

    /// Values of baseline and arm as they enter the ratio.
    pub fn ratio_values(&self) -> [f64; 2] {
        // Not `max`, which would take what is no number for the least.
        [self.baseline, self.arm].map(|value| match value < self.least {
            true => self.least,
            false => value,
        })
    }

    /// True if one value is too small to be told from 0 and the other is not, so that the ratio
    /// says only that they are far apart.
    pub fn is_from_nothing(&self) -> bool {
        self.log_ratio().is_some() && (self.baseline < self.least) != (self.arm < self.least)
    }
}

/// Scale on which the pairs of a metric are compared: the difference where the metric says so, and where
/// a figure is 0 or below it. Which of both arms has that figure makes no difference, so what a coin says of
/// the arms does not depend on the scale.
pub fn choose_scale(pairs: &[Pair], own: Option<&Own>) -> Scale {
    let counted = || pairs.iter().flat_map(Pair::ratio_values);
    match own.is_some_and(|own| own.scale == Scale::Difference) || counted().any(|v| v <= 0.0) {
        true => Scale::Difference,
        false => Scale::Ratio,
    }
}

/// Declaration of a metric that the experiment defines.
pub fn find_declaration<'a>(
    trials: impl IntoIterator<Item = &'a Trial>,
    metric: &str,
) -> Option<&'a Own> {
    let mut trials = trials.into_iter();
    trials.find_map(|trial| trial.metric(metric)?.own.as_deref())
}

/// Unit of a metric. A figure of 0 may stand without the unit that the others have.
pub fn find_unit<'a>(trials: impl IntoIterator<Item = &'a Trial>, metric: &str) -> Option<&'a str> {
    let mut measured = trials
        .into_iter()
        .filter_map(|t| t.metric(metric))
        .peekable();
    let first = *measured.peek()?;
    let is_said = |m: &&Measurement| m.own.as_ref().is_some_and(|own| own.quote.is_some());
    Some(&measured.find(is_said).unwrap_or(first).unit)
}

/// `x` of one block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockRatio {
    /// Number of the block.
    pub block: u32,
    /// `ln(arm / baseline)`.
    pub x: f64,
}

/// A metric in one trial.
#[derive(Debug, Clone, Copy)]
struct Figure {
    value: f64,
    least: f64,
    bound: Option<Bound>,
    start: u32,
}

impl Figure {
    /// Two trials of different starts of a run are no neighbours in time.
    fn is_comparable(&self, other: &Figure) -> bool {
        self.start == other.start && (self.bound.is_none() || self.bound != other.bound)
    }
}

/// The pairs of a cell for one metric, in block order. `cell`, `arm` and
/// `baseline` are the indices of [`model::PlannedTrial`].
pub fn pair_trials<'a>(
    trials: impl IntoIterator<Item = &'a Trial>,
    cell: usize,
    metric: &str,
    arm: usize,
    baseline: usize,
) -> Vec<Pair> {
    let mut blocks: BTreeMap<u32, [Option<Figure>; 2]> = BTreeMap::new();
    for trial in trials {
        let place = &trial.place;
        if place.cell != cell || !trial.is_ok() {
            continue;
        }
        let Some(measured) = trial.metric(metric) else {
            continue;
        };
        if is_latency(&measured.unit, measured.better) && is_overloaded(trial, metric) {
            continue;
        }
        let slot = blocks.entry(place.block).or_default();
        let value = Some(Figure {
            value: measured.value,
            least: least_of(measured),
            bound: find_bound(trial, metric),
            start: trial.start,
        });
        if place.arm == baseline {
            slot[0] = value;
        } else if place.arm == arm {
            slot[1] = value;
        }
    }
    blocks
        .into_iter()
        .filter_map(|(block, values)| match values {
            [Some(baseline), Some(arm)] if baseline.is_comparable(&arm) => Some(Pair {
                block,
                baseline: baseline.value,
                arm: arm.value,
                least: arm.least,
            }),
            _ => None,
        })
        .collect()
}

/// The log-ratios of a cell for one metric, in block order; none of a metric that is compared by
/// differences ([`choose_scale`]). A block whose values are no numbers is left out (see [`Pair::log_ratio`]).
pub fn log_ratios<'a>(
    trials: impl IntoIterator<Item = &'a Trial> + Clone,
    cell: usize,
    metric: &str,
    arm: usize,
    baseline: usize,
) -> Vec<BlockRatio> {
    let mut pairs = pair_trials(trials.clone(), cell, metric, arm, baseline);
    if choose_scale(&pairs, find_declaration(trials, metric)) == Scale::Difference {
        pairs.clear();
    }
    pairs
        .iter()
        .filter_map(|pair| {
            Some(BlockRatio {
                block: pair.block,
                x: pair.log_ratio()?,
            })
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
pub(crate) mod tests {
    use super::*;
    use crate::bound;
    use model::{Better, Evidence, Measurement, PlannedTrial, TrialResult, TrialState};

    pub(crate) fn trial(block: u32, arm: usize, value: f64) -> Trial {
        Trial {
            place: PlannedTrial {
                index: block * 2 + arm as u32,
                block,
                cell: 0,
                arm,
            },
            cell: "wakeup 100%".into(),
            arm: format!("arm{arm}"),
            attempt: 1,
            start: 1,
            result: TrialResult {
                state: TrialState::Ok,
                started_unix_ns: 0,
                elapsed_ns: 0,
                window_start_ns: 0,
                window_end_ns: 0,
                evidence: Evidence::default(),
                metrics: vec![Measurement {
                    metric: "wakeup_p99".into(),
                    unit: "ns".into(),
                    better: Better::Lower,
                    value,
                    own: None,
                }],
                warnings: Vec::new(),
                for_good: false,
                trace: None,
                windows: None,
                events: Vec::new(),
                rail: None,
            },
        }
    }

    fn ratios(trials: &[Trial]) -> Vec<BlockRatio> {
        log_ratios(trials, 0, "wakeup_p99", 1, 0)
    }

    #[test]
    fn blocks_are_in_order_whatever_the_order_of_trials() {
        let trials = [
            trial(2, 1, 100.0),
            trial(1, 0, 100.0),
            trial(2, 0, 200.0),
            trial(1, 1, 100.0),
        ];
        let found = ratios(&trials);
        assert_eq!(found.iter().map(|r| r.block).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(found[0].x, 0.0);
        assert!((found[1].x - 0.5f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_block_without_its_baseline_is_left_out() {
        assert!(ratios(&[trial(1, 1, 100.0)]).is_empty());
    }

    #[test]
    fn a_void_trial_does_not_count() {
        let mut void = trial(1, 1, 100.0);
        void.result.state = TrialState::Void {
            why: "ejected".into(),
        };
        assert!(ratios(&[trial(1, 0, 100.0), void]).is_empty());
    }

    fn rate(block: u32, arm: usize, value: f64, mark: f64) -> Trial {
        let mut trial = trial(block, arm, 1.0);
        for (metric, value) in [(bound::METRIC, value), (bound::MARK, mark)] {
            trial.result.metrics.push(Measurement {
                metric: metric.into(),
                unit: "1/s".into(),
                better: Better::Higher,
                value,
                own: None,
            });
        }
        trial
    }

    #[test]
    fn two_bounds_of_the_same_kind_are_not_compared() {
        let compared = |marks: [f64; 2]| {
            let trials = [rate(1, 0, 2e3, marks[0]), rate(1, 1, 4e3, marks[1])];
            pair_trials(&trials, 0, bound::METRIC, 1, 0).len()
        };
        assert_eq!(compared([-1.0, -1.0]), 0);
        assert_eq!(compared([1.0, 1.0]), 0);
        assert_eq!(compared([-1.0, 0.0]), 1);
        assert_eq!(compared([-1.0, 1.0]), 1);
    }

    #[test]
    fn the_latency_of_an_overloaded_trial_is_not_compared() {
        let mut overloaded = trial(1, 1, 100.0);
        overloaded.result.metrics.push(Measurement {
            metric: crate::overload::MARK.into(),
            unit: "count".into(),
            better: Better::Neither,
            value: 1.0,
            own: None,
        });
        assert!(ratios(&[trial(1, 0, 100.0), overloaded]).is_empty());
    }

    #[test]
    fn zero_and_not_finite_values_have_no_ratio_but_stay_pairs() {
        let trials = [
            trial(1, 0, 0.0),
            trial(1, 1, 5.0),
            trial(2, 0, 5.0),
            trial(2, 1, f64::NAN),
        ];
        assert!(ratios(&trials).is_empty());
        assert_eq!(pair_trials(&trials, 0, "wakeup_p99", 1, 0).len(), 2);
    }

    #[test]
    fn a_percentage_of_nothing_counts_as_a_very_small_one() {
        let percent = |block, arm, value| {
            let mut trial = trial(block, arm, value);
            trial.result.metrics[0].unit = "%".into();
            trial
        };
        let trials = [
            percent(1, 0, 50.0),
            percent(1, 1, 0.0),
            percent(2, 0, 0.0),
            percent(2, 1, 0.0),
            percent(3, 0, 0.0),
            percent(3, 1, f64::NAN),
        ];
        let found: Vec<f64> = ratios(&trials).iter().map(|ratio| ratio.x).collect();
        assert_eq!(found, [(LEAST_PERCENT / 50.0).ln(), 0.0]);
        let pairs = pair_trials(&trials, 0, "wakeup_p99", 1, 0);
        let from_nothing: Vec<bool> = pairs.iter().map(Pair::is_from_nothing).collect();
        assert_eq!(
            (pairs[0].arm, &from_nothing[..]),
            (0.0, &[true, false, false][..])
        );
    }

    #[test]
    fn another_cell_and_another_metric_do_not_mix_in() {
        let trials = [trial(1, 0, 1.0), trial(1, 1, 1.0)];
        assert!(log_ratios(&trials, 1, "wakeup_p99", 1, 0).is_empty());
        assert!(log_ratios(&trials, 0, "requests_per_sec", 1, 0).is_empty());
    }
}
