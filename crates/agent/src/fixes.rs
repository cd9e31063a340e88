//! The changes of `schedlab doctor --fix`, and their undoing.
//!
//! A fix is wanted for the runs that follow, so it must outlive them: its journal is
//! not the one of the trials, which every run replays and every trial clears. Fixes
//! stay until `schedlab restore`, or until the next boot.

use crate::error::AgentError;
use crate::guard::replay_in;
use crate::journal::{Journal, Restored, Undo};
use crate::state::{StateLock, state_dir};
use collect::preflight::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A lock is held for the time of some writes only.
const PATIENCE: Duration = Duration::from_secs(10);

/// Result of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// File of the kernel that was written.
    pub path: PathBuf,
    /// Text that it had.
    pub before: String,
    /// Text that is read back afterwards, or the reason why it could not be written.
    pub after: Result<String, String>,
}

/// Write each text, its old one first into the journal.
pub fn apply_fixes(writes: &[Write]) -> Result<Vec<Fixed>, AgentError> {
    fix_in(&directory()?, writes)
}

/// Put everything back.
pub fn restore_fixes() -> Result<Restored, AgentError> {
    restore_in(&directory()?)
}

fn directory() -> Result<PathBuf, AgentError> {
    Ok(state_dir()?.join("fixes"))
}

fn restore_in(directory: &Path) -> Result<Restored, AgentError> {
    replay_in(directory, PATIENCE)
}

fn fix_in(directory: &Path, writes: &[Write]) -> Result<Vec<Fixed>, AgentError> {
    let _lock = StateLock::acquire(directory, PATIENCE)?;
    let mut journal = Journal::open(directory)?;
    writes
        .iter()
        .map(|write| fix_one(&mut journal, write))
        .collect()
}

fn fix_one(journal: &mut Journal, write: &Write) -> Result<Fixed, AgentError> {
    let path = &write.path;
    let before = read(path).map_err(|e| AgentError::io("read", path, e))?;
    journal.record(Undo::Write {
        path: path.clone(),
        text: before.clone(),
    })?;
    Ok(Fixed {
        path: path.clone(),
        before,
        after: overwrite(path, &write.text).map_err(|e| e.to_string()),
    })
}

fn overwrite(path: &Path, text: &str) -> std::io::Result<String> {
    doors::written::write_kernel_file(path, text)?;
    read(path)
}

/// The text to write back: of a list of choices, the chosen one.
fn read(path: &Path) -> std::io::Result<String> {
    let text = doors::read::kernel_text(path)?;
    let text = text.trim_end();
    let chosen = collect::find_chosen(text);
    Ok(chosen.unwrap_or_else(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn knob(directory: &Path, text: &str) -> PathBuf {
        let path = directory.join("knob");
        fs::write(&path, text).unwrap();
        path
    }

    fn write(path: &Path, text: &str) -> Write {
        Write {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_fix_stays_until_it_is_restored() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "schedutil\n");
        let fixed = fix_in(directory.path(), &[write(&knob, "performance")]).unwrap();
        assert_eq!(fixed[0].before, "schedutil");
        assert_eq!(fixed[0].after, Ok("performance".to_owned()));
        restore_in(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "schedutil");
    }

    #[test]
    fn two_fixes_of_one_file_are_restored_to_what_was_before_both() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "0\n");
        fix_in(directory.path(), &[write(&knob, "1")]).unwrap();
        fix_in(directory.path(), &[write(&knob, "2")]).unwrap();
        restore_in(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "0");
    }

    #[test]
    fn of_a_list_of_choices_the_chosen_one_is_written_back() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "[always] madvise never\n");
        fix_in(directory.path(), &[write(&knob, "madvise")]).unwrap();
        restore_in(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "always");
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error_and_is_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        assert!(fix_in(directory.path(), &[write(&gone, "1")]).is_err());
        assert!(!gone.exists());
    }

    #[test]
    fn without_fixes_there_is_nothing_to_restore() {
        let directory = tempfile::tempdir().unwrap();
        assert!(restore_in(directory.path()).unwrap().is_nothing());
    }
}
