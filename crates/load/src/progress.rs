//! Progress of a load within its window, for those who watch it: how many latencies each of its logs has and
//! their sum, in a file in memory for each log, which the agent reads.
//!
//! A thread adds in its own memory, and writes right after a latency that it records, four times a second at
//! most: a write takes a microsecond, and nobody wakes for it.

use crate::work_counts::{NUMBER_BYTES, read_number};
use model::Latencies;
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Begin of the names of the files in memory; the name of the log follows. Each has two numbers of eight
/// bytes for each recorder: its latencies, and their sum in nanoseconds.
pub const PROGRESS: &str = "schedlab-progress-";
const SLOT_BYTES: u64 = 2 * NUMBER_BYTES;
/// Between two writes of a recorder.
const BETWEEN_NS: u64 = 250_000_000;

/// The file of each log of this process, with the place of its next recorder.
static FILES: Mutex<BTreeMap<String, (Arc<File>, u64)>> = Mutex::new(BTreeMap::new());

/// Part of a recorder that tells how far it is.
#[derive(Debug, Clone)]
pub(crate) struct Teller {
    file: Arc<File>,
    place: u64,
    done: Latencies,
    due_ns: u64,
}

impl Teller {
    /// One for a recorder of this log; `None` where there is no memory for it, which only those who watch miss.
    pub fn open(log: &str) -> Option<Teller> {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        if !files.contains_key(log) {
            let file = memfd_create(format!("{PROGRESS}{log}"), MemfdFlags::CLOEXEC).ok()?;
            files.insert(log.to_owned(), (Arc::new(File::from(file)), 0));
        }
        let (file, next) = files.get_mut(log)?;
        let place = *next;
        *next += SLOT_BYTES;
        Some(Teller {
            file: Arc::clone(file),
            place,
            done: Latencies::default(),
            due_ns: 0,
        })
    }

    pub fn add(&mut self, at_ns: u64, value_ns: u64) {
        self.done.count += 1;
        self.done.sum_ns = self.done.sum_ns.saturating_add(value_ns);
        if at_ns >= self.due_ns {
            self.due_ns = at_ns + BETWEEN_NS;
            self.write();
        }
    }

    #[cold]
    fn write(&self) {
        let bytes = [self.done.count, self.done.sum_ns].map(u64::to_ne_bytes);
        // Memory that is there is written to.
        let _ = self.file.write_at(bytes.as_flattened(), self.place);
    }
}

/// Latencies of all recorders of a log, as its file in memory has them.
pub fn read_progress(file: &File) -> std::io::Result<Latencies> {
    let slots = file.metadata()?.len() / SLOT_BYTES;
    let mut all = Latencies::default();
    for slot in 0..slots {
        let place = slot * SLOT_BYTES;
        all.count = all.count.wrapping_add(read_number(file, place)?);
        all.sum_ns = all
            .sum_ns
            .wrapping_add(read_number(file, place + NUMBER_BYTES)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorders_of_a_log_are_added_up_and_write_four_times_a_second() {
        let log = "a log of this test";
        let mut tellers = [Teller::open(log).unwrap(), Teller::open(log).unwrap()];
        let file = Arc::clone(&tellers[0].file);
        let of = |count, sum_ns| Latencies { count, sum_ns };
        assert_eq!(read_progress(&file).unwrap(), of(0, 0));
        tellers[0].add(1, 100);
        tellers[1].add(1, 50);
        assert_eq!(read_progress(&file).unwrap(), of(2, 150));
        tellers[0].add(BETWEEN_NS, 7);
        assert_eq!(read_progress(&file).unwrap(), of(2, 150));
        tellers[0].add(BETWEEN_NS + 1, 7);
        assert_eq!(read_progress(&file).unwrap(), of(4, 164));
    }
}
