//! Drift and dependence: what the safe test cannot see and must be told apart
//! from a difference. Feed it the log-ratios of the blocks, or one arm's own
//! values, in the order of measuring.
//!
//! Sources: Mann (1945) and Kendall (1975) for the trend test, Sen (1968) for its
//! slope, Moran (1948) for the moments of the serial correlation.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::summary::{Moments, median};

/// Above this many values the normal approximation is as good, and far cheaper: with 40 the
/// two differ by less than 0.001 near p = 0.05.
const EXACT_UP_TO: usize = 40;

/// Above this many values the slope is that of evenly chosen ones: the pairs of all would
/// fill the memory.
const SLOPE_OF: usize = 500;

/// A monotone trend over the order of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Median change from one value to the next; of 500 evenly chosen values where there
    /// are more.
    pub slope: f64,
    /// Concordant less discordant pairs.
    pub s: i64,
    /// Two-sided: exact for up to 40 values without ties, else normal with
    /// continuity correction.
    pub p: f64,
}

/// Resemblance of each value to the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Autocorrelation {
    /// Serial correlation of neighbours, from −1 to 1.
    pub lag1: f64,
    /// Two-sided, against exchangeable values; an approximation, good from about
    /// ten values on.
    pub p: f64,
}

/// The Mann-Kendall test; `None` with fewer than three values.
pub fn mann_kendall(xs: &[f64]) -> Option<Trend> {
    if xs.len() < 3 {
        return None;
    }
    let pairs = || (0..xs.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let sign = |(i, j): (usize, usize)| i64::from(xs[j] > xs[i]) - i64::from(xs[j] < xs[i]);
    let s = pairs().map(sign).sum();
    let ties = tie_sizes(xs);
    let exact = xs.len() <= EXACT_UP_TO && ties.iter().all(|&size| size == 1);
    let p = if exact {
        exact_p(xs.len(), s)
    } else {
        normal_p(xs.len(), s, &ties)?
    };
    Some(Trend {
        slope: slope(xs)?,
        s,
        p,
    })
}

/// Sen's slope.
fn slope(xs: &[f64]) -> Option<f64> {
    let every = xs.len().div_ceil(SLOPE_OF).max(1);
    let chosen: Vec<f64> = xs.iter().copied().step_by(every).collect();
    let pairs = (0..chosen.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let slopes = pairs.map(|(i, j)| (chosen[j] - chosen[i]) / ((j - i) * every) as f64);
    median(&slopes.collect::<Vec<f64>>())
}

/// Serial correlation at lag 1; `None` with fewer than four values or no spread.
pub fn autocorrelation(xs: &[f64]) -> Option<Autocorrelation> {
    let moments = Moments::from_values(xs);
    if xs.len() < 4 || moments.squared_deviations() <= 0.0 {
        return None;
    }
    let n = xs.len() as f64;
    let product = |pair: &[f64]| (pair[0] - moments.mean()) * (pair[1] - moments.mean());
    let lag1 = xs.windows(2).map(product).sum::<f64>() / moments.squared_deviations();
    let (expected, sd) = (-1.0 / n, (n - 2.0) / (n * (n - 1.0).sqrt()));
    Some(Autocorrelation {
        lag1,
        p: two_sided_normal((lag1 - expected) / sd)?,
    })
}

fn tie_sizes(xs: &[f64]) -> Vec<usize> {
    let mut sorted = xs.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

/// P(|S| ≥ |s|) over all orders. S counts `n(n−1)/2 − 2·inversions`, and the
/// k-th value adds 0 to k−1 inversions, each as likely as the others.
fn exact_p(n: usize, s: i64) -> f64 {
    let pairs = n * (n - 1) / 2;
    let mut inversions = vec![0.0; pairs + 1];
    inversions[0] = 1.0;
    for k in 2..=n {
        inversions = add_uniform(&inversions, k);
    }
    let s_of = |inversions: usize| pairs as i64 - 2 * inversions as i64;
    let as_extreme = (0..=pairs).filter(|&i| s_of(i).abs() >= s.abs());
    as_extreme.map(|i| inversions[i]).sum::<f64>().min(1.0)
}

/// The distribution of a count plus an independent uniform one on `0..k`.
fn add_uniform(distribution: &[f64], k: usize) -> Vec<f64> {
    let mut window = 0.0;
    let sum = |i: usize| {
        window += distribution[i];
        if i >= k {
            window -= distribution[i - k];
        }
        window / k as f64
    };
    (0..distribution.len()).map(sum).collect()
}

fn normal_p(n: usize, s: i64, ties: &[usize]) -> Option<f64> {
    let term = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64 / 18.0;
    let variance = term(n) - ties.iter().map(|&size| term(size)).sum::<f64>();
    if variance <= 0.0 {
        return Some(1.0);
    }
    two_sided_normal((s - s.signum()) as f64 / variance.sqrt())
}

pub(crate) fn two_sided_normal(z: f64) -> Option<f64> {
    let normal = Normal::new(0.0, 1.0).ok()?;
    Some(2.0 * normal.sf(z.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Normal as Noise, assert_close, assert_near};

    const XS: [f64; 12] = [
        1.02, 0.97, 1.05, 1.01, 1.08, 1.03, 1.10, 1.04, 1.07, 1.12, 1.06, 1.15,
    ];
    const TIED: [f64; 10] = [3.0, 1.0, 2.0, 2.0, 4.0, 3.0, 5.0, 5.0, 5.0, 6.0];

    #[test]
    fn the_trend_test_agrees_with_scipy_and_pymannkendall() {
        // scipy 1.17.1: stats.kendalltau(range(12), XS, method="exact").pvalue;
        // pymannkendall 1.4.3: original_test(XS).s and .slope.
        let trend = mann_kendall(&XS);
        assert_eq!(trend.map(|t| t.s), Some(38));
        assert_close(trend.map(|t| t.p), 0.008757732750788306);
        assert_close(trend.map(|t| t.slope), 0.010555555555555552);
    }

    #[test]
    fn many_values_have_the_slope_that_all_of_them_have() {
        let xs: Vec<f64> = (0..10_000)
            .map(|n| 0.25 * f64::from(n) + f64::from(n * 7919 % 101))
            .collect();
        let trend = mann_kendall(&xs).unwrap();
        assert!((trend.slope - 0.25).abs() < 1e-3, "{}", trend.slope);
        assert!(trend.p < 1e-12);
    }

    #[test]
    fn the_trend_test_with_ties_agrees_with_pymannkendall() {
        // pymannkendall 1.4.3: original_test(TIED), .s, .p, .slope.
        let trend = mann_kendall(&TIED);
        assert_eq!(trend.map(|t| t.s), Some(32));
        assert_near(trend.map(|t| t.p), 0.0045426544221627285, 1e-7);
        assert_close(trend.map(|t| t.slope), 0.5);
    }

    #[test]
    fn the_normal_approximation_begins_where_it_is_as_good() {
        let n = EXACT_UP_TO;
        for s in (0..=n as i64 * (n as i64 - 1) / 2).step_by(2) {
            let (exact, normal) = (exact_p(n, s), normal_p(n, s, &[]).unwrap());
            assert!(exact > 0.1 || (exact - normal).abs() < 1e-3, "{s}");
        }
    }

    #[test]
    fn the_autocorrelation_agrees_with_statsmodels() {
        // statsmodels 0.15.0: tsa.stattools.acf(XS, nlags=1, fft=False)[1].
        assert_close(autocorrelation(&XS).map(|a| a.lag1), 0.06140885099472234);
    }

    #[test]
    fn independent_values_are_called_dependent_as_often_as_stated() {
        let mut noise = Noise::from_seed(3);
        let called = |test: fn(&[f64]) -> Option<f64>, noise: &mut Noise| {
            let series =
                |noise: &mut Noise| -> Vec<f64> { (0..20).map(|_| noise.next_value()).collect() };
            (0..2000)
                .filter(|_| test(&series(noise)).is_some_and(|p| p <= 0.05))
                .count()
        };
        // Expected 100 of 2000, four standard errors are 39; the exact test is discrete.
        let by_trend = called(|xs| mann_kendall(xs).map(|t| t.p), &mut noise);
        let by_lag = called(|xs| autocorrelation(xs).map(|a| a.p), &mut noise);
        assert!((61..=139).contains(&by_trend), "{by_trend}");
        assert!((61..=139).contains(&by_lag), "{by_lag}");
    }

    #[test]
    fn a_slow_wave_is_called_dependent_but_no_trend() {
        let wave: Vec<f64> = (0..40).map(|i| (f64::from(i) * 0.6).sin()).collect();
        assert!(autocorrelation(&wave).is_some_and(|a| a.lag1 > 0.5 && a.p < 1e-4));
        assert!(mann_kendall(&wave).is_some_and(|t| t.p > 0.1));
    }

    #[test]
    fn too_few_or_equal_values_show_nothing() {
        assert_eq!(mann_kendall(&[1.0, 2.0]), None);
        assert_eq!(mann_kendall(&[2.0; 6]).map(|t| (t.s, t.p)), Some((0, 1.0)));
        assert_eq!(autocorrelation(&[2.0; 6]), None);
    }
}
