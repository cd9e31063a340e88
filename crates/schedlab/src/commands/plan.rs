//! `schedlab plan`: the blocks and how long they take.

use crate::args::{Plain, PlanArgs};
use crate::exit::CliError;
use crate::output::say;
use crate::request::wanted;
use model::{Experiment, Load, Plan, Slo, format_duration_ns};
use std::process::ExitCode;

/// Applying, proving and undoing an arm, and starting a process: measured on a
/// small machine, rounded up.
const AROUND_A_TRIAL_NS: u64 = 300_000_000;

pub fn plan(args: &PlanArgs) -> Result<ExitCode, CliError> {
    if args.pilot.is_some() || !args.from.is_empty() {
        return super::forecast::forecast(args);
    }
    if args.effect.is_some() {
        return Err(CliError::usage(
            "nothing is known yet of how far the blocks vary",
            "add --pilot to measure some now, or --from with earlier results",
        ));
    }
    let experiment = wanted(&args.experiment)?.experiment;
    let plan = plan::plan(&experiment);
    match args.format {
        Plain::Json => say!(
            "{}",
            serde_json::to_string_pretty(&plan).map_err(CliError::internal)?
        ),
        Plain::Text => print(&experiment, &plan, args.blocks),
    }
    Ok(ExitCode::SUCCESS)
}

fn print(experiment: &Experiment, plan: &Plan, blocks: u32) {
    say!("{}, seed {}", experiment.name, plan.seed);
    for arm in &experiment.arms {
        say!("  arm {:<20} {}", arm.name, arm.summary());
    }
    for cell in &plan.cells {
        let workload = &experiment.workloads[cell.workload];
        say!("  cell {:<19} {}", cell.name, workload.summary());
    }
    for trial in plan.trials.iter().take_while(|t| t.block <= blocks) {
        let cell = &plan.cells[trial.cell].name;
        let arm = &experiment.arms[trial.arm].name;
        say!("  block {:<3} {cell:<24} {arm}", trial.block);
    }
    print_time(experiment, plan);
}

fn print_time(experiment: &Experiment, plan: &Plan) {
    let stop = &experiment.stop;
    say!(
        "at least {} and at most {} blocks of {} trials; a cell ends when it is decided",
        stop.min_blocks,
        stop.max_blocks,
        plan.cells.len() * experiment.arms.len()
    );
    let block = block_ns(experiment, plan);
    let all = block * u64::from(stop.max_blocks);
    let most = stop.budget_ns.map_or(all, |budget| budget.min(all));
    say!(
        "a block takes about {}{}, the whole at most about {}",
        format_duration_ns(block),
        if has_unknown_length(experiment) {
            " and the time of its commands"
        } else {
            ""
        },
        format_duration_ns(most)
    );
}

fn has_unknown_length(experiment: &Experiment) -> bool {
    experiment.workloads.iter().any(|w| w.duration_ns == 0)
}

/// Half of the doublings, the halvings after them, and what is tried twice.
fn loads_of_a_search(slo: &Slo) -> u64 {
    let doublings = (slo.to_per_sec / slo.from_per_sec).log2();
    (doublings / 2.0) as u64 + 8
}

fn block_ns(experiment: &Experiment, plan: &Plan) -> u64 {
    let trials = plan.cells.iter().map(|cell| {
        let workload = &experiment.workloads[cell.workload];
        let loads = match &cell.load {
            Load::MaxRate(slo) => loads_of_a_search(slo),
            _ => 1,
        };
        loads * (workload.warmup_ns + workload.duration_ns) + AROUND_A_TRIAL_NS
    });
    trials.sum::<u64>() * experiment.arms.len() as u64
}
