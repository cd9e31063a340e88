//! A file to which a program adds lines while it runs, such as a log of frames.

use super::metric::{Line, Source};
use super::windows::Printed;
use doors::read::open_file;
use load::sys;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at the file: windows take much longer.
const LOOK_NS: u64 = 5_000_000;

const LARGEST_DATAGRAM: usize = 1 << 16;

/// The lines that a file gets, or that are sent here, read by a thread.
#[derive(Debug)]
pub(crate) struct Grown {
    pub(super) lines: Printed,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Grown {
    /// Begins to read what is added from now on. The file need not be there yet.
    pub fn follow(path: PathBuf) -> Result<Self, String> {
        let mut end = End::of(path);
        Self::start(move |kept, over| {
            loop {
                let is_last = over.load(Ordering::Acquire);
                for line in end.added() {
                    kept.keep_line(&line);
                }
                if is_last {
                    return;
                }
                sys::sleep_ns(LOOK_NS);
            }
        })
    }

    /// Begins to take the lines of datagrams that are sent to an address of this machine.
    pub fn receive(address: SocketAddr) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("take datagrams at {address}: {e}");
        let socket = UdpSocket::bind(address).map_err(failed)?;
        let look = Duration::from_nanos(LOOK_NS);
        socket.set_read_timeout(Some(look)).map_err(failed)?;
        Self::start(move |kept, over| {
            let mut datagram = vec![0; LARGEST_DATAGRAM];
            while !over.load(Ordering::Acquire) {
                // Without one for a while there is an error.
                let bytes = socket.recv(&mut datagram).unwrap_or_default();
                let lines = datagram[..bytes].split(|byte| *byte == b'\n');
                for line in lines.filter(|line| !line.is_empty()) {
                    kept.keep_line(line);
                }
            }
        })
    }

    fn start(read: impl FnOnce(&Printed, &AtomicBool) + Send + 'static) -> Result<Self, String> {
        let (lines, is_over) = (Printed::default(), Arc::new(AtomicBool::new(false)));
        let (kept, over) = (lines.clone(), Arc::clone(&is_over));
        let read = move || read(&kept, &over);
        let thread = std::thread::Builder::new().name("command-file".to_owned());
        let reader = thread.spawn(read);
        let reader = reader.map_err(|e| format!("start a thread that reads a file: {e}"))?;
        Ok(Grown {
            lines,
            is_over,
            reader: Some(reader),
        })
    }

    /// The lines that came, after which no more is read.
    pub fn take_lines(&mut self, from: &Source) -> Result<Vec<Line>, String> {
        self.stop();
        self.take_so_far(from)
    }

    /// The lines that have come since they were taken last.
    pub fn take_so_far(&mut self, from: &Source) -> Result<Vec<Line>, String> {
        self.lines.take(from)
    }

    /// Reads what there is, and no more after it.
    pub fn stop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            // A thread that panicked has read what it has read.
            let _ = reader.join();
        }
    }
}

impl Drop for Grown {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The end of a file that grows.
struct End {
    path: PathBuf,
    /// What is read of it. At first that is what an earlier program left, whose lines are none of this
    /// one's.
    seen: Option<Seen>,
    /// A line that has no end yet.
    begun: Vec<u8>,
}

/// The beginning of a file that was read.
struct Seen {
    length: u64,
    /// Its last bytes, which tell a file that was added to from one that was written anew.
    last: Vec<u8>,
}

impl Seen {
    const LAST: usize = 512;

    /// So many bytes of a file; `None` where it is shorter.
    fn of(file: &File, length: u64) -> Option<Self> {
        let begin = length.saturating_sub(Self::LAST as u64);
        let mut last = vec![0; usize::try_from(length - begin).ok()?];
        file.read_exact_at(&mut last, begin).ok()?;
        Some(Seen { length, last })
    }

