//! `schedlab check`: would this experiment run here?

use crate::agreement::started_by_connecting;
use crate::args::{CheckArgs, WaitArgs};
use crate::exit::{self, CliError};
use crate::measure::{build, interrupt_flag};
use crate::output::{self, Plain, say};
use crate::progress::Steps;
use crate::request::read_wanted;
use crate::{sources, targets};
use doors::started::{Agreed, Answer};
use machines::Target;
use model::printable::one_line;
use model::{Experiment, Problem, Scheduler, Severity, Side, Warning};
use schedulers::GitName;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

pub fn check(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let mut experiment = read_wanted(&args.experiment)?.experiment;
    let mut starts = started_by_connecting(&experiment.target)?;
    let connects = !starts.is_empty();
    starts.extend(schedulers(&experiment));
    // Who types arms and target has named them, and a file takes no typed ones.
    let is_typed = args.experiment.file.is_none();
    let agreed = match args.no_start {
        true => None,
        false if is_typed || starts.is_empty() => Some(Agreed::by_command()),
        false => agreement(&experiment, &starts, args.yes)?,
    };
    let not_started = match agreed {
        Some(_) => Vec::new(),
        None => starts,
    };
    let is_beside = targets::is_in_use(&experiment.target)?;
    let looked = match agreed {
        None if args.no_start || connects => here_only(&experiment),
        _ if is_beside => beside_a_run(&experiment)?,
        None => looked_at(&without_built(&experiment), None)?,
        Some(agreed) => {
            sources::build(&mut experiment, agreed)?;
            sources::require_installed(&experiment)?;
            looked_at(&experiment, Some(agreed))?
        }
    };
    show(args, &experiment, &looked, &not_started)
}

/// What was found.
#[derive(Default)]
struct Looked {
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
    /// It was not connected to.
    target_unseen: bool,
    /// Another run had the machine, so that not everything was looked at.
    beside_a_run: bool,
    /// Accelerator that runs the CPUs of a guest, and the reason.
    accelerator: Option<String>,
}

/// What is built and attached of the arms: one line for each.
fn schedulers(experiment: &Experiment) -> Vec<String> {
    let schedulers = experiment
        .arms
        .iter()
        .filter_map(|arm| arm.scheduler.as_ref());
    let mut lines = Vec::new();
    for scheduler in schedulers {
        if let Some(of) = GitName::parse(&scheduler.program) {
            let at = of.revision.unwrap_or("HEAD");
            let text = format!("builds {} of {} at {at}", of.name, of.repository);
            lines.push(one_line(&text).into_owned());
        }
        let text = format!("attaches {}", scheduler.command_line());
        lines.push(one_line(&text).into_owned());
    }
    lines.dedup();
    lines
}

/// Asks before what a file names is started.
fn agreement(
    experiment: &Experiment,
    starts: &[String],
    yes: bool,
) -> Result<Option<Agreed>, CliError> {
    let name = one_line(&experiment.name);
    let shown = format!("{name}: this check\n  {}\n", starts.join("\n  "));
    let answer = Agreed::ask_user(&shown, "Start this?", yes);
    Ok(match answer.map_err(CliError::internal)? {
        Answer::Yes(agreed) => Some(agreed),
        Answer::No | Answer::Nobody => None,
    })
}

/// The experiment without schedulers that are not built: nobody knows what they need.
fn without_built(experiment: &Experiment) -> Experiment {
    let mut without = experiment.clone();
    for arm in &mut without.arms {
        let program = arm.scheduler.as_ref().map(|s| s.program.as_str());
        if program.is_some_and(|program| GitName::parse(program).is_some()) {
            arm.scheduler = None;
        }
    }
    without
}

/// Problems that can be seen while another run has the machine: nothing is started, and no other machine is
/// asked.
fn beside_a_run(experiment: &Experiment) -> Result<Looked, CliError> {
    sources::require_installed(&without_built(experiment))?;
    let mut looked = Looked {
        beside_a_run: true,
        ..here_only(experiment)
    };
    looked.warnings.push(Warning {
        severity: Severity::Note,
        what: "Another run is under way, so nothing was attached or booted: what only that shows was not \
               checked."
            .to_owned(),
        remedy: "Check again when it has ended; `schedlab run --wait` checks all of it before the first \
                 trial."
            .to_owned(),
    });
    Ok(looked)
}

/// Looks at this machine, in this process; at any other target not at all.
fn here_only(experiment: &Experiment) -> Looked {
    let is_here = experiment.target.kind() == "local";
    let root = Path::new("/");
    let (problems, warnings) = match is_here {
        true => (
            agent::check(root, &without_built(experiment), Side::Both),
            agent::foreseen_warnings(root, experiment),
        ),
        false => Default::default(),
    };
    Looked {
        problems,
        warnings,
        target_unseen: !is_here,
        ..Looked::default()
    }
}

