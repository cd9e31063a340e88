//! The guard: a process that outlives the agent and undoes what it left.
//!
//! It holds the reading end of a pipe whose other end only the agent has. When the
//! pipe ends, the agent is gone, in whatever way; then the journal is replayed.
//! After a clean end the journal is empty, and nothing happens.

use crate::journal::{Journal, Restored};
use crate::state::{STATE_VARIABLE, StateLock, state_dir};
use crate::{AgentError, sys};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a next start waits for a guard at work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The guard of one agent. Dropping it lets it go.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Start `executable guard` for the journal in `directory`.
    pub fn start(executable: &Path, directory: &Path) -> Result<Self, AgentError> {
        let mut command = Command::new(executable);
        command
            .arg0("schedlab")
            .arg("guard")
            .env(STATE_VARIABLE, directory)
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
        let _ = self.child.wait();
    }
}

/// `schedlab guard`: wait on standard input for the end of the agent, then undo.
pub fn guard_main() -> Result<Restored, AgentError> {
    ignore_signals()?;
    let mut nothing = Vec::new();
    // An error reads like an end: the agent cannot be reached any more.
    let _ = std::io::stdin().read_to_end(&mut nothing);
    match StateLock::acquire(&state_dir(), Duration::from_secs(10)) {
        Ok(lock) => replay(&lock, &state_dir()),
        // A new agent was faster. It undoes what it finds before anything else.
        Err(AgentError::Busy { .. }) => Ok(Restored::default()),
        Err(error) => Err(error),
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

/// `schedlab restore`: undo now what a dead agent left. Waits for a guard at work.
pub fn restore() -> Result<Restored, AgentError> {
    replay_in(&state_dir(), PATIENCE)
}

/// Replay the journal in `directory`, if there is one.
pub fn replay_in(directory: &Path, patience: Duration) -> Result<Restored, AgentError> {
    if !directory.join("journal.jsonl").exists() {
        return Ok(Restored::default());
    }
    let lock = StateLock::acquire(directory, patience)?;
    replay(&lock, directory)
}

fn replay(_held: &StateLock, directory: &Path) -> Result<Restored, AgentError> {
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
