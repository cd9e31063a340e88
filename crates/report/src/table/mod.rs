//! The table: everything that a report says, as plain values, in the order in
//! which it is said. Renderers only choose how it looks.
//!
//! The field names are those of the JSON report (`docs/report.schema.json`).

pub(crate) mod across;
mod build;
mod cell;
mod doubt;
mod drift;
mod ending;
mod evidence;
pub(crate) mod explanation;
mod levels;
mod log_ratio;
mod modes;
mod narrowing;
mod not_measured;
mod notices;
pub(crate) mod pooled_quantile;
mod summary;
mod turns;
mod twins;
mod warm;

pub use evidence::Statement;
pub use judge::Verdict;
pub use log_ratio::LogRatio;
pub use narrowing::{Standing, clip_standings};
pub(crate) use not_measured::most_common;
use stats::Test;

use crate::quantity::{
    format_change, format_interval, format_percent, signed_with_unit, with_unit,
};
use across::Across;
use ending::Looks;
use model::{Better, Once, Severity, System};
use pooled_quantile::Pooled;
use results::{Format, RunState};
use serde::Serialize;
use std::time::Duration;
pub use turns::InTurns;

/// Everything that a report says of one results directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Format of the results directory.
    pub(crate) format: Format,
    pub(crate) experiment: ExperimentInfo,
    pub(crate) arms: Vec<ArmInfo>,
    /// One entry for each arm that is compared: how often it got which verdict.
    pub tallies: Vec<Tally>,
    /// Cells in the order of the plan, measured or not.
    pub cells: Vec<CellTable>,
    #[serde(flatten)]
    pub(crate) across: Across,
    pub(crate) trials: TrialCounts,
    /// From the first trial to the end of the last one of each start, in all.
    pub(crate) took_ns: u64,
    /// Trials that do not count, with the reason, in the order of the plan.
    pub(crate) excluded: Vec<Excluded>,
    /// The most serious first, each once.
    pub(crate) warnings: Vec<Notice>,
    pub(crate) system: System,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentInfo {
    pub name: String,
    pub question: Option<String>,
    pub target: String,
    pub seed: u64,
    pub created: String,
    pub state: RunState,
    pub tool_version: String,
    pub tool_commit: String,
    pub confidence: f64,
    pub smallest_effect: f64,
    /// Tunables that all arms have alike: `autogroup=off`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_all_arms: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmInfo {
    pub name: String,
    /// Changes of the arm: `batch+nice=5`, `default`.
    pub summary: String,
    pub baseline: bool,
    /// Repeats the baseline under another name.
    pub aa: bool,
    /// Schedulers that were attached in its trials, with version and hash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Proof that its trials ran under it.
    pub evidence: Vec<Statement>,
}

/// Verdicts of one arm over the deciding metrics of all cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// Name of the arm.
    pub arm: String,
    /// True if the arm repeats the baseline, so that every call but `same` is false.
    pub aa: bool,
    /// Comparisons whose verdict is better.
    pub better: usize,
    /// Comparisons whose verdict is worse.
    pub worse: usize,
    /// Comparisons whose verdict is same: the arms differ by less than the smallest effect of interest.
    pub same: usize,
    /// Comparisons that the blocks so far do not decide.
    pub unknown: usize,
    /// Cells in which no trial of the arm, or of its baseline, counts.
    pub cells_not_measured: usize,
}

impl Tally {
    pub(crate) fn total(&self) -> usize {
        self.better + self.worse + self.same + self.unknown
    }
}

