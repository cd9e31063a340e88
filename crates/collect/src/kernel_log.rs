//! The kernel's log, `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg).
//!
//! sched_ext prints there why a scheduler was ejected.

use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::{Errno, read};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A place in the log; what comes after it can be read.
#[derive(Debug)]
pub struct KernelLog {
    file: OwnedFd,
}

impl KernelLog {
    /// From now on. `None` without the right to read the log.
    pub fn from_now(root: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(root.join("dev/kmsg"), flags, Mode::empty()).ok()?;
        seek(&file, SeekFrom::End(0)).ok()?;
        Some(KernelLog { file })
    }

    /// Messages since the last call that contain `needle`; all contain the empty one.
    pub fn lines_with(&mut self, needle: &str) -> Vec<String> {
        let records = self
            .records_that(|message| message.contains(needle))
            .records;
        records.into_iter().map(|record| record.message).collect()
    }

    /// Messages since the last call that are wanted, with their moments.
    pub fn records_that(&mut self, is_wanted: impl Fn(&str) -> bool) -> Found {
        let mut found = Found::default();
        // A record is given whole or not at all, and has at most about 1 KiB.
        let mut record = [0u8; 8192];
        loop {
            match read(&self.file, &mut record) {
                Ok(0) => break,
                Ok(n) => {
                    let text = String::from_utf8_lossy(&record[..n]);
                    let record = parse_record(&text);
                    let wanted = record.filter(|record| is_wanted(&record.message));
                    found.records.extend(wanted);
                }
                // Records were overwritten before they were read: go on with the next.
                Err(Errno::PIPE) => found.lost = true,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        found
    }
}

/// Records of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that are wanted, in their order.
    pub records: Vec<Record>,
    /// Some were overwritten before they were read.
    pub lost: bool,
}

/// A record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Moment by the clock of the log, which is within a tick of CLOCK_MONOTONIC; 0 where it says none.
    pub at_us: u64,
    /// First line.
    pub message: String,
}

fn parse_record(text: &str) -> Option<Record> {
    let at_us = text.split(',').nth(2).and_then(|at| at.parse().ok());
    Some(Record {
        at_us: at_us.unwrap_or(0),
        message: message(text)?.to_owned(),
    })
}

/// `priority,sequence,time,flags;message`, then lines of details.
fn message(record: &str) -> Option<&str> {
    record.split_once(';')?.1.lines().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_record_is_without_its_head_and_details() {
        let record = "4,1234,567890,-;sched_ext: BPF scheduler \"x\" disabled (runnable task stall)\n SUBSYSTEM=a\n";
        assert_eq!(
            message(record),
            Some("sched_ext: BPF scheduler \"x\" disabled (runnable task stall)")
        );
        assert_eq!(message("garbage"), None);
        let read = parse_record(record).map(|record| record.at_us);
        assert_eq!((read, parse_record("garbage")), (Some(567_890), None));
    }

    #[test]
    fn a_log_that_is_not_there_reads_as_none() {
        assert!(KernelLog::from_now(Path::new("/nonexistent")).is_none());
    }
}
