//! Undoing what a dead agent left, by whoever comes after it.

use super::PATIENCE;
use crate::error::AgentError;
use crate::journal::{self, Journal, Restored};
use crate::state::{StateLock, state_dir};
use std::path::Path;
use std::time::Duration;

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

/// Replay the journal in `directory`, if there is one. An error where there should be one.
pub fn replay_in(directory: &Path, patience: Duration) -> Result<Restored, AgentError> {
    if !journal::path_in(directory).exists() {
        journal::check_not_missed(directory)?;
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
