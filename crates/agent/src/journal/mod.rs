//! The journal: what must be undone, on disk before it is done.
//!
//! One JSON object a line, each synced before the change that it undoes is made.
//! Every undoing may be repeated: a crash between it and the clearing of the
//! journal does no harm. Lines of an earlier boot are void, for what they undo
//! went with that boot.
//!
//! Nothing is forgotten but what is undone: a line that cannot be read, or that a
//! newer schedlab wrote, is kept and said. The one exception is a last line without
//! its end. It was never synced as a whole, so its change was never made.

mod entry;
mod sign;

pub(crate) use entry::put_back;
pub use entry::{Entry, Undo, lines};
pub(crate) use sign::SIGNS;
pub use sign::{another_journal_holds_something, check_not_missed};

use crate::error::AgentError;
use crate::processes;
use crate::state::open_private;
use collect::tasks::Pid;
use doors::written;
use entry::Line;
use sign::Sign;
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File, Metadata};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The outcome of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Files written back, with their text.
    pub written: Vec<(PathBuf, String)>,
    /// IDs of processes that were killed.
    pub killed: Vec<i32>,
    /// Folders, guests and CPU pools of Xen that were removed or put back, in words.
    pub removed: Vec<String>,
    /// Entries that a reboot had undone before.
    pub stale: usize,
    /// Changes that could not be undone, and why.
    pub failed: Vec<String>,
}

impl Restored {
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Restored::default()
    }
}

