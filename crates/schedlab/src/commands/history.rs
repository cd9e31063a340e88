//! `schedlab history`: runs over months, since when a ratio is another one, and what became of its alarm.

mod additions;
mod alarms;
mod confirmation;
mod details;
mod figures;
mod lists;

use crate::args::{HistoryCommand, StoreArgs};
use crate::exit::CliError;
use history::{Store, StoreError};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn history(command: &HistoryCommand) -> Result<ExitCode, CliError> {
    match command {
        HistoryCommand::Add {
            runs,
            unpack,
            store,
        } => additions::add_runs(runs, unpack, store),
        HistoryCommand::List { runs: true, store } => lists::list_runs(store),
        HistoryCommand::List { runs: false, store } => lists::list_series(store),
        HistoryCommand::Show { hashes, store } => details::show(hashes, store),
        HistoryCommand::Check {
            limits,
            fail_on,
            store,
        } => alarms::check(limits, *fail_on, store),
        HistoryCommand::Confirm(args) => confirmation::confirm(args),
        HistoryCommand::Close {
            alarm,
            because,
            store,
        } => alarms::close(alarm, because, store),
    }
}

/// Characters of a hash that are shown: enough to be the beginning of one only.
const SHOWN_HASH: usize = 8;

/// The beginning of a hash.
fn short(hash: &str) -> &str {
    hash.get(..SHOWN_HASH).unwrap_or(hash)
}

/// `1 series`, `3 series`.
fn count_series(count: usize) -> String {
    format!("{count} series")
}

/// Directory of the history.
fn find_place(args: &StoreArgs) -> Result<PathBuf, CliError> {
    match &args.store {
        Some(dir) => Ok(dir.clone()),
        None => Ok(agent::state_dir()?.join("history")),
    }
}

/// The history that is there.
fn open_store(args: &StoreArgs) -> Result<Store, CliError> {
    Ok(Store::open(&find_place(args)?)?)
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let message = model::printable::clean_lines(&error.to_string()).into_owned();
        let help = |help: &str| Some(help.to_owned());
        match error {
            StoreError::Io { what: "write", .. } => CliError::Internal {
                message,
                help: help("nothing was added; make room, or mend what it says, and do it again"),
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
