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
        if logs.len() < FEWEST_BLOCKS {
            return None;
        }
        // Blocks that are far from the others moved the centre little.
        let spread = randomization::estimate_spread(&logs)?;
        let value = self.ratio?.ln();
        let error = spread / (logs.len() as f64).sqrt();
        (value.is_finite() && error.is_finite()).then_some(LogRatio { value, error })
    }
}
