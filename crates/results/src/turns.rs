//! From windows of arms that took turns to the numbers that are judged: one log-ratio or one
//! difference a pair of windows, by process.

use crate::sample::{self, Pair};
use model::turns::Span;
use model::{Measurement, Own, Scale, Trial, TrialResult, Windows};
use std::collections::BTreeMap;

/// Windows of an arm and of its baseline in one process.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    /// Number of the block, which the process is.
    pub block: u32,
    /// Windows of the baseline.
    pub baseline: &'a Windows,
    /// Windows of the arm.
    pub arm: &'a Windows,
    /// Metrics of the arm's trial, which know more of a figure than its windows do.
    pub metrics: &'a [Measurement],
}

impl Process<'_> {
    /// Log-ratios or differences of the pairs in which both windows count and have the figure, in their
    /// order.
    pub fn pair_shifts(&self, metric: &str, span: Span, scale: Scale) -> Vec<f64> {
        self.shifts_by_pair(metric, span, scale)
            .into_values()
            .collect()
    }

    /// Log-ratio or difference of each pair by its number.
    pub fn shifts_by_pair(&self, metric: &str, span: Span, scale: Scale) -> BTreeMap<u32, f64> {
        let figures = self.pair_figures(metric, span).into_iter();
        figures
            .filter_map(|(number, pair)| Some((number, pair.shift(scale)?)))
            .collect()
    }

    /// Figures of both windows of each pair by its number.
    pub fn pair_figures(&self, metric: &str, span: Span) -> BTreeMap<u32, Pair> {
        let baseline = self.baseline.by_pair(metric, span);
        let arm = self.arm.by_pair(metric, span);
        let least = self.measured(metric).map_or(0.0, sample::least_of);
        let both = |(number, arm): (u32, f64)| {
            let pair = Pair {
                block: self.block,
                baseline: *baseline.get(&number)?,
                arm,
                least,
            };
            Some((number, pair))
        };
        arm.into_iter().filter_map(both).collect()
    }

    /// Level of a metric under the arm, which has its unit and declaration.
    fn measured(&self, metric: &str) -> Option<&Measurement> {
        self.metrics.iter().find(|m| m.metric == metric)
    }

    /// Declaration of a metric that the experiment defines.
    fn own(&self, metric: &str) -> Option<&Own> {
        self.measured(metric)?.own.as_deref()
    }

    /// Pairs of these two that were measured, and those of them of which a window is void.
    pub fn count_pairs(&self) -> (usize, usize) {
        let counted = self.arm.counted_pairs();
        let both = counted.intersection(&self.baseline.counted_pairs()).count();
        let all = self.arm.pairs.len();
        (all, all.saturating_sub(both))
    }
}

/// Scale on which the pairs of windows of a metric are compared ([`sample::choose_scale`]).
pub fn choose_scale(processes: &[Process], metric: &str) -> Scale {
    let figures = processes
        .iter()
        .map(|p| p.pair_figures(metric, Span::Whole));
    let pairs: Vec<Pair> = figures.flat_map(BTreeMap::into_values).collect();
    let own = processes.iter().find_map(|process| process.own(metric));
    sample::choose_scale(&pairs, own)
}

/// Smallest difference that is of interest in the unit of a metric, where the experiment says it.
pub fn smallest_difference(processes: &[Process], metric: &str) -> Option<f64> {
    let own = processes.iter().find_map(|process| process.own(metric));
    own?.smallest_effect
}

/// The processes of a cell in which both arms took turns, in block order. `cell`, `arm` and
/// `baseline` are the indices of [`model::PlannedTrial`].
pub fn find_processes<'a>(
    trials: impl IntoIterator<Item = &'a Trial>,
    cell: usize,
    arm: usize,
    baseline: usize,
) -> Vec<Process<'a>> {
    let mut blocks: BTreeMap<u32, [Option<&TrialResult>; 2]> = BTreeMap::new();
    for trial in trials
        .into_iter()
        .filter(|t| t.place.cell == cell && t.is_ok())
    {
        let slot = match trial.place.arm {
            at if at == baseline => 0,
            at if at == arm => 1,
            _ => continue,
        };
        blocks.entry(trial.place.block).or_default()[slot] = Some(&trial.result);
    }
    let blocks = blocks.into_iter();
    blocks
        .filter_map(|(block, [baseline, arm])| {
            let metrics = &arm?.metrics[..];
            let (baseline, arm) = (baseline?.windows.as_ref()?, arm?.windows.as_ref()?);
            is_one_process(baseline, arm).then_some(Process {
                block,
                baseline,
                arm,
                metrics,
            })
        })
        .collect()
}

