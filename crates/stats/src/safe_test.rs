//! The safe (anytime-valid) one-sample t-test and its confidence sequence.
//!
//! For values `x_i ~ N(delta·sigma, sigma²)` with a right-Haar prior `1/sigma`
//! on the scale and `delta ~ N(0, g)` on the standardized effect, the Bayes
//! factor against `delta = 0` is an e-process of the scale-invariant data:
//! the chance that it *ever* reaches `1/alpha` under no difference is at most
//! `alpha` (Ville's inequality), however often it is looked at.
//!
//! Sources: Pérez-Ortiz, Lardy, de Heide, Grünwald, "E-statistics, group
//! invariance and anytime-valid testing" (2024); Wang, Ramdas, "Anytime-valid
//! t-tests and confidence sequences for Gaussian means with unknown variance"
//! (2024), theorem 4.9; R package `safestats`, type `eGauss`. With `n` values,
//! t-statistic `t`, and `nu = n − 1`:
//!
//! ```text
//! e = (1 + n·g)^(−1/2) · [(1 + t²/(nu·(1 + n·g))) / (1 + t²/nu)]^(−n/2)
//!   = (1 + n·g)^((n−1)/2) / (1 + n·g·w)^(n/2),   w = Σ(x − mean)² / Σx²
//! ```
//!
//! The second form, in logarithms, is what is computed: it neither overflows
//! nor divides by a zero variance.
//!
//! Invariants:
//! - Fewer than two values: e = 1 and no interval. One value has no scale.
//! - e is at most `(1 + n·g)^((n−1)/2)`, so with g = 1 and alpha = 0.05 nothing
//!   can be called, and no interval is bounded, before the fifth value.
//! - Values that are all equal are the limit of a vanishing spread: equal and
//!   not zero gives that largest e, all zero gives the smallest,
//!   `(1 + n·g)^(−1/2) < 1`. Once n allows a bounded interval it is a point. It
//!   says nothing about differences below the resolution of the metric.
//!
//! One limit is worth knowing. The e-value is an e-process with respect to the
//! scale-invariant data. Stopping on something that sees the scale (a narrow
//! interval) leaves the chance of ever crossing `1/alpha` as it is, but the
//! *expected* e-value at such a stop may exceed 1 a little; the simulation in
//! `benches/simulation` measures it.

use crate::summary::Moments;

/// Prior variance of the standardized effect: before seeing data, a difference
/// of about one standard deviation of a block is what is expected.
///
/// Any value keeps the error rate; the choice moves the number of blocks, and
/// little. Simulated in numpy (20 000 series, alpha 0.05, at most 40 blocks), of
/// 0.25, 0.5, 1, 2, 4, 8 and 16 it is the best for effects of 0.3 to 0.75
/// standard deviations, where blocks are dear, within half a block of the best
/// up to 1.5, and costs 1.5 blocks (5.2 for 3.7) at 5.
pub const PRIOR_VARIANCE: f64 = 1.0;

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end, included.
    pub low: f64,
    /// Upper end, included.
    pub high: f64,
}

impl Interval {
    /// Interval from `centre − half_width` to `centre + half_width`.
    pub fn centred_at(centre: f64, half_width: f64) -> Interval {
        Interval {
            low: centre - half_width,
            high: centre + half_width,
        }
    }

    /// True if the value lies between the ends, or is one of them.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// True if no point of this interval is outside the other one.
    pub fn lies_within(&self, outer: &Interval) -> bool {
        outer.low <= self.low && self.high <= outer.high
    }
}

/// The e-value against "the mean of `xs` is zero". Saturates at `f64::MAX`.
pub fn e_value(xs: &[f64]) -> f64 {
    saturating_exp(ln_e_value(&Moments::from_values(xs)))
}

/// The shifts of the mean that the test at `alpha` has not rejected at this
/// length; `None` where they are the whole line. With probability 1 − alpha the
/// true mean is in the intervals of *all* lengths.
pub fn confidence_sequence(xs: &[f64], alpha: f64) -> Option<Interval> {
    confidence_interval(&Moments::from_values(xs), alpha)
}

/// Natural logarithm of the e-value.
pub fn ln_e_value(moments: &Moments) -> f64 {
    if moments.count() < 2 {
        return 0.0;
    }
    let n = f64::from(moments.count());
    let ng = n * PRIOR_VARIANCE;
    0.5 * (n - 1.0) * ng.ln_1p() - 0.5 * n * (ng * residual_share(moments)).ln_1p()
}

