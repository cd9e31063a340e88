//! The table by which services under load are compared: for each arm its success, mean, 75th and 95th
//! percentile and goodput, and the verdict. As a sheet in the reports, and as CSV.

use super::sheet::{Sheet, SheetCell, SheetRow, plain_cell};
use crate::ReportError;
use crate::quantity::{format_change, with_unit};
use crate::render::csv::{escape_text, finish_csv};
use crate::table::pooled_quantile::{MARK, P95};
use crate::table::{CellTable, Comparison, MetricRow, Table};
use crate::words;

const ERRORS: &str = "error_percent";
const P75: &str = "request_p75";
const GOODPUT: &str = "requests_per_sec";
const OVERLOADED: &str = "overloaded";
const CAPTION: &str = "Success is a mean over the trials, the rest are medians. Goodput counts the \
                       requests with the right answer.";
/// Footnote of a column that is pooled.
const POOLED: &str = " Pooled: of the requests of all trials together, where a trial has too few \
                      for a 95th percentile of its own; it decides nothing.";

const HEAD: [&str; 14] = [
    "cell",
    "arm",
    "trials",
    "success_percent",
    "mean_ns",
    "p75_ns",
    "p95_ns",
    "goodput_per_sec",
    "overloaded",
    "deciding_metric",
    "ratio",
    "verdict",
    "blocks",
    "p95_pooled",
];

/// One arm in one cell: its success as a mean over its trials, all else as medians over them. What
/// was not measured is none.
struct Arm<'a> {
    name: &'a str,
    trials: usize,
    success_percent: Option<f64>,
    mean_ns: Option<f64>,
    p75_ns: Option<f64>,
    p95_ns: Option<f64>,
    /// True if that is of the requests of all trials together, for want of one of each trial.
    p95_pooled: bool,
    goodput_per_sec: Option<f64>,
    /// In most of its trials.
    overloaded: bool,
    /// By the first metric that decides; none for the baseline.
    comparison: Option<&'a Comparison>,
    baseline: bool,
}

/// A sheet for each cell that has such figures.
pub fn make_sheets(table: &Table) -> impl Iterator<Item = Sheet> {
    let cells = table.cells.iter().filter(|cell| has_figures(cell));
    cells.map(|cell| sheet(table, cell))
}

/// A row for each arm of each such cell. What has no value is empty.
pub fn render_csv(table: &Table) -> Result<String, ReportError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(HEAD)?;
    for cell in table.cells.iter().filter(|cell| has_figures(cell)) {
        for arm in arms(table, cell) {
            writer.write_record(columns(cell, &arm))?;
        }
    }
    finish_csv(writer)
}

fn has_figures(cell: &CellTable) -> bool {
    cell.metrics.iter().any(|row| row.metric == MARK)
}

fn arms<'a>(table: &'a Table, cell: &'a CellTable) -> Vec<Arm<'a>> {
    let row = |metric: &str| cell.metrics.iter().find(|row| row.metric == metric);
    let summary = |metric: &str, arm: usize| row(metric).and_then(|row: &MetricRow| row.arms[arm]);
    let median = |metric: &str, arm: usize| summary(metric, arm).map(|summary| summary.median);
    // With some trials that have one and some that do not, a median would be of the former only.
    let pooled = |arm: &str| cell.pooled.iter().find(|p| p.metric == P95 && p.arm == arm);
    let arm = |(index, info): (usize, &'a crate::table::ArmInfo)| Arm {
        name: &info.name,
        trials: summary(MARK, index).map_or(0, |summary| summary.trials),
        // An arm that fails in two of five trials has no error in the median.
        success_percent: summary(ERRORS, index).map(|summary| 100.0 - summary.mean),
        mean_ns: median(MARK, index),
        p75_ns: median(P75, index),
        p95_ns: match cell.pooled.is_empty() {
            true => median(P95, index),
            false => pooled(&info.name).map(|pooled| pooled.value),
        },
        p95_pooled: pooled(&info.name).is_some(),
        goodput_per_sec: median(GOODPUT, index),
        overloaded: median(OVERLOADED, index).is_some_and(|overloaded| overloaded >= 0.5),
        comparison: cell.deciding_comparisons().find(|c| c.arm == info.name),
        baseline: info.baseline,
    };
    table.arms.iter().enumerate().map(arm).collect()
}

