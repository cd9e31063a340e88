//! Counters that moved with a call, and those that did not.

use super::{Sheet, SheetRow, detail, plain_cell};
use crate::quantity::{format_change, with_unit};
use crate::table::Table;
use crate::table::explanation::{Change, Companion, Kind, Why};

/// Most counters of a kind that are shown; the JSON report has all.
const MOST_COUNTERS: usize = 8;

/// The counters beside one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// Those that followed it from block to block.
    pub together: Option<Sheet>,
    /// `wakeup 100%, batch: changed without following wakeup_p99`; empty without any.
    pub alone: String,
    /// Those counters with their changes.
    pub others: Vec<String>,
}

/// Counters that moved beside a call, for each such call, in the order of the cells.
pub fn moved_counters(table: &Table) -> Vec<Moved> {
    table.across.why.iter().map(of_why).collect()
}

/// Those of one cell.
pub fn moved_in(table: &Table, cell: &str) -> Vec<Moved> {
    let whys = table.across.why.iter();
    whys.filter(|why| why.cell == cell).map(of_why).collect()
}

fn of_why(why: &Why) -> Moved {
    let (together, alone): (Vec<&Companion>, Vec<&Companion>) = why
        .counters
        .iter()
        .partition(|companion| companion.kind == Kind::Together);
    let place = format!("{}, {}", why.cell, why.arm);
    let mut others: Vec<String> = alone.iter().take(MOST_COUNTERS).map(named).collect();
    let more = alone.len() - others.len();
    others.extend((more > 0).then(|| format!("and {more} more")));
    Moved {
        together: (!together.is_empty()).then(|| followers(why, &place, &together)),
        alone: match alone.is_empty() {
            true => String::new(),
            false => format!("{place}: changed without following {}", why.metric),
        },
        others,
    }
}

fn followers(why: &Why, place: &str, together: &[&Companion]) -> Sheet {
    let rows = together.iter().take(MOST_COUNTERS);
    let rows = rows.map(|companion| {
        let (text, detail) = change_of(companion);
        let tau = companion
            .tau
            .map_or_else(String::new, |tau| format!("{tau:+.2}"));
        SheetRow {
            labels: vec![companion.counter.clone()],
            cells: vec![plain_cell(text, detail), plain_cell(tau, String::new())],
        }
    });
    Sheet {
        title: format!("{place}: what moved with {}", why.metric),
        caption: format!(
            "How closely it went up and down with {} from block to block (Kendall's rank \
             correlation). This proves no cause: it says where to look.",
            why.metric
        ),
        labels: vec!["counter".to_owned()],
        columns: vec!["change".to_owned(), "how closely".to_owned()],
        rows: rows.collect(),
        ..Sheet::default()
    }
}

/// `voluntary_switches -9.0% [-12.2%, -5.6%]`.
fn named(companion: &&Companion) -> String {
    let (text, detail) = change_of(companion);
    format!("{} {text} {detail}", companion.counter)
}

/// The change and its interval.
fn change_of(companion: &Companion) -> (String, String) {
    let unit = &companion.unit;
    let signed = |value: f64| match value < 0.0 {
        true => format!("-{}", with_unit(-value, unit)),
        false => format!("+{}", with_unit(value, unit)),
    };
    match companion.change {
        Change::Ratio(e) => (format_change(e.mean), detail(e.interval, companion.blocks)),
        Change::Difference(e) => (
            signed(e.mean),
            e.interval.map_or_else(String::new, |(low, high)| {
                format!("[{}, {}]", signed(low), signed(high))
            }),
        ),
    }
}
