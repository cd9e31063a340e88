//! `schedlab check`: would this experiment run here?

use crate::args::{CheckArgs, WaitArgs};
use crate::exit::{self, CliError};
use crate::measure::{build, interrupt_flag};
use crate::output::{self, Plain, say};
use crate::progress::Steps;
use crate::request::measurable;
use crate::targets;
use model::{Experiment, Problem, Warning};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

pub fn check(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let experiment = measurable(&args.experiment)?.experiment;
    let interrupted = interrupt_flag()?;
    let wait = WaitArgs::default();
    let _lock = match experiment.arms.iter().any(|arm| arm.scheduler.is_some()) {
        true => targets::made_ready(&experiment.target, wait, &interrupted)?,
        false => {
            targets::unused(&experiment.target)?;
            None
        }
    };
    let mut target = targets::target(&experiment.target, wait, &interrupted)?;
    let mut controller = targets::controller(&interrupted)?;
    let mut display = Steps::new();
    let problems = runner::check(
        &experiment,
        target.as_mut(),
        Some(controller.as_mut()),
        &build(),
        &interrupted,
        &mut |step| display.show(step),
    );
    display.end();
    let problems = match problems {
        _ if interrupted.load(Ordering::Relaxed) => return Err(CliError::Interrupted),
        problems => problems?,
    };
    let plan = schedule::plan(&experiment);
    let mut warnings = schedule::warnings(&experiment, &plan, target::cpus(&experiment.target));
    warnings.extend(target.warnings());
    match args.format {
        Plain::Json => print_json(&experiment, plan.cells.len(), &problems, &warnings)?,
        Plain::Text if !problems.is_empty() => return Err(CliError::Unmet(problems)),
        Plain::Text => {
            say!(
                "{}: {} × {} on the target `{}`: nothing is missing",
                experiment.name,
                report::count(experiment.arms.len(), "arm"),
                report::count(plan.cells.len(), "cell"),
                experiment.target.kind()
            );
            super::plan::print_searches(&experiment);
            super::plan::print_warnings(&warnings);
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
    schedule::searches(experiment)
        .into_iter()
        .map(search)
        .collect()
}

fn print_json(
    experiment: &Experiment,
    cells: usize,
    problems: &[Problem],
    warnings: &[Warning],
) -> Result<(), CliError> {
    output::json(&serde_json::json!({
        "experiment": experiment.name,
        "target": experiment.target.kind(),
        "arms": experiment.arms.len(),
        "cells": cells,
        "missing": problems,
        "searches": searches(experiment),
        "warnings": warnings,
    }))
}
