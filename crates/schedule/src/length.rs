//! Length of blocks, as far as the experiment tells.

use model::{Experiment, Load, Plan, Slo};

/// Applying, proving and undoing an arm, and starting a process: measured on a
/// small machine, rounded up.
const AROUND_A_TRIAL_NS: u64 = 300_000_000;

/// Nanoseconds of one block of all cells. Workloads without a duration count only what
/// is around their trials.
pub fn block_ns(experiment: &Experiment, plan: &Plan) -> u64 {
    let trials = plan.cells.iter().map(|cell| {
        let workload = &experiment.workloads[cell.workload];
        let loads = match &cell.load {
            Load::MaxRate(slo) => loads_of_a_search(slo),
            _ => 1,
        };
        let window_ns = workload.warmup_ns.saturating_add(workload.duration_ns);
        loads
            .saturating_mul(window_ns)
            .saturating_add(AROUND_A_TRIAL_NS)
    });
    let once = trials.fold(0, u64::saturating_add);
    once.saturating_mul(experiment.arms.len() as u64)
}

/// Half of the doublings, the halvings after them, and what is tried twice.
fn loads_of_a_search(slo: &Slo) -> u64 {
    let doublings = (slo.to_per_sec / slo.from_per_sec).log2();
    model::whole(doublings / 2.0) + 8
}