/// See [`confidence_sequence`].
pub fn confidence_interval(moments: &Moments, alpha: f64) -> Option<Interval> {
    half_width(moments, alpha).map(|half| Interval::centred_at(moments.mean(), half))
}

/// Half the width of the interval, from solving `e(mean − shift) = 1/alpha`.
///
/// With `u = n·(mean − shift)² / Σ(x − mean)²` and
/// `k = ((1 + n·g) / alpha²)^(1/n)`, e < 1/alpha says
/// `u·(1 − k/(1 + n·g)) < k − 1`, which every u satisfies if `k ≥ 1 + n·g`.
pub fn half_width(moments: &Moments, alpha: f64) -> Option<f64> {
    if moments.count() < 2 {
        return None;
    }
    let n = f64::from(moments.count());
    let ln_penalty = (n * PRIOR_VARIANCE).ln_1p();
    let ln_k = (ln_penalty - 2.0 * alpha.ln()) / n;
    if ln_k >= ln_penalty {
        return None;
    }
    let u = ln_k.exp_m1() / -(ln_k - ln_penalty).exp_m1();
    Some((u * moments.squared_deviations() / n).sqrt())
}

/// `e^ln_e`, at most `f64::MAX`, so that a report never has to print an infinity.
pub fn saturating_exp(ln_e: f64) -> f64 {
    ln_e.exp().min(f64::MAX)
}

