//! Directories that schedlab made its own: a mark in them says so, what it made there, and which
//! process has them.
//!
//! The mark is a hidden file. It is the first thing in a directory and the last one to go, it is
//! locked by the process that writes there (flock(2)), and it lists what was made, each with its
//! number and time. What a process left that was killed is known by that list. Names say nothing: a
//! user may have an `experiment.toml`, too.

#![expect(clippy::disallowed_methods, reason = "this is the door")]

use super::file::{Beside, PARTIAL, sync_parent, write_file_durably};
use super::way::{Trust, make_directory, real_directory};
use crate::read::file_text;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Name of the mark. Its first line is for people.
pub const MARK: &str = ".schedlab";
const WORDS: &str = "made by schedlab";
/// The most that is read of a mark, a line for each file and directory.
const MOST_MARK: u64 = 64 << 20;
/// The directory in its own list.
const ITSELF: &str = ".";
/// A process that another thread just starts has a copy of the lock until it runs its program.
const LONGEST_START: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// A directory that this process alone writes to.
#[derive(Debug)]
pub struct Marked {
    dir: PathBuf,
    mark: File,
    /// By this process.
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    /// In the directory: files, and directories of which all is ours.
    whole: Vec<PathBuf>,
    /// Directories in it, and those that were made for it: they go when they are empty.
    directories: Vec<PathBuf>,
}

/// Contents of a marked directory besides its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Nothing.
    Nothing,
    /// Files that somebody else put there, or that were not listed.
    More,
}

/// Asked while another process has the directory; `false` gives up.
pub type Patience<'a> = &'a mut dyn FnMut() -> bool;

/// Nobody waits for the other process.
pub fn no_patience() -> bool {
    false
}

impl Marked {
    /// Takes a directory for what schedlab will write: a new one, an empty one, or one that has the
    /// mark. `AlreadyExists` where it is none of these, which is then left alone; `WouldBlock` where
    /// another process has it.
    pub fn claim_dir(dir: &Path) -> io::Result<Marked> {
        refuse_unmarked(dir)?;
        let made = make_directory(dir)?;
        let mut taken = Marked::adopt_dir(dir, &mut no_patience)?;
        if !made.is_empty() {
            let itself = taken.dir.symlink_metadata()?;
            taken.list(ITSELF, &itself)?;
        }
        taken.made.get_mut().map_err(poisoned)?.directories = made;
        Ok(taken)
    }

    /// Takes a directory that is known to be of schedlab by what is in it, and puts the mark there
    /// where it is missing. `WouldBlock` where another process has it.
    pub fn adopt_dir(dir: &Path, wait: Patience) -> io::Result<Marked> {
        let real = real_directory(dir)?;
        loop {
            let (mut mark, is_new) = opened_mark(&real.join(MARK))?;
            lock(&mark, wait)?;
            // Who had it may have removed it.
            if !is_at(&mark, &real.join(MARK)) {
                continue;
            }
            if is_new {
                let itself = line_of_mark(&mark.metadata()?);
                write!(mark, "{WORDS}\n{itself}\n")?;
            }
            return Ok(Marked {
                dir: dir.to_owned(),
                mark,
                made: Mutex::default(),
            });
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// True where the mark was made at this place, for this user: what schedlab keeps here is its own. A
    /// copy of the directory has a mark of another number.
    pub fn was_made_here(&self) -> bool {
        let Ok(mark) = self.mark.metadata() else {
            return false;
        };
        let listed = self.listed().unwrap_or_default();
        Trust::in_caller().has_user(mark.uid()) && listed.contains(&line_of_mark(&mark))
    }

    /// Writes a new file, whole and on the disk, and lists it. `AlreadyExists` where its name is
    /// taken.
    pub fn write_new(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_listed(name, bytes, Beside::put_new)?;
        self.note_made(self.dir.join(name));
        Ok(())
    }

    /// The same for a file that may be there: it is replaced.
    pub fn replace_file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_listed(name, bytes, Beside::put_in_place)
    }

    fn write_listed(
        &mut self,
        name: &str,
        bytes: &[u8],
        put: fn(Beside) -> io::Result<()>,
    ) -> io::Result<()> {
        let place = self.dir.join(name);
        let mut beside = Beside::create_for(&place)?;
        beside.file().write_all(bytes)?;
        beside.file().sync_all()?;
        // Before it has its name: a kill between the two leaves no file that is not listed.
        self.list(name, &beside.file().metadata()?)?;
        put(beside)?;
        sync_parent(&place)
    }

    /// True for a file that schedlab wrote here, for this user, and that nobody changed since. A copy of the
    /// directory has other files.
    pub fn has_listed(&self, name: &str) -> bool {
        let is_ours = |found: &Metadata| Trust::in_caller().has_user(found.uid());
        let found = self.dir.join(name).symlink_metadata();
        let is_listed = |found: &Metadata| {
            self.listed()
                .unwrap_or_default()
                .contains(&line(name, found))
        };
        self.mark.metadata().is_ok_and(|mark| is_ours(&mark))
            && found.is_ok_and(|found| is_ours(&found) && is_listed(&found))
    }

    /// Lists a file that is there, as if it had been written here.
    pub fn adopt_file(&mut self, name: &str) -> io::Result<()> {
        let found = self.dir.join(name).symlink_metadata()?;
        self.list(name, &found)
    }

    /// Makes a directory in it, and lists it.
    pub fn make_directory(&mut self, name: &str) -> io::Result<()> {
        let place = self.dir.join(name);
        DirBuilder::new().mode(0o755).create(&place)?;
        self.list(name, &place.symlink_metadata()?)?;
        let made = self.made.get_mut().map_err(poisoned)?;
        made.directories.push(place);
        Ok(())
    }

    /// Writes a file of it, whole and on the disk. One that is there is replaced.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let place = self.dir.join(name);
        let is_new = place.symlink_metadata().is_err();
        write_file_durably(&place, bytes)?;
        if is_new {
            self.note_made(place);
        }
        Ok(())
    }

