//! From windows of arms that took turns to the numbers that are judged: one log-ratio a pair of
//! windows, by process.

use crate::sample::{LEAST_PERCENT, Pair};
use model::turns::Span;
use model::{Trial, Windows};
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
}

impl Process<'_> {
    /// Log-ratios of the pairs in which both windows count and have the figure, in their order.
    pub fn log_ratios(&self, metric: &str, span: Span) -> Vec<f64> {
        self.by_pair(metric, span).into_values().collect()
    }

    /// Log-ratio of each pair by its number.
    pub fn by_pair(&self, metric: &str, span: Span) -> BTreeMap<u32, f64> {
        let baseline = self.baseline.by_pair(metric, span);
        let arm = self.arm.by_pair(metric, span);
        // Windows have no units, but only loads of our own take turns, and their names have them.
        let least = match metric.ends_with("_percent") {
            true => LEAST_PERCENT,
            false => 0.0,
        };
        let ratio = |(pair, arm): (u32, f64)| {
            let both = Pair {
                block: self.block,
                baseline: *baseline.get(&pair)?,
                arm,
                least,
            };
            Some((pair, both.log_ratio()?))
        };
        arm.into_iter().filter_map(ratio).collect()
    }

    /// Pairs of these two that were measured, and those of them of which a window is void.
    pub fn pairs(&self) -> (usize, usize) {
        let counted = self.arm.counted();
        let both = counted.intersection(&self.baseline.counted()).count();
        let all = self.arm.pairs.len();
        (all, all.saturating_sub(both))
    }
}

/// The processes of a cell in which both arms took turns, in block order. `cell`, `arm` and
/// `baseline` are the indices of [`model::PlannedTrial`].
pub fn processes<'a>(
    trials: impl IntoIterator<Item = &'a Trial>,
    cell: usize,
    arm: usize,
    baseline: usize,
) -> Vec<Process<'a>> {
    let mut blocks: BTreeMap<u32, [Option<&Windows>; 2]> = BTreeMap::new();
    for trial in trials
        .into_iter()
        .filter(|t| t.place.cell == cell && t.is_ok())
    {
        let slot = match trial.place.arm {
            at if at == baseline => 0,
            at if at == arm => 1,
            _ => continue,
        };
        blocks.entry(trial.place.block).or_default()[slot] = trial.result.windows.as_ref();
    }
    let of_block = |(block, windows): (u32, [Option<&'a Windows>; 2])| match windows {
        [Some(baseline), Some(arm)] if is_one_process(baseline, arm) => Some(Process {
            block,
            baseline,
            arm,
        }),
        _ => None,
    };
    blocks.into_iter().filter_map(of_block).collect()
}

fn is_one_process(baseline: &Windows, arm: &Windows) -> bool {
    baseline.process_unix_ns == arm.process_unix_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::trial;
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
        let found = processes(&trials, 0, 1, 0);
        let blocks: Vec<u32> = found.iter().map(|process| process.block).collect();
        assert_eq!(blocks, [1, 3]);
        assert_eq!(found[0].log_ratios("p99", Span::Whole), [1.0, 0.0]);
        assert_eq!((found[0].pairs(), found[1].pairs()), ((2, 0), (2, 1)));
        assert_eq!(found[1].log_ratios("p99", Span::Whole), [0.0]);
        assert!(found[0].log_ratios("p50", Span::Whole).is_empty());
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
        let process = Process {
            block: 1,
            baseline: &baseline,
            arm: &arm,
        };
        let found = process.log_ratios("worst_worker_percent", Span::Whole);
        assert_eq!(found, [(LEAST_PERCENT / 50.0).ln()]);
        assert!(process.log_ratios("p99", Span::Whole).is_empty());
    }
}
