//! Comparisons of arms that took turns inside processes.

use crate::quantity::{format_change, with_unit};
use crate::table::ending::Looks;
use crate::table::levels::{block_point, find_difference, levels_of};
use crate::table::narrowing::find_standings;
use crate::table::{Comparison, doubt};
use judge::{FEWEST_BLOCKS, Judgement, judge_turns};
use model::turns::Span;
use model::{Better, InPlace, Scale, StopRule, Windows, format_duration_ns};
use results::Pair;
use results::turns::{Process, choose_scale};
use serde::Serialize;
use stats::randomization::{Prior, e_value, estimate_centre};
use stats::summary::{self, median};
use stats::t_test;

/// How a comparison was measured whose arms took turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InTurns {
    /// Processes that the arms took turns in.
    pub processes: usize,
    /// Pairs of windows that were measured.
    pub pairs: usize,
    /// Those of which a window does not count.
    pub void_pairs: usize,
    /// Reason of the first window that does not count, for the notes.
    #[serde(skip)]
    pub why_void: Option<String>,
    /// Length of a window.
    pub window_ns: u64,
    /// Share of the time that was thrown away after changes, 0 to 1.
    pub washout_share: f64,
    /// Median time of a change with its proof.
    pub change_ns: u64,
    /// Arm over baseline in the first half of the windows alone; none of a metric that is compared by
    /// differences.
    pub first_half: Option<f64>,
    /// The same in the second half.
    pub second_half: Option<f64>,
    /// Evidence against "the difference is the same in both halves".
    pub carry_over_e_value: f64,
    /// Price of a change that changes nothing; none with fewer than two of its windows, or where
    /// these do not vary.
    pub price: Option<Price>,
}

/// Price of a change of an arm to itself: what the change leaves in the window after its washout.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// Windows whose last turn was of the same arm, of both arms.
    pub windows: usize,
    /// First half of such a window over its second half, as a geometric mean.
    pub ratio: f64,
    /// Interval of that at the confidence of the run (Student's t).
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// A comparison of the trials of blocks, judged by the pairs of windows of their processes.
pub(crate) fn by_pairs(
    by_blocks: Comparison,
    processes: &[Process],
    stop: &StopRule,
    at_the_end: bool,
) -> Comparison {
    let (judged, in_turns) = compare(processes, &by_blocks.metric, by_blocks.better, stop);
    let judged = match at_the_end {
        true => judge::at_the_end(judged, by_blocks.better, stop),
        false => judged,
    };
    let pairs = numbered(processes, &by_blocks.metric);
    let difference = find_difference(&judged, &pairs);
    let by_ratios = by_blocks.baseline_level;
    let (baseline_level, arm_level) = match difference.is_some() {
        true => levels_of(&pairs, &judged, true),
        false => (
            by_ratios,
            by_ratios.zip(judged.known_ratio()).map(|(l, r)| l * r),
        ),
    };
    Comparison {
        ratio: judged.known_ratio(),
        low: judged.lower_end(),
        high: judged.upper_end(),
        e_value: (judged.blocks as usize >= FEWEST_BLOCKS).then_some(judged.e_value),
        blocks: judged.blocks as usize,
        verdict: judged.supported_verdict(),
        withdrawn: judged.withdrawn_verdict(),
        test: judged.test,
        blocks_needed: judged.blocks_needed,
        baseline_level,
        arm_level,
        notes: in_turns
            .note_sentences(stop.confidence)
            .into_iter()
            .chain(doubt::doubt_note(&judged))
            .collect(),
        narrowing: Vec::new(),
        block_ratios: match difference.is_some() {
            true => Vec::new(),
            false => pairs.iter().filter_map(block_point).collect(),
        },
        in_turns: Some(in_turns),
        looks: Looks::new(looks_of(processes, &by_blocks.metric), &judged),
        difference,
        ..by_blocks
    }
}

/// Numbers of pairs at each look, within each process and at its end.
fn looks_of(processes: &[Process], metric: &str) -> Vec<Vec<usize>> {
    let scale = choose_scale(processes, metric);
    let mut before = 0;
    let of_process = |process: &Process| {
        let shifts = process.shifts_by_pair(metric, Span::Whole, scale);
        // A pair has two turns.
        let known = |turns: &u32| before + shifts.range(..turns / 2).count();
        let within = process.arm.looks.iter().map(known);
        // Each look has its place in the lists of all comparisons, also where void pairs add nothing.
        let looks: Vec<usize> = within.chain([before + shifts.len()]).collect();
        before += shifts.len();
        looks
    };
    processes.iter().map(of_process).collect()
}

/// A comparison with how its interval narrowed over the pairs of windows.
pub(crate) fn with_narrowing(
    comparison: Comparison,
    processes: &[Process],
    stop: &StopRule,
) -> Comparison {
    let (metric, better) = (&comparison.metric, comparison.better);
    let by_difference = comparison.difference.is_some();
    let narrowing = find_standings(comparison.blocks, by_difference, |count| {
        judge::judge_first_turns(processes, metric, better, stop, count)
    });
    Comparison {
        narrowing,
        ..comparison
    }
}

