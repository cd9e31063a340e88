//! The worst latency of each arm, where its trace was kept.

use super::counted_trials;
use model::{Ran, WorstTrace};
use results::files::{TRIALS, trace_in};
use results::{ResultSet, StoredTrial};
use serde::Serialize;

/// Traces of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorstOfCell {
    pub cell: String,
    /// Log of the latency: `wakeup`, `request`.
    pub of: String,
    /// Arms that have one, in the order of the arms.
    pub arms: Vec<WorstOfArm>,
}

/// The worst latency of all trials of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorstOfArm {
    pub arm: String,
    pub block: u32,
    /// Path of the Perfetto trace in the results directory.
    pub file: String,
    pub took_ns: u64,
    /// Time that its thread was runnable without a CPU; none where the events do not show it.
    pub waited_ns: Option<u64>,
    pub thread: i32,
    pub thread_name: String,
    pub cpu: Option<u32>,
    /// Threads that ran on that CPU meanwhile, the longest first.
    pub ran: Vec<Ran>,
    pub events: u64,
    /// Events that the kernel could not store.
    pub lost: u64,
}

/// One for each cell that has traces.
pub fn find_worst(results: &ResultSet) -> Vec<WorstOfCell> {
    let cells = 0..results.plan.cells.len();
    cells.filter_map(|cell| of_cell(results, cell)).collect()
}

fn of_cell(results: &ResultSet, cell: usize) -> Option<WorstOfCell> {
    let arms = 0..results.experiment.arms.len();
    let found = arms.filter_map(|arm| {
        let here = counted_trials(results, cell, arm).rev();
        let traces = here.filter_map(|stored| Some((stored, stored.trial.result.trace.as_ref()?)));
        // Of equal ones the first was kept.
        let (stored, trace) = traces.max_by_key(|(_, trace)| trace.took_ns)?;
        Some((of_arm(stored, trace)?, trace))
    });
    let found: Vec<(WorstOfArm, &WorstTrace)> = found.collect();
    Some(WorstOfCell {
        cell: results.plan.cells[cell].name.clone(),
        of: found.first()?.1.of.clone(),
        arms: found.into_iter().map(|(arm, _)| arm).collect(),
    })
}

/// `None` where the file is not there any more.
fn of_arm(stored: &StoredTrial, trace: &WorstTrace) -> Option<WorstOfArm> {
    let file = trace_in(&stored.dir);
    let is_file = file.symlink_metadata().is_ok_and(|about| about.is_file());
    let below = file.strip_prefix(stored.dir.parent()?).ok()?;
    is_file.then(|| WorstOfArm {
        arm: stored.trial.arm.clone(),
        block: stored.trial.place.block,
        file: format!("{TRIALS}/{}", below.display()),
        took_ns: trace.took_ns,
        waited_ns: trace.waited_ns,
        thread: trace.thread,
        thread_name: trace.thread_name.clone(),
        cpu: trace.cpu,
        ran: trace.ran.clone(),
        events: trace.events,
        lost: trace.lost,
    })
}
