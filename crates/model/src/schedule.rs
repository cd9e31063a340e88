//! The plan: seeded, ordered trials.

use crate::workload::Load;
use serde::{Deserialize, Serialize};

/// The place where arms are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Index in `Experiment::workloads`.
    pub workload: usize,
    /// Load at which the arms are compared.
    pub load: Load,
    /// `wakeup 100%`, unique in the plan.
    pub name: String,
}

/// One place of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// Position in the plan.
    pub index: u32,
    /// Counts from 1.
    pub block: u32,
    /// Index in `Plan::cells`.
    pub cell: usize,
    /// Index in `Experiment::arms`.
    pub arm: usize,
}

/// All blocks up to the maximum. A run leaves out what is decided before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Seed from which the order follows.
    pub seed: u64,
    /// Cells, in the order of the experiment.
    pub cells: Vec<Cell>,
    /// Trials, in the order in which they run.
    pub trials: Vec<PlannedTrial>,
}