/// The judgement on a metric, and how it was measured.
fn compare(
    processes: &[Process],
    metric: &str,
    better: Better,
    stop: &StopRule,
) -> (Judgement, InTurns) {
    let judged = judge_turns(processes, metric, better, stop);
    let scale = choose_scale(processes, metric);
    let half = |span| {
        let all = processes
            .iter()
            .flat_map(|p| p.pair_shifts(metric, span, scale));
        let centre = estimate_centre(&all.collect::<Vec<f64>>()).filter(|_| scale == Scale::Ratio);
        centre.map(f64::exp)
    };
    let counts = processes.iter().map(Process::count_pairs);
    let (pairs, void_pairs) = counts.fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    let lengths = processes
        .first()
        .map_or(InPlace::new(0), |process| InPlace {
            window_ns: process.arm.window_ns,
            washout_ns: process.arm.washout_ns,
            pilot: false,
        });
    let changes = processes
        .iter()
        .flat_map(|p| [p.arm.change_ns, p.baseline.change_ns]);
    let changes: Vec<f64> = changes.map(|ns| ns as f64).collect();
    let windows = processes.iter().flat_map(|p| [p.arm, p.baseline]);
    let void = windows.flat_map(|windows| &windows.void);
    let in_turns = InTurns {
        processes: processes.len(),
        pairs,
        void_pairs,
        why_void: void.map(|void| void.why.clone()).next(),
        window_ns: lengths.window_ns,
        washout_share: lengths.washout_share(),
        change_ns: model::truncate_to_u64(median(&changes).unwrap_or(0.0)),
        first_half: half(Span::FirstHalf),
        second_half: half(Span::SecondHalf),
        carry_over_e_value: e_value(&growths(processes, metric, scale), Prior::PAIRS),
        price: price(processes, metric, judge::error_rate(stop)),
    };
    (judged, in_turns)
}

/// The pairs of all processes, numbered from 1.
fn numbered(processes: &[Process], metric: &str) -> Vec<Pair> {
    let figures = processes
        .iter()
        .map(|p| p.pair_figures(metric, Span::Whole));
    let pairs = figures.flat_map(|figures| figures.into_values());
    (1..)
        .zip(pairs)
        .map(|(block, pair)| Pair { block, ..pair })
        .collect()
}

/// Growth of what the arms of each pair differ by, from the first half to the second. Where they differ by
/// the same factor, or the same difference, in both halves, the coin that drew the order of the pair
/// decides its sign.
fn growths(processes: &[Process], metric: &str, scale: Scale) -> Vec<f64> {
    let of_process = |process: &Process| {
        let first = process.shifts_by_pair(metric, Span::FirstHalf, scale);
        let second = process.shifts_by_pair(metric, Span::SecondHalf, scale);
        let both = second
            .into_iter()
            .filter_map(|(pair, x)| Some(x - first.get(&pair)?));
        both.collect::<Vec<f64>>()
    };
    processes.iter().flat_map(of_process).collect()
}

/// Price of a change of an arm to itself. Every turn begins with a change and its proof, also
/// where the last one was of the same arm.
fn price(processes: &[Process], metric: &str, alpha: f64) -> Option<Price> {
    let of_arm = |windows: &Windows| {
        let first = windows.by_pair(metric, Span::FirstHalf);
        let second = windows.by_pair(metric, Span::SecondHalf);
        let ratio = |pair: u32| {
            let (first, second) = (first.get(&pair)?, second.get(&pair)?);
            Some((first / second).ln()).filter(|x| x.is_finite())
        };
        let windows = windows.after_itself().into_iter();
        windows.filter_map(ratio).collect::<Vec<f64>>()
    };
    let arms = processes.iter().flat_map(|p| [p.baseline, p.arm]);
    let xs: Vec<f64> = arms.flat_map(of_arm).collect();
    let interval = t_test::one_sample(&xs, alpha)?.interval;
    Some(Price {
        windows: xs.len(),
        ratio: summary::mean(&xs)?.exp(),
        low: interval.low.exp(),
        high: interval.high.exp(),
    })
}

impl InTurns {
    /// Sentences for all reports.
    pub(crate) fn note_sentences(&self, confidence: f64) -> Vec<String> {
        let mut notes = vec![self.way()];
        if self.void_pairs > 0 {
            let why = self.why_void.as_deref();
            notes.push(format!(
                "{} of {} pairs are void; the first one: {}",
                self.void_pairs,
                self.pairs,
                why.unwrap_or("not both of its windows were measured")
            ));
        }
        notes.extend(self.price.map(Price::in_words));
        notes.extend(self.carry_over(confidence));
        notes
    }

    fn way(&self) -> String {
        let place = match self.processes {
            1 => "this one process".to_owned(),
            many => format!("{many} processes"),
        };
        let percent = 100.0 * self.washout_share;
        format!(
            "in turns inside {place}: blocks are {} pairs of windows of {}, {percent:.0} % of the time \
             was thrown away after changes, and a change took {}",
            self.pairs,
            format_duration_ns(self.window_ns),
            with_unit(self.change_ns as f64, "ns")
        )
    }