/// The share of `Σx²` that the mean does not explain; 1 if all values are zero.
fn residual_share(moments: &Moments) -> f64 {
    let explained = f64::from(moments.count()) * moments.mean() * moments.mean();
    let total = moments.squared_deviations() + explained;
    if total > 0.0 {
        moments.squared_deviations() / total
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Normal, assert_close};
    use proptest::prelude::*;

    const XS: [f64; 8] = [0.031, 0.018, 0.044, 0.027, 0.052, 0.012, 0.036, 0.029];

    /// `n` values whose t-statistic is `t`.
    fn series(n: u32, t: f64) -> Moments {
        Moments::from_mean_and_sd(n, t / f64::from(n).sqrt(), 1.0)
    }

    #[test]
    fn the_e_value_is_the_averaged_likelihood_ratio_of_the_t_statistic() {
        // scipy 1.17.1: integrate.quad over delta of stats.nct.pdf(t, n − 1,
        // sqrt(n)·delta)·stats.norm.pdf(delta), divided by stats.t.pdf(t, n − 1).
        for (n, t, expected) in [
            (5, 0.0, 0.40824829046386296),
            (3, 2.5, 1.76205158163779),
            (8, 3.0, 5.333333333333333),
            (12, -4.2, 42.99365297528618),
            (40, 1.0, 0.2559088937726672),
        ] {
            assert_close(Some(ln_e_value(&series(n, t)).exp()), expected);
        }
    }

    #[test]
    fn the_e_value_of_a_series_agrees_with_scipy() {
        // The same integral at stats.ttest_1samp(XS, 0).statistic = 6.766547.
        assert_close(Some(e_value(&XS)), 121.23679730221905);
    }

    #[test]
    fn the_e_value_is_the_bayes_factor_integrated_over_effect_and_scale() {
        // An integration of our own: midpoints over delta and ln sigma.
        let (mut with, mut without) = (0.0, 0.0);
        for i in 0..400 {
            let sigma = (-5.5 + 4.0 * (f64::from(i) + 0.5) / 400.0).exp();
            without += likelihood(&XS, 0.0, sigma);
            for j in 0..400 {
                let delta = -6.0 + 12.0 * (f64::from(j) + 0.5) / 400.0;
                let prior = (-0.5 * delta * delta).exp() / std::f64::consts::TAU.sqrt();
                with += likelihood(&XS, delta * sigma, sigma) * prior * 12.0 / 400.0;
            }
        }
        let relative = (with / without - e_value(&XS)).abs() / e_value(&XS);
        assert!(
            relative < 1e-3,
            "{} against {}",
            with / without,
            e_value(&XS)
        );
    }

    /// Up to a constant; with d(ln sigma) as measure, the prior 1/sigma is flat.
    fn likelihood(xs: &[f64], mean: f64, sigma: f64) -> f64 {
        let squares: f64 = xs.iter().map(|x| ((x - mean) / sigma).powi(2)).sum();
        (-0.5 * squares - xs.len() as f64 * (sigma / 0.03).ln()).exp()
    }

    #[test]
    fn the_interval_ends_where_the_shifted_e_value_is_one_over_alpha() {
        // scipy 1.17.1: optimize.brentq on the integral at ttest_1samp(XS, m).
        let interval = confidence_sequence(&XS, 0.05);
        assert_close(interval.map(|i| i.high), 0.05067840870462928);
        assert_close(interval.map(|i| i.low), 0.01157159129537072);
    }

    #[test]
    fn one_value_is_no_evidence_and_has_no_interval() {
        assert_eq!(e_value(&[]), 1.0);
        assert_eq!(e_value(&[3.0]), 1.0);
        assert_eq!(confidence_sequence(&[3.0], 0.05), None);
    }

    #[test]
    fn four_values_cannot_decide_at_five_percent_and_five_can() {
        assert!(e_value(&[0.5; 4]) < 20.0);
        assert_eq!(confidence_sequence(&XS[..4], 0.05), None);
        assert!(e_value(&[0.5; 5]) >= 20.0);
        assert!(confidence_sequence(&XS[..5], 0.05).is_some());
    }

    #[test]
    fn equal_values_give_the_limits_of_a_vanishing_spread() {
        assert_close(Some(e_value(&[0.1; 5])), 36.0);
        assert_close(Some(e_value(&[0.0; 8])), 1.0 / 3.0);
        let point = Interval::centred_at(0.1, 0.0);
        assert_eq!(confidence_sequence(&[0.1; 5], 0.05), Some(point));
    }

    #[test]
    fn a_long_clear_series_saturates_and_does_not_overflow() {
        let xs: Vec<f64> = (0..2000).map(|i| 1.0 + 1e-9 * f64::from(i % 7)).collect();
        assert_eq!(e_value(&xs), f64::MAX);
        assert!(ln_e_value(&Moments::from_values(&xs)).is_finite());
    }

    #[test]
    fn looking_after_every_value_rarely_rejects_the_truth() {
        let mut normal = Normal::from_seed(7);
        let crossed = (0..2000)
            .filter(|_| {
                let mut moments = Moments::default();
                (0..60).any(|_| {
                    moments.push(normal.next_value());
                    ln_e_value(&moments) >= 20f64.ln()
                })
            })
            .count();
        // At most 5 % by Ville's inequality; three standard errors are 1.5 %.
        assert!(crossed <= 130, "{crossed} of 2000 crossed");
        assert!(crossed > 0, "the test never rejects anything");
    }

    proptest! {
        #[test]
        fn the_sign_of_the_values_does_not_matter(xs in prop::collection::vec(-1.0..1.0f64, 2..30)) {
            let mirrored: Vec<f64> = xs.iter().map(|x| -x).collect();
            prop_assert_eq!(e_value(&xs), e_value(&mirrored));
        }

        #[test]
        fn the_scale_of_the_values_does_not_matter(
            xs in prop::collection::vec(-1.0..1.0f64, 2..30),
            scale in 1e-6..1e6f64,
        ) {
            let scaled: Vec<f64> = xs.iter().map(|x| x * scale).collect();
            let (a, b) = (ln_e_value(&Moments::from_values(&xs)), ln_e_value(&Moments::from_values(&scaled)));
            prop_assert!((a - b).abs() < 1e-6, "{} and {}", a, b);
        }

        #[test]
        fn the_interval_holds_the_mean_and_what_is_not_rejected(
            xs in prop::collection::vec(-1.0..1.0f64, 5..30),
            shift in -3.0..3.0f64,
        ) {
            let moments = Moments::from_values(&xs);
            prop_assume!(moments.squared_deviations() > 1e-6);
            let interval = confidence_sequence(&xs, 0.05);
            prop_assert!(interval.is_some_and(|i| i.contains(moments.mean())));
            let shifted: Vec<f64> = xs.iter().map(|x| x - shift).collect();
            let kept = ln_e_value(&Moments::from_values(&shifted)) < 20f64.ln();
            prop_assert_eq!(interval.is_some_and(|i| i.contains(shift)), kept);
        }
    }
}