    /// Takes note of a file, or of a directory with all that is in it, that this process made in the
    /// directory: it goes when all does that was made ([`Marked::remove_made`]).
    pub fn note_made(&self, place: PathBuf) {
        if let Ok(mut made) = self.made.lock() {
            made.whole.push(place);
        }
    }

    /// Removes a file, or a directory with all that is in it, that schedlab made below this one.
    /// What is gone is fine.
    pub fn remove_below(&self, place: &Path) -> io::Result<()> {
        if !place.starts_with(&self.dir) || place == self.dir {
            return Err(ErrorKind::InvalidInput.into());
        }
        remove_any(place)
    }

    fn list(&mut self, name: &str, made: &Metadata) -> io::Result<()> {
        writeln!(self.mark, "{}", line(name, made))?;
        self.mark.sync_data()
    }

    fn listed(&self) -> io::Result<Vec<String>> {
        let text = file_text(self.dir.join(MARK), MOST_MARK)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// True if schedlab made the directory itself.
    fn is_listed_itself(&self) -> bool {
        let itself = self.dir.symlink_metadata();
        let line = itself.map(|found| line(ITSELF, &found)).ok();
        let listed = self.listed().unwrap_or_default();
        line.is_some_and(|line| listed.contains(&line))
    }

    /// Removes what a process listed here that was killed, and what it was just writing. What was
    /// changed since stays, and so does what somebody else put there.
    pub fn remove_listed(&mut self) -> io::Result<Holds> {
        let listed = self.listed()?;
        let mut holds = Holds::Nothing;
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == MARK {
                continue;
            }
            let found = entry.path().symlink_metadata()?;
            let is_listed = listed.contains(&line(&name, &found));
            let removed = match found.is_dir() {
                true if is_listed => fs::remove_dir(entry.path()).is_ok(),
                true => false,
                false if is_listed || name.starts_with(PARTIAL) => {
                    fs::remove_file(entry.path())?;
                    true
                }
                false => false,
            };
            if !removed {
                holds = Holds::More;
            }
        }
        Ok(holds)
    }

    /// Removes what this process made in the directory, the newest first, and then the directories
    /// that it made for it. What is not empty then stays, rightly.
    pub fn remove_made(&self) {
        let made = self.made.lock().map(|mut made| std::mem::take(&mut *made));
        let made = made.unwrap_or_default();
        for place in made.whole.iter().rev() {
            let _ = remove_any(place);
        }
        let inside = |dir: &&PathBuf| dir.starts_with(&self.dir) && **dir != self.dir;
        for dir in made.directories.iter().rev().filter(inside) {
            let _ = fs::remove_dir(dir);
        }
        let is_listed = self.is_listed_itself();
        let _ = fs::remove_file(self.dir.join(MARK));
        if is_listed {
            let _ = fs::remove_dir(&self.dir);
        }
        for dir in made.directories.iter().rev() {
            let _ = fs::remove_dir(dir);
        }
    }
}

fn poisoned<T>(_: std::sync::PoisonError<T>) -> io::Error {
    io::Error::other("another thread failed while it wrote here")
}

/// The line of the mark itself, which grows.
fn line_of_mark(mark: &Metadata) -> String {
    format!("{MARK} {}", mark.ino())
}

