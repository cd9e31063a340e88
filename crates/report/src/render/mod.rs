//! The output formats: the one table, and one module for each of them.

pub(crate) mod arms;
pub(crate) mod chart;
pub(crate) mod conclusion;
pub(crate) mod csv;
pub(crate) mod events;
pub(crate) mod hgrm;
pub(crate) mod histogram;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod ktap;
pub(crate) mod latencies;
pub(crate) mod lkml;
pub(crate) mod machines;
pub(crate) mod markdown;
pub(crate) mod requests;
pub(crate) mod schedtests_table;
pub(crate) mod search_rates;
pub(crate) mod sheet;
pub(crate) mod text;

use crate::table::Table;
use doors::shown::{self, Shown};
use results::ResultSet;

/// All formats, the usual one first.
#[rustfmt::skip] // One line a format.
pub static FORMATS: &[Format] = &[
    Format { name: "text", file: Some("report.txt"), has_narrowing: false, summary: "for the terminal; all details with `--full`", write: |table, results, options| Ok(text::render(table, results, options)) },
    Format { name: "lkml", file: None, has_narrowing: false, summary: "plain text of fixed width for a mailing list", write: |table, _, _| Ok(lkml::render(table)) },
    Format { name: "csv", file: Some("trials.csv"), has_narrowing: false, summary: "a row for each trial and metric, as CSV", write: |_, results, _| csv::render_trials(results) },
    Format { name: "comparisons", file: Some("comparisons.csv"), has_narrowing: false, summary: "a row for each comparison, as CSV", write: |table, _, _| csv::render_comparisons(table) },
    Format { name: "events", file: None, has_narrowing: false, summary: "a row for each rare event of an arm in a cell, as CSV", write: |table, _, _| events::render_csv(table) },
    Format { name: "requests", file: None, has_narrowing: false, summary: "success, mean, p95, goodput and verdict of each arm of services under load, as CSV", write: |table, _, _| requests::render_csv(table) },
    Format { name: "latencies", file: None, has_narrowing: false, summary: "average, deviation and percentiles of the requests of each arm at each rate, as CSV", write: |_, results, _| latencies::csv(results) },
    Format { name: "mcperf", file: None, has_narrowing: false, summary: "the same in the columns that `mcperf --scan` prints", write: |_, results, _| Ok(latencies::mcperf(results)) },
    Format { name: "json", file: Some("report.json"), has_narrowing: true, summary: "for programs; `docs/report.schema.json` describes it", write: |table, _, _| json::render(table) },
    Format { name: "html", file: Some("report.html"), has_narrowing: true, summary: "one page with charts that needs no network", write: |table, results, _| html::render(table, results) },
    Format { name: "markdown", file: None, has_narrowing: false, summary: "tables for a merge request or a wiki", write: |table, _, _| Ok(markdown::render(table)) },
    Format { name: "junit", file: None, has_narrowing: false, summary: "JUnit XML for continuous integration: worse is a failure, what was not measured an error", write: |table, results, _| Ok(junit::make_report(table, results).to_string()?) },
    Format { name: "ktap", file: None, has_narrowing: false, summary: "KTAP, the lines of kernel test systems: the same tests as in JUnit", write: |table, results, _| Ok(ktap::render_suites(&junit::make_report(table, results))) },
];

type Write = fn(&Table, &ResultSet, &Options) -> Result<String, ReportError>;

/// An output format of a report.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// File in `report/` of a results directory; none for a format that is written on
    /// request only.
    pub file: Option<&'static str>,
    /// True where it shows how intervals narrowed: a judgement for each of many looks.
    pub has_narrowing: bool,
    /// Description for `docs/reference.md`.
    pub summary: &'static str,
    write: Write,
}

impl Format {
    /// The format of this name.
    pub fn find_by_name(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// The report of `table`, which was made from `results`, without what a terminal would obey.
    pub fn render_report(
        &self,
        table: &Table,
        results: &ResultSet,
        options: &Options,
    ) -> Result<Shown, ReportError> {
        let report = (self.write)(table, results, options)?;
        Ok(match options.color {
            true => shown::coloured_text(report),
            false => shown::clean_text(report),
        })
    }
}

/// Choices that a format leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Terminal colours in `text`.
    pub color: bool,
    /// Every comparison, median and trial that does not count in `text`, not only the
    /// answer.
    pub full: bool,
    /// Columns of the terminal for which `text` is written.
    pub width: usize,
}

impl Options {
    /// Columns of a text that no terminal asked for.
    pub const USUAL_WIDTH: usize = 100;
}

impl Default for Options {
    fn default() -> Self {
        Options {
            color: false,
            full: false,
            width: Options::USUAL_WIDTH,
        }
    }
}

/// An error while a report is written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Error of the CSV writer.
    #[error("writing the report as CSV: {0}")]
    Csv(#[from] ::csv::Error),
    /// Error of writing JSON or, where a stored report is verified, of reading it.
    #[error("writing the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Error of the template of the page.
    #[error("writing the report as HTML: {0}")]
    Html(#[from] askama::Error),
    /// Error of the writer of JUnit XML.
    #[error("writing the report as JUnit XML: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}
