//! `schedlab plan`: the blocks and how long they take.

use super::snapshot::describe_named;
use crate::args::PlanArgs;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use crate::request::read_wanted;
use model::printable::one_line;
use model::{Experiment, Plan, Severity, Warning, format_duration_ns, format_rate};
use schedule::Between;
use std::process::ExitCode;

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
    let experiment = read_wanted(&args.experiment)?.experiment;
    let plan = schedule::plan_blocks(&experiment);
    match args.format {
        Plain::Json => output::json(&plan)?,
        Plain::Text => print(&experiment, &plan, args.blocks),
    }
    Ok(ExitCode::SUCCESS)
}

fn print(experiment: &Experiment, plan: &Plan, blocks: u32) {
    say!("{}, seed {}", experiment.name, plan.seed);
    for arm in &experiment.arms {
        say!("  arm {:<20} {}", arm.name, one_line(&arm.summary()));
    }
    for event in &experiment.observe.events {
        say!("  event {}", one_line(&event.name));
    }
    for cell in &plan.cells {
        let workload = &experiment.workloads[cell.workload];
        say!(
            "  cell {:<19} {}",
            cell.name,
            one_line(&load::summary(workload))
        );
    }
    if let Some(snapshot) = describe_named(experiment) {
        say!("  {}", one_line(&snapshot));
    }
    print_searches(experiment);
    for trial in plan.trials.iter().take_while(|t| t.block <= blocks) {
        let cell = &plan.cells[trial.cell].name;
        let arm = &experiment.arms[trial.arm].name;
        say!("  block {:<3} {cell:<24} {arm}", trial.block);
    }
    print_time(experiment, plan);
    print_warnings(&schedule::experiment_warnings(
        experiment,
        plan,
        machines::known_cpus(&experiment.target),
    ));
}

/// Prints what a reader must know before the first trial, with what to do about it.
pub fn print_warnings(warnings: &[Warning]) {
    for warning in warnings {
        let word = match warning.severity {
            Severity::Note => "note",
            Severity::Caution | Severity::Serious => "warning",
        };
        say!("{word}: {}", one_line(&warning.what));
        if !warning.remedy.is_empty() {
            say!("  → {}", one_line(&warning.remedy));
        }
    }
}

/// Prints what is measured before the first block.
pub fn print_searches(experiment: &Experiment) {
    let baseline = &experiment.arms[experiment.baseline].name;
    for search in schedule::list_searches(experiment) {
        let workload = &experiment.workloads[search.workload];
        let (from, to) = (search.slo.from_per_sec, search.slo.to_per_sec);
        say!(
            "before the first block: the highest rate of {} at {} under {baseline}, from {} to {}, \
             about {}",
            one_line(&workload.name),
            search.slo,
            format_rate(from),
            format_rate(to),
            format_duration_ns(search.about_ns)
        );
    }
}

fn print_time(experiment: &Experiment, plan: &Plan) {
    let stop = &experiment.stop;
    say!(
        "at least {} and at most {} blocks of {} trials; a cell ends when it is decided",
        stop.min_blocks,
        stop.max_blocks,
        plan.cells.len() * experiment.arms.len()
    );
    print_between(schedule::between_trials(experiment, plan));
    let block = schedule::block_ns(experiment, plan);
    let at_once = machines_at_once(experiment);
    if at_once > 1 {
        say!("{at_once} machines measure at once, each in blocks of its own");
    }
    let all = block.saturating_mul(u64::from(stop.max_blocks.div_ceil(at_once)));
    let all = all.saturating_add(schedule::searches_ns(experiment));
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
    if let Some(times) = describe_time_of_events(experiment, plan) {
        say!("an event that only one arm has is called after about {times}");
    }
}

/// Time that a call on rare events is likely to take, by their rate; `None` where there are none, or where nobody
/// knows how long a window is.
pub fn describe_time_of_events(experiment: &Experiment, plan: &Plan) -> Option<String> {
    let workload = plan
        .cells
        .first()
        .map(|cell| &experiment.workloads[cell.workload]);
    let window_ns = workload.map_or(0, |workload| workload.duration_ns);
    if experiment.observe.events.is_empty() || window_ns == 0 {
        return None;
    }
    let block_ns = schedule::block_ns(experiment, plan);
    let confidence = experiment.stop.confidence;
    let at_once = machines_at_once(experiment);
    let times = report::describe_time_to_call(window_ns, block_ns, at_once, confidence);
    Some(match at_once {
        1 => times,
        several => format!("{times}, on {several} machines at once"),
    })
}

/// Number of guests or nodes that measure at once.
fn machines_at_once(experiment: &Experiment) -> u32 {
    let can = machines::find_abilities(&experiment.target).ok();
    can.and_then(|can| can.machines).unwrap_or(1).max(1)
}

/// Prints what a block does beside its trials, and what that costs.
fn print_between(between: Between) {
    let Between {
        boots,
        boots_ns,
        pauses,
        pauses_ns,
    } = between;
    if boots > 0 {
        say!(
            "a block starts the machine {boots} times, about {}",
            format_duration_ns(boots_ns)
        );
    }
    if pauses > 0 {
        say!(
            "a block has {pauses} pauses between cells, {}",
            format_duration_ns(pauses_ns)
        );
    }
}

fn has_unknown_length(experiment: &Experiment) -> bool {
    experiment.workloads.iter().any(|w| w.duration_ns == 0)
}
