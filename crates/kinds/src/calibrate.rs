//! How much work is a second of CPU time? Found once for each cell of loads whose work is given as
//! a time, so that all arms do the same work, whatever each of them makes of it.

use crate::matrices::Matrices;
use load::sys;

/// The calibrated value: rows of the work in a second of CPU time.
pub const ROWS_PER_SEC: &str = "rows_per_sec";
const BATCH_NS: u64 = 1_000_000;
const BATCHES: usize = 20;
const NS_PER_SEC: u64 = 1_000_000_000;
/// Longest sleep between two jobs: after it a CPU is as idle, and caches are as cold, as after
/// a longer one.
const LONGEST_SLEEP_NS: u64 = 20_000_000;
/// Time that all jobs may take, and their number.
const JOBS_NS: u64 = 1_000_000_000;
const FEWEST_JOBS: u64 = 11;
const MOST_JOBS: u64 = 101;

/// Rows of [`Matrices`] of this footprint in a second of CPU time, in jobs of `runtime_ns` that are
/// `period_ns` apart.
///
/// A job that comes after a sleep takes longer than the same work in one piece: its caches are
/// cold, and its CPU may have slowed down. So what counts is the median of jobs as the run has
/// them, whose work is first guessed from the fastest of some batches.
pub fn rows_per_sec(footprint_bytes: u64, runtime_ns: u64, period_ns: u64) -> u64 {
    let mut matrices = Matrices::new(footprint_bytes);
    let guess = fastest(&mut matrices);
    let rows = rows_in(guess, runtime_ns);
    let sleep_ns = period_ns.saturating_sub(runtime_ns).min(LONGEST_SLEEP_NS);
    let jobs = JOBS_NS / (runtime_ns + sleep_ns).max(1);
    let jobs = (0..jobs.clamp(FEWEST_JOBS, MOST_JOBS)).map(|_| {
        sys::sleep_ns(sleep_ns);
        cpu_ns(&mut matrices, rows)
    });
    let mut times: Vec<u64> = jobs.collect();
    times.sort_unstable();
    rate(rows, times[times.len() / 2])
}

/// Rows in a second of the fastest of some batches: whatever else runs makes a batch slower.
fn fastest(matrices: &mut Matrices) -> u64 {
    let mut rows = 1;
    while cpu_ns(matrices, rows) < BATCH_NS {
        rows *= 2;
    }
    let batches = (0..BATCHES).map(|_| cpu_ns(matrices, rows));
    rate(rows, batches.min().unwrap_or(BATCH_NS))
}

/// Rows in so much of a second.
pub fn rows_in(rows_per_sec: u64, ns: u64) -> u64 {
    let rows = u128::from(rows_per_sec) * u128::from(ns) / u128::from(NS_PER_SEC);
    u64::try_from(rows).unwrap_or(u64::MAX).max(1)
}

fn rate(rows: u64, ns: u64) -> u64 {
    let rate = u128::from(rows) * u128::from(NS_PER_SEC) / u128::from(ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

/// CPU time of the caller for so many rows.
fn cpu_ns(matrices: &mut Matrices, rows: u64) -> u64 {
    let before = sys::thread_cpu_ns();
    matrices.multiply_rows(rows);
    sys::thread_cpu_ns() - before
}
