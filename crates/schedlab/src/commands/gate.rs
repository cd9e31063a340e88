//! `schedlab gate`: a new run judged against a stored one, or against the last good ones of the history.

use super::history::{open_store, take_run};
use super::report::warn_of_lacks;
use crate::args::{GateArgs, GateFormat, PlaceArgs};
use crate::exit::{self, CliError};
use crate::latest;
use crate::output;
use crate::results_argument::Opened;
use report::gate::{Call, FailOn, Gate, GateError, judge_gate};
use results::ResultSet;
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &GateArgs) -> Result<ExitCode, CliError> {
    let gate = match &args.baseline {
        Some(stored) if !args.history => judge_by_stored(stored, args)?,
        new => judge_by_history(new.as_deref(), args)?,
    };
    print(&gate, args)?;
    Ok(code(&gate, args.fail_on()))
}

fn judge_by_stored(stored: &Path, args: &GateArgs) -> Result<Gate, CliError> {
    let new = latest::or_newest(args.new.as_deref())?;
    let stored = Opened::open(stored, &args.unpack)?;
    let new = Opened::open(&new, &args.unpack)?;
    let (stored, new) = (ResultSet::read(stored.dir())?, ResultSet::read(new.dir())?);
    Ok(judge_gate(&stored, &new, args.compared_figures())?)
}

fn judge_by_history(new: Option<&Path>, args: &GateArgs) -> Result<Gate, CliError> {
    let path = latest::or_newest(new)?;
    let place = PlaceArgs {
        store: args.store.clone(),
    };
    let contents = open_store(&place)?.read_contents()?;
    let opened = Opened::open(&path, &args.unpack)?;
    let results = ResultSet::read(opened.dir())?;
    let run = take_run(&path, &results)?;
    let gate = history::judge_by_history(&contents, (&run, &results), args.last as usize);
    gate.ok_or_else(|| {
        CliError::usage(
            format!(
                "the history has no run before {} with a figure that may be compared",
                path.display()
            ),
            "add earlier runs (schedlab history add); `schedlab history show RUN RUN` says why two are not in one series",
        )
    })
}

fn print(gate: &Gate, args: &GateArgs) -> Result<(), CliError> {
    let fail_on = args.fail_on();
    match args.format {
        GateFormat::Text => output::print_text(gate.to_text(fail_on, output::width())),
        GateFormat::Json => output::json(gate),
        GateFormat::Ktap => output::print_text(gate.to_ktap(fail_on)),
        GateFormat::Markdown => output::print_text(gate.to_markdown(fail_on)),
        GateFormat::Junit => {
            output::print_text(gate.to_junit(fail_on).map_err(CliError::internal)?)
        }
    }
}

/// A finding weighs more than what was not measured.
fn code(gate: &Gate, fail_on: FailOn) -> ExitCode {
    warn_of_lacks(&gate.lacks);
    if gate.failing_checks(fail_on).next().is_some() {
        return ExitCode::from(exit::REGRESSION);
    }
    let open = gate.count_calls(Call::Unknown);
    if open > 0 {
        tracing::warn!(
            "{open} of {} comparisons are not decided; --fail-on unknown fails on that, too",
            gate.checks.len()
        );
    }
    match gate.lacks.is_empty() {
        true => ExitCode::from(exit::DONE),
        false => ExitCode::from(exit::TRIALS_LOST),
    }
}

impl From<GateError> for CliError {
    fn from(error: GateError) -> Self {
        CliError::usage(
            model::printable::clean_lines(&error.to_string()),
            error.remedy(),
        )
    }
}
