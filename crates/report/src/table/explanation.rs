//! Why an arm differs: which counters moved together with a metric, and which only
//! moved.
//!
//! For each counter (a metric that is never judged) the change from the baseline to
//! the arm is taken in every block, as the judged metric's is. A counter *moved* if
//! the interval of its mean change leaves out "no change". It moved *together* with
//! the metric if over the blocks a larger change of the one came with a larger (or,
//! with the opposite sign, a smaller) change of the other: Kendall's rank
//! correlation, at a rate of false finds of 1 − confidence over all counters
//! (Benjamini and Hochberg 1995). Neither proves a cause: it says where to look.

use crate::table::CellTable;
use model::{Better, Trial};
use results::{Pair, ResultSet, pair_trials};
use serde::Serialize;
use stats::correlation::{Correlation, kendall_tau};
use stats::safe_test;
use std::collections::BTreeSet;

/// Fewer blocks than this cannot give a correlation a p below 0.05.
pub const FEWEST_BLOCKS: usize = 5;

/// Counters beside the change of one metric, from the baseline to one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    pub cell: String,
    pub arm: String,
    pub metric: String,
    /// Those that moved together first, the closest first; then those that only
    /// moved; then the rest.
    pub counters: Vec<Companion>,
}

/// One counter beside the metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Companion {
    pub counter: String,
    pub unit: String,
    pub change: Change,
    /// Blocks in which both have a change.
    pub blocks: usize,
    /// Kendall's tau of the two changes; none with fewer than [`FEWEST_BLOCKS`], or
    /// where one of them is the same in all blocks.
    pub tau: Option<f64>,
    /// Two-sided p of tau, for this counter alone.
    pub p: Option<f64>,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Went up and down with the metric from block to block.
    Together,
    /// Changed from the baseline to the arm, whatever the metric did.
    OnlyMoved,
    Neither,
}

/// The mean change of a counter over the blocks with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Arm over baseline.
    Ratio(Estimate),
    /// Arm less baseline, in the unit of the counter, where a value is 0 or below
    /// and has no ratio.
    Difference(Estimate),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    pub mean: f64,
    /// None with fewer than three blocks.
    pub interval: Option<(f64, f64)>,
}

/// One for each better or worse of a deciding metric that something moved beside. What
/// did not move is left out.
pub fn of_calls(results: &ResultSet, cells: &[CellTable]) -> Vec<Why> {
    let arms = &results.experiment.arms;
    let calls = cells.iter().enumerate().flat_map(|(index, cell)| {
        let called = cell
            .deciding_comparisons()
            .filter(|c| c.verdict.is_call() && !c.aa);
        called.map(move |call| (index, call))
    });
    calls
        .filter_map(|(cell, call)| {
            let arm = arms.iter().position(|arm| arm.name == call.arm)?;
            let mut why = explain_call(results, cell, &call.metric, arm)?;
            why.counters.retain(|c| c.kind != Kind::Neither);
            (!why.counters.is_empty()).then_some(why)
        })
        .collect()
}

/// Mean change of one counter from the baseline to an arm in one cell; `None` where no block has it of
/// both.
pub fn change_of(results: &ResultSet, cell: usize, counter: &str, arm: usize) -> Option<Change> {
    let scope = Scope::new(results, cell, arm);
    let (scale, changes) = scope.changes(counter)?;
    let values: Vec<f64> = changes.iter().map(|(_, x)| *x).collect();
    let interval = safe_test::confidence_sequence(&values, scope.alpha)
        .filter(|i| i.low.is_finite() && i.high.is_finite())
        .map(|i| (i.low, i.high));
    Some(Change::of(scale, stats::summary::mean(&values)?, interval))
}

/// For one cell, one metric and one arm (indices of [`model::PlannedTrial`]), which
/// counters moved; `None` where no block has the metric of both arms.
pub fn explain_call(results: &ResultSet, cell: usize, metric: &str, arm: usize) -> Option<Why> {
    let scope = Scope::new(results, cell, arm);
    let judged = scope.changes(metric);
    let (_, judged) = judged.filter(|(_, changes)| !changes.is_empty())?;
    let mut counters: Vec<Companion> = scope
        .counters()
        .into_iter()
        .filter_map(|(name, unit)| scope.companion(name, unit, &judged))
        .collect();
    mark_together(&mut counters, scope.alpha);
    counters.sort_by(order);
    Some(Why {
        cell: results.plan.cells[cell].name.clone(),
        arm: results.experiment.arms[arm].name.clone(),
        metric: metric.to_owned(),
        counters,
    })
}

/// The change in each block that has one.
type Changes = Vec<(u32, f64)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Logarithm,
    Plain,
}

struct Scope<'a> {
    /// Those of the cell.
    trials: Vec<&'a Trial>,
    cell: usize,
    arm: usize,
    baseline: usize,
    alpha: f64,
}

