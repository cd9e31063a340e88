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
mod text;

pub use differences::Divergence;

use crate::table::{CellTable, Comparison, Table, Verdict};
use model::Better;
use results::ResultSet;
use serde::Serialize;
use stats::rank;

/// The rank test is exact and its cost grows fast; more trials are thinned to these.
const MOST_TRIALS: usize = 120;

/// One of the two results.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// As the user named it.
    pub label: &'a str,
    pub results: &'a ResultSet,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideBySide {
    pub a: SideInfo,
    pub b: SideInfo,
    /// What is known to differ, the weightiest first.
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
        effects: effects(&matched, a_table, b_table, full),
        levels: matched.levels(a.results, b.results, full),
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

/// Cells and arms that are the same on both sides, by name and by content.
struct Matched {
    /// Indices of the same cell.
    cells: Vec<(usize, usize)>,
    arms: Vec<(usize, usize)>,
    same_baseline: bool,
    unmatched: Vec<String>,
}

impl Matched {
    fn new(a: &ResultSet, b: &ResultSet) -> Matched {
        let (cells, mut unmatched) = match_up(&names_of_cells(a), &names_of_cells(b), |i, j| {
            let work = |r: &ResultSet, cell: usize| {
                let workload = &r.experiment.workloads[r.plan.cells[cell].workload];
                // Which metrics decide is no part of the work.
                (
                    workload.kind.clone(),
                    workload.duration_ns,
                    workload.warmup_ns,
                )
            };
            work(a, i) == work(b, j)
        });
        let arms_of = |r: &ResultSet| -> Vec<String> {
            let arms = r.experiment.arms.iter();
            arms.map(|arm| format!("arm {}", arm.name)).collect()
        };
        let (arms, others) = match_up(&arms_of(a), &arms_of(b), |i, j| {
            a.experiment.arms[i] == b.experiment.arms[j]
        });
        unmatched.extend(others);
        let same_baseline = arms.contains(&(a.experiment.baseline, b.experiment.baseline));
        if !same_baseline {
            unmatched.push("the baselines are not the same: no effect is compared".to_owned());
        }
        Matched {
            cells,
            arms,
            same_baseline,
            unmatched,
        }
    }

    fn levels(&self, a: &ResultSet, b: &ResultSet, full: bool) -> Vec<Level> {
        let mut levels = Vec::new();
        for &(a_cell, b_cell) in &self.cells {
            for metric in metrics(a, a_cell, full) {
                for &(a_arm, b_arm) in &self.arms {
                    let values = [
                        values(a, a_cell, a_arm, &metric),
                        values(b, b_cell, b_arm, &metric),
                    ];
                    let arm = &a.experiment.arms[a_arm].name;
                    levels.extend(level(&a.plan.cells[a_cell].name, &metric, arm, &values, a));
                }
            }
        }
        levels
    }
}

fn names_of_cells(results: &ResultSet) -> Vec<String> {
    let cells = results.plan.cells.iter();
    cells.map(|cell| format!("cell {}", cell.name)).collect()
}

/// Pairs of indices with the same name that `are_same`, and words for the rest.
fn match_up(
    a: &[String],
    b: &[String],
    are_same: impl Fn(usize, usize) -> bool,
) -> (Vec<(usize, usize)>, Vec<String>) {
    let mut pairs = Vec::new();
    let mut unmatched = Vec::new();
    for (i, name) in a.iter().enumerate() {
        match b.iter().position(|other| other == name) {
            Some(j) if are_same(i, j) => pairs.push((i, j)),
            Some(_) => unmatched.push(format!("{name}: not defined alike, so not compared")),
            None => unmatched.push(format!("{name}: only in A")),
        }
    }
    let only_b = b.iter().filter(|name| !a.contains(name));
    unmatched.extend(only_b.map(|name| format!("{name}: only in B")));
    (pairs, unmatched)
}

