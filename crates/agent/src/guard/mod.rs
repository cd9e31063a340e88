//! The guard: a process that outlives the agent and undoes what it left.
//!
//! It has the reading end of a pipe whose other end only the agent has, and the journal's open
//! file. When the pipe ends, the agent is gone, in whatever way; then the processes of its trials
//! are killed and the journal is replayed, by its name or, where somebody removed that, from the
//! open file. After a clean end the journal is empty, and nothing happens.
//!
//! A guard does not give up. Whatever stands in its way, a lock that is held or a
//! disk that is full, it tries again, ever less often, until the journal is empty:
//! by its own doing, or by that of the next agent or of `schedlab restore`.
//!
//! Nor is it left alone: the agent looks at it before it puts anything in force, and starts
//! another where it has ended ([`GuardKeeper`]).

mod restore;
mod work;

pub use restore::{is_busy, replay_in, restore};
pub use work::guard_main;

use crate::error::AgentError;
use crate::journal::{FileId, Journal};
use crate::serve::Options;
use crate::state::STATE_VARIABLE;
use crate::sys;
use collect::tasks::Pid;
use doors::started::own_command;
use model::{Severity, Warning};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time that a next start waits for a guard at work.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The wait of an agent that ends: after it, a guard that has something to undo is left alone.
const FAREWELL: Duration = Duration::from_secs(5);
/// The environment variable with the name of the agent, see [`crate::processes::marked_by`].
const AGENT_VARIABLE: &str = "SCHEDLAB_AGENT";

/// One guard of one agent. Dropping it lets it go.
#[derive(Debug)]
struct Guard {
    child: Child,
    /// The journal that it holds open.
    holds: FileId,
}

impl Guard {
    /// Ends it without its noticing that the agent goes on.
    fn dismiss(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let limit = Instant::now() + FAREWELL;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Keeps one guard of an agent alive, or none where it was asked for none.
#[derive(Debug)]
pub struct GuardKeeper {
    executable: PathBuf,
    directory: PathBuf,
    agent: String,
    is_wanted: bool,
    guard: Option<Guard>,
    warnings: Vec<Warning>,
}

impl GuardKeeper {
    /// A keeper that starts guards for the trials of `agent`, the first one at the first look.
    pub fn new(options: &Options, agent: &str) -> Self {
        GuardKeeper {
            executable: options.executable.clone(),
            directory: options.state_dir.clone(),
            agent: agent.to_owned(),
            is_wanted: options.guard,
            guard: None,
            warnings: Vec::new(),
        }
    }

    /// Starts a guard where there is none, where it has ended, and where it holds another file
    /// than this journal. To be called before anything is put in force.
    pub fn ensure_guard(&mut self, journal: &Journal) -> Result<(), AgentError> {
        if !self.is_wanted {
            return Ok(());
        }
        let holds = journal.id()?;
        let Some(guard) = &mut self.guard else {
            self.guard = Some(self.start(journal, holds)?);
            return Ok(());
        };
        // An error says that it is no child any more.
        let ended = guard
            .child
            .try_wait()
            .map_or(Some(None), |end| end.map(Some));
        if let Some(end) = ended {
            let end = end.map_or_else(String::new, |status| format!(" ({status})"));
            self.warn(
                format!("the guard, which undoes everything if schedlab is killed, had ended{end}"),
                "Look what ended it: `dmesg` names what the kernel killed for want of memory.",
            );
        } else if guard.holds == holds {
            return Ok(());
        }
        let next = self.start(journal, holds)?;
        if let Some(last) = self.guard.replace(next) {
            last.dismiss();
        }
        Ok(())
    }

    fn start(&self, journal: &Journal, holds: FileId) -> Result<Guard, AgentError> {
        let failed = |e| AgentError::io("start the guard", &self.executable, e);
        let mut command = self.command(journal).map_err(failed)?;
        let child = command.spawn().map_err(failed)?;
        Ok(Guard { child, holds })
    }

    /// It gets the journal and the stream of the runner where others have their output.
    fn command(&self, journal: &Journal) -> io::Result<Command> {
        let runner: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
        let mut command = own_command(&self.executable);
        command
            .arg0("schedlab")
            .arg("guard")
            .env(STATE_VARIABLE, &self.directory)
            .env(AGENT_VARIABLE, &self.agent)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(journal.open_file()?)
            .stderr(runner);
        sys::own_session_for_good(&mut command);
        Ok(command)
    }

    /// Tells of something that was gone and is there again.
    pub fn warn(&mut self, what: String, remedy: &str) {
        tracing::warn!("{what}; it was started anew");
        self.warnings.push(Warning {
            severity: Severity::Caution,
            what: format!("{what}; it was started anew."),
            remedy: remedy.to_owned(),
        });
    }

    /// Warnings since the last call, for the result of a trial.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// The processes that belong to no trial.
    pub fn processes(&self) -> Vec<Pid> {
        let guard = self.guard.iter();
        guard.map(|guard| guard.child.id() as Pid).collect()
    }
}
