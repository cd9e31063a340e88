//! Two results side by side, and what may be concluded from them.
//!
//! Within one side arms ran interleaved, and their verdicts stand. Between the sides
//! nothing was interleaved: whatever differs, and time itself, is mixed into every
//! difference. So two things are said apart: whether an arm's *effect* (its ratio to
//! the baseline of its own side) is another one there than here, and how the *levels*
//! (the bare figures) lie, with a Hodges-Lehmann interval that covers the noise of
//! trials and nothing else.

mod conclusions;
mod differences;
mod effects;
mod levels;
mod matched;
mod text;

pub use differences::Divergence;

use crate::table::{Table, Verdict};
use matched::Matched;
use model::Better;
use results::ResultSet;
use serde::Serialize;

/// One of the two results.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Name that the user gave.
    pub label: &'a str,
    pub results: &'a ResultSet,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideBySide {
    pub a: SideInfo,
    pub b: SideInfo,
    /// Known differences, the weightiest first.
    pub differs: Vec<Divergence>,
    pub same: Vec<String>,
    /// Cells and arms that only one side has, or that are not the same on both.
    pub unmatched: Vec<String>,
    pub effects: Vec<Effect>,
    pub levels: Vec<Level>,
    pub conclusions: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideInfo {
    pub label: String,
    pub experiment: String,
    pub created: String,
    pub machine: String,
    pub tool: String,
}

/// An arm against the baseline, on each side by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    pub cell: String,
    pub metric: String,
    pub better: Better,
    pub arm: String,
    pub baseline: String,
    pub a: Estimate,
    pub b: Estimate,
    pub agreement: Agreement,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: Verdict,
    pub blocks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The intervals have no value in common.
    Differs,
    /// The same verdict on both sides.
    Agrees,
    Open,
}

impl Agreement {
    fn of(a: &Estimate, b: &Estimate) -> Agreement {
        let apart = match (a.low.zip(a.high), b.low.zip(b.high)) {
            (Some((a_low, a_high)), Some((b_low, b_high))) => a_high < b_low || b_high < a_low,
            _ => false,
        };
        match apart {
            true => Agreement::Differs,
            false if a.verdict == b.verdict && a.verdict != Verdict::Unknown => Agreement::Agrees,
            false => Agreement::Open,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Agreement::Differs => "differs",
            Agreement::Agrees => "agrees",
            Agreement::Open => "open",
        }
    }
}

/// The trials of one arm there, against those of the same arm here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    pub cell: String,
    pub metric: String,
    pub unit: String,
    pub arm: String,
    pub a_median: f64,
    pub b_median: f64,
    pub a_trials: usize,
    pub b_trials: usize,
    /// Hodges-Lehmann estimate of b over a.
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// `full`: every metric that is judged, not only those that decide.
pub fn side_by_side(a: Side, b: Side, full: bool) -> SideBySide {
    let tables = [a, b].map(|side| Table::from_results(side.results));
    let [a_table, b_table] = &tables;
    let matched = Matched::new(a.results, b.results);
    let mut both = SideBySide {
        a: info(a, a_table),
        b: info(b, b_table),
        differs: differences::differs(a.results, b.results),
        same: differences::same(a.results, b.results),
        unmatched: matched.unmatched.clone(),
        effects: effects::effects(&matched, a_table, b_table, full),
        levels: levels::levels(&matched, a.results, b.results, full),
        conclusions: Vec::new(),
    };
    both.conclusions = conclusions::of(&both, a.results, b.results);
    both
}

fn info(side: Side, table: &Table) -> SideInfo {
    let manifest = &side.results.manifest;
    SideInfo {
        label: side.label.to_owned(),
        experiment: manifest.name.clone(),
        created: manifest.created.clone(),
        machine: crate::words::machine(table),
        tool: differences::tool(manifest),
    }
}

#[cfg(test)]
mod tests;