    /// Nothing of a file.
    fn nothing() -> Self {
        Seen {
            length: 0,
            last: Vec::new(),
        }
    }

    /// The same with what was read behind it.
    fn extend_by(&mut self, read: &[u8]) {
        self.length += read.len() as u64;
        self.last.extend_from_slice(read);
        let earlier = self.last.len().saturating_sub(Self::LAST);
        self.last.drain(..earlier);
    }

    /// Does the file begin with it?
    fn is_in(&self, file: &File) -> bool {
        Seen::of(file, self.length).is_some_and(|other| other.last == self.last)
    }
}

impl End {
    fn of(path: PathBuf) -> Self {
        let file = open_file(&path).ok();
        let seen = file.and_then(|file| Seen::of(&file, file.metadata().ok()?.len()));
        End {
            path,
            seen,
            begun: Vec::new(),
        }
    }

    /// Lines that have come since the last look, with their ends.
    fn added(&mut self) -> Vec<Vec<u8>> {
        match self.opened() {
            Some(file) => self.read_rest(file),
            None => Vec::new(),
        }
    }

    /// Lines from this place of the file on. What was seen is what was read, and not what the file has
    /// there by now: it may be written anew between two calls.
    fn read_rest(&mut self, mut file: File) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let seen = self.seen.get_or_insert_with(Seen::nothing);
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = file.read(&mut bytes) {
            seen.extend_by(&bytes[..read]);
            for part in bytes[..read].split_inclusive(|byte| *byte == b'\n') {
                self.begun.extend_from_slice(part);
                // What has no end within the limit is a line by itself.
                if part.ends_with(b"\n") || self.begun.len() > Printed::MOST_BYTES {
                    lines.push(std::mem::take(&mut self.begun));
                }
            }
        }
        lines
    }

    /// The file at the place up to which it was read; from its beginning where it was written anew.
    fn opened(&mut self) -> Option<File> {
        let mut file = open_file(&self.path).ok()?;
        self.seen = self.seen.take().filter(|seen| seen.is_in(&file));
        let from = self.seen.as_ref().map_or(0, |seen| seen.length);
        if from == 0 {
            self.begun.clear();
        }
        file.seek(SeekFrom::Start(from)).ok()?;
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::fs::OpenOptions;
    use std::io::Write;

    fn append(path: &PathBuf, text: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    fn has_added(end: &mut End, expected: &[&str]) {
        let lines = end.added();
        let lines: Vec<&str> = lines
            .iter()
            .map(|l| std::str::from_utf8(l).unwrap())
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn whole_lines_come_as_they_are_added() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut end = End::of(path.clone());
        has_added(&mut end, &[]);
        append(&path, "a\nb");
        has_added(&mut end, &["a\n"]);
        append(&path, "c\nd\n");
        has_added(&mut end, &["bc\n", "d\n"]);
        has_added(&mut end, &[]);
    }

    #[test]
    fn lines_of_an_earlier_program_are_none_of_this_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, "old\n");
        let mut appended = End::of(path.clone());
        append(&path, "new\n");
        has_added(&mut appended, &["new\n"]);
        let mut written_anew = End::of(path.clone());
        fs::write(&path, "longer than before\n").unwrap();
        has_added(&mut written_anew, &["longer than before\n"]);
        // Written anew while it is read.
        fs::write(&path, "").unwrap();
        has_added(&mut written_anew, &[]);
        append(&path, "y\n");
        has_added(&mut written_anew, &["y\n"]);
    }

    #[test]
    fn a_file_that_is_written_anew_while_it_is_looked_at_is_read_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, "old\n");
        let mut end = End::of(path.clone());
        let file = end.opened().unwrap();
        fs::write(&path, "new\n").unwrap();
        assert_eq!(end.read_rest(file), Vec::<Vec<u8>>::new());
        has_added(&mut end, &["new\n"]);
        append(&path, "more\n");
        has_added(&mut end, &["more\n"]);
    }
}
