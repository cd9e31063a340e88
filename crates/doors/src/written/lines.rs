//! Files of lines that several processes read and add to: a line is whole or absent, whenever its writer dies.

use super::file::{open_file, write_file_durably};
use crate::read::{file_bytes, stream_bytes};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The whole lines of such a file, and the right to add some: nobody else reads or writes it meanwhile.
#[derive(Debug)]
pub struct LockedLines {
    file: File,
    path: PathBuf,
    text: Vec<u8>,
}

impl LockedLines {
    /// Waits until nobody else has the file, which is made with this mode where it is missing.
    pub fn open(path: &Path, mode: u32, most_bytes: u64) -> io::Result<LockedLines> {
        loop {
            let file = open_file(path, mode)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // Who waited may have the file that another one has replaced meanwhile.
            if is_at(&file, path)? {
                let text = whole_lines(stream_bytes(&file, most_bytes)?);
                let path = path.to_owned();
                return Ok(LockedLines { file, path, text });
            }
        }
    }

    /// The lines with their ends. What a killed writer left of one is not among them.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Adds lines, each of which has its end, and returns when they are on the disk. After an error none of them
    /// is there.
    pub fn add_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        let whole = self.text.len() as u64;
        let mut put = || {
            self.file.set_len(whole)?;
            self.file.seek(SeekFrom::Start(whole))?;
            self.file.write_all(lines)?;
            self.file.sync_all()
        };
        if let Err(error) = put() {
            // A full disk has room for less.
            let _ = self.file.set_len(whole);
            return Err(error);
        }
        self.text.extend_from_slice(lines);
        Ok(())
    }

    /// Puts these lines in the place of all, and returns when they are on the disk: readers and kills see the old
    /// ones or the new ones. The lock is that of the old file, and held until the new one has its place.
    pub fn replace_lines(&self, lines: &[u8]) -> io::Result<()> {
        write_file_durably(&self.path, lines)
    }

    /// Gives the room of these bytes of [`LockedLines::text`] back where it is, for a disk that has none for a new
    /// file. They read as zeros then, as [`is_punched`] tells, and a kill leaves some of the ranges and none in part.
    pub fn punch_lines(&self, ranges: &[Range<usize>]) -> io::Result<()> {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for range in ranges {
            // Its last line keeps its end.
            let length = range.len().saturating_sub(1) as u64;
            if length > 0 {
                fallocate(&self.file, how, range.start as u64, length)?;
            }
        }
        self.file.sync_all()
    }
}

/// Was the room of this line given back? Then it begins with zeros, which no text does.
pub fn is_punched(line: &[u8]) -> bool {
    line.first() == Some(&0)
}

/// Is this the file of that name?
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match path.metadata() {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The whole lines of such a file, without the right to add any; none where it is missing.
pub fn read_whole_lines(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    // A line that is just being added is there or not.
    match file_bytes(path, most_bytes) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        bytes => bytes.map(whole_lines),
    }
}

fn whole_lines(mut text: Vec<u8>) -> Vec<u8> {
    let whole = text.iter().rposition(|byte| *byte == b'\n');
    text.truncate(whole.map_or(0, |at| at + 1));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const MOST: u64 = 1 << 20;

    #[test]
    fn what_a_killed_writer_left_of_a_line_is_no_line_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        assert_eq!(read_whole_lines(&path, MOST).unwrap(), b"");
        std::fs::write(&path, "one\ntwo\nhal").unwrap();
        assert_eq!(read_whole_lines(&path, MOST).unwrap(), b"one\ntwo\n");
        let mut lines = LockedLines::open(&path, 0o600, MOST).unwrap();
        lines.add_lines(b"three\n").unwrap();
        assert_eq!(lines.text(), b"one\ntwo\nthree\n");
        drop(lines);
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\nthree\n");
    }

    #[test]
    fn lines_whose_room_was_given_back_are_known_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let lines = LockedLines::open(&path, 0o600, MOST).unwrap();
        lines.punch_lines(std::slice::from_ref(&(0..8))).unwrap();
        drop(lines);
        let text = read_whole_lines(&path, MOST).unwrap();
        let left = text.split_inclusive(|byte| *byte == b'\n');
        let left: Vec<&[u8]> = left.filter(|line| !is_punched(line)).collect();
        assert_eq!(left, [b"three\n"]);
    }

    #[test]
    fn lines_that_are_added_while_others_replace_all_are_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("index");
        thread::scope(|scope| {
            for writer in 0..3 {
                scope.spawn(move || {
                    for number in 0..30 {
                        let mut lines = LockedLines::open(path, 0o600, MOST).unwrap();
                        let line = format!("{writer} {number}\n");
                        lines.add_lines(line.as_bytes()).unwrap();
                    }
                });
            }
            scope.spawn(move || {
                for _ in 0..30 {
                    let lines = LockedLines::open(path, 0o600, MOST).unwrap();
                    let same = lines.text().to_vec();
                    lines.replace_lines(&same).unwrap();
                }
            });
        });
        let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
        assert_eq!(text.lines().count(), 90, "{text}");
    }

    #[test]
    fn lines_of_several_writers_are_all_there_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("index");
        thread::scope(|scope| {
            for writer in 0..4 {
                scope.spawn(move || {
                    for number in 0..25 {
                        let mut lines = LockedLines::open(path, 0o600, MOST).unwrap();
                        let line = format!("{writer} {number}\n");
                        lines.add_lines(line.as_bytes()).unwrap();
                    }
                });
            }
        });
        let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 100, "{text}");
    }
}