fn sheet(table: &Table, cell: &CellTable) -> Sheet {
    let arms = arms(table, cell);
    let deciding = cell.deciding_comparisons().next();
    let is_pooled = arms.iter().any(|arm| arm.p95_pooled);
    let verdict = match deciding {
        Some(comparison) if is_pooled && comparison.metric == P95 => format!(
            "{P95} of those trials that have one against {}",
            table.baseline()
        ),
        Some(comparison) => format!("{} against {}", comparison.metric, table.baseline()),
        None => String::new(),
    };
    let heads = ["success", "mean", "p75", "p95", "goodput"];
    let mut columns: Vec<String> = heads.map(str::to_owned).into();
    columns.extend(deciding.map(|_| "verdict".to_owned()));
    let mut caption = CAPTION.to_owned();
    if is_pooled {
        caption.push_str(POOLED);
    }
    Sheet {
        title: format!("{}, requests", cell.name),
        caption: match deciding {
            Some(_) => format!("{caption} The verdict is on {verdict}."),
            None => caption,
        },
        doubt: match arms.iter().any(|arm| arm.overloaded) {
            true => "overloaded or failing, so that latency is not compared",
            false => "",
        },
        together: true,
        labels: vec!["arm".to_owned()],
        columns,
        rows: arms
            .iter()
            .map(|arm| sheet_row(arm, deciding.is_some()))
            .collect(),
        ..Sheet::default()
    }
}

fn sheet_row(arm: &Arm, compared: bool) -> SheetRow {
    let cell = |value: Option<f64>, unit: &str| match value {
        Some(value) => plain_cell(with_unit(value, unit), String::new()),
        None => SheetCell::missing_value(),
    };
    let latency = |value: Option<f64>| SheetCell {
        sure: !arm.overloaded,
        ..cell(value, "ns")
    };
    let mut p95 = latency(arm.p95_ns);
    if arm.p95_pooled {
        p95.text.push_str(" (pooled)");
    }
    let mut cells = vec![
        cell(arm.success_percent, "%"),
        latency(arm.mean_ns),
        latency(arm.p75_ns),
        p95,
        cell(arm.goodput_per_sec, "1/s"),
    ];
    cells.extend(compared.then(|| plain_cell(verdict(arm), String::new())));
    SheetRow {
        labels: vec![arm.name.to_owned()],
        cells,
    }
}

/// `better -12.1%`.
fn verdict(arm: &Arm) -> String {
    match arm.comparison {
        Some(comparison) => {
            let by = comparison
                .ratio
                .map(|ratio| format!(" {}", format_change(ratio)));
            words::marked_verdict(comparison) + &by.unwrap_or_default()
        }
        None if arm.baseline => "baseline".to_owned(),
        None => "-".to_owned(),
    }
}

fn columns(cell: &CellTable, arm: &Arm) -> [String; 14] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let compared = |of: fn(&Comparison) -> String| arm.comparison.map_or_else(String::new, of);
    [
        escape_text(&cell.name),
        escape_text(arm.name),
        arm.trials.to_string(),
        number(arm.success_percent),
        number(arm.mean_ns),
        number(arm.p75_ns),
        number(arm.p95_ns),
        number(arm.goodput_per_sec),
        arm.overloaded.to_string(),
        compared(|c| escape_text(&c.metric)),
        number(arm.comparison.and_then(|c| c.ratio)),
        compared(|c| words::verdict_word(c).to_owned()),
        compared(|c| c.blocks.to_string()),
        arm.p95_pooled.to_string(),
    ]
}
