//! The figure of one comparison for who follows it over many runs.

use super::Comparison;
use stats::{Test, summary};

/// Blocks that tell a spread, at least.
const FEWEST_BLOCKS: usize = 3;
/// Standard deviation by the median distance from the median, of normal values.
const SD_BY_MEDIAN: f64 = 1.4826;
/// Variance of a median by that of the mean, of normal values.
const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

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
        let variance = match self.test {
            Test::SafeT => summary::sd(&logs)?.powi(2),
            // Blocks that are far from the others moved the centre little.
            Test::Coins => {
                let middle = summary::median(&logs)?;
                let away: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
                OF_MEDIAN * (SD_BY_MEDIAN * summary::median(&away)?).powi(2)
            }
        };
        let value = self.ratio?.ln();
        let error = (variance / logs.len() as f64).sqrt();
        (value.is_finite() && error.is_finite()).then_some(LogRatio { value, error })
    }
}
