//! Findings across cells or arms, as sheets of text with a tint: the same rows in the terminal,
//! in markdown and on the page.

mod counters;
mod events;
mod grid;
mod interference;
mod machines;
mod ranks;
mod scan;
mod search;
mod sequential;
mod sets;
mod worst;

pub use counters::{Moved, moved_counters, moved_in};
pub use scan::scan_caption;
pub use sets::of_sets;

use crate::quantity::{format_count, format_interval};
use crate::render::requests;
use crate::table::Table;
use model::Better;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    pub title: String,
    pub caption: String,
    /// Word for the cells that are in brackets in text and hatched on the page; empty without
    /// such cells.
    pub doubt: &'static str,
    /// Changes and their tints, of a heat map.
    pub scale: Vec<SheetCell>,
    /// Too many columns for figures on a page.
    pub dense: bool,
    /// Columns that are read together: they stay in one line of text that has room for them.
    pub together: bool,
    /// Heads of the labels, then of the cells.
    pub labels: Vec<String>,
    pub columns: Vec<String>,
    pub rows: Vec<SheetRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SheetRow {
    pub labels: Vec<String>,
    pub cells: Vec<SheetCell>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SheetCell {
    pub text: String,
    /// The interval, or why there is none.
    pub detail: String,
    /// From -100 (bad) to 100 (good); 0 is plain.
    pub tint: i32,
    /// The interval leaves no doubt that there is a change, or that there is none.
    pub sure: bool,
}

impl Sheet {
    /// The caption, with what doubt looks like where the reader is.
    pub fn full_caption(&self, mark: &str) -> String {
        match self.doubt {
            "" => self.caption.clone(),
            doubt => format!("{} {mark}: {doubt}.", self.caption),
        }
    }
}

impl SheetCell {
    pub fn missing_value() -> Self {
        SheetCell {
            text: "-".to_owned(),
            detail: "not measured".to_owned(),
            ..SheetCell::default()
        }
    }
}

/// In the order in which a report shows them.
pub fn make_sheets(table: &Table) -> Vec<Sheet> {
    let across = &table.across;
    let interference = across
        .interference
        .iter()
        .map(interference::of_interference);
    let grids = across.grids.iter().map(|grid| grid::of_grid(table, grid));
    let scans = across.scans.iter().map(scan::of_scan);
    let searches = across.searches.iter();
    let searches = searches.map(|search| search::of_search(search, table.experiment.confidence));
    let sequential = across.sequential.iter();
    let sequential = sequential.flat_map(|sequential| sequential::of_sequential(table, sequential));
    let worst = across.worst.iter().map(worst::of_worst);
    let events = events::of_events(table);
    sequential
        .chain(events)
        .chain(ranks::of_ranks(table))
        .chain(interference)
        .chain(grids)
        .chain(scans)
        .chain(searches)
        .chain(worst)
        .chain(machines::of_machines(table))
        .chain(requests::make_sheets(table))
        .collect()
}

/// Without a tint or a doubt.
pub fn plain_cell(text: String, detail: String) -> SheetCell {
    SheetCell {
        text,
        detail,
        tint: 0,
        sure: true,
    }
}

fn detail(ends: Option<(f64, f64)>, blocks: usize) -> String {
    match ends {
        Some((low, high)) => format_interval(low, high),
        None => no_interval(blocks),
    }
}

fn no_interval(blocks: usize) -> String {
    format!("{}, no interval", format_count(blocks, "block"))
}

#[expect(clippy::cast_possible_truncation, reason = "between -100 and 100")]
fn tint(ratio: f64, better: Better, full: f64) -> i32 {
    let good = match better {
        Better::Higher => ratio.ln(),
        Better::Lower => -ratio.ln(),
        Better::Neither => 0.0,
    };
    (100.0 * (good / full.ln()).clamp(-1.0, 1.0)).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_is_by_the_good_direction() {
        assert_eq!(tint(4.0, Better::Lower, 4.0), -100);
        assert_eq!(tint(2.0, Better::Higher, 4.0), 50);
        assert_eq!(tint(1.0, Better::Higher, 4.0), 0);
        assert_eq!(tint(1e9, Better::Neither, 4.0), 0);
    }

    #[test]
    fn doubt_is_named_as_the_reader_sees_it() {
        let sheet = Sheet {
            caption: "Against default.".to_owned(),
            doubt: "no verdict",
            ..Sheet::default()
        };
        assert_eq!(
            sheet.full_caption("Hatched"),
            "Against default. Hatched: no verdict."
        );
        assert_eq!(Sheet::default().full_caption("Hatched"), "");
    }
}
