//! Entitlements of workers, and how near they came to them.
//!
//! Shares are of one CPU. A worker wants what it uses alone. The pool is shared out by max-min
//! fairness (Bertsekas and Gallager, Data Networks, 6.5.2): nobody gets more than he wants, and
//! what one leaves goes to those who want more, by their weights.

/// A worker's claim on the pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask {
    /// Share of one CPU that it uses alone, at most 1.
    pub want: f64,
    /// Its weight, above 0.
    pub weight: f64,
}

/// The weighted max-min fair share of each worker, of a pool of so many CPUs.
pub fn shares(asks: &[Ask], cpus: f64) -> Vec<f64> {
    // Who wants least for his weight is satisfied first.
    let mut order: Vec<usize> = (0..asks.len()).collect();
    let first = |index: &usize| asks[*index].want / asks[*index].weight;
    order.sort_by(|a, b| first(a).total_cmp(&first(b)));
    let mut shares = vec![0.0; asks.len()];
    let mut left = cpus;
    let mut weights: f64 = asks.iter().map(|ask| ask.weight).sum();
    for index in order {
        let Ask { want, weight } = asks[index];
        // One thread uses one CPU at most, which its want says already.
        shares[index] = want.min(left * weight / weights);
        left -= shares[index];
        weights -= weight;
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

    /// Shares of workers of equal weight.
    fn of_equals(wants: &[f64], cpus: f64) -> Vec<f64> {
        shares(&weighted(wants, &vec![1024.0; wants.len()]), cpus)
    }

    fn weighted(wants: &[f64], weights: &[f64]) -> Vec<Ask> {
        let both = wants.iter().zip(weights);
        both.map(|(want, weight)| Ask {
            want: *want,
            weight: *weight,
        })
        .collect()
    }

    fn near(found: &[f64], wanted: &[f64]) {
        let close = found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 1e-9);
        assert!(
            close && found.len() == wanted.len(),
            "{found:?}, not {wanted:?}"
        );
    }

    #[test]
    fn what_one_leaves_goes_to_those_who_want_more() {
        near(&of_equals(&[0.1, 1.0, 0.7], 1.0), &[0.1, 0.45, 0.45]);
        near(&of_equals(&[1.0, 1.0, 1.0, 1.0], 2.0), &[0.5; 4]);
        near(&of_equals(&[0.3, 0.2], 2.0), &[0.3, 0.2]);
        assert!(shares(&[], 2.0).is_empty());
    }

    #[test]
    fn the_worked_example_of_schedbench_is_reproduced() {
        // 2 CPUs, workers that want half of one: 5 are entitled to 2/5, 10 to 2/10.
        near(&of_equals(&[0.5; 5], 2.0), &[0.4; 5]);
        near(&of_equals(&[0.5; 10], 2.0), &[0.2; 10]);
    }

    #[test]
    fn weights_share_out_what_is_left() {
        // One CPU, weights 2:1:1, all want all of it.
        near(
            &shares(&weighted(&[1.0; 3], &[512.0, 256.0, 256.0]), 1.0),
            &[0.5, 0.25, 0.25],
        );
        // The heavy one wants little: the others have the rest in equal parts.
        near(
            &shares(&weighted(&[0.2, 1.0, 1.0], &[512.0, 256.0, 256.0]), 1.0),
            &[0.2, 0.4, 0.4],
        );
        // Of two CPUs nobody gets more than one, whatever his weight.
        near(
            &shares(&weighted(&[1.0, 1.0, 1.0], &[8.0, 1.0, 1.0]), 2.0),
            &[1.0, 0.5, 0.5],
        );
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
            asks in proptest::collection::vec((0.0..1.0_f64, 3.0..100_000.0_f64), 1..20),
            cpus in 0.1..8.0_f64,
        ) {
            let asks: Vec<Ask> =
                asks.into_iter().map(|(want, weight)| Ask { want, weight }).collect();
            let shares = shares(&asks, cpus);
            let sum: f64 = shares.iter().sum();
            let wanted: f64 = asks.iter().map(|ask| ask.want).sum();
            prop_assert!((sum - wanted.min(cpus)).abs() < 1e-9);
            let for_weight = |(share, ask): (&f64, &Ask)| share / ask.weight;
            let most = shares.iter().zip(&asks).map(for_weight).fold(0.0, f64::max);
            for (share, ask) in shares.iter().zip(&asks) {
                prop_assert!(*share <= ask.want + 1e-12);
                // Who got less than he wants got as much for his weight as anybody.
                let is_most = (most - share / ask.weight).abs() < 1e-9;
                prop_assert!((ask.want - share).abs() < 1e-9 || is_most);
            }
        }
    }
}