impl<'a> Scope<'a> {
    fn new(results: &'a ResultSet, cell: usize, arm: usize) -> Self {
        let trials = results.trials.iter().map(|stored| &stored.trial);
        Scope {
            trials: trials.filter(|trial| trial.place.cell == cell).collect(),
            cell,
            arm,
            baseline: results.experiment.baseline,
            alpha: 1.0 - results.experiment.stop.confidence,
        }
    }

    /// Name and unit of every metric that explains.
    fn counters(&self) -> BTreeSet<(&'a str, &'a str)> {
        let measured = self.trials.iter().flat_map(|trial| &trial.result.metrics);
        measured
            .filter(|m| m.better == Better::Neither)
            .map(|m| (m.metric.as_str(), m.unit.as_str()))
            .collect()
    }

    /// Logarithms of ratios, unless a block has none: then differences in all of them.
    fn changes(&self, metric: &str) -> Option<(Scale, Changes)> {
        let trials = self.trials.iter().copied();
        let mut pairs = pair_trials(trials, self.cell, metric, self.arm, self.baseline);
        pairs.retain(|pair| pair.arm.is_finite() && pair.baseline.is_finite());
        // A difference says more of a percentage of 0 than the ratio to a very small one.
        let positive = pairs.iter().filter(|p| p.arm > 0.0 && p.baseline > 0.0);
        let logarithms: Changes = positive
            .filter_map(|pair| Some((pair.block, pair.log_ratio()?)))
            .collect();
        if logarithms.len() == pairs.len() {
            return (!pairs.is_empty()).then_some((Scale::Logarithm, logarithms));
        }
        let difference = |pair: &Pair| (pair.block, pair.arm - pair.baseline);
        Some((Scale::Plain, pairs.iter().map(difference).collect()))
    }

    fn companion(&self, counter: &str, unit: &str, judged: &Changes) -> Option<Companion> {
        let (scale, changes) = self.changes(counter)?;
        let values: Vec<f64> = changes.iter().map(|(_, x)| *x).collect();
        let interval = safe_test::confidence_sequence(&values, self.alpha)
            .filter(|i| i.low.is_finite() && i.high.is_finite());
        let moved = interval.is_some_and(|i| !i.contains(0.0));
        let (xs, ys) = in_both(&changes, judged);
        let correlation = correlation(&xs, &ys);
        Some(Companion {
            counter: counter.to_owned(),
            unit: unit.to_owned(),
            change: Change::of(
                scale,
                stats::summary::mean(&values)?,
                interval.map(|i| (i.low, i.high)),
            ),
            blocks: xs.len(),
            tau: correlation.map(|c| c.tau),
            p: correlation.map(|c| c.p),
            kind: if moved {
                Kind::OnlyMoved
            } else {
                Kind::Neither
            },
        })
    }
}

impl Change {
    fn of(scale: Scale, mean: f64, interval: Option<(f64, f64)>) -> Self {
        let estimate = |f: fn(f64) -> f64| Estimate {
            mean: f(mean),
            interval: interval.map(|(low, high)| (f(low), f(high))),
        };
        match scale {
            Scale::Logarithm => Change::Ratio(estimate(f64::exp)),
            Scale::Plain => Change::Difference(estimate(|x| x)),
        }
    }
}

/// The changes of both in the blocks that have both.
fn in_both(of_counter: &Changes, of_metric: &Changes) -> (Vec<f64>, Vec<f64>) {
    let with_metric = of_counter.iter().filter_map(|(block, x)| {
        let same = of_metric.iter().find(|(other, _)| other == block)?;
        Some((*x, same.1))
    });
    with_metric.unzip()
}

fn correlation(xs: &[f64], ys: &[f64]) -> Option<Correlation> {
    if xs.len() < FEWEST_BLOCKS {
        return None;
    }
    kendall_tau(xs, ys)
}

/// Benjamini and Hochberg: with p-values in ascending order, all up to the last one
/// that is at most its rank's share of `alpha`.
fn mark_together(counters: &mut [Companion], alpha: f64) {
    let mut ps: Vec<f64> = counters.iter().filter_map(|c| c.p).collect();
    ps.sort_by(f64::total_cmp);
    let tested = ps.len() as f64;
    let enough = |rank: usize, p: f64| p <= alpha * (rank + 1) as f64 / tested;
    let limit = ps.iter().enumerate().rev().find(|(i, p)| enough(*i, **p));
    let Some((_, limit)) = limit else {
        return;
    };
    for counter in counters
        .iter_mut()
        .filter(|c| c.p.is_some_and(|p| p <= *limit))
    {
        counter.kind = Kind::Together;
    }
}

fn order(a: &Companion, b: &Companion) -> std::cmp::Ordering {
    let closeness = |c: &Companion| c.tau.map_or(0.0, f64::abs);
    a.kind
        .cmp(&b.kind)
        .then_with(|| closeness(b).total_cmp(&closeness(a)))
        .then_with(|| a.counter.cmp(&b.counter))
}

#[cfg(test)]
mod tests;
