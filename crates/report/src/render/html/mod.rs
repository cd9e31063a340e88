//! One HTML file that needs nothing else: no script, no network, light and dark.
//!
//! [`view`] says what the page says, [`setup`] how it was measured, `templates/report.html` how it is laid out,
//! `templates/style.css` how it looks, [`charts`] draws.

mod charts;
mod scale;
mod setup;
mod turns;
mod view;
mod workers;

use crate::ReportError;
use crate::render::{chart, latencies};
use crate::table::Table;
use askama::Template;
use results::ResultSet;
use setup::Setup;

pub fn render(table: &Table, results: &ResultSet) -> Result<String, ReportError> {
    let mut charts = charts::draw_cells(table, results);
    for (cell, charts) in charts.iter_mut().enumerate() {
        charts
            .percentiles
            .extend(workers::of_cell(table, results, cell));
        charts.blocks.extend(turns::of_cell(table, results, cell));
    }
    let mut across = charts::draw_scans(table);
    across.extend(charts::draw_searches(table, results));
    across.extend(workers::draw_fairness(table, results));
    let mut page = view::make_page(table, charts, across, Setup::from_results(results));
    page.sheets.extend(latencies::sheets(results));
    Ok(chart::renumber_clips(&page.render()?))
}
