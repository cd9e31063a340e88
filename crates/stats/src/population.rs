//! The change over a population of machines, or of nights, of which some were measured.
//!
//! Each of them counts once, however many blocks it has: their mean, and Student's interval of the scatter of their
//! values, which holds what they differ in truth and what their blocks scatter. That is the variance of Hartung and
//! Knapp, and of Sidik and Jonkman, with equal weights. If values scatter normally around the mean, each with a variance
//! of its own, the interval is too wide rather than too narrow, for every number of them and for 1 − alpha from 0.92 on
//! (Bakirov and Székely). So neither few blocks on one machine, nor errors that are known badly, nor a wrong guess
//! of how much machines differ make it too narrow. Weights by errors and a guessed variance have no such proof.
//!
//! Few values may lie closer together by luck than they are known. Then the interval is that of their errors (the
//! `max(1, q)` of Knapp and Hartung).
//!
//! These are answers of a fixed number of machines, not at every look.
//!
//! Sources: Hartung and Knapp (2001); Sidik and Jonkman (2002); Knapp and Hartung (2003); Bakirov and Székely,
//! "Student's t-test for Gaussian scale mixtures" (2006); Ibragimov and Müller, "t-Statistic based correlation and
//! heterogeneity robust inference" (2010); Hedges and Olkin (1985) for the variance between.

use crate::Interval;
use crate::randomization::{Prior, confidence_sequence};
use crate::summary::Moments;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest members that tell of others.
pub const FEWEST: usize = 3;

/// One of those that were measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Member {
    /// The change, as a logarithm of a ratio or as a difference.
    pub value: f64,
    /// Its standard error; none with too few blocks.
    pub error: Option<f64>,
}

/// The change over all that could have been measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Population {
    /// Mean of the members, each of which counts once.
    pub mean: f64,
    /// Interval of the mean over the population; none with fewer than [`FEWEST`] members, or without scatter.
    pub interval: Option<Interval>,
    /// Interval in which the next member lies.
    pub next: Option<Interval>,
    /// Standard deviation of what the members differ beyond their errors; 0 if the estimate is negative, and none
    /// where no error is known.
    pub between: Option<f64>,
}

/// The population behind these members, at 1 − `alpha`; `None` without any.
pub fn estimate_population(members: &[Member], alpha: f64) -> Option<Population> {
    let values: Vec<f64> = members.iter().map(|member| member.value).collect();
    let mean = crate::summary::mean(&values)?;
    let count = values.len() as f64;
    let squared_error = mean_squared_error(members);
    let variance = Moments::from_values(&values).sd().map(|sd| sd * sd);
    let scatter = variance.map(|found| found.max(squared_error.unwrap_or(0.0)));
    let scatter = scatter.filter(|scatter| values.len() >= FEWEST && *scatter > 0.0);
    let centred = |of_variance: f64| {
        let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
        let half = student.inverse_cdf(1.0 - alpha / 2.0) * (scatter? * of_variance).sqrt();
        half.is_finite().then(|| Interval::centred_at(mean, half))
    };
    let between = |(variance, error): (f64, f64)| (variance - error).max(0.0).sqrt();
    Some(Population {
        mean,
        interval: centred(1.0 / count),
        next: centred(1.0 + 1.0 / count),
        between: variance.zip(squared_error).map(between),
    })
}

/// Over the members that have one: those of few blocks are not known better.
fn mean_squared_error(members: &[Member]) -> Option<f64> {
    let errors = members.iter().filter_map(|member| member.error);
    let squares: Vec<f64> = errors.map(|error| error * error).collect();
    crate::summary::mean(&squares)
}

