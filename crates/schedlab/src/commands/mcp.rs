//! `schedlab mcp`: the referee for agents, over the Model Context Protocol on the standard streams.
//!
//! The agent has tools and no command line. What it asks becomes words of options that are listed here,
//! each behind `--option=`, which this program reads as it reads any command line, and the reins look at
//! the experiment that comes of them. Then a process of its own does the work: `schedlab propose` for a
//! comparison. No word of an agent reaches a shell.

mod front;
mod jobs;
mod journal;
mod pages;
mod reins;
mod request;
mod server;
mod tools;

use crate::args::McpArgs;
use crate::exit::CliError;
use crate::measure::{default_dir, interrupt_flag};
use crate::output::{self, note};
use jobs::Jobs;
use journal::Journal;
use pages::Pages;
use referee::{Asker, Ledger};
use reins::Reins;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// All that the tools share.
pub struct Referee {
    reins: Reins,
    ledger: Ledger,
    /// Session of the ledger that this agent asks in.
    session: u32,
    /// Directory of the results of all jobs.
    dir: PathBuf,
    jobs: Jobs,
    pages: Pages,
    journal: Journal,
}

pub fn mcp(args: &McpArgs) -> Result<ExitCode, CliError> {
    let reins = Reins::from_args(args)?;
    refuse_root(args.root)?;
    let ledger = super::propose::open_ledger()?;
    let dir = args.output.clone().unwrap_or_else(|| default_dir("mcp"));
    output::directory(&dir)?;
    let dir = doors::written::real_directory(&dir).map_err(CliError::internal)?;
    let session = ledger.begin_session(Asker::Agent)?;
    let journal = Journal::open(&dir)?;
    note!(
        "Session {session} of the ledger {}; results and log in {}",
        ledger.path().display(),
        dir.display()
    );
    let referee = Arc::new(Referee {
        jobs: Jobs::new(reins.budget()),
        pages: Pages::default(),
        reins,
        ledger,
        session,
        dir,
        journal,
    });
    let interrupted = interrupt_flag()?;
    let ended = server::serve(&referee, &interrupted);
    referee.jobs.end_all();
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Root may do everything, so the agent could, too.
fn refuse_root(is_wanted: bool) -> Result<(), CliError> {
    if !rustix::process::geteuid().is_root() || is_wanted {
        return Ok(());
    }
    Err(CliError::usage(
        "this is root, and what an agent asks for would run as root",
        "start it as a user who may do less; --root if that is meant",
    ))
}
