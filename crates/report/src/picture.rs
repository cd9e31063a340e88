//! The picture of a run that is under way: what a live view draws, as plain values that can be sent
//! to another machine or to a page. The words are those of the report.

use crate::quantity::with_unit;
use crate::table::{CellTable, Comparison, MetricRow, Standing, Table, Verdict, clip_standings};
use crate::words;
use model::{Experiment, Plan, Severity, format_duration_ns};
use results::RunState;
use serde::{Deserialize, Serialize};

/// Heights of a column of a picture in text, the lowest first.
pub const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Values of one arm of one metric that are sent.
const MOST_VALUES: usize = 200;
/// Metrics of a cell whose levels are sent; the deciding ones come first.
const MOST_LEVELS: usize = 40;

/// Everything that a live view draws of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Name of the experiment.
    pub name: String,
    /// State of the run: `running`, `done`, `interrupted` or `aborted`.
    pub state: String,
    /// Names of the arms; the baseline is the first.
    pub arms: Vec<String>,
    /// Trials and the time that they took, in words.
    pub trials: String,
    /// E-value that decides a comparison.
    pub decides: f64,
    /// Smallest change of interest, as a share.
    pub smallest_effect: f64,
    /// Cells in the order of the plan.
    pub cells: Vec<CellPicture>,
    /// Trials that do not count, with their reasons, the most frequent first.
    pub excluded: Vec<String>,
    /// Everything that spoils the figures, the most serious first.
    pub notices: Vec<String>,
    /// Worst latency so far of each arm that has a trace, with what ran meanwhile.
    pub worst: Vec<String>,
    /// Verdict on the arms so far, a sentence each.
    pub conclusion: Vec<String>,
}

/// One cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellPicture {
    /// Name of the cell.
    pub name: String,
    /// Comparisons that decide.
    pub comparisons: Vec<ComparisonPicture>,
    /// Medians of the arms, of each metric.
    pub levels: Vec<LevelPicture>,
}

/// One comparison as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonPicture {
    /// Name of the metric.
    pub metric: String,
    /// Name of the arm.
    pub arm: String,
    /// Verdict so far.
    pub verdict: Verdict,
    /// Verdict in words, with the marks of the report.
    pub verdict_word: String,
    /// Change and its interval in words; empty where they are not known.
    pub change: String,
    /// Interval in words; empty where it is not known.
    pub interval: String,
    /// Blocks so far, with the time that more would take.
    pub blocks: String,
    /// Evidence against "no difference".
    pub e_value: f64,
    /// Levels of the baseline and of the arm in words.
    pub levels: Option<(String, String)>,
    /// True if the change is a difference in the unit of the metric, and not a ratio.
    pub by_difference: bool,
    /// Smallest change of interest, on the scale of the change.
    pub smallest: f64,
    /// Standings on the way to where it stands; ends that no picture has room for are at its edge.
    pub narrowing: Vec<Standing>,
    /// Number of each block, and its change.
    pub points: Vec<(u32, f64)>,
    /// Values of the baseline and of the arm in those blocks.
    pub values: Vec<(f64, f64)>,
    /// Unit of the values.
    pub unit: String,
}

/// Medians of one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelPicture {
    /// Name of the metric.
    pub metric: String,
    /// Medians in the order of the arms, in words; empty where an arm has no figure.
    pub arms: Vec<String>,
}

impl Picture {
    /// The picture of a run in which nothing is measured yet.
    pub fn from_plan(experiment: &Experiment, plan: &Plan) -> Picture {
        let cells = plan.cells.iter();
        let arms = experiment.arms.iter();
        let baseline = &experiment.arms[experiment.baseline].name;
        let mut arms: Vec<String> = arms.map(|arm| arm.name.clone()).collect();
        arms.sort_by_key(|arm| arm != baseline);
        Picture {
            name: experiment.name.clone(),
            state: state_word(RunState::Running).to_owned(),
            arms,
            decides: 1.0 / (1.0 - experiment.stop.confidence),
            smallest_effect: experiment.stop.smallest_effect,
            cells: cells
                .map(|cell| CellPicture {
                    name: cell.name.clone(),
                    ..CellPicture::default()
                })
                .collect(),
            ..Picture::default()
        }
    }

