//! The work: operations on memory, in one piece. Integers only, because one hypervisor under
//! test corrupts floating point of its guests.

use super::sets::Memory;
use load::sys;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicU64, Ordering};

/// 64 KiB, as the published worker has them.
const CELLS: usize = 64 * 1024 / 8;
const BATCH_NS: u64 = 1_000_000;
const BATCHES: usize = 100;
const GUESSES: usize = 20;
/// Length of the jobs that the unit is measured by, the sleep before each, and their number.
const JOB_US: u64 = 250;
const SLEEP_NS: u64 = 5_000_000;
const JOBS: usize = 51;
/// Reads of one batch: a tenth of a millisecond, or a few where memory is slow.
const READS: u64 = 2_000;

/// Cells at a multiple of their size. Elsewhere the same work was up to a quarter slower, by where
/// the allocator put them, so that equal workers were not equal.
#[derive(Debug)]
#[repr(align(65536))]
struct Cells([AtomicU64; CELLS]);

impl Cells {
    /// Cells that are never on the stack: those of workers are small.
    fn zeroed() -> Box<Self> {
        let mut cells = Box::<Self>::new_uninit();
        // SAFETY: the pointer is to the whole of the allocation, and zero is a value of every cell.
        unsafe {
            cells.as_mut_ptr().write_bytes(0, 1);
            cells.assume_init()
        }
    }
}

/// Memory of one worker.
#[derive(Debug)]
pub struct Burner {
    cells: Box<Cells>,
    next: usize,
}

impl Burner {
    pub fn new() -> Self {
        Burner {
            cells: Cells::zeroed(),
            next: 0,
        }
    }

    /// One operation reads a cell and writes it back. Relaxed atomics cost what plain loads and
    /// stores cost, and the optimizer leaves each of them in place. It is the same machine code for
    /// calibration and jobs: copies of this loop in their callers differed by a tenth in speed.
    #[inline(never)]
    pub fn burn(&mut self, operations: u64) {
        for _ in 0..operations {
            let cell = &self.cells.0[self.next];
            let value = cell.load(Ordering::Relaxed);
            cell.store(value.wrapping_mul(3).wrapping_add(1), Ordering::Relaxed);
            self.next = (self.next + 1) % CELLS;
        }
    }

    /// CPU time of the caller for so many operations.
    fn cpu_ns(&mut self, operations: u64) -> u64 {
        let before = sys::thread_cpu_ns();
        self.burn(operations);
        sys::thread_cpu_ns() - before
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
    pub fn work_off(&mut self, kops: u64) {
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

/// Operations that take a microsecond of CPU time on this machine, in jobs as workers have them.
///
/// A job that comes after a sleep takes longer than the same work in one piece: its caches are
/// cold, and its CPU may have slowed down. So jobs after sleeps count, whose length is between those
/// of usual events and is first guessed from the fastest of some batches. Other work makes a job
/// slower and never faster: a tenth of the jobs are faster than what is taken.
pub fn operations_per_us() -> u64 {
    let mut burner = Burner::new();
    let operations = JOB_US * guessed_per_us(&mut burner);
    let jobs = (0..JOBS).map(|_| {
        sys::sleep_ns(SLEEP_NS);
        burner.cpu_ns(operations)
    });
    let mut times: Vec<u64> = jobs.collect();
    times.sort_unstable();
    per_us(operations, times[JOBS / 10])
}

fn guessed_per_us(burner: &mut Burner) -> u64 {
    let mut operations = 1_000;
    while burner.cpu_ns(operations) < BATCH_NS {
        operations *= 2;
    }
    let batches = (0..GUESSES).map(|_| burner.cpu_ns(operations));
    per_us(operations, batches.min().unwrap_or(BATCH_NS))
}

fn per_us(operations: u64, ns: u64) -> u64 {
    (operations * 1_000 / ns.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_operations_are_done_on_cells_at_a_multiple_of_their_size() {
        let mut burner = Burner::new();
        burner.burn(CELLS as u64 + 2);
        let cell = |at: usize| burner.cells.0[at].load(Ordering::Relaxed);
        // Times 3 and 1 more, twice for the first two cells.
        assert_eq!([cell(0), cell(1), cell(2)], [4, 4, 1]);
        assert_eq!(
            std::ptr::from_ref(&*burner.cells).addr() % size_of::<Cells>(),
            0
        );
    }

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
        work.work_off(1_000);
        let mut chase = Chase::new(memory.bytes);
        chase.read(100);
        assert_eq!(work.large.as_ref().unwrap().chase.at, chase.at);
        assert_eq!(work.burner.next, 750_000 % CELLS);
    }
}
