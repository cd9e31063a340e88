//! The highest rate that holds a service level, for each arm by itself.

use super::{GeometricMean, deciding, figures, geometric_mean, ok_trials};
use model::Load;
use results::ResultSet;
use results::bound::{self, Bound, find_bound};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Search {
    pub cell: String,
    /// Index in the plan.
    #[serde(skip)]
    pub index: usize,
    /// The quantile, and what it must stay below.
    pub quantile: String,
    pub below_ns: u64,
    pub arms: Vec<SearchArm>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchArm {
    pub arm: String,
    /// Mean rate of the trials that found one; none where none did.
    pub rate_per_sec: Option<GeometricMean>,
    /// Trials whose rate is lower than any that was tried, and those where it is higher.
    pub lower: usize,
    pub higher: usize,
}

/// One for each cell that looks for a rate.
pub fn find_searches(results: &ResultSet) -> Vec<Search> {
    let cells = 0..results.plan.cells.len();
    cells.filter_map(|index| search(results, index)).collect()
}

fn search(results: &ResultSet, index: usize) -> Option<Search> {
    let cell = &results.plan.cells[index];
    let Load::MaxRate(slo) = cell.load else {
        return None;
    };
    deciding(results, index)?;
    let arms = 0..results.experiment.arms.len();
    Some(Search {
        cell: cell.name.clone(),
        index,
        quantile: slo.quantile_name(),
        below_ns: slo.below_ns,
        arms: arms.map(|arm| search_arm(results, index, arm)).collect(),
    })
}

fn search_arm(results: &ResultSet, cell: usize, arm: usize) -> SearchArm {
    let trials = || ok_trials(results, cell).filter(|trial| trial.place.arm == arm);
    let count = |kind| {
        let bounds = trials().filter(|trial| find_bound(trial, bound::METRIC) == Some(kind));
        bounds.count()
    };
    let rates: Vec<f64> = figures(results, cell, arm, bound::METRIC)
        .filter(|(trial, _)| find_bound(trial, bound::METRIC).is_none())
        .map(|(_, rate)| rate)
        .collect();
    SearchArm {
        arm: results.experiment.arms[arm].name.clone(),
        rate_per_sec: geometric_mean(&rates, 1.0 - results.experiment.stop.confidence),
        lower: count(Bound::Lower),
        higher: count(Bound::Higher),
    }
}
