//! The figure of one comparison for who follows it over many runs.

use super::Comparison;
use stats::randomization;

/// Blocks that tell a spread, at least.
const FEWEST_BLOCKS: usize = 3;
/// Logarithm of a ratio with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatio {
    /// Logarithm of arm over baseline.
    pub value: f64,
    /// Standard error, from the spread of the blocks.
    pub error: f64,
}

impl Comparison {
    /// Logarithm of the ratio with its standard error; none without a ratio, or with fewer than three blocks.
    pub fn log_ratio(&self) -> Option<LogRatio> {
        let logs: Vec<f64> = self.block_ratios.iter().map(|b| b.ratio.ln()).collect();
        let error = estimate_error(&logs)?;
        let value = self.ratio?.ln();
        value.is_finite().then_some(LogRatio { value, error })
    }
}

/// Standard error of the centre of blocks; none with fewer than three.
pub(super) fn estimate_error(shifts: &[f64]) -> Option<f64> {
    if shifts.len() < FEWEST_BLOCKS {
        return None;
    }
    // Blocks that are far from the others moved the centre little.
    let error = randomization::estimate_spread(shifts)? / (shifts.len() as f64).sqrt();
    error.is_finite().then_some(error)
}
