//! Tidy CSV for pandas, polars, R: one row a trial and metric, or one a comparison.
//!
//! Trials that do not count are there too, with their state and why, so that a
//! reader filters on `state == "ok"`; without metrics they have one row.
//!
//! Text is written as it can be shown ([`model::printable`]), and none is a formula of a
//! spreadsheet: one that would be is led by an apostrophe.

use crate::ReportError;
use crate::table::{Comparison, Table};
use crate::words;
use model::{Better, printable};
use results::{ResultSet, StoredTrial};

const HEAD: [&str; 15] = [
    "cell",
    "workload",
    "load",
    "arm",
    "baseline",
    "block",
    "attempt",
    "index",
    "state",
    "why",
    "started_unix_ns",
    "metric",
    "unit",
    "better",
    "value",
];

pub fn render_trials(results: &ResultSet) -> Result<String, ReportError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEAD)?;
    for stored in &results.trials {
        write_trial(&mut writer, results, stored)?;
    }
    finish_csv(writer)
}

pub fn finish_csv(writer: csv::Writer<Vec<u8>>) -> Result<String, ReportError> {
    let bytes = writer
        .into_inner()
        .map_err(|error| ReportError::Csv(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const HEAD_OF_COMPARISONS: [&str; 26] = [
    "cell",
    "workload",
    "load",
    "metric",
    "unit",
    "better",
    "baseline",
    "arm",
    "deciding",
    "aa",
    "baseline_level",
    "arm_level",
    "ratio",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "confidence",
    "verdict",
    "survives_ebh",
    "e_value",
    "blocks",
    "blocks_needed",
    "notes",
    "withdrawn",
];

/// One row a comparison. What has no value is empty.
pub fn render_comparisons(table: &Table) -> Result<String, ReportError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEAD_OF_COMPARISONS)?;
    for cell in &table.cells {
        for comparison in &cell.comparisons {
            writer.write_record(columns_of_comparison(&cell.name, comparison))?;
        }
    }
    finish_csv(writer)
}

fn columns_of_comparison(cell: &str, c: &Comparison) -> [String; 26] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    [
        escape_text(cell),
        escape_text(&c.workload),
        c.load.clone(),
        escape_text(&c.metric),
        escape_text(&c.unit),
        direction(c.better),
        escape_text(&c.baseline),
        escape_text(&c.arm),
        c.deciding.to_string(),
        c.aa.to_string(),
        number(c.baseline_level),
        number(c.arm_level),
        number(c.ratio),
        number(c.low),
        number(c.high),
        number(c.difference.as_ref().map(|found| found.value)),
        number(c.difference.as_ref().and_then(|found| found.low)),
        number(c.difference.as_ref().and_then(|found| found.high)),
        c.confidence.to_string(),
        words::verdict_word(c).to_owned(),
        c.survives_ebh
            .map_or_else(String::new, |holds| holds.to_string()),
        number(c.e_value),
        c.blocks.to_string(),
        number(c.blocks_needed.map(f64::from)),
        escape_text(&c.notes.join("; ")),
        c.withdrawn
            .map_or_else(String::new, |was| was.as_str().to_owned()),
    ]
}

fn direction(better: Better) -> String {
    format!("{better:?}").to_lowercase()
}

fn write_trial(
    writer: &mut csv::Writer<Vec<u8>>,
    results: &ResultSet,
    stored: &StoredTrial,
) -> Result<(), ReportError> {
    let place = columns_of_trial(results, stored);
    let metrics = &stored.trial.result.metrics;
    for measured in metrics {
        let better = direction(measured.better);
        let value = measured.value.to_string();
        let (metric, unit) = (escape_text(&measured.metric), escape_text(&measured.unit));
        writer.write_record(place.iter().chain([&metric, &unit, &better, &value]))?;
    }
    if metrics.is_empty() {
        let nothing = String::new();
        writer.write_record(place.iter().chain([&nothing; 4]))?;
    }
    Ok(())
}

fn columns_of_trial(results: &ResultSet, stored: &StoredTrial) -> [String; 11] {
    let trial = &stored.trial;
    let cell = results.plan.cells.get(trial.place.cell);
    let workload = cell.and_then(|c| results.experiment.workloads.get(c.workload));
    [
        escape_text(&trial.cell),
        workload.map_or(String::new(), |w| escape_text(&w.name)),
        cell.map_or(String::new(), |c| results.load_in_words(c)),
        escape_text(&trial.arm),
        (trial.place.arm == results.experiment.baseline).to_string(),
        trial.place.block.to_string(),
        trial.attempt.to_string(),
        trial.place.index.to_string(),
        trial.result.state.name().to_owned(),
        escape_text(trial.result.state.why().unwrap_or_default()),
        trial.result.started_unix_ns.to_string(),
    ]
}

/// Line ends stay, within quotation marks.
pub fn escape_text(text: &str) -> String {
    let text = printable::clean_lines(text);
    match text.starts_with(['=', '+', '-', '@', '\t']) {
        true => format!("'{text}"),
        false => text.into_owned(),
    }
}
