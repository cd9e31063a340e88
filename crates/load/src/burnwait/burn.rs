//! The work: operations on memory, in one piece. Integers only, because one hypervisor under
//! test corrupts floating point of its guests.

use crate::sys;
use std::sync::atomic::{AtomicU64, Ordering};

/// 64 KiB, as the published worker has them.
const CELLS: usize = 64 * 1024 / 8;
const BATCH_NS: u64 = 1_000_000;
const BATCHES: usize = 100;

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