/// One cell of the experiment, a workload under one load, with its comparisons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellTable {
    /// `wakeup 100%`.
    pub name: String,
    /// The name as it is read out, with the rate that a share means.
    #[serde(skip)]
    pub(crate) title: String,
    pub(crate) workload: String,
    pub(crate) load: String,
    /// Deciding metrics first; within a metric in the order of the arms.
    pub comparisons: Vec<Comparison>,
    /// Every metric that any trial of the cell measured.
    pub(crate) metrics: Vec<MetricRow>,
    /// Quantiles of all requests of an arm, where its trials have none of their own.
    pub(crate) pooled: Vec<Pooled>,
    /// Arms of which no trial counts.
    pub(crate) not_measured: Vec<NotMeasured>,
    /// Mean time of a block with all arms; none where no trial counts.
    pub(crate) block_ns: Option<f64>,
}

/// An arm without a trial that counts in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotMeasured {
    pub arm: String,
    pub void: usize,
    pub failed: usize,
    /// The most common reason; empty where no trial was made.
    pub why: String,
}

impl CellTable {
    /// No arm has a trial that counts.
    pub(crate) fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    pub(crate) fn deciding_comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|c| c.deciding)
    }

    pub(crate) fn further_comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|c| !c.deciding)
    }
}

/// One arm against the baseline, for one metric in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the workload.
    pub workload: String,
    /// Load of the cell as experiments write it, such as `200%`.
    pub load: String,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric as it was measured, such as `ns`. The levels and medians have it.
    pub unit: String,
    /// Direction in which the metric improves.
    pub better: Better,
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the arm that is compared with the baseline.
    pub arm: String,
    /// True if the metric was named to decide, and so counts in the tally.
    pub deciding: bool,
    /// True if the arm repeats the baseline.
    pub aa: bool,
    /// Arm over baseline; none without a block that has both. Where the comparison ended its cell, or could have, it
    /// is the size that stopping does not flatter, else the centre of the blocks.
    pub ratio: Option<f64>,
    /// Centre of the blocks, on the scale of the change, where that is not the size that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub centre: Option<f64>,
    /// The interval of the ratio; none with fewer than two blocks.
    pub low: Option<f64>,
    /// Upper end of the interval; none where `low` is none.
    pub high: Option<f64>,
    /// Confidence of the interval and of the verdict, between 0 and 1.
    pub confidence: f64,
    /// Evidence against "no difference"; none with fewer than two blocks.
    pub e_value: Option<f64>,
    /// Number of blocks that have a figure of both arms.
    pub blocks: usize,
    /// Verdict on the arm against the baseline.
    pub verdict: Verdict,
    /// Verdict of earlier blocks that all of them together no longer support, so that it is
    /// `unknown` now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Verdict>,
    /// Thing beyond which the verdict does not reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds_for: Option<HoldsFor>,
    /// Test that ratio, interval and evidence are by.
    pub test: Test,
    /// For `unknown`: blocks in all that a decision is likely to take.
    pub blocks_needed: Option<u32>,
    /// Time in nanoseconds that those of `blocks_needed` that are missing are likely to take;
    /// none where that is none.
    pub more_ns: Option<f64>,
    /// Geometric means over the blocks of the comparison: the second is the first
    /// times `ratio`.
    pub baseline_level: Option<f64>,
    /// Geometric mean of the arm over the same blocks.
    pub arm_level: Option<f64>,
    /// Median of the baseline over the blocks of the comparison.
    pub baseline_median: Option<f64>,
    /// Median of the arm over the same blocks.
    pub arm_median: Option<f64>,
    /// True if the call holds when all comparisons of its family are looked at together (e-BH);
    /// none where nothing is called.
    pub survives_ebh: Option<bool>,
    /// Way of measuring, where the arms took turns inside processes; blocks are pairs of windows
    /// then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_turns: Option<InTurns>,
    /// Doubts that the numbers alone do not show, a sentence each.
    pub notes: Vec<String>,
    /// Standings by which the interval narrowed and the evidence grew, of a comparison that decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narrowing: Vec<Standing>,
    /// The blocks in order: what `ratio` and its interval are made of.
    pub(crate) block_ratios: Vec<BlockPoint>,
    /// Looks at these blocks while they were measured.
    #[serde(skip)]
    pub(crate) looks: Looks,
    /// Change in the unit of the metric, where a figure is 0 or below it, or where the experiment asks for it;
    /// `ratio`, its interval and its blocks are not there then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

