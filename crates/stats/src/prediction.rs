//! The next value of a steady series: how far it is from the last ones, and how far one more of them would be.

use crate::Interval;
use crate::change::Reading;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest values before the new one.
pub const FEWEST: usize = 3;

/// Distance of a new value from the mean of some before it, with the interval in which it lies if nothing changed and
/// values scatter normally: what those before scatter, and what the new one is less well known than they are. None
/// with fewer than [`FEWEST`] before it.
pub fn compare_with_last(
    before: &[Reading],
    new: Reading,
    confidence: f64,
) -> Option<(f64, Interval)> {
    if before.len() < FEWEST {
        return None;
    }
    let count = before.len() as f64;
    let mean = before.iter().map(|reading| reading.value).sum::<f64>() / count;
    let squares = before.iter().map(|reading| (reading.value - mean).powi(2));
    let errors = before.iter().map(|reading| reading.error.powi(2));
    let error = errors.sum::<f64>() / count;
    // Few values may lie closer together than they are known.
    let scatter = (squares.sum::<f64>() / (count - 1.0)).max(error);
    let worse_known = (new.error.powi(2) - error).max(0.0);
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let quantile = student.inverse_cdf(1.0 - (1.0 - confidence) / 2.0);
    let half = quantile * (scatter * (1.0 + 1.0 / count) + worse_known).sqrt();
    let distance = new.value - mean;
    let interval = Interval {
        low: distance - half,
        high: distance + half,
    };
    half.is_finite().then_some((distance, interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(values: &[f64], error: f64) -> Vec<Reading> {
        let readings = values.iter().map(|&value| Reading { value, error });
        readings.collect()
    }

    #[test]
    fn the_interval_is_that_of_a_prediction() {
        let before = readings(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.1);
        let new = Reading {
            value: 9.0,
            error: 0.1,
        };
        let (distance, interval) = compare_with_last(&before, new, 0.95).unwrap();
        assert!((distance - 6.0).abs() < 1e-12);
        // Student's quantile of four degrees, 2.7764, times the root of 2.5 x 1.2.
        assert!(
            (interval.high - distance - 4.80894).abs() < 1e-4,
            "{interval:?}"
        );
        let vague = Reading { error: 2.0, ..new };
        let (_, wider) = compare_with_last(&before, vague, 0.95).unwrap();
        assert!(wider.low < interval.low - 1.0, "{wider:?}");
    }

    #[test]
    fn two_values_are_too_few_and_equal_ones_are_known_no_better_than_they_are() {
        let new = Reading {
            value: 0.0,
            error: 0.1,
        };
        assert!(compare_with_last(&readings(&[0.0, 0.0], 0.1), new, 0.95).is_none());
        let (_, interval) = compare_with_last(&readings(&[0.0; 4], 0.1), new, 0.95).unwrap();
        assert!(interval.high > 0.3, "{interval:?}");
    }
}
