//! One HTML file that needs nothing else: no script, no network, light and dark.
//!
//! [`view`] says what the page says, `templates/report.html` how it is laid out,
//! `templates/style.css` how it looks, [`charts`] draws.

mod charts;
mod scale;
mod view;

use crate::ReportError;
use crate::render::chart;
use crate::table::Table;
use askama::Template;
use results::ResultSet;

pub fn render(table: &Table, results: &ResultSet) -> Result<String, ReportError> {
    let charts = charts::all(table, results);
    let mut across = charts::scans(table);
    across.extend(charts::searches(table, results));
    let page = view::page(table, charts, across);
    Ok(chart::renumber_clips(&page.render()?))
}
