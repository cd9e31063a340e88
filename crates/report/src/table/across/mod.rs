//! Findings that only several cells or arms together give: a scan over rates, a service alone
//! and beside others, a grid of parameters; and what moved beside a figure.

mod counts;
pub mod events;
pub mod grid;
pub mod interference;
pub mod machines;
pub mod neighbour_cost;
mod over;
pub mod ranks;
pub mod rivals;
pub mod scan;
pub mod search;
pub mod sequential;
pub mod sets;
#[cfg(test)]
mod tests;
pub mod worst;

pub use counts::fairness_by_count;
pub use events::{EventComparison, EventCount};
pub use grid::Grid;
pub use interference::Interference;
pub use machines::ByMachine;
pub use scan::Scan;
pub use search::Search;
pub use sequential::Sequential;
pub use sets::SetsOfCell;
pub use worst::WorstOfCell;

use crate::certificate::Certificate;
use crate::table::Comparison;
use crate::table::explanation::Why;
use model::{Better, Trial};
use neighbour_cost::Paid;
use ranks::Rank;
use results::{Overload, ResultSet, StoredTrial, overload};
use serde::Serialize;
use stats::randomization::{Prior, fewest_pairs};
use std::collections::BTreeMap;

/// Parts that have nothing to show are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Across {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scans: Vec<Scan>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Search>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<Interference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<Grid>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Why>,
    /// Rare events of each arm beside those of its baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventComparison>,
    /// Traces of the worst latencies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<WorstOfCell>,
    /// Sets of workers that burn and wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<SetsOfCell>,
    /// Imported runs, which were not interleaved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// Comparisons by the machines of merged runs, or by the runs of one machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<ByMachine>,
    /// Comparisons of the arms with each other, for deciding metrics; a family of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<Comparison>,
    /// Ranks of the arms by all calls together, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Rank>,
    /// CPU time of the antagonists under each arm.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paid: Vec<Paid>,
    /// Certificate of a run that measured its baseline against itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
}

/// A metric as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    pub metric: String,
    pub unit: String,
    pub better: Better,
}

impl Measured {
    fn is_latency(&self) -> bool {
        overload::is_latency(&self.unit, self.better)
    }
}

/// Geometric mean of the blocks and its t-interval, which begins at the same number of blocks as
/// the intervals of comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GeometricMean {
    pub value: f64,
    /// None with fewer blocks than that, or without spread.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub blocks: usize,
}

/// None without values, which must be positive.
pub fn geometric_mean(values: &[f64], alpha: f64) -> Option<GeometricMean> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = stats::summary::mean(&logs)?;
    let enough = logs.len() >= fewest_pairs(alpha, Prior::BLOCKS) as usize;
    let test = stats::t_test::one_sample(&logs, alpha).filter(|_| enough);
    let interval = test.map(|test| test.interval);
    let end = |end: f64| Some(end.exp()).filter(|value| value.is_finite());
    Some(GeometricMean {
        value: mean.exp(),
        low: interval.and_then(|i| end(i.low)),
        high: interval.and_then(|i| end(i.high)),
        blocks: values.len(),
    })
}

/// Trials of an arm in a cell that count, with their directories.
pub fn counted_trials(
    results: &ResultSet,
    cell: usize,
    arm: usize,
) -> impl DoubleEndedIterator<Item = &StoredTrial> {
    results.trials.iter().filter(move |stored| {
        let place = &stored.trial.place;
        stored.trial.is_ok() && (place.cell, place.arm) == (cell, arm)
    })
}

/// The first metric that decides the cell, as its trials define it.
fn deciding(results: &ResultSet, cell: usize) -> Option<Measured> {
    let workload = &results.experiment.workloads[results.plan.cells[cell].workload];
    measured(results, cell, workload.metrics.first()?)
}

fn measured(results: &ResultSet, cell: usize, name: &str) -> Option<Measured> {
    let mut found = ok_trials(results, cell).filter_map(|trial| trial.metric(name));
    found.next().map(|m| Measured {
        metric: m.metric.clone(),
        unit: m.unit.clone(),
        better: m.better,
    })
}

fn ok_trials(results: &ResultSet, cell: usize) -> impl Iterator<Item = &Trial> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    trials.filter(move |trial| trial.place.cell == cell && trial.is_ok())
}

/// True if the arm did not carry the load of the cell, so that its latency is that of a queue.
pub fn is_overloaded(results: &ResultSet, cell: usize, arm: usize) -> bool {
    has_queue(results, cell, arm, "")
}

/// The same of the load which a metric is of.
fn has_queue(results: &ResultSet, cell: usize, arm: usize, metric: &str) -> bool {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    Overload::of_arm(trials, cell, arm).forbids_latency(metric)
}

/// Positive values of a metric of an arm in a cell.
fn figures<'a>(
    results: &'a ResultSet,
    cell: usize,
    arm: usize,
    metric: &'a str,
) -> impl Iterator<Item = (&'a Trial, f64)> {
    ok_trials(results, cell)
        .filter(move |trial| trial.place.arm == arm)
        .filter_map(move |trial| Some((trial, trial.metric(metric)?.value)))
        .filter(|(_, value)| *value > 0.0 && value.is_finite())
}

/// The positive values of an arm in a cell, by block; no latency of an overloaded trial.
fn by_block(
    results: &ResultSet,
    cell: usize,
    arm: usize,
    measured: &Measured,
) -> BTreeMap<u32, f64> {
    let is_queue =
        |trial: &Trial| measured.is_latency() && overload::is_overloaded(trial, &measured.metric);
    figures(results, cell, arm, &measured.metric)
        .filter(|(trial, _)| !is_queue(trial))
        .map(|(trial, value)| (trial.place.block, value))
        .collect()
}
