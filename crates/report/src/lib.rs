//! From a results directory to an answer: text, lkml, csv, json, html, markdown,
//! junit, and hgrm files.
//!
//! [`Table::from_results`] judges what was measured, [`render`] writes it down.
//! Both read the results directory and nothing else, and the same directory
//! always gives the same bytes: no clock, no order of hash maps, no machine.

pub mod across;
mod build;
pub mod certificate;
mod chart;
pub mod compare;
mod conclusion;
mod doubt;
mod drift;
mod evidence;
mod fold;
pub mod forecast;
mod histogram;
pub mod hlog;
mod notices;
mod quantity;
mod render;
mod summary;
pub mod table;
mod tried;
pub mod verify;
pub mod why;
mod words;

pub use render::hgrm::{ReportFile, files as hgrm_files};
pub use render::json::REPORT_FORMAT;
pub use table::{Comparison, Table, Verdict};

use results::ResultSet;

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    /// Fixed width for a mailing list.
    Lkml,
    Csv,
    Json,
    Html,
    Markdown,
    /// JUnit XML.
    Junit,
}

impl Format {
    pub const ALL: [Format; 7] = [
        Format::Text,
        Format::Lkml,
        Format::Csv,
        Format::Json,
        Format::Html,
        Format::Markdown,
        Format::Junit,
    ];

    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Lkml => "lkml",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Html => "html",
            Format::Markdown => "markdown",
            Format::Junit => "junit",
        }
    }
}

/// How a report looks, where the format leaves a choice.
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

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("writing the report as CSV: {0}")]
    Csv(#[from] ::csv::Error),
    #[error("writing the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("writing the report as HTML: {0}")]
    Html(#[from] askama::Error),
    #[error("writing the report as JUnit XML: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}

/// The report of `table`, which was made from `results`.
pub fn render(
    format: Format,
    table: &Table,
    results: &ResultSet,
    options: &Options,
) -> Result<String, ReportError> {
    match format {
        Format::Text => Ok(render::text::render(table, options)),
        Format::Lkml => Ok(render::lkml::render(table)),
        Format::Csv => render::csv::render(results),
        Format::Json => render::json::render(table),
        Format::Html => render::html::render(table, results),
        Format::Markdown => Ok(render::markdown::render(table)),
        Format::Junit => render::junit::render(table),
    }
}
