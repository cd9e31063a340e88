//! Warnings that an experiment gives reason for before its first trial.

use crate::length::block_ns;
use crate::limits;
use model::{Experiment, Plan, Severity, Warning, Workload, format_duration_ns};

/// Warnings of the whole experiment, each once. `cpus` is the number of CPUs of its target,
/// where that is known beforehand.
pub fn warnings(experiment: &Experiment, plan: &Plan, cpus: Option<u32>) -> Vec<Warning> {
    let Experiment {
        arms, workloads, ..
    } = experiment;
    let mut all: Vec<Warning> = Vec::new();
    for workload in workloads {
        let by_arms = arms.iter().flat_map(|arm| limits::warnings(arm, workload));
        all.extend(by_arms);
        all.extend(limits::only_some_weighted(arms, workload));
        all.extend(crowded(workload, cpus));
    }
    all.extend(short_budget(experiment, plan));
    let mut once: Vec<Warning> = Vec::new();
    for warning in all {
        if !once.contains(&warning) {
            once.push(warning);
        }
    }
    once
}

/// The generator's threads take turns on its CPUs. Told only where the CPUs are known:
/// named one by one, or all of a target that says how many it has.
fn crowded(workload: &Workload, known: Option<u32>) -> Option<Warning> {
    let client = workload.client.as_ref()?;
    let list = client.load_cpus.as_deref()?;
    let cpus = match known {
        Some(cpus) => {
            let there: Vec<u32> = (0..cpus).collect();
            model::choose_cpus(list, &there).ok()?
        }
        None => model::parse_cpu_list(list).ok()?,
    };
    let (threads, cpus) = (client.threads, cpus.len());
    (threads as usize > cpus).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "the generator of {} has more threads ({threads}) than CPUs (load-cpus = \
             \"{list}\"), so that they wait for each other",
            workload.name
        ),
        remedy: format!("threads = {cpus}, or more CPUs in load-cpus"),
    })
}

/// The budget ends a run also before it has its least blocks.
fn short_budget(experiment: &Experiment, plan: &Plan) -> Option<Warning> {
    let stop = &experiment.stop;
    let budget = stop.budget_ns?;
    let needed = block_ns(experiment, plan).saturating_mul(u64::from(stop.min_blocks));
    (needed > budget).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "the budget of {} is likely to end before min-blocks: {} blocks take about {}",
            format_duration_ns(budget),
            stop.min_blocks,
            format_duration_ns(needed)
        ),
        remedy: "give it a longer budget, or fewer loads, arms or workloads".to_owned(),
    })
}
