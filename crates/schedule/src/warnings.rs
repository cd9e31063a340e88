//! Warnings that an experiment gives reason for before its first trial.

use crate::length::{block_ns, first_blocks_ns, searches_ns};
use crate::limits;
use model::{Experiment, Once, Plan, Severity, Warning, Workload, format_duration_ns};
use stats::randomization::{Prior, fewest_pairs};

/// Warnings of the whole experiment, each once, with the guess of [`short_budget`]. `cpus` is the number of
/// CPUs of its target, where that is known beforehand.
pub fn experiment_warnings(
    experiment: &Experiment,
    plan: &Plan,
    cpus: Option<u32>,
) -> Vec<Warning> {
    let mut all = lasting_warnings(experiment, cpus);
    all.extend(short_budget(experiment, plan));
    all
}

/// Warnings that stay true when the run goes on: its results keep them.
pub fn lasting_warnings(experiment: &Experiment, cpus: Option<u32>) -> Vec<Warning> {
    let Experiment {
        arms, workloads, ..
    } = experiment;
    let mut all: Vec<Warning> = Vec::new();
    for workload in workloads {
        let by_arms = arms
            .iter()
            .flat_map(|arm| limits::placement_warnings(arm, workload));
        all.extend(by_arms);
        all.extend(limits::only_some_weighted(arms, workload));
        all.extend(crowded(workload, cpus));
        all.extend(whole_trials(workload));
        all.extend(drawn_once(experiment, workload));
    }
    all.extend(limits::only_some_limited(arms));
    all.extend(few_blocks(experiment));
    let mut once: Vec<Warning> = Vec::new();
    for warning in all {
        if !once.contains(&warning) {
            once.push(warning);
        }
    }
    once
}

/// Arms were to take turns in processes of the workload if they can, and they cannot.
fn whole_trials(workload: &Workload) -> Option<Warning> {
    let why = workload.whole_because.as_ref()?;
    Some(Warning {
        severity: Severity::Note,
        what: format!(
            "each trial of {} is a process of its own, since {why}",
            workload.name
        ),
        remedy: "nothing; small changes take longer to find so".to_owned(),
    })
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

/// The budget ends a run also before it has the blocks that a verdict needs. It is a guess: once a block has
/// ended its length is known, and the run says what that comes to.
pub fn short_budget(experiment: &Experiment, plan: &Plan) -> Option<Warning> {
    let budget = experiment.stop.budget_ns?;
    let block = block_ns(experiment, plan);
    let least = least_blocks(experiment);
    let searches = searches_ns(experiment);
    let needed_for = |blocks| first_blocks_ns(experiment, plan, blocks).saturating_add(searches);
    let held = (1..least).take_while(|blocks| needed_for(*blocks) <= budget);
    let (held, needed) = (held.count(), needed_for(least));
    let before = match searches {
        0 => String::new(),
        ns => format!(" after a search of about {}", format_duration_ns(ns)),
    };
    (needed > longest_time_ns(budget)).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "the budget of {} holds {held} blocks of about {}{before}; {}",
            format_duration_ns(budget),
            format_duration_ns(block),
            are_the_least(experiment, least)
        ),
        remedy: format!(
            "a budget of {} (--budget), or fewer loads, arms or workloads",
            format_duration_ns(rounded_budget(needed))
        ),
    })
}

/// Luck that is drawn once in a run and not in each block: whose verdicts do not reach beyond it.
fn drawn_once(experiment: &Experiment, workload: &Workload) -> Option<Warning> {
    let arms = 0..experiment.arms.len();
    let others = arms.filter(|arm| *arm != experiment.baseline);
    let mut found = others.filter_map(|arm| experiment.find_once(workload, arm));
    // A boot of its own is a start of its own.
    let once = found.clone().find(|once| *once == Once::ThisBoot);
    let (what, holds) = match once.or_else(|| found.next())? {
        Once::ThisBoot => ("one boot of each kernel", "in this boot"),
        Once::ThisStart => ("one start of the services", "for this start"),
    };
    Some(Warning {
        severity: Severity::Note,
        what: format!(
            "workload {}: all trials go on from {what}, whose luck no test of this run can tell from a difference; its \
             verdicts hold \"{holds}\"",
            workload.name
        ),
        remedy: "reset = \"block-snapshot\" in [target] draws it anew for each block".to_owned(),
    })
}

/// The run ends at its last block before anything can be decided.
fn few_blocks(experiment: &Experiment) -> Option<Warning> {
    let (most, least) = (experiment.stop.max_blocks, least_blocks(experiment));
    (most < least).then(|| Warning {
        severity: Severity::Note,
        what: format!("max-blocks is {most}; {}", are_the_least(experiment, least)),
        remedy: format!("max-blocks = {least} or more (--max-blocks)"),
    })
}

/// Blocks that a run needs: those of its rule, and where arms are compared those of a verdict. Where
/// all arms take turns, one block has pairs enough.
pub fn least_blocks(experiment: &Experiment) -> u32 {
    let stop = &experiment.stop;
    // A pilot may still find that each trial must be a process of its own.
    let in_turns = |w: &Workload| w.in_place.is_some_and(|lengths| !lengths.pilot);
    let in_turns = experiment.workloads.iter().all(in_turns);
    match experiment.arms.len() {
        0 | 1 => stop.min_blocks,
        _ if in_turns => stop.min_blocks,
        _ => stop
            .min_blocks
            .max(fewest_pairs(1.0 - stop.confidence, Prior::BLOCKS)),
    }
}

fn are_the_least(experiment: &Experiment, least: u32) -> String {
    match experiment.stop.min_blocks == least {
        true => format!("min-blocks is {least}"),
        false => format!("{least} are the least that decide"),
    }
}

/// Longest time of a run with a budget: a tenth more, for the least number of blocks and nothing else.
pub fn longest_time_ns(budget_ns: u64) -> u64 {
    budget_ns.saturating_add(budget_ns / 10)
}

/// A budget as it is advised: whole seconds, and from a minute on five of them.
pub fn rounded_budget(ns: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let step = if ns < 60 * SECOND { SECOND } else { 5 * SECOND };
    ns.div_ceil(step).saturating_mul(step)
}
