//! Turns: arms that change places inside one running process, window by window.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Lengths of the windows of a cell whose arms take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPlace {
    /// Length of a window.
    pub window_ns: u64,
    /// Time between a change and its window. Its first half is for the change and its proof, the
    /// second for settling.
    pub washout_ns: u64,
    /// True where a pilot chooses both before the first block, or finds that each trial must be a
    /// process of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pilot: bool,
}

/// Finding of the pilot of a cell whose arms may take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", rename_all = "kebab-case")]
pub enum Piloted {
    /// Arms take turns in windows of these lengths.
    Turns {
        /// Length of each window and washout.
        lengths: InPlace,
    },
    /// Each trial is a process of its own; a warning of the run says why.
    Whole,
}

/// Length of a window where nothing says another: long enough for the 99th percentile of a few
/// thousand requests a second.
pub const USUAL_WINDOW_NS: u64 = 200_000_000;
/// Least washout: a change of all threads with its proof takes less where they are a few dozen.
const LEAST_WASHOUT_NS: u64 = 20_000_000;

impl InPlace {
    /// Windows of this length, with the usual washout of a tenth of it.
    pub fn new(window_ns: u64) -> Self {
        InPlace {
            window_ns,
            washout_ns: (window_ns / 10).max(LEAST_WASHOUT_NS),
            pilot: false,
        }
    }

    /// Length of one turn: its washout and its window.
    pub fn turn_ns(&self) -> u64 {
        self.washout_ns.saturating_add(self.window_ns)
    }

    /// Turn and half of its window (0 or 1) at a time since the first turn began; `None` in a
    /// washout.
    pub fn half_at(&self, at_ns: u64) -> Option<(u64, usize)> {
        let (turn, within_ns) = (at_ns / self.turn_ns(), at_ns % self.turn_ns());
        let in_window_ns = within_ns.checked_sub(self.washout_ns)?;
        Some((turn, usize::from(in_window_ns >= self.window_ns / 2)))
    }

    /// Share of the time that is thrown away, 0 to 1.
    pub fn washout_share(&self) -> f64 {
        self.washout_ns as f64 / self.turn_ns().max(1) as f64
    }
}

/// Turns of one process, in the order of time. Each is its washout and its window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// Length of each window and washout.
    pub lengths: InPlace,
    /// Arm and pair of each turn.
    pub order: Vec<Turn>,
}

impl Turns {
    /// Length of all turns together.
    pub fn all_ns(&self) -> u64 {
        self.lengths
            .turn_ns()
            .saturating_mul(self.order.len() as u64)
    }

    /// Arm whose turn it is so long after the first turn began; after the last one it is that of the
    /// last.
    pub fn arm_at(&self, at_ns: u64) -> usize {
        let turn = at_ns / self.lengths.turn_ns().max(1);
        let turn = usize::try_from(turn).unwrap_or(usize::MAX);
        let last = self.order.len().saturating_sub(1);
        self.order.get(turn.min(last)).map_or(0, |turn| turn.arm)
    }

    /// Numbers of turns, from the first on, after which figures are told.
    pub fn looks(&self) -> Vec<usize> {
        let pairs = looks_within(self.order.len() / 2).into_iter();
        pairs.map(|pairs| 2 * pairs).collect()
    }

    /// Length of all windows together.
    pub fn windows_ns(&self) -> u64 {
        self.lengths
            .window_ns
            .saturating_mul(self.order.len() as u64)
    }
}

/// Numbers of pairs after which a process of so many is looked at while it goes on: a fifth more each time.
pub fn looks_within(pairs: usize) -> Vec<usize> {
    /// Fewer are seldom enough.
    const FIRST: usize = 8;
    let looks = std::iter::successors(Some(FIRST), |look| Some(look + look.div_ceil(5)));
    looks.take_while(|look| *look < pairs).collect()
}

