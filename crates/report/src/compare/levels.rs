//! The bare figures of both sides, for arms and cells that are the same.

use super::Level;
use super::pairing::Matched;
use crate::shift::{self, Shift};
use model::{Better, Own, Scale};
use results::ResultSet;
use stats::rank;

/// The rank test is exact and its cost grows fast; more trials are thinned to these.
const MOST_TRIALS: usize = 120;

pub fn compare_levels(matched: &Matched, a: &ResultSet, b: &ResultSet, full: bool) -> Vec<Level> {
    let mut levels = Vec::new();
    for &(a_cell, b_cell) in &matched.cells {
        for metric in judged_metrics(a, a_cell, full) {
            for &(a_arm, b_arm) in &matched.arms {
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

/// Metrics of a cell that decide; `full`: all that are judged.
pub fn judged_metrics(results: &ResultSet, cell: usize, full: bool) -> Vec<String> {
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

/// Figures of the trials that count.
fn values(results: &ResultSet, cell: usize, arm: usize, metric: &str) -> Vec<f64> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let here = trials.filter(|t| t.is_ok() && t.place.cell == cell && t.place.arm == arm);
    here.filter_map(|t| t.metric(metric))
        .map(|m| m.value)
        .filter(|value| value.is_finite())
        .collect()
}

fn level(
    cell: &str,
    metric: &str,
    arm: &str,
    [a, b]: &[Vec<f64>; 2],
    results: &ResultSet,
) -> Option<Level> {
    let own = shift::find_declaration(results, metric);
    let figures = [a.clone(), b.clone()];
    let in_unit = shift::choose_scale(own, &figures) == Scale::Difference;
    let shift = shift_of(&figures, in_unit, results);
    let interval = shift.and_then(|s| s.interval);
    let of_ratio = |end: fn(&stats::Interval) -> f64| {
        let ends = interval.as_ref().filter(|_| !in_unit);
        ends.map(|interval| end(interval).exp())
    };
    Some(Level {
        cell: cell.to_owned(),
        metric: metric.to_owned(),
        unit: unit(results, metric),
        arm: arm.to_owned(),
        a_median: stats::summary::median(a)?,
        b_median: stats::summary::median(b)?,
        a_trials: a.len(),
        b_trials: b.len(),
        ratio: shift.filter(|_| !in_unit).map(|s| s.value.exp()),
        low: of_ratio(|i| i.low),
        high: of_ratio(|i| i.high),
        difference: shift.filter(|_| in_unit).map(|shift| Shift {
            value: shift.value,
            low: shift.interval.map(|i| i.low),
            high: shift.interval.map(|i| i.high),
            smallest_effect: smallest_effect(own, a, results),
            unit: unit(results, metric),
        }),
    })
}

/// How far the second figures are from the first ones, in the unit or as a logarithm of the ratio.
fn shift_of([a, b]: &[Vec<f64>; 2], in_unit: bool, results: &ResultSet) -> Option<rank::Estimate> {
    let alpha = 1.0 - results.experiment.stop.confidence;
    let scaled = |values: &[f64]| -> Vec<f64> {
        let values = thinned(values).into_iter();
        match in_unit {
            true => values.collect(),
            false => values.map(f64::ln).collect(),
        }
    };
    rank::hodges_lehmann_shift(&scaled(b), &scaled(a), alpha)
}

/// Smallest difference of interest: what the metric says, else that of the experiment of its usual size.
fn smallest_effect(own: Option<&Own>, figures: &[f64], results: &ResultSet) -> f64 {
    let said = own.and_then(|own| own.smallest_effect);
    said.unwrap_or_else(|| {
        let sizes: Vec<f64> = figures.iter().map(|value| value.abs()).collect();
        let level = stats::summary::median(&sizes).unwrap_or(0.0);
        results.experiment.stop.smallest_effect * level
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
