//! Length of blocks, and of what comes before the first, as far as the experiment tells.

use model::{Experiment, Load, Plan, Slo, Workload};

/// Applying, proving and undoing an arm, and starting a process: measured on a
/// small machine, rounded up.
const AROUND_A_TRIAL_NS: u64 = 300_000_000;
/// The same in a guest, whose CPUs may be emulated.
const AROUND_IN_A_GUEST_NS: u64 = 1_000_000_000;
/// Ordinary trials, after a search, until one holds what it found or a lower rate.
const TRIALS_OF_A_SEARCH: u64 = 2;
/// Attaching and detaching a sched_ext scheduler.
const ATTACH_NS: u64 = 1_000_000_000;

/// Nanoseconds of one block of all cells. Workloads without a duration count only what
/// is around their trials.
pub fn block_ns(experiment: &Experiment, plan: &Plan) -> u64 {
    let around_ns = around_a_trial_ns(experiment);
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
        let windows_ns = loads.saturating_mul(window_ns(workload));
        windows_ns.saturating_add(around_ns).saturating_mul(arms)
    });
    cells.fold(attach_ns, u64::saturating_add)
}

/// A search for a highest rate that comes before the first block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Index of the workload whose loads are shares of the rate.
    pub workload: usize,
    /// Service level, and the ends of the search.
    pub slo: Slo,
    /// Time that it is likely to take.
    pub about_ns: u64,
}

/// Searches of an experiment: one for each workload whose loads are shares of its highest rate.
pub fn searches(experiment: &Experiment) -> Vec<Search> {
    let around_ns = around_a_trial_ns(experiment);
    let workloads = experiment.workloads.iter().enumerate();
    let search = |(index, workload): (usize, &Workload)| {
        let slo = workload.loads.iter().find_map(|load| match load {
            Load::ShareOfMax(share) => Some(share.slo),
            _ => None,
        })?;
        let loads_ns = loads_of_a_search(&slo).saturating_mul(window_ns(workload));
        let trials_ns = window_ns(workload)
            .saturating_add(around_ns)
            .saturating_mul(TRIALS_OF_A_SEARCH);
        Some(Search {
            workload: index,
            slo,
            about_ns: loads_ns.saturating_add(around_ns).saturating_add(trials_ns),
        })
    };
    workloads.filter_map(search).collect()
}

/// Time that all searches before the first block are likely to take.
pub fn searches_ns(experiment: &Experiment) -> u64 {
    let times = searches(experiment).into_iter().map(|s| s.about_ns);
    times.fold(0, u64::saturating_add)
}

/// Time after which a search has failed: that of any trial, and all the loads that it can try.
pub fn search_limit_ns(workload: &Workload, slo: &Slo) -> u64 {
    /// Until a gap of a doubling is 5 % wide.
    const HALVINGS: u64 = 4;
    let doublings = model::whole((slo.to_per_sec / slo.from_per_sec).log2().ceil());
    // What fails is tried twice.
    let loads = 2 * (1 + doublings + HALVINGS);
    let answers_ns = workload.client.as_ref().map_or(0, |c| c.timeout_ns);
    let load_ns = window_ns(workload).saturating_add(answers_ns);
    let loads_ns = loads.saturating_mul(load_ns);
    workload
        .time_limit_ns
        .saturating_add(loads_ns)
        .min(model::check::LONGEST_NS)
}

fn around_a_trial_ns(experiment: &Experiment) -> u64 {
    match experiment.target.is_local() {
        true => AROUND_A_TRIAL_NS,
        false => AROUND_IN_A_GUEST_NS,
    }
}

fn window_ns(workload: &Workload) -> u64 {
    workload.warmup_ns.saturating_add(workload.duration_ns)
}

/// Half of the doublings, the halvings after them, and what is tried twice.
fn loads_of_a_search(slo: &Slo) -> u64 {
    let doublings = (slo.to_per_sec / slo.from_per_sec).log2();
    model::whole(doublings / 2.0) + 8
}
