//! Rank tests with a fixed number of values, and the Hodges-Lehmann estimate
//! with the interval that belongs to it. Distributions are exact, at a cost that grows
//! with the third power of the count: meant for up to some hundreds. Above
//! [`EXACT_UP_TO`] values the signed-rank test takes the normal distribution.
//!
//! For data measured elsewhere, where blocks are few and heavy tails likely. As
//! with every test of fixed size, looking more than once breaks the error rate.
//! Give logarithms, and the estimate is the logarithm of a ratio.
//!
//! Sources: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods",
//! chapters 3 and 4. With ties, p-values use the exact permutation distribution
//! of the midranks, and the intervals, taken as closed, keep their confidence.
//!
//! Exact and small is coarse: three pairs cannot give a p below 0.25, three
//! values a side none below 0.10, whatever they are.

use crate::safe_test::Interval;
use crate::summary::{median, sorted_copy};
use crate::trend::two_sided_normal;

/// Above this many values the normal approximation of the signed-rank test is as good, and
/// far cheaper.
const EXACT_UP_TO: usize = 200;

/// A location and the exact interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median of the differences, in the unit of the values.
    pub value: f64,
    /// `None` where so few values cannot reach the confidence asked for.
    pub interval: Option<Interval>,
}

/// The median of all differences `a − b` with the interval of the rank-sum test
/// at 1 − `alpha`. For two independent samples.
pub fn hodges_lehmann_shift(a: &[f64], b: &[f64], alpha: f64) -> Option<Estimate> {
    let differences = a
        .iter()
        .flat_map(|x| b.iter().map(move |y| x - y))
        .collect();
    let ranks: Vec<usize> = (1..=a.len() + b.len()).collect();
    let sums = rank_sum_distribution(&ranks, a.len());
    let smallest = a.len() * (a.len() + 1) / 2;
    estimate(differences, sums.get(smallest..)?, alpha)
}

/// Two-sided Wilcoxon signed-rank test of `xs` against zero: exact for up to 200 values,
/// else normal with continuity correction. Zeros are dropped, as Wilcoxon did; `None` if
/// nothing is left.
pub fn signed_rank_p(xs: &[f64]) -> Option<f64> {
    let nonzero: Vec<f64> = xs.iter().copied().filter(|&x| x != 0.0).collect();
    let sizes: Vec<f64> = nonzero.iter().map(|x| x.abs()).collect();
    let ranks = doubled_midranks(&sizes);
    let positive = ranks.iter().zip(&nonzero).filter(|(_, x)| **x > 0.0);
    let sum = positive.map(|(rank, _)| rank).sum();
    match nonzero.len() {
        0 => None,
        1..=EXACT_UP_TO => Some(two_sided_p(&signed_rank_distribution(&ranks), sum)),
        _ => signed_rank_normal_p(&ranks, sum),
    }
}

/// Mean and variance of the sum are those of all signs, so ties need no correction. A rank
/// is doubled, and so is the half of the continuity correction.
fn signed_rank_normal_p(ranks: &[usize], sum: usize) -> Option<f64> {
    let mean = ranks.iter().map(|&rank| rank as f64).sum::<f64>() / 2.0;
    let variance = ranks.iter().map(|&rank| (rank as f64).powi(2)).sum::<f64>() / 4.0;
    let beyond = ((sum as f64 - mean).abs() - 1.0).max(0.0);
    two_sided_normal(beyond / variance.sqrt())
}

/// Two-sided Mann-Whitney test (Wilcoxon rank-sum) of `a` against `b`.
pub fn mann_whitney_p(a: &[f64], b: &[f64]) -> Option<f64> {
    let ranks = doubled_midranks(&[a, b].concat());
    let sum = ranks[..a.len()].iter().sum();
    let both = !a.is_empty() && !b.is_empty();
    both.then(|| two_sided_p(&rank_sum_distribution(&ranks, a.len()), sum))
}

