//! Fairness over the number of workers: `burnwait` at several counts.

use super::{GeometricMean, figures, geometric_mean};
use model::Load;
use results::ResultSet;

const METRIC: &str = "fairness_percent";

/// Fairness of one workload at each number of workers.
pub struct FairnessByCount {
    pub workload: String,
    /// Counts in rising order, for each arm of the experiment.
    pub arms: Vec<Vec<(u64, GeometricMean)>>,
}

/// The workloads that have this metric at two counts or more.
pub fn fairness_by_count(results: &ResultSet) -> Vec<FairnessByCount> {
    let alpha = 1.0 - results.experiment.stop.confidence;
    let workloads = results.experiment.workloads.iter().enumerate();
    let found = workloads.map(|(index, workload)| FairnessByCount {
        workload: workload.name.clone(),
        arms: (0..results.experiment.arms.len())
            .map(|arm| of_arm(results, index, arm, alpha))
            .collect(),
    });
    found
        .filter(|found| found.arms.iter().any(|points| points.len() > 1))
        .collect()
}

fn of_arm(
    results: &ResultSet,
    workload: usize,
    arm: usize,
    alpha: f64,
) -> Vec<(u64, GeometricMean)> {
    let cells = results.plan.cells.iter().enumerate();
    let counted = cells.filter_map(|(index, cell)| match cell.load {
        Load::Count(count) if cell.workload == workload => Some((index, count)),
        _ => None,
    });
    let mut points: Vec<(u64, GeometricMean)> = counted
        .filter_map(|(cell, count)| {
            let values: Vec<f64> = figures(results, cell, arm, METRIC)
                .map(|(_, v)| v)
                .collect();
            Some((count, geometric_mean(&values, alpha)?))
        })
        .collect();
    points.sort_by_key(|(count, _)| *count);
    points
}
