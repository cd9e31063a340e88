//! Length of blocks, and of what comes before the first, as far as the experiment tells.

use crate::turns::process_ns;
use model::{Experiment, Load, Plan, Reset, Server, Slo, Workload};
use std::collections::BTreeSet;

/// Applying, proving and undoing an arm, and starting a process: measured on a
/// small machine, rounded up.
const AROUND_A_TRIAL_NS: u64 = 300_000_000;
/// The same in a guest, whose CPUs may be emulated.
const AROUND_IN_A_GUEST_NS: u64 = 1_000_000_000;
/// Ordinary trials, after a search, until one holds what it found or a lower rate.
const TRIALS_OF_A_SEARCH: u64 = 2;
/// Attaching and detaching a sched_ext scheduler.
const ATTACH_NS: u64 = 1_000_000_000;
/// The same in a guest, where the kernel's verifier has to run, too: 12 s were seen where its CPUs were
/// emulated, and no more than here where they were not.
const ATTACH_IN_A_GUEST_NS: u64 = 5_000_000_000;
/// Start of a program that answers, until it is ready, and its end. An interpreter takes so long.
const START_OF_A_PROGRAM_NS: u64 = 2_000_000_000;

/// Start of a guest and of the agent in it, as seen where its CPUs were emulated.
const BOOT_OF_A_GUEST_NS: u64 = 7_000_000_000;
/// Restart of a real machine, whose firmware takes its time.
const BOOT_OF_A_MACHINE_NS: u64 = 60_000_000_000;

/// Time of a block in which nothing is measured: starts of the target's machine, and pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// Number of starts of the machine.
    pub boots: u64,
    /// Time that all of them are likely to take.
    pub boots_ns: u64,
    /// Number of pauses.
    pub pauses: u64,
    /// Time of all pauses.
    pub pauses_ns: u64,
}

/// Starts and pauses of each block of all cells.
pub fn between_trials(experiment: &Experiment, plan: &Plan) -> Between {
    let arms = experiment.arms.iter();
    let kernels: BTreeSet<Option<&str>> = arms.map(|arm| arm.kernel.as_deref()).collect();
    let kernels = kernels.len() as u64;
    let cells = plan.cells.len() as u64;
    let workloads: BTreeSet<usize> = plan.cells.iter().map(|cell| cell.workload).collect();
    let boots = match experiment.target.reset() {
        // A machine with one kernel is started before the first block.
        Reset::None if kernels == 1 && !experiment.target.reboots() => 0,
        Reset::None | Reset::Block => kernels,
        Reset::Workload => kernels * workloads.len() as u64,
        Reset::Trial => experiment.arms.len() as u64 * cells,
        Reset::Snapshot | Reset::BlockSnapshot => 0,
    };
    let boot_ns = match experiment.target.reboots() {
        true => BOOT_OF_A_MACHINE_NS,
        false => BOOT_OF_A_GUEST_NS,
    };
    let pauses = match cells {
        _ if experiment.pause_ns == 0 => 0,
        1 => 0,
        cells => cells * kernels,
    };
    Between {
        boots,
        boots_ns: boots.saturating_mul(boot_ns),
        pauses,
        pauses_ns: pauses.saturating_mul(experiment.pause_ns),
    }
}

/// Nanoseconds of one block of all cells, with [`between_trials`]. Workloads without a duration count
/// only what is around their trials. The first blocks may be shorter, where arms take turns.
pub fn block_ns(experiment: &Experiment, plan: &Plan) -> u64 {
    nth_block_ns(experiment, plan, u32::MAX)
}

/// Nanoseconds of so many blocks from the first on.
pub(crate) fn first_blocks_ns(experiment: &Experiment, plan: &Plan, blocks: u32) -> u64 {
    let each = (1..=blocks).map(|block| nth_block_ns(experiment, plan, block));
    each.fold(0, u64::saturating_add)
}