/// `kvm: a guest booted with it`.
fn accelerator(target: &dyn Target) -> Option<String> {
    let facts = target.facts();
    let fact = |name: &str| facts.get(name);
    let (accel, why) = fact("vm.accel").zip(fact("vm.accel_reason"))?;
    Some(format!("{accel}: {why}"))
}

/// The problem with the version of a scheduler that was tried, where the kernel does not load the one
/// of the arm.
fn with_version(problem: Problem) -> Problem {
    let title = problem.what.split_once(Scheduler::DOES_NOT_LOAD);
    let mut words = title.into_iter().flat_map(|(title, _)| title.split(' '));
    let (name, version) = (words.next().unwrap_or_default(), words.next());
    let version = version.filter(|version| !version.is_empty());
    match schedulers::other_version(name, version) {
        Some(other) => Problem {
            remedy: format!(
                "use another version ({other} is the newest that was tried), or another kernel"
            ),
            ..problem
        },
        None => problem,
    }
}

/// Looks at the target, and attaches schedulers where that was agreed to.
fn looked_at(experiment: &Experiment, agreed: Option<Agreed>) -> Result<Looked, CliError> {
    let interrupted = interrupt_flag()?;
    let wait = WaitArgs::default();
    let attaches = experiment.arms.iter().any(|arm| arm.scheduler.is_some());
    let _lock = match attaches && agreed.is_some() {
        true => targets::made_ready(&experiment.target, wait, &interrupted)?,
        false => {
            targets::check_unused(&experiment.target)?;
            None
        }
    };
    let mut target = targets::target(&experiment.target, wait, &interrupted)?;
    let mut controller = targets::make_controller(&interrupted)?;
    let mut display = Steps::new();
    let found = runner::check_experiment(
        experiment,
        target.as_mut(),
        Some(controller.as_mut()),
        agreed,
        &build(),
        &interrupted,
        &mut |step| display.show_step(step),
    );
    display.end_display();
    if interrupted.load(Ordering::Relaxed) {
        return Err(CliError::Interrupted);
    }
    let found = found?;
    Ok(Looked {
        problems: found.problems.into_iter().map(with_version).collect(),
        warnings: [found.foreseen, target.warnings()].concat(),
        accelerator: accelerator(target.as_ref()),
        ..Looked::default()
    })
}

fn show(
    args: &CheckArgs,
    experiment: &Experiment,
    looked: &Looked,
    not_started: &[String],
) -> Result<ExitCode, CliError> {
    let Looked {
        problems,
        warnings,
        beside_a_run,
        ..
    } = looked;
    let plan = schedule::plan_blocks(experiment);
    let mut all =
        schedule::experiment_warnings(experiment, &plan, machines::known_cpus(&experiment.target));
    all.extend(warnings.iter().cloned());
    match args.format {
        Plain::Json => print_json(experiment, plan.cells.len(), problems, &all, not_started)?,
        Plain::Text if !problems.is_empty() => return Err(CliError::Unmet(problems.clone())),
        Plain::Text => {
            let found = match (args.no_start || *beside_a_run, not_started.is_empty()) {
                _ if looked.target_unseen => "the file is right, and the target was not looked at",
                (true, _) => "nothing that can be seen without starting anything is missing",
                (false, true) => "nothing is missing",
                (false, false) => "nothing else is missing",
            };
            say!(
                "{}: {} × {} on the target `{}`: {found}",
                experiment.name,
                report::format_count(experiment.arms.len(), "arm"),
                report::format_count(plan.cells.len(), "cell"),
                experiment.target.kind()
            );
            if let Some(accelerator) = &looked.accelerator {
                say!("CPUs of the guest by {accelerator}");
            }
            for line in not_started {
                say!("not done: {line}");
            }
            if !not_started.is_empty() && !args.no_start {
                say!("nobody agreed to start what the file names: add --yes");
            }
            super::plan::print_searches(experiment);
            super::plan::print_warnings(&all);
        }
    }
    Ok(ExitCode::from(match problems.is_empty() {
        true => exit::DONE,
        false => exit::UNMET,
    }))
}

/// Searches before the first block, each with the time that it is likely to take.
fn searches(experiment: &Experiment) -> Vec<serde_json::Value> {
    let search = |search: schedule::Search| {
        serde_json::json!({
            "workload": experiment.workloads[search.workload].name,
            "slo": search.slo.to_string(),
            "about_ns": search.about_ns,
        })
    };
    schedule::list_searches(experiment)
        .into_iter()
        .map(search)
        .collect()
}

fn print_json(
    experiment: &Experiment,
    cells: usize,
    problems: &[Problem],
    warnings: &[Warning],
    not_started: &[String],
) -> Result<(), CliError> {
    output::json(&serde_json::json!({
        "experiment": experiment.name,
        "target": experiment.target.kind(),
        "arms": experiment.arms.len(),
        "cells": cells,
        "missing": problems,
        "not_started": not_started,
        "searches": searches(experiment),
        "warnings": warnings,
    }))
}
