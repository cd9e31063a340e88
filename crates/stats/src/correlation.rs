//! Do two series go up and down together? Kendall's rank correlation: it asks only
//! for the order of values, so one wild block cannot make it.
//!
//! Sources: Kendall, "A new measure of rank correlation" (1938) and "Rank Correlation
//! Methods" (1970) for tau-b and the variance with ties.

use crate::trend::{mann_kendall, two_sided_normal};

/// Strength of a rank correlation, and its p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// tau-b: 1 if every pair is in the same order in both, −1 if in the opposite.
    pub tau: f64,
    /// Two-sided against independence: exact for up to 100 pairs without ties, else
    /// a normal approximation.
    pub p: f64,
}

/// Correlation of the pairs (`xs[i]`, `ys[i]`); `None` with fewer than three, or where one of
/// the two never changes.
pub fn kendall_tau(xs: &[f64], ys: &[f64]) -> Option<Correlation> {
    let n = xs.len().min(ys.len());
    let (xs, ys) = (&xs[..n], &ys[..n]);
    let (in_x, in_y) = (Ties::of(xs), Ties::of(ys));
    let pairs = (n * n.saturating_sub(1) / 2) as f64;
    let ordered = (pairs - in_x.pairs) * (pairs - in_y.pairs);
    if n < 3 || ordered <= 0.0 {
        return None;
    }
    let s = concordance(xs, ys);
    let tau = s / ordered.sqrt();
    let p = match in_x.pairs + in_y.pairs {
        0.0 => mann_kendall(&in_order_of(xs, ys))?.p,
        _ => two_sided_normal(s / variance(n as f64, &in_x, &in_y).sqrt())?,
    };
    Some(Correlation { tau, p })
}

/// Pairs in the same order less pairs in the opposite one.
fn concordance(xs: &[f64], ys: &[f64]) -> f64 {
    let pairs = (0..xs.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    pairs
        .map(|(i, j)| sign(xs[j] - xs[i]) * sign(ys[j] - ys[i]))
        .sum()
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

fn in_order_of(xs: &[f64], ys: &[f64]) -> Vec<f64> {
    let mut both: Vec<(f64, f64)> = xs.iter().copied().zip(ys.iter().copied()).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    both.into_iter().map(|(_, y)| y).collect()
}

/// Sums over the groups of equal values, each of size t.
struct Ties {
    /// t (t − 1) / 2
    pairs: f64,
    /// t (t − 1) (t − 2)
    triples: f64,
    /// t (t − 1) (2t + 5)
    weighted: f64,
}

impl Ties {
    fn of(xs: &[f64]) -> Ties {
        let mut sorted = xs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let sizes = sorted
            .chunk_by(|a, b| a == b)
            .map(|group| group.len() as f64);
        let mut ties = Ties {
            pairs: 0.0,
            triples: 0.0,
            weighted: 0.0,
        };
        for t in sizes {
            ties.pairs += t * (t - 1.0) / 2.0;
            ties.triples += t * (t - 1.0) * (t - 2.0);
            ties.weighted += t * (t - 1.0) * (2.0 * t + 5.0);
        }
        ties
    }
}

/// Variance of the concordance when the two are independent.
fn variance(n: f64, x: &Ties, y: &Ties) -> f64 {
    let m = n * (n - 1.0);
    (m * (2.0 * n + 5.0) - x.weighted - y.weighted) / 18.0
        + 2.0 * x.pairs * y.pairs / m
        + x.triples * y.triples / (9.0 * m * (n - 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    /// The example of R's `cor.test(method = "kendall")`, after Hollander and Wolfe
    /// (1973), p. 185: T = 26 of 36, p-value = 0.1194, tau 0.4444444.
    #[test]
    fn without_ties_it_is_that_of_r() {
        let x = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1];
        let y = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8];
        let found = kendall_tau(&x, &y).unwrap();
        assert_near(Some(found.tau), 0.444_444_4, 1e-6);
        assert_near(Some(found.p), 0.1194, 1e-3);
    }

    /// The example of `scipy.stats.kendalltau`.
    #[test]
    fn with_ties_it_is_that_of_scipy() {
        let found = kendall_tau(&[12.0, 2.0, 1.0, 12.0, 2.0], &[1.0, 4.0, 7.0, 1.0, 0.0]).unwrap();
        assert_near(Some(found.tau), -0.471_404_520_791_031_73, 1e-12);
        assert_near(Some(found.p), 0.282_745_459_932_774_8, 1e-9);
    }

    #[test]
    fn what_never_changes_correlates_with_nothing() {
        assert_eq!(kendall_tau(&[0.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]), None);
        assert_eq!(kendall_tau(&[1.0, 2.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn order_is_all_that_counts() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 1e9];
        let up: Vec<f64> = x.iter().map(|x| x * x).collect();
        let down: Vec<f64> = x.iter().map(|x| -x.sqrt()).collect();
        assert_eq!(kendall_tau(&x, &up).unwrap().tau, 1.0);
        assert_eq!(kendall_tau(&x, &down).unwrap().tau, -1.0);
        // 2 of the 720 orders of six values are as extreme.
        assert_near(Some(kendall_tau(&x, &up).unwrap().p), 2.0 / 720.0, 1e-9);
    }
}