fn is_one_process(baseline: &Windows, arm: &Windows) -> bool {
    baseline.process_unix_ns == arm.process_unix_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::LEAST_PERCENT;
    use crate::sample::tests::trial;
    use model::Better;
    use model::turns::VoidWindow;

    fn windows(process_unix_ns: u64, pairs: &[u32], values: &[f64]) -> Windows {
        let values = values.iter().copied().map(Some).collect();
        Windows {
            process_unix_ns,
            pairs: pairs.to_vec(),
            figures: BTreeMap::from([("p99".to_owned(), values)]),
            ..Windows::default()
        }
    }

    fn turned(block: u32, arm: usize, windows: Windows) -> Trial {
        let mut trial = trial(block, arm, 1.0);
        trial.result.windows = Some(windows);
        trial
    }

    fn ratios(process: &Process, metric: &str) -> Vec<f64> {
        process.pair_shifts(metric, Span::Whole, Scale::Ratio)
    }

    #[test]
    fn windows_with_nothing_are_compared_by_differences_and_none_is_left_out() {
        let trials = [
            turned(1, 0, windows(5, &[0, 1, 2], &[0.0, 2.0, 0.0])),
            turned(1, 1, windows(5, &[0, 1, 2], &[3.0, 1.0, 0.0])),
        ];
        let found = find_processes(&trials, 0, 1, 0);
        assert_eq!(choose_scale(&found, "p99"), Scale::Difference);
        let differences = found[0].pair_shifts("p99", Span::Whole, Scale::Difference);
        assert_eq!(differences, [3.0, -1.0, 0.0]);
        assert_eq!(choose_scale(&found, "p50"), Scale::Ratio);
    }

    #[test]
    fn a_pair_is_the_two_windows_of_one_process() {
        let e = std::f64::consts::E;
        let mut void = windows(5, &[0, 1], &[1.0, 1.0]);
        void.void.push(VoidWindow {
            window: 1,
            why: "late".to_owned(),
        });
        let trials = [
            turned(1, 0, windows(5, &[0, 1, 2], &[1.0, 2.0, 3.0])),
            turned(1, 1, windows(5, &[0, 1], &[e, 2.0])),
            turned(2, 0, windows(6, &[0], &[1.0])),
            turned(2, 1, windows(7, &[0], &[1.0])),
            turned(3, 0, windows(5, &[0, 1], &[1.0, 1.0])),
            turned(3, 1, void),
        ];
        let found = find_processes(&trials, 0, 1, 0);
        let blocks: Vec<u32> = found.iter().map(|process| process.block).collect();
        assert_eq!(blocks, [1, 3]);
        assert_eq!(ratios(&found[0], "p99"), [1.0, 0.0]);
        assert_eq!(
            (found[0].count_pairs(), found[1].count_pairs()),
            ((2, 0), (2, 1))
        );
        assert_eq!(ratios(&found[1], "p99"), [0.0]);
        assert!(ratios(&found[0], "p50").is_empty());
    }

    #[test]
    fn a_percentage_of_nothing_in_a_window_counts_as_a_very_small_one() {
        let of = |value| Windows {
            figures: BTreeMap::from([
                ("worst_worker_percent".to_owned(), vec![Some(value)]),
                ("p99".to_owned(), vec![Some(value)]),
            ]),
            ..windows(5, &[0], &[])
        };
        let (baseline, arm) = (of(50.0), of(0.0));
        let level = |metric: &str, unit: &str| Measurement {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better: Better::Higher,
            value: 0.0,
            own: None,
        };
        let process = Process {
            block: 1,
            baseline: &baseline,
            arm: &arm,
            metrics: &[level("worst_worker_percent", "%"), level("p99", "ns")],
        };
        let found = ratios(&process, "worst_worker_percent");
        assert_eq!(found, [(LEAST_PERCENT / 50.0).ln()]);
        assert!(ratios(&process, "p99").is_empty());
    }
}
