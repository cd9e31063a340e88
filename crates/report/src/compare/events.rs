//! Rare events of arms against their baseline, on each side by itself.

use super::pairing::Matched;
use super::{Agreement, SideBySide};
use crate::render::events::{describe_call, describe_ratio};
use crate::table::across::EventComparison;
use crate::table::{Table, Verdict};
use serde::Serialize;

/// Events that a conclusion names.
const MOST_NAMED: usize = 3;

/// An event of one arm on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventEffect {
    pub cell: String,
    pub event: String,
    pub arm: String,
    pub a: EventComparison,
    pub b: EventComparison,
    pub agreement: Agreement,
}

pub fn compare_events(matched: &Matched, a: &Table, b: &Table) -> Vec<EventEffect> {
    if !matched.same_baseline {
        return Vec::new();
    }
    let of_cells = matched.cells.iter().flat_map(|&(a_cell, b_cell)| {
        let (here, there) = (&a.cells[a_cell].name, &b.cells[b_cell].name);
        let of_cell = a.across.events.iter().filter(move |c| c.cell == *here);
        of_cell.filter_map(move |c| {
            let is_matched = |(i, _): &(usize, usize)| a.arms[*i].name == c.arm;
            let mut others = b.across.events.iter();
            let is_same =
                |o: &&EventComparison| o.cell == *there && (&o.event, &o.arm) == (&c.event, &c.arm);
            let other = others.find(is_same)?;
            matched
                .arms
                .iter()
                .any(is_matched)
                .then(|| effect(c, other))
        })
    });
    of_cells.collect()
}

fn effect(a: &EventComparison, b: &EventComparison) -> EventEffect {
    EventEffect {
        cell: a.cell.clone(),
        event: a.event.clone(),
        arm: a.arm.clone(),
        agreement: agreement(a, b),
        a: a.clone(),
        b: b.clone(),
    }
}

/// An end that is not there is no end: what one side never had is told apart from nothing by its other end alone.
fn agreement(a: &EventComparison, b: &EventComparison) -> Agreement {
    let is_below = |high: Option<f64>, low: Option<f64>| high.zip(low).is_some_and(|(h, l)| h < l);
    match is_below(a.high, b.low) || is_below(b.high, a.low) {
        true => Agreement::Differs,
        false if a.verdict == b.verdict && a.verdict != Verdict::Unknown => Agreement::Agrees,
        false => Agreement::Open,
    }
}

/// Number of events and the ratio on one side: `8, more than x4.20, worse`.
pub fn describe_side(c: &EventComparison) -> String {
    format!(
        "{} against {}, {}, {}",
        c.arm_events.count,
        c.baseline_events.count,
        describe_ratio(c),
        c.verdict.as_str()
    )
}

/// The calls of either side, in a sentence; `None` where neither called an event.
pub fn describe_events(both: &SideBySide) -> Option<String> {
    let is_called = |e: &&EventEffect| e.a.verdict.is_call() || e.b.verdict.is_call();
    let called: Vec<&EventEffect> = both.events.iter().filter(is_called).collect();
    let side = |name: &str, c: &EventComparison| format!("in {name} {}", describe_call(c));
    let named = called.iter().take(MOST_NAMED).map(|e| {
        format!(
            "{} in {}: {}, {} ({})",
            e.arm,
            e.cell,
            side("A", &e.a),
            side("B", &e.b),
            e.agreement.as_str()
        )
    });
    let mut said: Vec<String> = named.collect();
    let more = called.len().saturating_sub(MOST_NAMED);
    said.extend((more > 0).then(|| format!("and {more} more")));
    (!said.is_empty()).then(|| format!("Rare events: {}.", said.join("; ")))
}