fn effects(matched: &Matched, a: &Table, b: &Table, full: bool) -> Vec<Effect> {
    if !matched.same_baseline {
        return Vec::new();
    }
    let mut effects = Vec::new();
    for &(a_cell, b_cell) in &matched.cells {
        let (a_cell, b_cell) = (&a.cells[a_cell], &b.cells[b_cell]);
        for comparison in a_cell.comparisons.iter().filter(|c| full || c.deciding) {
            let is_matched = matched
                .arms
                .iter()
                .any(|(i, _)| a.arms[*i].name == comparison.arm);
            let other = counterpart(b_cell, comparison).filter(|_| is_matched);
            effects.extend(other.map(|other| effect(&a_cell.name, comparison, other)));
        }
    }
    effects
}

fn counterpart<'a>(cell: &'a CellTable, of: &Comparison) -> Option<&'a Comparison> {
    let mut comparisons = cell.comparisons.iter();
    comparisons.find(|c| c.arm == of.arm && c.metric == of.metric)
}

fn effect(cell: &str, a: &Comparison, b: &Comparison) -> Effect {
    let (estimate_a, estimate_b) = (estimate(a), estimate(b));
    Effect {
        cell: cell.to_owned(),
        metric: a.metric.clone(),
        better: a.better,
        arm: a.arm.clone(),
        baseline: a.baseline.clone(),
        agreement: Agreement::of(&estimate_a, &estimate_b),
        a: estimate_a,
        b: estimate_b,
    }
}

fn estimate(comparison: &Comparison) -> Estimate {
    Estimate {
        ratio: comparison.ratio,
        low: comparison.low,
        high: comparison.high,
        verdict: comparison.verdict,
        blocks: comparison.blocks,
    }
}

fn metrics(results: &ResultSet, cell: usize, full: bool) -> Vec<String> {
    let workload = &results.experiment.workloads[results.plan.cells[cell].workload];
    if !full && !workload.metrics.is_empty() {
        return workload.metrics.clone();
    }
    let mut trials = results.trials.iter().map(|stored| &stored.trial);
    let first = trials.find(|t| t.place.cell == cell && t.is_ok());
    let judged = first.into_iter().flat_map(|t| &t.result.metrics);
    judged
        .filter(|m| m.better != Better::Neither)
        .map(|m| m.metric.clone())
        .collect()
}

/// Of the trials that count, where the figure has a logarithm.
fn values(results: &ResultSet, cell: usize, arm: usize, metric: &str) -> Vec<f64> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let here = trials.filter(|t| t.is_ok() && t.place.cell == cell && t.place.arm == arm);
    here.filter_map(|t| t.metric(metric))
        .map(|m| m.value)
        .filter(|v| *v > 0.0 && v.is_finite())
        .collect()
}

fn level(
    cell: &str,
    metric: &str,
    arm: &str,
    [a, b]: &[Vec<f64>; 2],
    results: &ResultSet,
) -> Option<Level> {
    let alpha = 1.0 - results.experiment.stop.confidence;
    let logs = |values: &[f64]| -> Vec<f64> { thinned(values).iter().map(|v| v.ln()).collect() };
    let shift = rank::hodges_lehmann_shift(&logs(b), &logs(a), alpha);
    let interval = shift.and_then(|s| s.interval);
    Some(Level {
        cell: cell.to_owned(),
        metric: metric.to_owned(),
        unit: unit(results, metric),
        arm: arm.to_owned(),
        a_median: stats::summary::median(a)?,
        b_median: stats::summary::median(b)?,
        a_trials: a.len(),
        b_trials: b.len(),
        ratio: shift.map(|s| s.value.exp()),
        low: interval.map(|i| i.low.exp()),
        high: interval.map(|i| i.high.exp()),
    })
}

/// Evenly chosen over the run.
fn thinned(values: &[f64]) -> Vec<f64> {
    let every = values.len().div_ceil(MOST_TRIALS).max(1);
    values.iter().copied().step_by(every).collect()
}

fn unit(results: &ResultSet, metric: &str) -> String {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let measured = trials.filter_map(|t| t.metric(metric)).next();
    measured.map_or(String::new(), |m| m.unit.clone())
}

#[cfg(test)]
mod tests;