/// Tells one file from another, also where a name leads to another one than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The identity of what was looked at. It is given to no other file while this one is open.
    pub fn from_metadata(found: &Metadata) -> Self {
        FileId {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// The open journal. Hold the [`crate::state::StateLock`] while it lives.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    boot: String,
    sign: Sign,
    /// Lines that were recorded since lines were last forgotten. An arm that takes its turn again
    /// is undone by the line of its first.
    held: HashSet<String>,
}

/// The journal's file in a state directory.
pub fn path_in(directory: &Path) -> PathBuf {
    directory.join("journal.jsonl")
}

impl Journal {
    /// Opens the journal in a directory that is there, or makes one. Half a line at its end is
    /// cut off. A file that another user could change is refused, and so is one that is missing
    /// where there should be one.
    pub fn open(directory: &Path) -> Result<Self, AgentError> {
        let path = path_in(directory);
        if !path.exists() {
            check_not_missed(directory)?;
        }
        let journal = Journal::without_name(directory, open_private(&path)?);
        sync_directory(directory)?;
        journal.cut_torn_end()?;
        Ok(journal)
    }

    /// The journal of this directory whose file is open, also where its name is gone.
    pub(crate) fn without_name(directory: &Path, file: File) -> Self {
        Journal {
            path: path_in(directory),
            file,
            boot: boot_id(),
            sign: Sign::for_directory(directory),
            held: HashSet::new(),
        }
    }

    /// Another handle of its open file.
    pub(crate) fn open_file(&self) -> std::io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// The identity of its open file.
    pub(crate) fn id(&self) -> Result<FileId, AgentError> {
        let found = self.file.metadata();
        let found = found.map_err(|e| AgentError::io("look at", &self.path, e))?;
        Ok(FileId::from_metadata(&found))
    }

    /// Does its name still lead to it? Not where somebody removed the directory.
    pub(crate) fn has_its_name(&self) -> Result<bool, AgentError> {
        let own = self.id()?;
        let named = fs::symlink_metadata(&self.path);
        Ok(named.is_ok_and(|named| FileId::from_metadata(&named) == own))
    }

    /// Must be called, and succeed, before the change is made.
    pub fn record(&mut self, undo: Undo) -> Result<(), AgentError> {
        let failed = |e| AgentError::io("write", &self.path, e);
        let boot = self.boot.clone();
        let text = serde_json::to_string(&Line { boot, undo }).map_err(|e| failed(e.into()))?;
        if self.held.contains(&text) {
            return Ok(());
        }
        let line = text.clone();
        let length = self.length()?;
        // Never behind half a line that could not be cut off.
        let whole = ends_with_line_end(&self.file, length).map_err(failed)?;
        let text = format!("{}{text}\n", if whole { "" } else { "\n" });
        self.sign.write_file();
        let written = self.file.write_all_at(text.as_bytes(), length);
        written.and_then(|()| self.file.sync_data()).map_err(|e| {
            // On a full disk, half a line may have been written.
            let _ = self.file.set_len(length);
            failed(e)
        })?;
        self.held.insert(line);
        Ok(())
    }

    /// Place of the next entry, for [`Journal::forget_from`].
    pub(crate) fn length(&self) -> Result<u64, AgentError> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|e| AgentError::io("look at", &self.path, e))?;
        Ok(metadata.len())
    }

    /// Changes that were recorded since then are undone.
    pub(crate) fn forget_from(&mut self, length: u64) -> Result<(), AgentError> {
        self.held.clear();
        self.file
            .set_len(length)
            .and_then(|()| self.file.sync_data())
            .map_err(|e| AgentError::io("clear", &self.path, e))?;
        if length == 0 {
            self.sign.hide();
        }
        Ok(())
    }

    /// Undo all, last first, and forget what is undone. What failed is kept.
    pub fn replay(&mut self) -> Result<Restored, AgentError> {
        let bytes = self.read()?;
        let read = |line| (line, Entry::read(line, &self.boot));
        let entries: Vec<(&[u8], Entry)> = lines(&bytes).map(read).collect();
        // First of all: a process that still runs could change again what is put back,
        // and fill the disk meanwhile.
        let mut restored = Restored {
            killed: processes_of(&entries),
            ..Restored::default()
        };
        // What does not end fails by its own entry.
        let _ = processes::kill_until_gone(|| processes_of(&entries));
        let kept = undo_all(&entries, &mut restored);
        let lines: Vec<&[u8]> = kept.iter().map(|(at, _)| entries[*at].0).collect();
        self.keep(&lines)?;
        restored.failed = kept.into_iter().map(|(_, why)| why).collect();
        Ok(restored)
    }

    /// Leave only these lines. They are written beside and renamed, so that at no
    /// moment one of them is nowhere.
    fn keep(&mut self, lines: &[&[u8]]) -> Result<(), AgentError> {
        if lines.is_empty() {
            return self.forget_from(0);
        }
        self.held.clear();
        self.sign.write_file();
        let text = [lines.join(&b'\n').as_slice(), b"\n"].concat();
        if !self.has_its_name()? {
            return self.write_in_place(&text);
        }
        let beside = self.path.with_extension("new");
        let replaced =
            write_private(&beside, &text).and_then(|()| written::move_durably(&beside, &self.path));
        if let Err(error) = replaced {
            // What is undone will be undone once more, which does no harm.
            tracing::warn!("write {}: {error}", beside.display());
            return Ok(());
        }
        self.file = open_private(&self.path)?;
        self.path.parent().map_or(Ok(()), sync_directory)
    }

    /// A file without a name ends with those who have it open: there is nothing to rename.
    fn write_in_place(&self, text: &[u8]) -> Result<(), AgentError> {
        let written = self.file.write_all_at(text, 0);
        written
            .and_then(|()| self.file.set_len(text.len() as u64))
            .map_err(|e| AgentError::io("write", &self.path, e))
    }

    fn read(&self) -> Result<Vec<u8>, AgentError> {
        let length = self.length()?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        let read = self.file.read_exact_at(&mut bytes, 0);
        read.map_err(|e| AgentError::io("read", &self.path, e))?;
        Ok(bytes)
    }

    fn cut_torn_end(&self) -> Result<(), AgentError> {
        let bytes = self.read()?;
        let last = bytes.split(|byte| *byte == b'\n').next_back();
        let last = last.filter(|line| !line.is_empty());
        let Some(torn) = last.filter(|line| Entry::read(line, &self.boot).is_unreadable()) else {
            return Ok(());
        };
        self.file
            .set_len((bytes.len() - torn.len()) as u64)
            .map_err(|e| AgentError::io("clear", &self.path, e))
    }
}