/// A line of the list. A directory's time changes with what is in it.
fn line(name: &str, made: &Metadata) -> String {
    let (number, size) = (made.ino(), made.len());
    match made.is_dir() {
        true => format!("{name}/ {number}"),
        false => format!(
            "{name} {number} {size} {}.{}",
            made.mtime(),
            made.mtime_nsec()
        ),
    }
}

/// An error where a directory is there, holds something, and has no mark of ours.
fn refuse_unmarked(dir: &Path) -> io::Result<()> {
    let mut entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    match has_mark(dir) || entries.next().is_none() {
        true => Ok(()),
        false => Err(ErrorKind::AlreadyExists.into()),
    }
}

fn remove_any(place: &Path) -> io::Result<()> {
    let removed = match place.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// True for a directory, and no link to one, with a mark that nobody else can have put there.
pub fn has_mark(dir: &Path) -> bool {
    let is_ours = |found: &Metadata| Trust::in_caller().has_user(found.uid());
    let mark = dir.join(MARK).symlink_metadata();
    let dir = dir.symlink_metadata();
    dir.is_ok_and(|found| found.is_dir() && is_ours(&found))
        && mark.is_ok_and(|found| found.is_file() && is_ours(&found))
}

/// True while a process writes to a marked directory. It is asked without a right to write there.
pub fn is_held(dir: &Path) -> bool {
    let mut options = File::options();
    options.read(true);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let Ok(mark) = options.open(dir.join(MARK)) else {
        return false;
    };
    // Let go at once, as the file is closed.
    let held = flock(&mark, FlockOperation::NonBlockingLockShared);
    held == Err(rustix::io::Errno::WOULDBLOCK)
}

/// The mark, and whether it is new.
fn opened_mark(path: &Path) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.read(true).append(true);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    match options.clone().create_new(true).open(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok((options.open(path)?, false)),
        opened => Ok((opened?, true)),
    }
}

