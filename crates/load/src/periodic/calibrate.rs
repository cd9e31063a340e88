//! How much work is a second of CPU time? Found once for each cell, so that all arms do the
//! same work, whatever each of them makes of it.

use crate::matrices::Matrices;
use crate::sys;

const BATCH_NS: u64 = 1_000_000;
const BATCHES: usize = 100;
const NS_PER_SEC: u64 = 1_000_000_000;

/// Rows of [`Matrices`] of this footprint in a second of CPU time. The fastest of many short
/// batches counts: whatever else runs makes a batch slower and never faster.
pub fn rows_per_sec(footprint_bytes: u64) -> u64 {
    let mut matrices = Matrices::new(footprint_bytes);
    let mut rows = 1;
    while cpu_ns(&mut matrices, rows) < BATCH_NS {
        rows *= 2;
    }
    let batches = (0..BATCHES).map(|_| cpu_ns(&mut matrices, rows));
    let fastest_ns = batches.min().unwrap_or(BATCH_NS).max(1);
    let rate = u128::from(rows) * u128::from(NS_PER_SEC) / u128::from(fastest_ns);
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

/// CPU time of the caller for so many rows.
fn cpu_ns(matrices: &mut Matrices, rows: u64) -> u64 {
    let before = sys::thread_cpu_ns();
    matrices.multiply_rows(rows);
    sys::thread_cpu_ns() - before
}