/// One turn of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Index of the arm in the list of those that take turns.
    pub arm: usize,
    /// Number of its pair, from 0 on: a turn of the baseline and one of another arm.
    pub pair: u32,
}

/// Arms of a trial that take turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakingTurns {
    /// All arms of the cell.
    pub arms: Vec<crate::Arm>,
    /// Whose turn it is, and for how long.
    pub turns: Turns,
    /// True where the runner looks at the pairs while the arms take turns, and may have enough of them.
    #[serde(default)]
    pub is_watched: bool,
}

/// Windows of an arm that are known while arms still take turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SoFar {
    /// Level of each metric, with its unit.
    pub metrics: Vec<crate::Measurement>,
    /// Figures of the windows.
    pub windows: Windows,
}

/// Windows of one arm in a process that it shared with others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// Start of the process, nanoseconds since the epoch: arms with another one took their turns in
    /// another process.
    pub process_unix_ns: u64,
    /// Length of each window.
    pub window_ns: u64,
    /// Time before each window that is thrown away.
    pub washout_ns: u64,
    /// Median time from the start of a turn until the arm was proven to be in force.
    pub change_ns: u64,
    /// Place of each window among all turns of the process, from 0 on.
    pub turns: Vec<u32>,
    /// Number of the pair of each window.
    pub pairs: Vec<u32>,
    /// Numbers of turns after which they were looked at, and were not enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<u32>,
    /// Windows that do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<VoidWindow>,
    /// Figures of each window by metric; `None` where a window has too few values.
    pub figures: BTreeMap<String, Vec<Option<f64>>>,
    /// The same of the first half of each window alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub first_halves: BTreeMap<String, Vec<Option<f64>>>,
    /// The same of the second half.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub second_halves: BTreeMap<String, Vec<Option<f64>>>,
}

/// A window that does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidWindow {
    /// Index among the windows of the arm.
    pub window: usize,
    /// Fact that is not what the arm needs, or what the kernel refused.
    pub why: String,
}

/// Part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// All of it.
    Whole,
    /// Its first half.
    FirstHalf,
    /// Its second half.
    SecondHalf,
}

impl Windows {
    /// Indices of the windows that do not count.
    fn void(&self) -> BTreeSet<usize> {
        self.void.iter().map(|void| void.window).collect()
    }

    /// Time of the turns of this arm.
    pub fn turns_ns(&self) -> u64 {
        let turn_ns = self.washout_ns.saturating_add(self.window_ns);
        turn_ns.saturating_mul(self.turns.len() as u64)
    }

    /// Pairs whose window of this arm counts.
    pub fn counted_pairs(&self) -> BTreeSet<u32> {
        let void = self.void();
        let windows = self.pairs.iter().enumerate();
        let counted = windows.filter(|(index, _)| !void.contains(index));
        counted.map(|(_, pair)| *pair).collect()
    }

    /// Pairs of the windows before which the arm was changed to itself, since the last turn was its
    /// own and counts, too.
    pub fn after_itself(&self) -> BTreeSet<u32> {
        let void = self.void();
        let turns = self.turns.iter().zip(&self.pairs);
        let own = self.turns.iter().enumerate();
        let own = own.filter(|(window, _)| !void.contains(window));
        let own: BTreeSet<u32> = own.map(|(_, turn)| *turn).collect();
        turns
            .filter(|(turn, _)| turn.checked_sub(1).is_some_and(|last| own.contains(&last)))
            .map(|(_, pair)| *pair)
            .collect()
    }

    /// Figures of a metric in the windows that count, by their pair.
    pub fn by_pair(&self, metric: &str, span: Span) -> BTreeMap<u32, f64> {
        let figures = match span {
            Span::Whole => &self.figures,
            Span::FirstHalf => &self.first_halves,
            Span::SecondHalf => &self.second_halves,
        };
        let void = self.void();
        let values = figures.get(metric).into_iter().flatten();
        let windows = self.pairs.iter().zip(values).enumerate();
        let counted = windows.filter(|(index, _)| !void.contains(index));
        counted
            .filter_map(|(_, (pair, value))| Some((*pair, (*value)?)))
            .collect()
    }
}

