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
mod events;
pub(crate) mod levels;
pub(crate) mod pairing;
mod text;

pub use differences::list_runs;
pub use pairing::{describe_work, tell_works_apart};

use crate::lacks::Pair;
use crate::shift::Shift;
use crate::table::{Table, Verdict};
use differences::Divergence;
use events::EventEffect;
use model::Better;
use pairing::Matched;
use results::ResultSet;
use serde::Serialize;

/// One of the two results.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Name that the user gave.
    pub label: &'a str,
    /// Results of this side.
    pub results: &'a ResultSet,
}

/// Comparison of two results: what differs around them, and their effects, levels and conclusions.
/// It serializes to the JSON of `schedlab compare`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideBySide {
    a: SideInfo,
    b: SideInfo,
    /// Both have the same trials, or one has all those of the other: they confirm nothing.
    same_run: bool,
    /// Known differences, the weightiest first.
    differs: Vec<Divergence>,
    same: Vec<String>,
    /// Cells and arms that only one side has, or that are not the same on both.
    unmatched: Vec<String>,
    /// Lacks: what was not measured, so that it could not be compared.
    pub lacks: Vec<String>,
    effects: Vec<Effect>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventEffect>,
    levels: Vec<Level>,
    conclusions: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct SideInfo {
    label: String,
    experiment: String,
    created: String,
    machine: String,
    tool: String,
}

/// An arm against the baseline, on each side by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Effect {
    cell: String,
    metric: String,
    better: Better,
    arm: String,
    baseline: String,
    a: Estimate,
    b: Estimate,
    agreement: Agreement,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Estimate {
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Change in the unit of the metric, where one of the sides has no ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Shift>,
    verdict: Verdict,
    blocks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Agreement {
    /// The intervals have no value in common.
    Differs,
    /// The same verdict on both sides.
    Agrees,
    Open,
}

impl Estimate {
    /// The interval on the scale of both sides.
    fn bounds(&self) -> Option<(f64, f64)> {
        match &self.difference {
            Some(difference) => difference.interval_bounds(),
            None => self.low.zip(self.high),
        }
    }
}

impl Agreement {
    fn between(a: &Estimate, b: &Estimate) -> Agreement {
        let apart = match (a.bounds(), b.bounds()) {
            (Some((a_low, a_high)), Some((b_low, b_high))) => a_high < b_low || b_high < a_low,
            _ => false,
        };
        match apart {
            true => Agreement::Differs,
            false if a.verdict == b.verdict && a.verdict != Verdict::Unknown => Agreement::Agrees,
            false => Agreement::Open,
        }
    }

    /// `3 agree`, `1 is open`.
    fn of(self, number: usize) -> String {
        let word = match (self, number) {
            (Agreement::Differs, 1) => "differs",
            (Agreement::Differs, _) => "differ",
            (Agreement::Agrees, 1) => "agrees",
            (Agreement::Agrees, _) => "agree",
            (Agreement::Open, 1) => "is open",
            (Agreement::Open, _) => "are open",
        };
        format!("{number} {word}")
    }

    fn as_str(self) -> &'static str {
        match self {
            Agreement::Differs => "differs",
            Agreement::Agrees => "agrees",
            Agreement::Open => "open",
        }
    }
}

/// The trials of one arm there, against those of the same arm here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Level {
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
    /// Change in the unit, where a figure is 0 or below it; the ratio is not there then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Shift>,
}

/// `full`: every metric that is judged, not only those that decide.
pub fn side_by_side(a: Side, b: Side, full: bool) -> SideBySide {
    let tables = [a, b].map(|side| Table::verdicts_only(side.results));
    let [a_table, b_table] = &tables;
    if let Some(said) = same_run(a.results, b.results) {
        return SideBySide {
            a: info(a, a_table),
            b: info(b, b_table),
            same_run: true,
            differs: Vec::new(),
            same: Vec::new(),
            unmatched: Vec::new(),
            lacks: Vec::new(),
            effects: Vec::new(),
            events: Vec::new(),
            levels: Vec::new(),
            conclusions: vec![said],
        };
    }
    let matched = Matched::new(a.results, b.results);
    let mut both = SideBySide {
        a: info(a, a_table),
        b: info(b, b_table),
        same_run: false,
        differs: differences::find_differences(a.results, b.results),
        same: differences::find_common(a.results, b.results),
        unmatched: matched.unmatched.clone(),
        lacks: pair_lacks(&matched, a, b),
        effects: effects::compare_effects(&matched, a_table, b_table, full),
        events: events::compare_events(&matched, a_table, b_table),
        levels: levels::compare_levels(&matched, a.results, b.results, full),
        conclusions: Vec::new(),
    };
    if both.effects.is_empty() && both.levels.is_empty() {
        let nothing = "nothing of the two was compared".to_owned();
        both.lacks.push(nothing);
    }
    both.conclusions = conclusions::draw_conclusions(&both, a.results, b.results);
    both
}

/// Lacks of one side. A metric may be on either side alone.
fn pair_lacks(matched: &Matched, a: Side, b: Side) -> Vec<String> {
    let pair = Pair {
        matched,
        runs: [a.results, b.results],
        names: ["A", "B"],
    };
    pair.common_lacks()
}

/// Sentences on what is not defined alike in the two experiments; empty where their trials are of
/// the same arms and cells.
pub fn describe_unmatched(a: &ResultSet, b: &ResultSet) -> Vec<String> {
    Matched::new(a, b).unmatched
}

/// Names of the circumstances that differ, the weightiest first.
pub(crate) fn what_differs(a: &ResultSet, b: &ResultSet) -> Vec<String> {
    let differs = differences::find_differences(a, b).into_iter();
    differs.map(|differs| differs.what).collect()
}

/// A word on two results of one run; none where they are of two.
pub fn same_run(a: &ResultSet, b: &ResultSet) -> Option<String> {
    let shared =
        differences::list_runs(a).find(|run| differences::list_runs(b).any(|other| *run == other));
    let is_merged = |r: &ResultSet| !r.manifest.sources.is_empty();
    if let Some((machine, created, _)) = shared.filter(|_| is_merged(a) || is_merged(b)) {
        return Some(format!(
            "A and B share the run of {created} on {machine}: neither confirms the other."
        ));
    }
    let (fewer, more) = match a.trials.len() <= b.trials.len() {
        true => (a, b),
        false => (b, a),
    };
    // A run may go on for longer, and nothing else of its experiment may change.
    let is_one = a.manifest.created == b.manifest.created
        && a.experiment.arms == b.experiment.arms
        && a.experiment.workloads == b.experiment.workloads
        && a.system == b.system
        && !fewer.trials.is_empty();
    let trials = fewer.trials.iter().zip(&more.trials);
    if !is_one || trials.into_iter().any(|(a, b)| a.trial != b.trial) {
        return None;
    }
    Some(match more.trials.len() - fewer.trials.len() {
        0 => "A and B are the same run: there is nothing to compare, and neither confirms the \
              other."
            .to_owned(),
        later => format!(
            "A and B are the same run: {} has gone on for {} more. There is nothing to compare, \
             and neither confirms the other.",
            match a.trials.len() > b.trials.len() {
                true => "A",
                false => "B",
            },
            crate::quantity::format_count(later, "trial")
        ),
    })
}

fn info(side: Side, table: &Table) -> SideInfo {
    let manifest = &side.results.manifest;
    SideInfo {
        label: side.label.to_owned(),
        experiment: manifest.name.clone(),
        created: manifest.created.clone(),
        machine: crate::words::machine_line(table),
        tool: differences::tool_version(manifest),
    }
}

#[cfg(test)]
mod tests;
