//! `schedlab hunt`: a run that its events decide.

use crate::args::{ExperimentArgs, HuntArgs, HuntWords, RunArgs};
use crate::exit::CliError;
use crate::output::note;
use model::Experiment;
use std::process::ExitCode;

pub fn hunt(args: &HuntArgs) -> Result<ExitCode, CliError> {
    let HuntArgs { run, hunt } = args;
    let goes_on = run.resume.is_some() && run.experiment.is_empty();
    if goes_on && *hunt != HuntWords::default() {
        return Err(CliError::usage(
            "a hunt that goes on keeps its provocations and its bounds",
            "leave them out, or start a new one without --resume; --budget may be given",
        ));
    }
    super::run::run(&RunArgs {
        experiment: ExperimentArgs {
            hunt: (!goes_on).then(|| hunt.clone()),
            ..run.experiment.clone()
        },
        ..run.clone()
    })
}

/// Says how long a verdict takes, by the rate of the event, before the first block.
pub fn note_time(experiment: &Experiment) {
    let plan = schedule::plan_blocks(experiment);
    match super::plan::describe_time_of_events(experiment, &plan) {
        Some(times) => note!("Time to a verdict on an event that only one arm has: about {times}"),
        None => note!("Time to a verdict on an event that only one arm has: six blocks with it"),
    }
}