/// Thing beyond which a verdict does not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldsFor {
    /// Arm and baseline had a boot each in the whole run.
    ThisBoot,
    /// The services were started once.
    ThisStart,
    /// The machines that were measured: the interval over machines does not say so of others.
    TheseMachines,
    /// The same of runs on one machine.
    TheseRuns,
}

impl From<Once> for HoldsFor {
    fn from(once: Once) -> Self {
        match once {
            Once::ThisBoot => HoldsFor::ThisBoot,
            Once::ThisStart => HoldsFor::ThisStart,
        }
    }
}

/// Change on the scale of differences, in the unit of the metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Arm minus baseline, as `ratio` is given.
    pub value: f64,
    /// Lower end of the interval; none with too few blocks.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Smallest difference that is of interest.
    pub smallest_effect: f64,
    /// The blocks in order.
    pub blocks: Vec<BlockDifference>,
}

/// Difference in one block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockDifference {
    /// Number of the block.
    pub block: u32,
    /// Arm minus baseline.
    pub difference: f64,
    /// Value of the baseline's trial.
    #[serde(skip)]
    pub baseline: f64,
    /// Value of the arm's trial.
    #[serde(skip)]
    pub arm: f64,
}

impl Comparison {
    /// The change on the scale of the metric: `+3.2%`, or `-200 us`. All formats show it so.
    pub(crate) fn format_change(&self) -> Option<String> {
        let in_unit = |found: &Difference| signed_with_unit(found.value, &self.unit);
        let difference = self.difference.as_ref().map(in_unit);
        difference.or_else(|| self.ratio.map(format_change))
    }

    /// Its interval: `[+1.2%, +5.3%]`, or `[-219 us, -181 us]`.
    pub(crate) fn format_interval(&self) -> Option<String> {
        match &self.difference {
            Some(found) => found.low.zip(found.high).map(|ends| {
                let [low, high] = [ends.0, ends.1].map(|end| signed_with_unit(end, &self.unit));
                format!("[{low}, {high}]")
            }),
            None => self.low.zip(self.high).map(|(l, h)| format_interval(l, h)),
        }
    }

    /// Smallest effect of interest, on the scale of the metric; `smallest` is that of ratios.
    pub(crate) fn smallest_effect(&self, smallest: f64) -> String {
        match &self.difference {
            Some(found) => with_unit(found.smallest_effect, &self.unit),
            None => format!("{} %", format_percent(smallest)),
        }
    }

    /// Size of the change for an order among comparisons: of ratios their logarithm, of differences the
    /// share of the level.
    pub(crate) fn change_size(&self) -> f64 {
        let level = self.baseline_median.into_iter().chain(self.arm_median);
        let level = level.fold(0.0, |most: f64, level| most.max(level.abs()));
        match &self.difference {
            Some(found) if level > 0.0 => (found.value / level).abs(),
            Some(found) => found.value.abs(),
            None => self.ratio.map_or(0.0, |ratio| ratio.ln().abs()),
        }
    }

    /// No change is known on any scale.
    pub fn has_no_change(&self) -> bool {
        self.ratio.is_none() && self.difference.is_none()
    }