/// Undoes all, last first, and gives what failed by its place, with the reason. A write that the
/// kernel refuses is tried again after the others, as long as one of them succeeds: it may depend
/// on another that has not its old value yet.
fn undo_all(entries: &[(&[u8], Entry)], restored: &mut Restored) -> Vec<(usize, String)> {
    let mut kept: Vec<(usize, String)> = Vec::new();
    let mut left: Vec<usize> = (0..entries.len()).rev().collect();
    while !left.is_empty() {
        let mut failed = Vec::new();
        for at in &left {
            let entry = &entries[*at].1;
            kept.retain(|(other, _)| other != at);
            match entry.undo(restored) {
                // The oldest text of a file is the one that counts.
                Ok(()) => kept.retain(|(later, _)| !entries[*later].1.writes_what(entry)),
                Err(why) => {
                    kept.push((*at, why));
                    failed.push(*at);
                }
            }
        }
        failed.retain(|at| entries[*at].1.is_write() && kept.iter().any(|(other, _)| other == at));
        if failed.len() >= left.len() {
            break;
        }
        left = failed;
    }
    kept.sort_by_key(|(at, _)| *at);
    kept
}

fn processes_of(entries: &[(&[u8], Entry)]) -> Vec<Pid> {
    let each = entries.iter().map(|(_, entry)| entry.processes());
    let all: BTreeSet<Pid> = each.flatten().collect();
    all.into_iter().collect()
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = written::open_file(path, 0o600)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn ends_with_line_end(file: &File, length: u64) -> std::io::Result<bool> {
    let Some(last) = length.checked_sub(1) else {
        return Ok(true);
    };
    let mut byte = [0u8];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
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

    fn append(directory: &Path, bytes: &[u8]) {
        let mut file = File::options()
            .append(true)
            .open(path_in(directory))
            .unwrap();
        file.write_all(bytes).unwrap();
    }

    #[test]
    fn guests_of_others_are_not_destroyed_and_the_line_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(directory.path()).unwrap();
        for prefix in ["", "web"] {
            let prefix = prefix.to_owned();
            journal.record(Undo::DestroyGuests { prefix }).unwrap();
        }
        let restored = journal.replay().unwrap();
        assert_eq!(restored.failed.len(), 2);
        let all = |why: &String| why.contains("not schedlab's");
        assert!(restored.failed.iter().all(all), "{restored:?}");
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
        append(directory.path(), br#"{"boot":"x","undo":"wri"#);
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

    #[test]
    fn a_torn_line_swallows_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (
            knob(directory.path(), "first", "new"),
            knob(directory.path(), "second", "new"),
        );
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(&first, "old")).unwrap();
        // As a version did that neither cut it off nor began with a line end.
        let text = fs::read(path_in(directory.path())).unwrap();
        append(directory.path(), &text[..text.len() / 2]);
        append(directory.path(), &text);
        journal.record(write(&second, "old")).unwrap();
        let restored = journal.replay().unwrap();
        assert_eq!(fs::read_to_string(&second).unwrap(), "old");
        assert_eq!(restored.written.len(), 3);
        assert!(
            restored.failed[0].contains("cannot be read"),
            "{restored:?}"
        );
    }

    #[test]
    fn an_entry_that_was_cut_short_is_no_obstacle_for_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let mut journal = Journal::open(directory.path()).unwrap();
        append(directory.path(), br#"{"boot":"x","undo":"wri"#);
        journal.record(write(&knob, "old")).unwrap();
        journal.replay().unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "old");
    }

    #[test]
    fn a_full_disk_leaves_no_half_of_an_entry() {
        if !rustix::process::geteuid().is_root() {
            ::tests::skipped("a disk of its own needs root");
            return;
        }
        let disk = Disk::new("4k");
        let mut journal = Journal::open(disk.0.path()).unwrap();
        let undo = |n: usize| write(Path::new("/nowhere"), &n.to_string());
        let taken = (0..1000).take_while(|n| journal.record(undo(*n)).is_ok());
        let taken = taken.count();
        assert!((10..1000).contains(&taken), "{taken}");
        let text = fs::read_to_string(path_in(disk.0.path())).unwrap();
        assert_eq!(text.lines().count(), taken);
        assert!(text.ends_with("}\n"), "{text}");
    }

    /// A file system of a fixed size.
    struct Disk(tempfile::TempDir);

    impl Disk {
        fn new(size: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let options = format!("size={size}");
            let mut mount = std::process::Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &options, "none"]);
            assert!(mount.arg(directory.path()).status().unwrap().success());
            Disk(directory)
        }
    }

    impl Drop for Disk {
        fn drop(&mut self) {
            let mut umount = std::process::Command::new("umount");
            let _ = umount.arg("--lazy").arg(self.0.path()).status();
        }
    }

    #[test]
    fn what_is_kept_is_kept_in_its_order_and_the_rest_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let gone = directory.path().join("gone");
        let mut journal = Journal::open(directory.path()).unwrap();
        for text in ["1", "2"] {
            journal.record(write(&gone, text)).unwrap();
            journal.record(write(&knob, text)).unwrap();
        }
        assert_eq!(journal.replay().unwrap().failed.len(), 2);
        fs::write(&gone, "3").unwrap();
        fs::write(&knob, "3").unwrap();
        let again = journal.replay().unwrap();
        assert_eq!(again.written.len(), 2, "{again:?}");
        assert_eq!(fs::read_to_string(&gone).unwrap(), "1");
        assert_eq!(fs::read_to_string(&knob).unwrap(), "3");
    }

    #[test]
    fn an_older_text_that_was_written_back_settles_a_newer_one_that_was_not() {
        let directory = tempfile::tempdir().unwrap();
        let knob = Path::new("/proc/self/oom_score_adj");
        let before = fs::read_to_string(knob).unwrap();
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(knob, before.trim())).unwrap();
        // More than the kernel takes.
        journal.record(write(knob, "5000")).unwrap();
        let restored = journal.replay().unwrap();
        assert_eq!((restored.written.len(), restored.failed.len()), (1, 0));
    }

    #[test]
    fn what_a_newer_version_recorded_is_kept_and_said() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(directory.path()).unwrap();
        let boot = boot_id();
        let newer = format!("{{\"boot\":\"{boot}\",\"undo\":\"detach\",\"from\":\"pool\"}}\n");
        append(directory.path(), newer.as_bytes());
        let restored = journal.replay().unwrap();
        assert!(
            restored.failed[0].contains("how to undo `detach`"),
            "{restored:?}"
        );
        assert_eq!(
            fs::read_to_string(path_in(directory.path())).unwrap(),
            newer
        );
        // It went with its boot, like all others.
        fs::write(path_in(directory.path()), newer.replace(&boot, "earlier")).unwrap();
        assert_eq!(journal.replay().unwrap().stale, 1);
    }

    #[test]
    fn bytes_that_are_no_text_stop_no_other_entry() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let mut journal = Journal::open(directory.path()).unwrap();
        append(directory.path(), b"\xff\xfe half a name\n");
        journal.record(write(&knob, "old")).unwrap();
        let restored = journal.replay().unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "old");
        assert_eq!(restored.failed.len(), 1);
        let kept = fs::read(path_in(directory.path())).unwrap();
        assert_eq!(kept, b"\xff\xfe half a name\n");
    }

    #[test]
    fn what_is_said_of_an_entry_has_nothing_that_a_terminal_obeys() {
        let line = format!(
            "{{\"boot\":\"{}\",\"undo\":\"a\\u001bc\\u202e\"}}",
            boot_id()
        );
        let Entry::Unreadable(why) = Entry::read(line.as_bytes(), &boot_id()) else {
            panic!("`a` is no kind of entry");
        };
        assert!(why.contains(r"`a\u{1b}c\u{202e}`"), "{why}");
        assert!(!why.contains(model::printable::is_hidden), "{why}");
    }

    #[test]
    fn a_trial_forgets_its_own_entries_only() {
        let directory = tempfile::tempdir().unwrap();
        let knob = knob(directory.path(), "knob", "new");
        let mut journal = Journal::open(directory.path()).unwrap();
        journal.record(write(&knob, "old")).unwrap();
        let began = journal.length().unwrap();
        journal.record(write(&knob, "newer")).unwrap();
        journal.forget_from(began).unwrap();
        assert_eq!(journal.replay().unwrap().written.len(), 1);
        assert_eq!(fs::read_to_string(&knob).unwrap(), "old");
    }
}