impl Windows {
    /// Level of a metric over the windows that count: the geometric mean, or the arithmetic one where a
    /// figure is 0 or below it; `None` without a figure.
    pub fn level_of(&self, metric: &str) -> Option<f64> {
        let values = self.by_pair(metric, Span::Whole);
        let values: Vec<f64> = values.into_values().collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        if values.is_empty() {
            return None;
        }
        if values.iter().any(|value| *value <= 0.0) {
            return Some(mean(&values));
        }
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        Some(mean(&logarithms).exp())
    }
}

/// Name under which the load gives the file of an arm, by the index of the arm.
pub fn file_of_arm(arm: usize, name: &str) -> String {
    format!("{ARM}{arm}/{name}")
}

/// The arm and the name of its file; `None` for a file of the whole process.
pub fn arm_of_file(name: &str) -> Option<(usize, &str)> {
    let (arm, name) = name.strip_prefix(ARM)?.split_once('/')?;
    Some((arm.parse().ok()?, name))
}

/// No file of a load or a collector begins so.
const ARM: &str = "arm-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_windows_that_count() {
        let windows = Windows {
            pairs: vec![0, 1, 2, 3],
            void: vec![VoidWindow {
                window: 1,
                why: "the nice value was 5".to_owned(),
            }],
            figures: BTreeMap::from([(
                "p99".to_owned(),
                vec![Some(1.0), Some(2.0), None, Some(4.0)],
            )]),
            ..Windows::default()
        };
        let found = windows.by_pair("p99", Span::Whole);
        assert_eq!(found, BTreeMap::from([(0, 1.0), (3, 4.0)]));
        assert!(windows.by_pair("p50", Span::Whole).is_empty());
        assert!(windows.by_pair("p99", Span::FirstHalf).is_empty());
    }

    #[test]
    fn a_level_is_a_geometric_mean_unless_a_figure_is_nothing_or_less() {
        let level = |values: &[f64]| {
            let windows = Windows {
                pairs: (0..).take(values.len()).collect(),
                figures: BTreeMap::from([(
                    "rate".to_owned(),
                    values.iter().copied().map(Some).collect(),
                )]),
                ..Windows::default()
            };
            windows.level_of("rate")
        };
        assert_eq!(level(&[]), None);
        assert_eq!(level(&[0.0, 0.0]), Some(0.0));
        assert_eq!(level(&[-1.0, 4.0]), Some(1.5));
        assert!((level(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_window_after_one_of_the_same_arm_is_known_by_its_turn() {
        // b a, a b, b a: the second and the third pair begin with the arm of the last turn.
        let a = Windows {
            turns: vec![1, 2, 5],
            pairs: vec![0, 1, 2],
            ..Windows::default()
        };
        let b = Windows {
            turns: vec![0, 3, 4],
            pairs: vec![0, 1, 2],
            ..Windows::default()
        };
        assert_eq!(a.after_itself(), BTreeSet::from([1]));
        assert_eq!(b.after_itself(), BTreeSet::from([2]));
    }

    #[test]
    fn the_washout_of_a_short_window_is_long_enough_for_a_change() {
        assert_eq!(InPlace::new(50_000_000).washout_ns, 20_000_000);
        assert_eq!(InPlace::new(2_000_000_000).turn_ns(), 2_200_000_000);
    }

    #[test]
    fn a_file_of_an_arm_is_told_from_one_of_the_process() {
        let name = file_of_arm(2, "wakeup.hlog");
        assert_eq!(arm_of_file(&name), Some((2, "wakeup.hlog")));
        assert_eq!(arm_of_file("wakeup.hlog"), None);
        assert_eq!(arm_of_file("arm-x/a"), None);
    }
}
