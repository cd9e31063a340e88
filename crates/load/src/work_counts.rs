//! Counts that an antagonist keeps of its own work, in a file in memory. Whoever keeps them and the agent that
//! reads them share no more than this.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Name of the file in memory: a number of eight bytes for each worker, the thousands of operations
/// of the pieces that it has ended.
pub const WORK_COUNTS: &str = "schedlab-work";
/// Bytes of one number.
pub const NUMBER_BYTES: u64 = size_of::<u64>() as u64;

/// Thousands of operations that all workers have done, as the file in memory has them.
pub fn kops_in(counts: &File) -> std::io::Result<u64> {
    let numbers = counts.metadata()?.len() / NUMBER_BYTES;
    let mut sum = 0_u64;
    for number in 0..numbers {
        sum = sum.wrapping_add(read_number(counts, number * NUMBER_BYTES)?);
    }
    Ok(sum)
}

pub(crate) fn read_number(file: &File, place: u64) -> std::io::Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    file.read_exact_at(&mut bytes, place)?;
    Ok(u64::from_ne_bytes(bytes))
}