/// The order statistics of `pairs` that the test does not reject.
///
/// With `c` the largest count for which `P(statistic < c) ≤ alpha / 2`, the
/// interval runs from the `c`-th smallest to the `c`-th largest.
fn estimate(pairs: Vec<f64>, distribution: &[f64], alpha: f64) -> Option<Estimate> {
    let value = median(&pairs)?;
    let pairs = sorted_copy(&pairs);
    let mut tail = 0.0;
    let below = |p: &&f64| {
        tail += **p;
        tail <= alpha / 2.0
    };
    let c = distribution.iter().take_while(below).count();
    let interval = (1..=pairs.len()).contains(&c).then(|| Interval {
        low: pairs[c - 1],
        high: pairs[pairs.len() - c],
    });
    Some(Estimate { value, interval })
}

/// P(sum = s) when each of `ranks` counts with probability 1/2.
fn signed_rank_distribution(ranks: &[usize]) -> Vec<f64> {
    let mut distribution = vec![0.0; ranks.iter().sum::<usize>() + 1];
    distribution[0] = 1.0;
    for &rank in ranks {
        for sum in (0..distribution.len()).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| distribution[rest]);
            distribution[sum] = (distribution[sum] + with) / 2.0;
        }
    }
    distribution
}

/// P(sum = s) of `chosen` ranks drawn without replacement. Ranks are gone
/// through one by one; with `k` still to choose among the `left` that remain,
/// one is taken with probability `k / left`.
fn rank_sum_distribution(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let sums = ranks.iter().sum::<usize>() + 1;
    let mut by_taken = vec![vec![0.0; sums]; chosen + 1];
    by_taken[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        let left = (ranks.len() - seen) as f64;
        for taken in (0..=chosen.min(seen)).rev() {
            let p = (chosen - taken) as f64 / left;
            take_one(&mut by_taken, taken, rank, p);
        }
    }
    by_taken.pop().unwrap_or_default()
}

/// Moves the share `p` of "`taken` ranks so far" to "one more, and its rank".
fn take_one(by_taken: &mut [Vec<f64>], taken: usize, rank: usize, p: f64) {
    let (until, after) = by_taken.split_at_mut(taken + 1);
    if let Some(next) = after.first_mut() {
        for (to, from) in next[rank..].iter_mut().zip(&until[taken]) {
            *to += p * from;
        }
    }
    until[taken].iter_mut().for_each(|share| *share *= 1.0 - p);
}

/// Twice the mean rank, so that ties stay whole numbers.
fn doubled_midranks(xs: &[f64]) -> Vec<usize> {
    let sorted = sorted_copy(xs);
    let rank = |x: &f64| {
        let below = sorted.partition_point(|y| y < x);
        let up_to = sorted.partition_point(|y| y <= x);
        below + up_to + 1
    };
    xs.iter().map(rank).collect()
}

