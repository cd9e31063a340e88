//! The console of a guest: a pseudo-terminal of xenconsoled(8) in dom0, both ways. The daemon
//! keeps what the guest prints until it is read.

use crate::toolstack::XenError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Kept of what was printed, for an error.
const TAIL_BYTES: usize = 4096;

/// An open console.
#[derive(Debug)]
pub struct Console {
    file: File,
    /// Bytes after the last whole line.
    rest: Vec<u8>,
    tail: Vec<u8>,
}

impl Console {
    /// Opens the terminal at this path, which passes bytes as they are.
    pub fn open(path: &Path) -> Result<Self, XenError> {
        let failed =
            |e: io::Error| XenError::State(format!("open the console {}: {e}", path.display()));
        let flags = OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut options = File::options();
        let options = options
            .read(true)
            .write(true)
            .custom_flags(flags.bits().cast_signed());
        let file = options.open(path).map_err(failed)?;
        let mut modes = tcgetattr(&file).map_err(|e| failed(e.into()))?;
        modes.make_raw();
        tcsetattr(&file, OptionalActions::Now, &modes).map_err(|e| failed(e.into()))?;
        Ok(Console {
            file,
            rest: Vec::new(),
            tail: Vec::new(),
        })
    }

    /// Sends one line.
    pub fn send(&mut self, line: &str, limit: Duration) -> io::Result<()> {
        let bytes = format!("{line}\n").into_bytes();
        let mut left = &bytes[..];
        let start = Instant::now();
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(count) => left = &left[count..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let rest = limit.saturating_sub(start.elapsed());
                    if rest.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.wait(PollFlags::OUT, rest)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The next whole line; `None` when the time has passed without one.
    pub fn read_line(&mut self, limit: Duration) -> io::Result<Option<String>> {
        let start = Instant::now();
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            let mut buffer = [0u8; 4096];
            match self.file.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.take(&buffer[..count]);
                    // One that never ends its line is not waited for beyond the limit.
                    if start.elapsed() >= limit && !self.rest.contains(&b'\n') {
                        return Ok(None);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let rest = limit.saturating_sub(start.elapsed());
                    if rest.is_zero() {
                        return Ok(None);
                    }
                    self.wait(PollFlags::IN, rest)?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// The last lines that were printed, in one; of a kernel that ended in a panic those from its reason on.
    pub fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail).into_owned();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        let is_reason = |line: &&str| {
            line.contains("Initramfs unpacking failed") || line.contains("Kernel panic")
        };
        match lines.iter().position(is_reason) {
            Some(first) => lines[first..]
                .iter()
                .take(2)
                .copied()
                .collect::<Vec<_>>()
                .join("; "),
            None => lines[lines.len().saturating_sub(3)..].join("; "),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
        self.tail.extend(bytes);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
    }

    fn wait(&self, flags: PollFlags, limit: Duration) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.file, flags)];
        let limit = Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}
