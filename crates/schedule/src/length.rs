//! Length of blocks, as far as the experiment tells.

use model::{Experiment, Load, Plan, Slo, TargetSpec};

/// Applying, proving and undoing an arm, and starting a process: measured on a
/// small machine, rounded up.
const AROUND_A_TRIAL_NS: u64 = 300_000_000;
/// The same in a guest, whose CPUs may be emulated.
const AROUND_IN_A_GUEST_NS: u64 = 1_000_000_000;
/// Attaching and detaching a sched_ext scheduler.
const ATTACH_NS: u64 = 1_000_000_000;

/// Nanoseconds of one block of all cells. Workloads without a duration count only what
/// is around their trials.
pub fn block_ns(experiment: &Experiment, plan: &Plan) -> u64 {
    let around_ns = match experiment.target.kind() == TargetSpec::local().kind() {
        true => AROUND_A_TRIAL_NS,
        false => AROUND_IN_A_GUEST_NS,
    };
    let attached = experiment.arms.iter().filter(|arm| arm.scheduler.is_some());
    let attach_ns = ATTACH_NS.saturating_mul((attached.count() * plan.cells.len()) as u64);
    let arms = experiment.arms.len() as u64;
    let cells = plan.cells.iter().map(|cell| {
        let workload = &experiment.workloads[cell.workload];
        let loads = match &cell.load {
            Load::MaxRate(slo) => loads_of_a_search(slo),
            _ => 1,
        };
        if workload.in_place.is_some() {
            // One process for all arms.
            let windows_ns = workload.duration_ns.saturating_mul(arms);
            let process_ns = workload.warmup_ns.saturating_add(windows_ns);
            return process_ns.saturating_add(around_ns);
        }
        let window_ns = workload.warmup_ns.saturating_add(workload.duration_ns);
        let trial_ns = loads.saturating_mul(window_ns).saturating_add(around_ns);
        trial_ns.saturating_mul(arms)
    });
    cells.fold(attach_ns, u64::saturating_add)
}

/// Half of the doublings, the halvings after them, and what is tried twice.
fn loads_of_a_search(slo: &Slo) -> u64 {
    let doublings = (slo.to_per_sec / slo.from_per_sec).log2();
    model::whole(doublings / 2.0) + 8
}