fn lock(file: &File, wait: Patience) -> io::Result<()> {
    let start = Instant::now();
    while let Err(error) = flock(file, FlockOperation::NonBlockingLockExclusive) {
        let is_held = error == rustix::io::Errno::WOULDBLOCK;
        if !is_held || (start.elapsed() > LONGEST_START && !wait()) {
            return Err(error.into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: Metadata| (found.dev(), found.ino());
    let opened = file.metadata().map(number);
    let there = path.symlink_metadata().map(number);
    matches!((opened, there), (Ok(a), Ok(b)) if a == b)
}

/// Removes a marked directory with all that is in it; `WouldBlock` where a process has it. `false`
/// where there is none, and an error where it has no mark.
pub fn remove_marked(dir: &Path) -> io::Result<bool> {
    if dir.symlink_metadata().is_err() {
        return Ok(false);
    }
    if !has_mark(dir) {
        let why = "schedlab did not make it (it has no mark), so it is not removed";
        return Err(io::Error::new(ErrorKind::AlreadyExists, why));
    }
    let _taken = Marked::adopt_dir(dir, &mut no_patience)?;
    remove_with_mark_last(dir)?;
    Ok(true)
}

/// A kill in between leaves a directory that is still known by its mark.
fn remove_with_mark_last(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() == MARK {
            continue;
        }
        remove_any(&entry.path())?;
    }
    fs::remove_dir_all(dir)
}

/// Prefix of directories in which something is made before it is put in its place.
const PART: &str = ".part-";
const REMOVALS: usize = 20;

/// A directory in which something is made, beside its place. It is removed when it is dropped, and
/// where its process was killed by the next one that makes a part in the same directory.
#[derive(Debug)]
pub struct Part {
    marked: Option<Marked>,
    dir: PathBuf,
}

impl Part {
    /// A new one, in a directory which is made where it is missing.
    pub fn create_in(parent: &Path) -> io::Result<Part> {
        make_directory(parent)?;
        let parent = real_directory(parent)?;
        remove_left(&parent);
        let dir = tempfile::Builder::new()
            .prefix(PART)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(&parent)?;
        let marked = Marked::adopt_dir(dir.path(), &mut no_patience)?;
        Ok(Part {
            marked: Some(marked),
            dir: dir.keep(),
        })
    }

    /// Path of what is made, which is not there yet.
    pub fn path(&self) -> PathBuf {
        self.dir.join("new")
    }

    /// Path of the directory itself, for what else is needed while something is made.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// Puts what was made in its place. An error where a directory is there that is not empty.
    pub fn put_at(self, place: &Path) -> io::Result<()> {
        fs::rename(self.path(), place)?;
        sync_parent(place)
    }

    /// Puts what was made in its place, and removes what was there, which must be of schedlab.
    pub fn replace_at(self, place: &Path) -> io::Result<()> {
        match fs::rename(place, self.dir.join("old")) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        self.put_at(place)
    }

    /// Removes it now.
    pub fn remove(&mut self) {
        if self.marked.take().is_none() {
            return;
        }
        // Another thread may be writing into it just now.
        for _ in 0..REMOVALS {
            if remove_with_mark_last(&self.dir).is_ok() {
                return;
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes parts of processes that are gone. What cannot be removed fails nothing.
fn remove_left(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_part = entry.file_name().to_string_lossy().starts_with(PART);
        let is_own = entry.metadata().is_ok_and(|found| found.uid() == user);
        if is_part && is_own && has_mark(&entry.path()) && is_free(&entry.path().join(MARK)) {
            let _ = remove_with_mark_last(&entry.path());
        }
    }
}

/// Nobody waits for one that is being made.
fn is_free(mark: &Path) -> bool {
    let opened = rustix::fs::open(mark, OFlags::RDWR | OFlags::NOFOLLOW, Mode::empty());
    opened.is_ok_and(|mark| flock(mark, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_of_the_user_is_not_taken_whatever_the_names_in_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("experiment.toml"), "mine").unwrap();
        let refused = Marked::claim_dir(dir.path()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(names(dir.path()), ["experiment.toml"]);
    }

    #[test]
    fn what_was_made_goes_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a/b");
        let mut taken = Marked::claim_dir(&dir).unwrap();
        taken.write_new("plan.json", b"{}").unwrap();
        taken.make_directory("trials").unwrap();
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        taken.remove_made();
        assert_eq!(names(&dir), ["notes.txt"]);
    }

    #[test]
    fn a_directory_that_a_killed_process_made_goes_with_what_the_next_one_makes() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a");
        drop(Marked::claim_dir(&dir).unwrap());
        Marked::claim_dir(&dir).unwrap().remove_made();
        assert!(!dir.exists());
    }

    #[test]
    fn a_directory_that_was_empty_before_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut taken = Marked::claim_dir(dir.path()).unwrap();
        taken.write_new("plan.json", b"{}").unwrap();
        taken.remove_made();
        assert_eq!(names(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn what_a_killed_process_listed_goes_unless_somebody_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut killed = Marked::claim_dir(dir.path()).unwrap();
        killed.write_new("plan.json", b"{}").unwrap();
        killed.write_new("experiment.toml", b"x").unwrap();
        killed.make_directory("trials").unwrap();
        drop(killed);
        fs::write(dir.path().join(".partial-plan.json-x"), "").unwrap();
        fs::write(dir.path().join("experiment.toml"), "mine now").unwrap();
        let mut again = Marked::claim_dir(dir.path()).unwrap();
        assert_eq!(again.remove_listed().unwrap(), Holds::More);
        assert_eq!(names(dir.path()), [MARK, "experiment.toml"]);
    }

    #[test]
    fn one_process_has_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = Marked::claim_dir(dir.path()).unwrap();
        let second = Marked::claim_dir(dir.path()).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::WouldBlock);
        let mut first = Some(first);
        let mut asked = 0;
        let waited = Marked::adopt_dir(dir.path(), &mut || {
            asked += 1;
            first.take();
            true
        });
        assert!(waited.is_ok());
        assert!(asked > 0);
    }

    #[test]
    fn a_tree_without_a_mark_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("ends");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("notes"), "mine").unwrap();
        let refused = remove_marked(&tree).unwrap_err();
        assert!(refused.to_string().contains("did not make"), "{refused}");
        assert_eq!(names(&tree), ["notes"]);
        assert!(!remove_marked(&dir.path().join("none")).unwrap());
    }

    #[test]
    fn a_part_of_a_killed_process_goes_with_the_next_one_and_a_living_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let living = Part::create_in(dir.path()).unwrap();
        let mut killed = Part::create_in(dir.path()).unwrap();
        fs::write(killed.path(), "gigabytes").unwrap();
        // A kill closes the file and removes nothing.
        killed.marked.take();
        fs::create_dir(dir.path().join(".part-theirs")).unwrap();
        let new = Part::create_in(dir.path()).unwrap();
        assert!(living.dir.exists() && new.dir.exists() && !killed.dir.exists());
        assert!(dir.path().join(".part-theirs").exists(), "it has no mark");
        fs::write(new.path(), "whole").unwrap();
        new.put_at(&dir.path().join("place")).unwrap();
        drop(living);
        assert_eq!(names(dir.path()), [".part-theirs", "place"]);
    }
}
