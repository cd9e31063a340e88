//! What each worker is entitled to, and how near it came.
//!
//! Shares are of one CPU. A worker wants what it uses alone. The pool is shared out by max-min
//! fairness (Bertsekas and Gallager, Data Networks, 6.5.2): nobody gets more than he wants, and
//! what one leaves goes to those who want more, in equal parts.

/// The max-min fair share of each of those who want so much, of a pool of so many CPUs.
pub fn shares(wants: &[f64], cpus: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by(|a, b| wants[*a].total_cmp(&wants[*b]));
    let mut shares = vec![0.0; wants.len()];
    let mut left = cpus;
    for (done, index) in order.iter().enumerate() {
        let equal = left / (wants.len() - done) as f64;
        // One thread uses one CPU at most, which its want says already.
        shares[*index] = wants[*index].min(equal);
        left -= shares[*index];
    }
    shares
}

/// Jain's fairness index of what was got of what was due (Jain, Chiu, Hawe 1984): 1 if all got
/// the same part, 1/n if one got all. `None` where nobody got anything.
pub fn jain(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().sum();
    let squares: f64 = ratios.iter().map(|ratio| ratio * ratio).sum();
    (squares > 0.0).then(|| sum * sum / (ratios.len() as f64 * squares))
}

/// Standard deviation of equals in percent of their mean, of all of them (n, not n - 1).
/// `None` with fewer than two, or of nothing.
pub fn spread_percent(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 || mean <= 0.0 {
        return None;
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    Some(100.0 * variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_one_leaves_goes_to_those_who_want_more() {
        assert_eq!(shares(&[0.1, 1.0, 0.7], 1.0), [0.1, 0.45, 0.45]);
        assert_eq!(shares(&[1.0, 1.0, 1.0, 1.0], 2.0), [0.5; 4]);
        assert_eq!(shares(&[0.3, 0.2], 2.0), [0.3, 0.2]);
        assert!(shares(&[], 2.0).is_empty());
    }

    #[test]
    fn the_index_is_one_for_equals_and_a_part_for_one_alone() {
        assert_eq!(jain(&[0.5, 0.5, 0.5]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn the_spread_is_of_all_of_them() {
        assert_eq!(spread_percent(&[1.0, 3.0]), Some(50.0));
        assert_eq!(spread_percent(&[2.0]), None);
    }

    proptest! {
        #[test]
        fn shares_are_within_the_wants_and_use_the_pool(
            wants in proptest::collection::vec(0.0..1.0_f64, 1..20), cpus in 0.1..8.0_f64,
        ) {
            let shares = shares(&wants, cpus);
            let sum: f64 = shares.iter().sum();
            let wanted: f64 = wants.iter().sum();
            prop_assert!((sum - wanted.min(cpus)).abs() < 1e-9);
            let most = shares.iter().copied().fold(0.0, f64::max);
            for (share, want) in shares.iter().zip(&wants) {
                prop_assert!(*share <= want + 1e-12);
                // Who got less than he wants got as much as anybody.
                prop_assert!((want - share).abs() < 1e-9 || (most - share).abs() < 1e-9);
            }
        }
    }
}
