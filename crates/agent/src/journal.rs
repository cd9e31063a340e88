//! What must be undone, on disk before it is done.
//!
//! One JSON object a line, each synced before the change that it undoes is made.
//! Every undoing may be repeated: a crash between it and the clearing of the
//! journal does no harm. Lines of an earlier boot are void, for what they undo
//! went with that boot.

use crate::{AgentError, processes};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// One thing to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "kebab-case")]
pub enum Undo {
    /// Write the old text back.
    Write { path: PathBuf, text: String },
    /// Kill every process with this environment variable (`NAME=value`).
    KillMarked { variable: String },
    /// Kill the session that this process leads. The start time (clock ticks since
    /// boot) tells it from a later process with the same id.
    KillSession { pid: i32, start_ticks: u64 },
    /// Remove a cgroup, whose processes must have ended.
    RemoveCgroup { path: PathBuf },
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    boot: String,
    #[serde(flatten)]
    undo: Undo,
}

/// What a replay did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Files written back, with their text.
    pub written: Vec<(PathBuf, String)>,
    pub killed: Vec<i32>,
    /// Entries that a reboot had undone before.
    pub stale: usize,
    /// What could not be undone, and why.
    pub failed: Vec<String>,
}

impl Restored {
    pub fn is_nothing(&self) -> bool {
        *self == Restored::default()
    }
}

/// The open journal. Hold the [`crate::state::StateLock`] while it lives.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    boot: String,
}

impl Journal {
    pub fn open(directory: &Path) -> Result<Self, AgentError> {
        let path = directory.join("journal.jsonl");
        let file = File::options()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|e| AgentError::io("open", &path, e))?;
        sync_directory(directory)?;
        Ok(Journal {
            path,
            file,
            boot: boot_id(),
        })
    }

    /// Must be called, and succeed, before the change is made.
    pub fn record(&mut self, undo: Undo) -> Result<(), AgentError> {
        let line = Line {
            boot: self.boot.clone(),
            undo,
        };
        let mut text = serde_json::to_string(&line)
            .map_err(|e| AgentError::io("write", &self.path, e.into()))?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|e| AgentError::io("write", &self.path, e))
    }

    /// Undo all, last first, and forget what is undone. What failed is kept.
    pub fn replay(&mut self) -> Result<Restored, AgentError> {
        let text =
            fs::read_to_string(&self.path).map_err(|e| AgentError::io("read", &self.path, e))?;
        let mut restored = Restored::default();
        let mut kept = Vec::new();
        // A line cut short by a crash was not synced: its change was never made.
        let lines = text.lines().rev();
        for line in lines.filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            if line.boot != self.boot {
                restored.stale += 1;
            } else if let Err(why) = apply(&line.undo, &mut restored) {
                restored.failed.push(why);
                kept.push(line);
            }
        }
        self.forget()?;
        for line in kept.into_iter().rev() {
            self.record(line.undo)?;
        }
        Ok(restored)
    }

    /// All is undone.
    pub fn forget(&mut self) -> Result<(), AgentError> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.sync_data())
            .map_err(|e| AgentError::io("clear", &self.path, e))
    }
}

fn apply(undo: &Undo, restored: &mut Restored) -> Result<(), String> {
    match undo {
        Undo::Write { path, text } => {
            write_back(path, text)?;
            restored.written.push((path.clone(), text.clone()));
        }
        Undo::KillMarked { variable } => {
            let killed = processes::kill_until_gone(|| processes::marked(variable))?;
            restored.killed.extend(killed);
        }
        Undo::KillSession { pid, start_ticks } => {
            let killed = processes::kill_until_gone(|| processes::session(*pid, *start_ticks))?;
            restored.killed.extend(killed);
        }
        Undo::RemoveCgroup { path } => crate::roles::cgroup::remove(path)?,
    }
    Ok(())
}

/// Write to a kernel file, which is never created. A change that was recorded but
/// then not permitted left the old text in place: nothing to undo.
fn write_back(path: &Path, text: &str) -> Result<(), String> {
    let write = || {
        let mut file = File::options().write(true).truncate(true).open(path)?;
        file.write_all(text.as_bytes())
    };
    match write() {
        Err(_) if collect::read_trimmed(path).as_deref() == Some(text) => Ok(()),
        Err(e) => Err(format!("write {text:?} back to {}: {e}", path.display())),
        Ok(()) => Ok(()),
    }
}

fn boot_id() -> String {
    collect::read_trimmed(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

fn sync_directory(directory: &Path) -> Result<(), AgentError> {
    File::open(directory)
        .and_then(|file| file.sync_all())
        .map_err(|e| AgentError::io("sync", directory, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn write(path: &Path, text: &str) -> Undo {
        Undo::Write {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_oldest_value_wins_when_a_knob_was_changed_twice() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "3");
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(&knob, "1")).unwrap();
        journal.record(write(&knob, "2")).unwrap();
        let restored = journal.replay().unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "1");
        assert_eq!(restored.written.len(), 2);
    }

    #[test]
    fn a_replayed_journal_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(&knob, "old")).unwrap();
        journal.replay().unwrap();
        assert!(journal.replay().unwrap().is_nothing());
    }

    #[test]
    fn another_process_finds_what_was_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(&knob, "old")).unwrap();
        drop(journal);
        Journal::open(directory.path()).unwrap().replay().unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "old");
    }

    #[test]
    fn a_line_cut_short_is_ignored_and_the_others_are_undone() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(&knob, "old")).unwrap();
        journal
            .file
            .write_all(br#"{"boot":"x","undo":"wri"#)
            .unwrap();
        journal.replay().unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "old");
    }

    #[test]
    fn what_cannot_be_undone_is_said_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(&gone, "old")).unwrap();
        let first = journal.replay().unwrap();
        assert!(first.failed[0].contains("gone"), "{first:?}");
        assert_eq!(journal.replay().unwrap().failed, first.failed);
    }

    #[test]
    fn entries_of_an_earlier_boot_are_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.boot = "an earlier one".to_owned();
        journal.record(write(&knob, "old")).unwrap();
        let restored = Journal::open(directory.path()).unwrap().replay().unwrap();
        assert_eq!(restored.stale, 1);
        assert_eq!(fs::read_to_string(&knob).unwrap(), "new");
    }
}