    fn carry_over(&self, confidence: f64) -> Option<String> {
        if self.carry_over_e_value < 1.0 / (1.0 - confidence) {
            return None;
        }
        let halves = match self.first_half.zip(self.second_half) {
            Some((first, second)) => format!(
                "{} in the first half of the windows and {} in the second",
                format_change(first),
                format_change(second)
            ),
            None => "not the same in both halves of the windows".to_owned(),
        };
        Some(format!(
            "the difference is {halves}: something outlives a change, so the size of the difference is \
             not that of whole trials; leave out in-place to measure that"
        ))
    }
}

impl Price {
    fn in_words(self) -> String {
        format!(
            "a change of an arm to itself leaves {} ({} to {}) in the first half of a window against \
             its second, by {} windows",
            format_change(self.ratio),
            format_change(self.low),
            format_change(self.high),
            self.windows
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::turns::VoidWindow;
    use std::collections::BTreeMap;

    fn windows(values: &[f64], halves: [&[f64]; 2]) -> Windows {
        let figures = |values: &[f64]| {
            let values = values.iter().copied().map(Some).collect();
            BTreeMap::from([("p50".to_owned(), values)])
        };
        Windows {
            window_ns: 200_000_000,
            washout_ns: 20_000_000,
            change_ns: 1_500_000,
            pairs: (0..values.len())
                .map(|pair| u32::try_from(pair).unwrap())
                .collect(),
            figures: figures(values),
            first_halves: figures(halves[0]),
            second_halves: figures(halves[1]),
            ..Windows::default()
        }
    }

    #[test]
    fn a_difference_that_grows_after_a_change_is_said() {
        let level = [100.0; 12];
        let baseline = windows(&level, [&level, &level]);
        let grown: Vec<f64> = (0..12).map(|k| 109.0 + 0.1 * f64::from(k)).collect();
        let arm = windows(&[105.0; 12], [&level, &grown]);
        let process = Process {
            block: 1,
            baseline: &baseline,
            arm: &arm,
            metrics: &[],
        };
        let stop = StopRule::default();
        let (judged, in_turns) = compare(&[process], "p50", Better::Higher, &stop);
        assert_eq!(judged.blocks, 12);
        let notes = in_turns.note_sentences(0.95);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[0].contains("this one process: blocks are 12 pairs"),
            "{notes:?}"
        );
        assert!(
            notes[1].contains("something outlives a change"),
            "{notes:?}"
        );
        let steady = windows(&[105.0; 12], [&[105.0; 12], &[105.0; 12]]);
        let process = Process {
            arm: &steady,
            ..process
        };
        let (_, in_turns) = compare(&[process], "p50", Better::Higher, &stop);
        assert_eq!(in_turns.note_sentences(0.95).len(), 1);
        let mut late = steady.clone();
        late.void.push(VoidWindow {
            window: 3,
            why: "the washout was too short".to_owned(),
        });
        let process = Process {
            arm: &late,
            ..process
        };
        let (_, in_turns) = compare(&[process], "p50", Better::Higher, &stop);
        let said = "1 of 12 pairs are void; the first one: the washout was too short";
        assert_eq!(in_turns.note_sentences(0.95)[1], said);
    }

    #[test]
    fn looks_are_counted_in_the_pairs_that_count() {
        let level = [100.0; 12];
        let mut arm = Windows {
            looks: vec![4, 6, 20],
            ..windows(&level, [&level, &level])
        };
        arm.void.push(VoidWindow {
            window: 2,
            why: "late".to_owned(),
        });
        let baseline = windows(&level, [&level, &level]);
        let process = Process {
            block: 1,
            baseline: &baseline,
            arm: &arm,
            metrics: &[],
        };
        // The third pair is void, so that the second look adds nothing; it keeps its place.
        let looks = looks_of(&[process, process], "p50");
        assert_eq!(looks, [[2, 2, 9, 11], [13, 13, 20, 22]]);
    }

    #[test]
    fn the_price_of_a_change_is_that_of_windows_after_the_same_arm() {
        // Every other window follows one of the same arm.
        let turns = vec![0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23];
        let after = [100.0; 12];
        let mut before = [150.0; 12];
        for (pair, first) in [(2, 104.0), (4, 102.0), (6, 104.0), (8, 102.0), (10, 104.0)] {
            before[pair] = first;
        }
        let arm = Windows {
            turns,
            ..windows(&after, [&before, &after])
        };
        let baseline = windows(&after, [&before, &after]);
        let process = Process {
            block: 1,
            baseline: &baseline,
            arm: &arm,
            metrics: &[],
        };
        let found = price(&[process], "p50", 0.05).unwrap();
        assert_eq!(found.windows, 5);
        assert!((1.02..1.04).contains(&found.ratio), "{found:?}");
        assert!(found.low > 1.0 && found.high < 1.05, "{found:?}");
    }
}
