//! The guard: a process that outlives the agent and undoes what it left.
//!
//! It holds the reading end of a pipe whose other end only the agent has. When the
//! pipe ends, the agent is gone, in whatever way; then the processes of its trials
//! are killed and the journal is replayed. After a clean end the journal is empty,
//! and nothing happens.
//!
//! A guard does not give up. Whatever stands in its way, a lock that is held or a
//! disk that is full, it tries again, ever less often, until the journal is empty:
//! by its own doing, or by that of the next agent or of `schedlab restore`.

use crate::error::AgentError;
use crate::journal::{self, Journal, Restored};
use crate::state::{STATE_VARIABLE, StateLock, state_dir};
use crate::{fence, processes, sys};
use std::env;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time that a next start waits for a guard at work.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The wait of an agent that ends: after it, a guard that has something to undo is left alone.
const FAREWELL: Duration = Duration::from_secs(5);
/// The environment variable with the name of the agent, see [`processes::marked_by`].
const AGENT_VARIABLE: &str = "SCHEDLAB_AGENT";

/// Between two tries, which grow to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The guard of one agent. Dropping it lets it go.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Start `executable guard` for the journal in `directory` and the trials of `agent`.
    pub fn start(executable: &Path, directory: &Path, agent: &str) -> Result<Self, AgentError> {
        let mut command = Command::new(executable);
        command
            .arg0("schedlab")
            .arg("guard")
            .env(STATE_VARIABLE, directory)
            .env(AGENT_VARIABLE, agent)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        sys::own_session_for_good(&mut command);
        let child = command
            .spawn()
            .map_err(|e| AgentError::io("start the guard", executable, e))?;
        Ok(Guard { child })
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
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

/// `schedlab guard`: wait on standard input for the end of the agent, then undo.
pub fn guard_main() -> Result<(), AgentError> {
    ignore_signals()?;
    let directory = state_dir()?;
    let agent = env::var(AGENT_VARIABLE)
        .ok()
        .filter(|name| !name.is_empty());
    let mut nothing = Vec::new();
    // An error reads like an end: the agent cannot be reached any more.
    let _ = std::io::stdin().read_to_end(&mut nothing);
    let mut pause = FIRST_PAUSE;
    loop {
        // Needs no lock: nobody else has processes of this agent.
        if let Some(agent) = &agent {
            processes::kill_all(&processes::marked_by(agent));
            fence::kill_groups_of(agent);
        }
        if is_done(&directory) {
            return Ok(());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Is nothing left to undo? Where the lock is taken, its holder may undo it: an agent
/// does that before anything else.
fn is_done(directory: &Path) -> bool {
    match fs::metadata(journal::path_in(directory)) {
        Ok(journal) if journal.len() > 0 => {
            let restored = replay_in(directory, Duration::ZERO);
            restored.is_ok_and(|restored| restored.failed.is_empty())
        }
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// A guard ends when its work is done, not when a terminal closes.
fn ignore_signals() -> Result<(), AgentError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, ignored.clone())
            .map_err(|e| AgentError::io("ignore signals in", Path::new("guard"), e))?;
    }
    Ok(())
}

/// True if another agent of this user is at work, for which a new one would wait.
pub fn is_busy() -> Result<bool, AgentError> {
    // A guard that undoes what its agent left takes a moment.
    const MOMENT: Duration = Duration::from_secs(2);
    match StateLock::acquire(&state_dir()?, MOMENT) {
        Err(AgentError::Busy { .. }) => Ok(true),
        other => other.map(|_| false),
    }
}

/// `schedlab restore`: undo now what a dead agent left. Waits for a guard at work.
pub fn restore() -> Result<Restored, AgentError> {
    replay_in(&state_dir()?, PATIENCE)
}

/// Replay the journal in `directory`, if there is one.
pub fn replay_in(directory: &Path, patience: Duration) -> Result<Restored, AgentError> {
    if !journal::path_in(directory).exists() {
        return Ok(Restored::default());
    }
    let _lock = StateLock::acquire(directory, patience)?;
    Journal::open(directory)?.replay()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Undo;

    #[test]
    fn a_restore_without_a_journal_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(replay_in(directory.path(), PATIENCE).unwrap().is_nothing());
        assert!(!directory.path().join("lock").exists());
    }

    #[test]
    fn a_restore_undoes_what_the_journal_holds() {
        let directory = tempfile::tempdir().unwrap();
        let knob = directory.path().join("knob");
        std::fs::write(&knob, "new").unwrap();
        let undo = Undo::Write {
            path: knob.clone(),
            text: "old".to_owned(),
        };
        Journal::open(directory.path())
            .unwrap()
            .record(undo)
            .unwrap();
        replay_in(directory.path(), PATIENCE).unwrap();
        assert_eq!(std::fs::read_to_string(&knob).unwrap(), "old");
    }
}
