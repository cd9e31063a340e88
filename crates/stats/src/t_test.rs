//! Student's one-sample test and Welch's two-sample test, for a fixed number of
//! values. Not for verdicts: looking at these more than once breaks their error
//! rate. They are here for data measured elsewhere, and as the practice that
//! the safe test is compared with.

use crate::safe_test::Interval;
use crate::summary::Moments;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Result of a t-test of fixed size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// Estimate divided by its standard error.
    pub t: f64,
    /// Degrees of freedom of the distribution of `t`; for Welch's test no whole number.
    pub degrees_of_freedom: f64,
    /// Two-sided.
    pub p: f64,
    /// Interval of the mean, or of the difference of means, at 1 − alpha.
    pub interval: Interval,
}

/// Mean of `xs` against zero; `None` with fewer than two values or no spread.
pub fn one_sample(xs: &[f64], alpha: f64) -> Option<TTest> {
    let moments = Moments::from_values(xs);
    let standard_error = moments.sd()? / (xs.len() as f64).sqrt();
    t_test(moments.mean(), standard_error, xs.len() as f64 - 1.0, alpha)
}

/// Mean of `a` minus mean of `b`, with unequal variances (Welch 1947).
pub fn welch_test(a: &[f64], b: &[f64], alpha: f64) -> Option<TTest> {
    let (va, vb) = (variance_of_mean(a)?, variance_of_mean(b)?);
    let difference = Moments::from_values(a).mean() - Moments::from_values(b).mean();
    let degrees =
        (va + vb).powi(2) / (va * va / (a.len() as f64 - 1.0) + vb * vb / (b.len() as f64 - 1.0));
    t_test(difference, (va + vb).sqrt(), degrees, alpha)
}

fn variance_of_mean(xs: &[f64]) -> Option<f64> {
    let sd = Moments::from_values(xs).sd()?;
    Some(sd * sd / xs.len() as f64)
}

fn t_test(estimate: f64, standard_error: f64, degrees: f64, alpha: f64) -> Option<TTest> {
    if standard_error <= 0.0 {
        return None;
    }
    let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
    let t = estimate / standard_error;
    let half = student.inverse_cdf(1.0 - alpha / 2.0) * standard_error;
    Some(TTest {
        t,
        degrees_of_freedom: degrees,
        p: 2.0 * student.sf(t.abs()),
        interval: Interval::centred_at(estimate, half),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, assert_near};

    const A: [f64; 6] = [20.1, 21.4, 19.8, 22.0, 20.7, 21.1];
    const B: [f64; 7] = [18.9, 20.2, 19.1, 19.7, 21.0, 18.4, 19.9];

    #[test]
    fn the_one_sample_test_agrees_with_scipy() {
        // scipy 1.17.1: stats.ttest_1samp(A, 20), .confidence_interval(0.95) − 20.
        let xs: Vec<f64> = A.iter().map(|a| a - 20.0).collect();
        let test = one_sample(&xs, 0.05);
        assert_close(test.map(|t| t.t), 2.534210374499757);
        assert_near(test.map(|t| t.p), 0.05226108967534663, 1e-7);
        assert_near(test.map(|t| t.interval.low), -0.012199358931351156, 1e-6);
        assert_near(test.map(|t| t.interval.high), 1.712199358931347, 1e-6);
    }

    #[test]
    fn welch_agrees_with_scipy() {
        // scipy 1.17.1: stats.ttest_ind(A, B, equal_var=False).
        let test = welch_test(&A, &B, 0.05);
        assert_close(test.map(|t| t.t), 2.6528349952577797);
        assert_close(test.map(|t| t.degrees_of_freedom), 10.880617091494923);
        assert_near(test.map(|t| t.p), 0.022659387547992925, 1e-7);
        assert_near(test.map(|t| t.interval.low), 0.21151893859538595, 1e-6);
        assert_near(test.map(|t| t.interval.high), 2.288481061404614, 1e-6);
    }

    #[test]
    fn values_without_spread_are_not_tested() {
        assert_eq!(one_sample(&[1.0, 1.0, 1.0], 0.05), None);
        assert_eq!(one_sample(&[1.0], 0.05), None);
        assert_eq!(welch_test(&[1.0, 1.0], &[2.0, 2.0], 0.05), None);
    }
}
