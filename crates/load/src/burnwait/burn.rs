//! The work: operations on memory, in one piece. Integers only, because one hypervisor under
//! test corrupts floating point of its guests.

use super::sets::Memory;
use crate::sys;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicU64, Ordering};

/// 64 KiB, as the published worker has them.
const CELLS: usize = 64 * 1024 / 8;
const BATCH_NS: u64 = 1_000_000;
const BATCHES: usize = 100;
/// Reads of one batch: a tenth of a millisecond, or a few where memory is slow.
const READS: u64 = 2_000;

/// Memory of one worker.
#[derive(Debug)]
pub struct Burner {
    cells: Box<[AtomicU64]>,
    next: usize,
}

impl Burner {
    pub fn new() -> Self {
        Burner {
            cells: (0..CELLS as u64).map(AtomicU64::new).collect(),
            next: 0,
        }
    }

    /// One operation reads a cell and writes it back. Relaxed atomics cost what plain loads and
    /// stores cost, and the optimizer leaves each of them in place.
    pub fn burn(&mut self, operations: u64) {
        for _ in 0..operations {
            let cell = &self.cells[self.next];
            let value = cell.load(Ordering::Relaxed);
            cell.store(value.wrapping_mul(3).wrapping_add(1), Ordering::Relaxed);
            self.next = (self.next + 1) % CELLS;
        }
    }
}

/// Reads of memory beyond the caches: each says where the next one is, so that none begins before
/// the last has ended. It is the load of lmbench's lat_mem_rd.
#[derive(Debug)]
pub struct Chase {
    lines: Box<[Line]>,
    at: usize,
}

/// A line of the cache with the number of the next one.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line(usize);

impl Chase {
    /// Memory of so many bytes, through which one ring leads over all lines.
    pub fn new(bytes: u64) -> Self {
        let count = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Line>();
        let mut lines: Box<[Line]> = (0..count.max(2)).map(Line).collect();
        // Sattolo's algorithm; the same ring for all workers and arms.
        let mut random = ChaCha8Rng::seed_from_u64(0);
        for last in (1..lines.len()).rev() {
            lines.swap(last, random.random_range(0..last));
        }
        Chase { lines, at: 0 }
    }

    fn read(&mut self, reads: u64) {
        for _ in 0..reads {
            self.at = std::hint::black_box(self.lines[self.at].0);
        }
    }
}

/// Reads of memory of this size that take a millisecond of CPU time when nothing disturbs.
pub fn reads_per_ms(bytes: u64) -> u64 {
    let mut chase = Chase::new(bytes);
    let batches = (0..BATCHES).map(|_| {
        let before = sys::thread_cpu_ns();
        chase.read(READS);
        sys::thread_cpu_ns() - before
    });
    let fastest_ns = batches.min().unwrap_or_default().max(1);
    (READS * 1_000_000 / fastest_ns).max(1)
}

/// Work of one worker: on its small memory, and a part of it on a large one.
#[derive(Debug)]
pub struct Work {
    burner: Burner,
    operations_per_kop: u64,
    large: Option<Large>,
}

#[derive(Debug)]
struct Large {
    chase: Chase,
    percent: u64,
    reads_per_ms: u64,
}

impl Work {
    /// Work whose thousand operations are so many of the small memory. On the large one, they are
    /// the reads of the same time.
    pub fn new(operations_per_kop: u64, memory: Option<Memory>, reads_per_ms: u64) -> Self {
        let large = |Memory { bytes, percent }| Large {
            chase: Chase::new(bytes),
            percent,
            reads_per_ms,
        };
        Work {
            burner: Burner::new(),
            operations_per_kop,
            large: memory.map(large),
        }
    }

    /// Does so many thousands of operations.
    pub fn work(&mut self, kops: u64) {
        let operations = kops.saturating_mul(self.operations_per_kop);
        match &mut self.large {
            None => self.burner.burn(operations),
            Some(large) => {
                let small = operations.saturating_mul(100 - large.percent) / 100;
                self.burner.burn(small);
                // A thousand operations take a microsecond: 1000 of them a millisecond.
                let reads = kops.saturating_mul(large.reads_per_ms * large.percent) / 100_000;
                large.chase.read(reads);
            }
        }
    }
}

/// Operations that take a microsecond of CPU time on this machine when nothing disturbs. The
/// fastest of many short batches counts.
pub fn operations_per_us() -> u64 {
    let mut burner = Burner::new();
    let mut cpu_ns = |operations| {
        let before = sys::thread_cpu_ns();
        burner.burn(operations);
        sys::thread_cpu_ns() - before
    };
    let mut operations = 1_000;
    while cpu_ns(operations) < BATCH_NS {
        operations *= 2;
    }
    let batches = (0..BATCHES).map(|_| cpu_ns(operations));
    let fastest_ns = batches.min().unwrap_or(BATCH_NS).max(1);
    (operations * 1_000 / fastest_ns).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ring_leads_over_all_lines() {
        let mut chase = Chase::new(64 * 1000);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            chase.read(1);
            seen.insert(chase.at);
        }
        assert_eq!(seen.len(), 1000);
    }

    #[test]
    fn work_on_memory_is_the_reads_of_the_same_time() {
        let memory = Memory {
            bytes: 64 * 1000,
            percent: 25,
        };
        let mut work = Work::new(1_000, Some(memory), 400);
        // A millisecond: a quarter of its reads, and three quarters of its operations.
        work.work(1_000);
        let mut chase = Chase::new(memory.bytes);
        chase.read(100);
        assert_eq!(work.large.as_ref().unwrap().chase.at, chase.at);
        assert_eq!(work.burner.next, 750_000 % CELLS);
    }
}
