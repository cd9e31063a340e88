//! `schedlab history`: runs over months, since when a ratio is another one, and what became of its alarm.

mod additions;
mod alarms;
mod bisection;
mod confirmation;
mod details;
mod following;
mod lists;
mod openmetrics;
mod page;
mod pruning;

pub use following::{Follow, follow_run};

use crate::args::{HistoryCommand, PlaceArgs};
use crate::exit::CliError;
use history::{Run, Store, StoreError};
use jiff::Timestamp;
use model::printable::one_line;
use results::ResultSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn history(command: &HistoryCommand) -> Result<ExitCode, CliError> {
    match command {
        HistoryCommand::Add {
            runs,
            unpack,
            store,
        } => additions::add_runs(runs, unpack, store),
        HistoryCommand::List(args) => lists::list(args),
        HistoryCommand::Page {
            output,
            open,
            place,
        } => page::write_page(output, *open, place),
        HistoryCommand::Show { hashes, store } => details::show(hashes, store),
        HistoryCommand::Check {
            limits,
            fail_on,
            store,
        } => alarms::check(limits, *fail_on, store),
        HistoryCommand::Confirm(args) => confirmation::confirm(args),
        HistoryCommand::Bisect(args) => bisection::bisect_alarm(args),
        HistoryCommand::Prune {
            older_than,
            dry_run,
            yes,
            store,
        } => pruning::prune(older_than, *dry_run, *yes, store),
        HistoryCommand::Close {
            alarm,
            because,
            store,
        } => alarms::close(alarm, because, store),
    }
}

/// `1 series`, `3 series`.
fn count_series(count: usize) -> String {
    format!("{count} series")
}

/// Directory of the history.
fn find_place(args: &PlaceArgs) -> Result<PathBuf, CliError> {
    match &args.store {
        Some(dir) => Ok(dir.clone()),
        None => Ok(agent::state_dir()?.join("history")),
    }
}

/// The history that is there.
pub fn open_store(args: &PlaceArgs) -> Result<Store, CliError> {
    Ok(Store::open(&find_place(args)?)?)
}

/// Results as a run of a history.
pub fn take_run(path: &Path, results: &ResultSet) -> Result<Run, CliError> {
    Run::from_results(results, Timestamp::now()).map_err(|refusal| {
        let what = format!("{} has no place in a history: {refusal}", path.display());
        CliError::usage(one_line(&what).into_owned(), refusal.remedy())
    })
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let message = model::printable::clean_lines(&error.to_string()).into_owned();
        let help = |help: &str| Some(help.to_owned());
        match error {
            StoreError::Io { what: "write", .. } => CliError::Internal {
                message,
                help: help(
                    "nothing was changed; make room (`schedlab history prune` needs none on most file systems), or mend what it says, and do it again",
                ),
            },
            StoreError::Io { .. } => CliError::internal(message),
            StoreError::Broken { .. } => CliError::Internal {
                message,
                help: help(
                    "somebody else changed it, or a newer schedlab wrote it; remove the line, and add its run again",
                ),
            },
            StoreError::Missing(_) => CliError::usage(
                message,
                "`schedlab history add DIR` begins one; --store names another place",
            ),
            StoreError::Shared(_) => CliError::usage(
                message,
                "add each run once: either the runs, or what `schedlab merge` made of them",
            ),
            StoreError::Unknown(_) => CliError::usage(
                message,
                "`schedlab history list` has the series, and with --runs the runs; `check` has the alarms",
            ),
        }
    }
}