fn nth_block_ns(experiment: &Experiment, plan: &Plan, block: u32) -> u64 {
    let attached = experiment.arms.iter().filter(|arm| arm.scheduler.is_some());
    let once_ns = match experiment.target.is_local() {
        true => ATTACH_NS,
        false => ATTACH_IN_A_GUEST_NS,
    };
    let attach_ns = once_ns.saturating_mul((attached.count() * plan.cells.len()) as u64);
    let arms = experiment.arms.len() as u64;
    let cells = plan.cells.iter().map(|cell| {
        let workload = &experiment.workloads[cell.workload];
        let around_ns = around_a_trial_ns(experiment, workload);
        let loads = match &cell.load {
            Load::MaxRate(slo) => loads_of_a_search(slo),
            _ => 1,
        };
        if workload.in_place.is_some() {
            // One process for all arms.
            let turns_ns = process_ns(experiment, workload, block);
            return around_a_process_ns(experiment, workload).saturating_add(turns_ns);
        }
        let windows_ns = loads.saturating_mul(window_ns(workload));
        windows_ns.saturating_add(around_ns).saturating_mul(arms)
    });
    let between = between_trials(experiment, plan);
    let between_ns = between.boots_ns.saturating_add(between.pauses_ns);
    cells.fold(attach_ns.saturating_add(between_ns), u64::saturating_add)
}

/// A search for a highest rate that comes before the first block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Index of the workload whose loads are shares of the rate.
    pub workload: usize,
    /// Service level, and the ends of the search.
    pub slo: Slo,
    /// True where whole trials look for it.
    pub by_trials: bool,
    /// Time that it is likely to take.
    pub about_ns: u64,
}

/// Searches of an experiment: one for each workload whose loads are shares of its highest rate.
pub fn list_searches(experiment: &Experiment) -> Vec<Search> {
    let workloads = experiment.workloads.iter().enumerate();
    let search = |(index, workload): (usize, &Workload)| {
        let share = workload.loads.iter().find_map(|load| match load {
            Load::ShareOfMax(share) => Some(*share),
            _ => None,
        })?;
        let slo = share.slo;
        let around_ns = around_a_trial_ns(experiment, workload);
        let loads_ns = loads_of_a_search(&slo).saturating_mul(window_ns(workload));
        let trials_ns = window_ns(workload)
            .saturating_add(around_ns)
            .saturating_mul(TRIALS_OF_A_SEARCH);
        let about_ns = match share.by_trials {
            // Each load is a trial.
            true => loads_of_a_search(&slo)
                .saturating_mul(window_ns(workload).saturating_add(around_ns)),
            false => loads_ns.saturating_add(around_ns).saturating_add(trials_ns),
        };
        Some(Search {
            workload: index,
            slo,
            by_trials: share.by_trials,
            about_ns,
        })
    };
    workloads.filter_map(search).collect()
}

/// Time that all searches before the first block are likely to take.
pub fn searches_ns(experiment: &Experiment) -> u64 {
    let times = list_searches(experiment).into_iter().map(|s| s.about_ns);
    times.fold(0, u64::saturating_add)
}

/// Time after which a search has failed: that of any trial, and all the loads that it can try.
pub fn search_limit_ns(workload: &Workload, slo: &Slo) -> u64 {
    /// Until a gap of a doubling is 5 % wide.
    const HALVINGS: u64 = 4;
    let doublings = model::truncate_to_u64((slo.to_per_sec / slo.from_per_sec).log2().ceil());
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

/// Time of a process in which arms take turns before and after these, as far as the experiment tells.
pub(crate) fn around_a_process_ns(experiment: &Experiment, workload: &Workload) -> u64 {
    around_a_trial_ns(experiment, workload).saturating_add(workload.warmup_ns)
}

fn around_a_trial_ns(experiment: &Experiment, workload: &Workload) -> u64 {
    let around_ns = match experiment.target.is_local() {
        true => AROUND_A_TRIAL_NS,
        false => AROUND_IN_A_GUEST_NS,
    };
    around_ns.saturating_add(START_OF_A_PROGRAM_NS.saturating_mul(programs_that_answer(workload)))
}

/// Programs that are started anew for each trial, and waited for. The servers that schedlab has of its own
/// are there at once.
fn programs_that_answer(workload: &Workload) -> u64 {
    let is_command = |server: &&Server| server.program.name() == "command";
    let server = workload.server.iter().filter(is_command).count();
    (server + workload.services.len()) as u64
}

fn window_ns(workload: &Workload) -> u64 {
    workload.warmup_ns.saturating_add(workload.duration_ns)
}

/// Half of the doublings, the halvings after them, and what is tried twice.
fn loads_of_a_search(slo: &Slo) -> u64 {
    let doublings = (slo.to_per_sec / slo.from_per_sec).log2();
    model::truncate_to_u64(doublings / 2.0) + 8
}