fn two_sided_p(distribution: &[f64], observed: usize) -> f64 {
    let lower: f64 = distribution[..=observed].iter().sum();
    let upper: f64 = distribution[observed..].iter().sum();
    (2.0 * lower.min(upper)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;
    use proptest::prelude::*;

    /// Hollander and Wolfe, table 3.1: Hamilton depression scale, after − before.
    const DEPRESSION: [f64; 9] = [
        -0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010,
    ];
    /// Hollander and Wolfe, table 4.1: permeability of membranes, at term and earlier.
    const TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    const EARLIER: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

    #[test]
    fn the_signed_rank_test_agrees_with_the_book_and_scipy() {
        // The book's example 3.1: one-sided 0.020; scipy 1.17.1:
        // stats.wilcoxon(x, method="exact").pvalue.
        assert_close(signed_rank_p(&DEPRESSION), 0.0390625);
    }

    #[test]
    fn the_rank_sum_test_agrees_with_the_book_and_scipy() {
        // The book's example 4.1: one-sided 0.127; scipy 1.17.1:
        // stats.mannwhitneyu(a, b, method="exact").pvalue.
        assert_close(mann_whitney_p(&TERM, &EARLIER), 0.2544122544122544);
    }

    #[test]
    fn ties_use_the_permutation_distribution() {
        // scipy 1.17.1: stats.wilcoxon(x, method=stats.PermutationMethod()) and
        // stats.mannwhitneyu(a, b, method=stats.PermutationMethod()), all orders.
        assert_close(
            signed_rank_p(&[1.0, 1.0, 2.0, -1.0, 3.0, 3.0, 4.0, 0.0]),
            0.0625,
        );
        let (a, b) = ([1.0, 2.0, 2.0, 3.0, 5.0], [2.0, 3.0, 4.0, 5.0, 5.0, 6.0]);
        assert_close(mann_whitney_p(&a, &b), 0.16017316017316016);
    }

    #[test]
    fn the_estimate_agrees_with_the_book() {
        // Example 4.4: 0.305.
        let shift = hodges_lehmann_shift(&TERM, &EARLIER, 0.05);
        assert_close(shift.map(|e| e.value), 0.30500000000000005);
        assert_close(
            shift.and_then(|e| e.interval).map(|i| i.low),
            -0.15000000000000002,
        );
        assert_close(
            shift.and_then(|e| e.interval).map(|i| i.high),
            0.7599999999999999,
        );
    }

    #[test]
    fn three_a_side_cannot_be_significant() {
        let (low, high) = ([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]);
        assert_close(mann_whitney_p(&low, &high), 0.1);
        assert_close(signed_rank_p(&high), 0.25);
        let shift = hodges_lehmann_shift(&high, &low, 0.05);
        assert_eq!(shift.map(|e| e.interval), Some(None));
    }

    #[test]
    fn many_values_take_the_normal_distribution_which_is_close_to_the_exact_one() {
        // Values without a tie, two thirds of them positive where the phase is right.
        let values = |count: usize, phase: usize| -> Vec<f64> {
            let sign = |n: usize| {
                if (n * 7 + phase).is_multiple_of(3) {
                    -1.0
                } else {
                    1.0
                }
            };
            (1..=count)
                .map(|n| sign(n) * ((n * 37) % 1009) as f64)
                .collect()
        };
        for phase in 0..3 {
            let xs = values(60, phase);
            let sizes: Vec<f64> = xs.iter().map(|x| x.abs()).collect();
            let ranks = doubled_midranks(&sizes);
            let positive = ranks.iter().zip(&xs).filter(|(_, x)| **x > 0.0);
            let sum = positive.map(|(rank, _)| rank).sum();
            let (exact, normal) = (signed_rank_p(&xs), signed_rank_normal_p(&ranks, sum));
            assert!(
                (exact.unwrap() - normal.unwrap()).abs() < 5e-3,
                "{exact:?} {normal:?}"
            );
        }
        // The cube of this would take hours.
        assert!(signed_rank_p(&values(10_000, 0)).is_some_and(|p| p < 1e-6));
        let balanced: Vec<f64> = (1..=5_000)
            .flat_map(|n| [f64::from(n), -f64::from(n)])
            .collect();
        assert!(signed_rank_p(&balanced).is_some_and(|p| p > 0.99));
    }

    #[test]
    fn nothing_is_said_of_no_values() {
        assert_eq!(hodges_lehmann_shift(&[], &[1.0], 0.05), None);
        assert_eq!(signed_rank_p(&[0.0, 0.0]), None);
        assert_eq!(mann_whitney_p(&[1.0], &[]), None);
    }

    proptest! {
        #[test]
        fn swapping_the_samples_mirrors_the_shift(
            a in prop::collection::vec(-1.0..1.0f64, 4..9),
            b in prop::collection::vec(-1.0..1.0f64, 4..9),
        ) {
            let (Some(ab), Some(ba)) =
                (hodges_lehmann_shift(&a, &b, 0.1), hodges_lehmann_shift(&b, &a, 0.1))
            else {
                return Err(TestCaseError::fail("no estimate"));
            };
            prop_assert!((ab.value + ba.value).abs() < 1e-12);
            prop_assert_eq!(ab.interval.map(|i| i.low), ba.interval.map(|i| -i.high));
            let (p, q) = (mann_whitney_p(&a, &b), mann_whitney_p(&b, &a));
            prop_assert!((p.unwrap() - q.unwrap()).abs() < 1e-12);
        }
    }
}
