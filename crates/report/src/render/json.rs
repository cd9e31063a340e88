//! JSON for programs; its shape is `docs/report.schema.json`.

use crate::ReportError;
use crate::render::conclusion;
use crate::table::across::Across;
use crate::table::pooled_quantile::Pooled;
use crate::table::{
    ArmInfo, CellTable, Comparison, Excluded, ExperimentInfo, MetricRow, NotMeasured, Notice,
    Table, Tally, TrialCounts,
};
use model::System;
use results::Format;
use serde::Serialize;

/// The shape of this report. A reader takes any minor of its major.
pub const REPORT_FORMAT: Format = Format { major: 1, minor: 0 };

#[derive(Serialize)]
struct Document<'a> {
    format: Format,
    results_format: Format,
    experiment: &'a ExperimentInfo,
    arms: &'a [ArmInfo],
    /// Sentences at the head of the other reports, one for each arm.
    conclusion: Vec<String>,
    summary: &'a [Tally],
    comparisons: Vec<&'a Comparison>,
    cells: Vec<CellMetrics<'a>>,
    #[serde(flatten)]
    across: &'a Across,
    trials: TrialCounts,
    excluded: &'a [Excluded],
    warnings: &'a [Notice],
    system: &'a System,
}

/// Figures of each arm, without comparing.
#[derive(Serialize)]
struct CellMetrics<'a> {
    name: &'a str,
    workload: &'a str,
    load: &'a str,
    metrics: &'a [MetricRow],
    #[serde(skip_serializing_if = "<[Pooled]>::is_empty")]
    pooled: &'a [Pooled],
    not_measured: &'a [NotMeasured],
    block_ns: Option<f64>,
}

impl<'a> From<&'a CellTable> for CellMetrics<'a> {
    fn from(cell: &'a CellTable) -> Self {
        CellMetrics {
            name: &cell.name,
            workload: &cell.workload,
            load: &cell.load,
            metrics: &cell.metrics,
            pooled: &cell.pooled,
            not_measured: &cell.not_measured,
            block_ns: cell.block_ns,
        }
    }
}

/// The report of `table` as JSON, pretty-printed and ended by a newline.
pub fn render(table: &Table) -> Result<String, ReportError> {
    let document = Document {
        format: REPORT_FORMAT,
        results_format: table.format,
        experiment: &table.experiment,
        arms: &table.arms,
        conclusion: conclusion::arm_sentences(table),
        summary: &table.tallies,
        comparisons: table.all_comparisons().collect(),
        cells: table.cells.iter().map(CellMetrics::from).collect(),
        across: &table.across,
        trials: table.trials,
        excluded: &table.excluded,
        warnings: &table.warnings,
        system: &table.system,
    };
    Ok(doors::shown::json_text(&document)?.into_string())
}