/// Do the blocks of members show, at 1 − `alpha`, that not all of them have one change? They do where the intervals of two
/// have nothing in common, each at its part of `alpha`: these hold at every look, so it does not matter who ended when.
/// An analysis of variance takes errors for known that are too small where a member ended with its answer. None
/// with fewer than two intervals.
pub fn are_apart(members: &[Vec<f64>], alpha: f64) -> Option<bool> {
    let part = alpha / members.len() as f64;
    let intervals = members.iter();
    let intervals = intervals.filter_map(|xs| confidence_sequence(xs, part, Prior::BLOCKS));
    let (lows, highs): (Vec<f64>, Vec<f64>) = intervals.map(|i| (i.low, i.high)).unzip();
    let highest = lows.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = highs.iter().copied().fold(f64::INFINITY, f64::min);
    (lows.len() > 1).then_some(highest > lowest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t_test;
    use crate::testing::{Normal, assert_close, assert_near};

    /// Viechtbauer, "Bias and efficiency of meta-analytic variance estimators" (2005), the examples of pages 271
    /// and 272: values and their variances.
    const FIRST: [(f64, f64); 10] = [
        (-0.581, 0.023),
        (0.530, 0.052),
        (0.771, 0.060),
        (1.031, 0.115),
        (0.553, 0.095),
        (0.295, 0.203),
        (0.078, 0.200),
        (0.573, 0.211),
        (-0.176, 0.051),
        (-0.232, 0.040),
    ];
    const SECOND: [(f64, f64); 18] = [
        (0.100, 0.016),
        (-0.162, 0.015),
        (-0.090, 0.050),
        (-0.049, 0.050),
        (-0.046, 0.032),
        (-0.010, 0.052),
        (-0.431, 0.036),
        (-0.261, 0.024),
        (0.134, 0.034),
        (0.019, 0.033),
        (0.175, 0.031),
        (0.056, 0.034),
        (0.045, 0.039),
        (0.103, 0.167),
        (0.121, 0.134),
        (-0.482, 0.096),
        (0.290, 0.016),
        (0.342, 0.035),
    ];

    fn members(of: &[(f64, f64)]) -> Vec<Member> {
        let member = |(value, variance): &(f64, f64)| Member {
            value: *value,
            error: Some(variance.sqrt()),
        };
        of.iter().map(member).collect()
    }

    #[test]
    fn the_variance_between_is_that_of_a_published_example() {
        // The estimates "HE" of the paper and of R's metafor 4 (`rma(yi, vi, method = "HE")`): 0.148 and 0.000.
        let first = estimate_population(&members(&FIRST), 0.05).unwrap();
        let squared = first.between.map(|sd| sd * sd);
        assert!((squared.unwrap() - 0.148).abs() < 0.0005, "{squared:?}");
        let second = estimate_population(&members(&SECOND), 0.05).unwrap();
        assert_eq!(second.between, Some(0.0));
    }

    #[test]
    fn the_interval_is_students_of_the_members_and_never_below_that_of_their_errors() {
        let values: Vec<f64> = FIRST.iter().map(|(value, _)| *value).collect();
        let first = estimate_population(&members(&FIRST), 0.05).unwrap();
        let student = t_test::one_sample(&values, 0.05).unwrap().interval;
        assert_close(first.interval.map(|i| i.low), student.low);
        assert_close(first.interval.map(|i| i.high), student.high);
        // The next is as far off as eleven scatter more than the mean of ten: a width of the root of 11.
        let width = |interval: Option<Interval>| interval.map(|i| i.high - i.low);
        let narrow = width(first.interval).unwrap();
        assert_close(width(first.next), 11f64.sqrt() * narrow);
        // Three values that agree by luck: 4.302653 (Student, two degrees) times 0.3 by the root of three.
        let alike = members(&[(1.0, 0.09), (1.0, 0.09), (1.001, 0.09)]);
        let alike = estimate_population(&alike, 0.05).unwrap();
        assert_near(width(alike.interval), 2.0 * 0.745_241, 1e-5);
    }

    #[test]
    fn two_members_tell_of_no_others() {
        let two = estimate_population(&members(&FIRST[..2]), 0.05).unwrap();
        assert_eq!((two.interval, two.next), (None, None));
        assert_close(Some(two.mean), -0.0255);
        assert_eq!(estimate_population(&[], 0.05), None);
    }

    #[test]
    fn members_with_unknown_errors_count_all_the_same() {
        let mut some = members(&FIRST);
        some[0].error = None;
        let found = estimate_population(&some, 0.05).unwrap();
        let all = estimate_population(&members(&FIRST), 0.05).unwrap();
        assert_eq!((found.mean, found.interval), (all.mean, all.interval));
        some.iter_mut().for_each(|member| member.error = None);
        let found = estimate_population(&some, 0.05).unwrap();
        assert_eq!((found.interval, found.between), (all.interval, None));
    }

    #[test]
    fn members_of_one_change_are_hardly_ever_told_apart_and_others_are() {
        let mut normal = Normal::from_seed(5);
        let mut count = |between: f64| {
            let mut told = 0;
            for _ in 0..200 {
                let mut draw = |blocks: usize| -> Vec<f64> {
                    let truth = between * normal.next_value();
                    (0..blocks).map(|_| truth + normal.next_value()).collect()
                };
                let members = [9, 40, 12, 20].map(&mut draw);
                told += u32::from(are_apart(&members, 0.05) == Some(true));
            }
            told
        };
        assert!(count(0.0) <= 10);
        assert!(count(3.0) > 150);
        assert_eq!(are_apart(&[vec![1.0; 9], vec![1.0]], 0.05), None);
    }
}
