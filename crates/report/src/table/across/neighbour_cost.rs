//! Price of an arm for those beside: the CPU time that the antagonists had, and the work that those
//! did that count it.

use crate::table::explanation::{Change, change_of};
use results::ResultSet;
use serde::Serialize;

/// CPU time of the antagonists.
pub const CPU_TIME: &str = "antagonist_cpu_time";
/// Work of those antagonists that count it.
pub const WORK: &str = "antagonist_work_per_sec";

/// Change of the antagonists' CPU time or work from the baseline to one arm, in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paid {
    /// Name of the cell.
    pub cell: String,
    /// Name of the arm.
    pub arm: String,
    /// Name of the counter.
    pub metric: String,
    /// Mean change over the blocks.
    pub change: Change,
}

/// CPU time and work of the antagonists under each arm but the baseline, where there are any.
pub fn antagonist_costs(results: &ResultSet) -> Vec<Paid> {
    let experiment = &results.experiment;
    if experiment.import_source().is_some() {
        return Vec::new();
    }
    let arms = (0..experiment.arms.len()).filter(|arm| *arm != experiment.baseline);
    let arms: Vec<usize> = arms.collect();
    let cells = results.plan.cells.iter().enumerate();
    cells
        .flat_map(|(index, cell)| arms.iter().map(move |arm| (index, cell, *arm)))
        .flat_map(|(index, cell, arm)| {
            let paid = move |metric: &&str| {
                Some(Paid {
                    cell: cell.name.clone(),
                    arm: experiment.arms[arm].name.clone(),
                    metric: (*metric).to_owned(),
                    change: change_of(results, index, metric, arm)?,
                })
            };
            [CPU_TIME, WORK].iter().filter_map(paid).collect::<Vec<_>>()
        })
        .collect()
}