    pub(crate) fn blocks_missing(&self) -> Option<u32> {
        let has = u32::try_from(self.blocks).unwrap_or(u32::MAX);
        Some(self.blocks_needed?.saturating_sub(has))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockPoint {
    pub block: u32,
    pub ratio: f64,
    /// Value of the baseline's trial.
    #[serde(skip)]
    pub baseline: f64,
    /// Value of the arm's trial.
    #[serde(skip)]
    pub arm: f64,
}

/// A metric of a cell, summarised for each arm without comparing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricRow {
    pub metric: String,
    pub unit: String,
    pub better: Better,
    /// In the order of the arms; none where the arm has no such figure.
    pub arms: Vec<Option<Summary>>,
}

impl MetricRow {
    /// 0 under every arm.
    pub(crate) fn is_nothing(&self) -> bool {
        let mut medians = self.arms.iter().flatten();
        medians.all(|summary| summary.median == 0.0)
    }
}

/// The trials of one arm: the middle and the middle half.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    pub trials: usize,
    /// For shares, which a median would round away: few trials that fail are still failures.
    #[serde(skip)]
    pub(crate) mean: f64,
    pub median: f64,
    pub lower_quartile: f64,
    pub upper_quartile: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TrialCounts {
    pub ok: usize,
    pub void: usize,
    pub failed: usize,
}

impl TrialCounts {
    pub(crate) fn total(&self) -> usize {
        self.ok + self.void + self.failed
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Excluded {
    pub cell: String,
    pub arm: String,
    pub block: u32,
    pub attempt: u32,
    /// `void` or `failed`.
    pub state: String,
    pub why: String,
}

impl Excluded {
    pub(crate) fn first_line(&self) -> &str {
        model::trial::first_line(&self.why)
    }

    /// Last lines of a program or a console; empty where there are none after the headline.
    pub(crate) fn last_lines(&self) -> &str {
        let rest = self.why.trim_start().split_once('\n');
        rest.map_or("", |(_, rest)| rest.trim_end())
    }
}

/// A warning, and the trials that said it. Those that differ in their numbers only
/// are one, with the least and the greatest of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    pub severity: Severity,
    pub what: String,
    pub remedy: String,
    /// 0: the run as a whole.
    pub trials: usize,
    /// `batch in wakeup 200%`, each once.
    pub places: Vec<String>,
    /// The trials by arm, the most first.
    pub arms: Vec<ArmTrials>,
}

/// Number of trials of one arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArmTrials {
    pub arm: String,
    pub trials: usize,
}

impl ArmTrials {
    /// One more of `arm`; the order stays that of the numbers.
    pub(crate) fn add_trial(all: &mut Vec<ArmTrials>, arm: &str) {
        match all.iter_mut().find(|found| found.arm == arm) {
            Some(found) => found.trials += 1,
            None => all.push(ArmTrials {
                arm: arm.to_owned(),
                trials: 1,
            }),
        }
        all.sort_by_key(|found| std::cmp::Reverse(found.trials));
    }
}

impl Table {
    /// No trial counts.
    pub(crate) fn is_empty(&self) -> bool {
        self.trials.ok == 0
    }

    /// Time from the first trial to the end of the last one, of each start, in all. What a run waited for before is none
    /// of it.
    pub fn measuring_time(&self) -> Duration {
        Duration::from_nanos(self.took_ns)
    }

    /// Number of trials that count.
    pub fn trials_that_count(&self) -> usize {
        self.trials.ok
    }

    pub(crate) fn serious_notices(&self) -> impl Iterator<Item = &Notice> {
        self.warnings
            .iter()
            .filter(|w| w.severity == Severity::Serious)
    }

    /// Schedulers that were attached in the trials of an arm, with version and hash.
    pub fn list_programs(&self, arm: &str) -> &[String] {
        let mut arms = self.arms.iter();
        arms.find(|found| found.name == arm)
            .map_or(&[], |found| &found.programs)
    }

    /// Comparisons of all cells, in the order of the cells.
    pub fn all_comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.cells.iter().flat_map(|c| &c.comparisons)
    }

    /// An arm has more of a rare event than its baseline.
    pub fn has_worse_events(&self) -> bool {
        let mut events = self.across.events.iter();
        events.any(|c| !c.aa && c.verdict == Verdict::Worse)
    }

    pub(crate) fn baseline(&self) -> &str {
        self.arms
            .iter()
            .find(|a| a.baseline)
            .map_or("", |a| a.name.as_str())
    }
}
