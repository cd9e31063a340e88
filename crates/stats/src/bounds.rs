//! Exact intervals of a share and of a standard deviation.
//!
//! The share: Clopper and Pearson (1934). The standard deviation: that of normal
//! values, from the chi-square distribution of their squares.

use crate::safe_test::Interval;
use statrs::distribution::{Beta, ChiSquared, ContinuousCDF};

/// The share behind `hits` of `trials`, at 1 − `alpha`; `None` without trials.
pub fn share_interval(hits: u32, trials: u32, alpha: f64) -> Option<Interval> {
    if trials == 0 || hits > trials {
        return None;
    }
    let (hits, misses) = (f64::from(hits), f64::from(trials - hits));
    let quantile = |a, b, p| Some(Beta::new(a, b).ok()?.inverse_cdf(p));
    Some(Interval {
        low: match hits {
            0.0 => 0.0,
            _ => quantile(hits, misses + 1.0, alpha / 2.0)?,
        },
        high: match misses {
            0.0 => 1.0,
            _ => quantile(hits + 1.0, misses, 1.0 - alpha / 2.0)?,
        },
    })
}

/// The standard deviation behind an estimate with `freedom` degrees of freedom,
/// at 1 − `alpha`; `None` without one.
pub fn standard_deviation(sd: f64, freedom: u32, alpha: f64) -> Option<Interval> {
    let freedom = f64::from(freedom);
    let squares = ChiSquared::new(freedom).ok()?;
    let bound = |p| sd * (freedom / squares.inverse_cdf(p)).sqrt();
    Some(Interval {
        low: bound(1.0 - alpha / 2.0),
        high: bound(alpha / 2.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;

    // scipy 1.17.1: stats.binomtest(hits, trials).proportion_ci(0.95, "exact").
    const SHARES: [(u32, u32, f64, f64); 4] = [
        (0, 36, 0.0, 0.0973937559145927),
        (2, 40, 0.006113646599346682, 0.16919686395941763),
        (200, 200, 0.9817246596448512, 1.0),
        (11, 200, 0.02777225455217507, 0.09627764443388101),
    ];
    // scipy 1.17.1: sd * sqrt(df / stats.chi2.ppf([0.95, 0.05], df)), sd = 0.02.
    const DEVIATIONS: [(u32, f64, f64); 3] = [
        (1, 0.01020426913849308, 0.31894478804367316),
        (4, 0.012986103347711352, 0.047447113828195116),
        (30, 0.01655722714053465, 0.025473634842209717),
    ];

    #[test]
    fn shares_agree_with_scipy() {
        for (hits, trials, low, high) in SHARES {
            let found = share_interval(hits, trials, 0.05);
            assert_close(found.map(|i| i.low), low);
            assert_close(found.map(|i| i.high), high);
        }
    }

    #[test]
    fn standard_deviations_agree_with_scipy() {
        for (freedom, low, high) in DEVIATIONS {
            let found = standard_deviation(0.02, freedom, 0.1);
            assert_close(found.map(|i| i.low), low);
            assert_close(found.map(|i| i.high), high);
        }
    }

    #[test]
    fn nothing_is_known_of_nothing() {
        assert_eq!(share_interval(0, 0, 0.05), None);
        assert_eq!(share_interval(3, 2, 0.05), None);
        assert_eq!(standard_deviation(0.02, 0, 0.1), None);
    }
}