    /// The picture of everything that was measured so far.
    pub fn from_table(table: &Table) -> Picture {
        let experiment = &table.experiment;
        let mut arms: Vec<_> = table.arms.iter().enumerate().collect();
        arms.sort_by_key(|(_, arm)| !arm.baseline);
        let order: Vec<usize> = arms.iter().map(|(index, _)| *index).collect();
        let notices = table.warnings.iter();
        let spoils = notices.filter(|notice| notice.severity != Severity::Note);
        Picture {
            name: experiment.name.clone(),
            state: state_word(experiment.state).to_owned(),
            arms: arms.iter().map(|(_, arm)| arm.name.clone()).collect(),
            trials: words::trials_and_time(table),
            decides: 1.0 / (1.0 - experiment.confidence),
            smallest_effect: experiment.smallest_effect,
            cells: table
                .cells
                .iter()
                .map(|cell| cell_picture(cell, &order, experiment.smallest_effect))
                .collect(),
            excluded: words::excluded_by_kind(&table.excluded),
            notices: spoils.map(|notice| notice.what.clone()).collect(),
            worst: worst(table),
            conclusion: crate::conclusion(table),
        }
    }
}

fn state_word(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Done => "done",
        RunState::Interrupted => "interrupted",
        RunState::Aborted => "aborted",
    }
}

fn cell_picture(cell: &CellTable, order: &[usize], smallest: f64) -> CellPicture {
    let compared = cell.deciding_comparisons();
    let levels = cell.metrics.iter().filter(|row| !row.is_nothing());
    CellPicture {
        name: cell.title.clone(),
        comparisons: compared.map(|c| comparison_picture(c, smallest)).collect(),
        levels: levels
            .take(MOST_LEVELS)
            .map(|row| level_picture(row, order))
            .collect(),
    }
}

fn level_picture(row: &MetricRow, order: &[usize]) -> LevelPicture {
    let of_arm = |index: &usize| {
        let summary = row.arms.get(*index).and_then(Option::as_ref);
        summary.map_or_else(String::new, |s| with_unit(s.median, &row.unit))
    };
    LevelPicture {
        metric: row.metric.clone(),
        arms: order.iter().map(of_arm).collect(),
    }
}

fn comparison_picture(c: &Comparison, smallest: f64) -> ComparisonPicture {
    let (points, values): (Vec<_>, Vec<_>) = match &c.difference {
        Some(found) => {
            let blocks = last_of(&found.blocks).iter();
            blocks
                .map(|b| ((b.block, b.difference), (b.baseline, b.arm)))
                .unzip()
        }
        None => {
            let blocks = last_of(&c.block_ratios).iter();
            blocks
                .map(|b| ((b.block, b.ratio), (b.baseline, b.arm)))
                .unzip()
        }
    };
    let levels = c.baseline_level.zip(c.arm_level);
    let in_words = |value: f64| with_unit(value, &c.unit);
    ComparisonPicture {
        metric: c.metric.clone(),
        arm: c.arm.clone(),
        verdict: c.verdict,
        verdict_word: words::marked_verdict(c),
        change: c.format_change().unwrap_or_default(),
        interval: c.format_interval().unwrap_or_default(),
        blocks: words::blocks_word(c),
        e_value: c.e_value.unwrap_or(1.0),
        levels: levels.map(|(baseline, arm)| (in_words(baseline), in_words(arm))),
        by_difference: c.difference.is_some(),
        smallest: c
            .difference
            .as_ref()
            .map_or(smallest, |d| d.smallest_effect),
        narrowing: clip_standings(&c.narrowing, c.difference.is_some()),
        points,
        values,
        unit: c.unit.clone(),
    }
}

fn last_of<T>(values: &[T]) -> &[T] {
    &values[values.len().saturating_sub(MOST_VALUES)..]
}

/// `wakeup 100%, batch: 4 ms in block 3; schbench ran meanwhile`.
fn worst(table: &Table) -> Vec<String> {
    let cells = table.across.worst.iter();
    let arms = cells.flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    arms.map(|(cell, arm)| {
        let took = format_duration_ns(arm.took_ns);
        let ran = arm
            .ran
            .first()
            .map_or_else(String::new, |ran| format!("; {} ran meanwhile", ran.name));
        format!(
            "{}, {}: {took} in block {}{ran}",
            cell.cell, arm.arm, arm.block
        )
    })
    .collect()
}
