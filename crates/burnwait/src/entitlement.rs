//! Entitlements of workers, and how near they came to them.
//!
//! Shares are of one CPU. A worker wants what it uses alone. The pool is shared out by max-min
//! fairness (Bertsekas and Gallager, Data Networks, 6.5.2): nobody gets more than he wants, and
//! what one leaves goes to those who want more, by their weights.

use std::collections::BTreeSet;

/// A worker's claim on the CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask<'a> {
    /// Share of one CPU that it uses alone, at most 1.
    pub want: f64,
    /// Its weight, above 0.
    pub weight: f64,
    /// CPUs that it may use; at least one.
    pub cpus: &'a [u32],
}

/// The weighted max-min fair share of each worker.
///
/// Workers that may use some CPUs only are in the way of others there. The CPUs that are most in
/// demand for the weights of those who can go nowhere else are shared out first, then the most
/// demanded of the rest, and so on.
pub fn shares(asks: &[Ask]) -> Vec<f64> {
    let mut shares: Vec<Option<f64>> = vec![None; asks.len()];
    let pools = pools(asks);
    loop {
        let filled = pools.iter().map(|cpus| fill(asks, &shares, cpus));
        let open = filled.filter(|filled| !filled.shares.is_empty());
        let tightest = open.min_by(|a, b| a.level.total_cmp(&b.level));
        let Some(tightest) = tightest else {
            return shares.into_iter().map(Option::unwrap_or_default).collect();
        };
        for (index, share) in tightest.shares {
            shares[index] = Some(share);
        }
    }
}

/// All that the CPUs of some workers make together.
fn pools(asks: &[Ask]) -> BTreeSet<BTreeSet<u32>> {
    let distinct: BTreeSet<&[u32]> = asks.iter().map(|ask| ask.cpus).collect();
    let mut pools = BTreeSet::new();
    for cpus in distinct {
        let own: BTreeSet<u32> = cpus.iter().copied().collect();
        let more: Vec<BTreeSet<u32>> = pools.iter().map(|pool| pool | &own).collect();
        pools.extend(more);
        pools.insert(own);
    }
    pools
}

/// Shares of workers that can go nowhere else than to the same CPUs.
struct Filled {
    /// Share for each unit of weight of those who get less than they want; infinite where
    /// all get what they want.
    level: f64,
    shares: Vec<(usize, f64)>,
}

fn fill(asks: &[Ask], shares: &[Option<f64>], cpus: &BTreeSet<u32>) -> Filled {
    let within = |ask: &Ask| ask.cpus.iter().all(|cpu| cpus.contains(cpu));
    let mut left = cpus.len() as f64;
    let mut order = Vec::new();
    for (index, (ask, share)) in asks.iter().zip(shares).enumerate() {
        match share {
            _ if !within(ask) => {}
            Some(share) => left -= share,
            None => order.push(index),
        }
    }
    // Who wants least for his weight is satisfied first.
    let first = |index: &usize| asks[*index].want / asks[*index].weight;
    order.sort_by(|a, b| first(a).total_cmp(&first(b)));
    let mut weights: f64 = order.iter().map(|index| asks[*index].weight).sum();
    let mut filled = Filled {
        level: f64::INFINITY,
        shares: Vec::new(),
    };
    for index in order {
        let Ask { want, weight, .. } = asks[index];
        // One thread uses one CPU at most, which its want says already.
        let share = want.min(left.max(0.0) * weight / weights);
        if share < want {
            filled.level = filled.level.min(share / weight);
        }
        filled.shares.push((index, share));
        left -= share;
        weights -= weight;
    }
    filled
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
mod simulation;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shares of workers of equal weight.
    fn of_equals(wants: &[f64], cpus: u32) -> Vec<f64> {
        weighted(wants, &vec![1024.0; wants.len()], cpus)
    }

    /// Shares of workers that may use all of the CPUs.
    fn weighted(wants: &[f64], weights: &[f64], cpus: u32) -> Vec<f64> {
        let all: Vec<u32> = (0..cpus).collect();
        let both = wants.iter().zip(weights);
        let asks = both.map(|(want, weight)| Ask {
            want: *want,
            weight: *weight,
            cpus: &all,
        });
        shares(&asks.collect::<Vec<Ask>>())
    }

    /// Shares of workers of equal weight on CPUs of their own.
    fn placed(asks: &[(f64, &[u32])]) -> Vec<f64> {
        let asks = asks.iter().map(|(want, cpus)| Ask {
            want: *want,
            weight: 1.0,
            cpus,
        });
        shares(&asks.collect::<Vec<Ask>>())
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
        near(&of_equals(&[0.1, 1.0, 0.7], 1), &[0.1, 0.45, 0.45]);
        near(&of_equals(&[1.0, 1.0, 1.0, 1.0], 2), &[0.5; 4]);
        near(&of_equals(&[0.3, 0.2], 2), &[0.3, 0.2]);
        assert!(shares(&[]).is_empty());
    }

    #[test]
    fn the_worked_example_of_schedbench_is_reproduced() {
        // 2 CPUs, workers that want half of one: 5 are entitled to 2/5, 10 to 2/10.
        near(&of_equals(&[0.5; 5], 2), &[0.4; 5]);
        near(&of_equals(&[0.5; 10], 2), &[0.2; 10]);
    }

    #[test]
    fn weights_share_out_what_is_left() {
        // One CPU, weights 2:1:1, all want all of it.
        near(
            &weighted(&[1.0; 3], &[512.0, 256.0, 256.0], 1),
            &[0.5, 0.25, 0.25],
        );
        // The heavy one wants little: the others have the rest in equal parts.
        near(
            &weighted(&[0.2, 1.0, 1.0], &[512.0, 256.0, 256.0], 1),
            &[0.2, 0.4, 0.4],
        );
        // Of two CPUs nobody gets more than one, whatever his weight.
        near(
            &weighted(&[1.0, 1.0, 1.0], &[8.0, 1.0, 1.0], 2),
            &[1.0, 0.5, 0.5],
        );
    }

    #[test]
    fn who_may_use_one_cpu_only_shares_it_with_those_who_find_no_better() {
        let (one, both): (&[u32], &[u32]) = (&[0], &[0, 1]);
        // The free one goes to the other CPU, and the two that are kept share theirs.
        near(
            &placed(&[(1.0, one), (1.0, one), (1.0, both)]),
            &[0.5, 0.5, 1.0],
        );
        // Those that are free fill up what the kept one leaves.
        near(
            &placed(&[(0.2, one), (1.0, both), (1.0, both)]),
            &[0.2, 0.9, 0.9],
        );
        near(&placed(&[(1.0, one), (1.0, &[1])]), &[1.0, 1.0]);
        // All of three CPUs are wanted by four, of which two have CPU 0 alone.
        near(
            &placed(&[(1.0, one), (1.0, one), (1.0, &[0, 1, 2]), (1.0, &[1, 2])]),
            &[0.5, 0.5, 1.0, 1.0],
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
            cpus in 1..8_u32,
        ) {
            let (wants, weights): (Vec<f64>, Vec<f64>) = asks.iter().copied().unzip();
            let shares = weighted(&wants, &weights, cpus);
            let sum: f64 = shares.iter().sum();
            let wanted: f64 = wants.iter().sum();
            prop_assert!((sum - wanted.min(cpus.into())).abs() < 1e-9);
            let for_weight = |(share, weight): (&f64, &f64)| share / weight;
            let most = shares.iter().zip(&weights).map(for_weight).fold(0.0, f64::max);
            for (share, (want, weight)) in shares.iter().zip(&asks) {
                prop_assert!(*share <= want + 1e-12);
                // Who got less than he wants got as much for his weight as anybody.
                let is_most = (most - share / weight).abs() < 1e-9;
                prop_assert!((want - share).abs() < 1e-9 || is_most);
            }
        }

        #[test]
        fn shares_of_placed_workers_fit_on_their_cpus(
            asks in proptest::collection::vec((0.0..1.0_f64, 1..16_u32), 1..12),
        ) {
            let cpus = |mask: u32| (0..4).filter(|cpu| mask >> cpu & 1 == 1).collect::<Vec<u32>>();
            let lists: Vec<Vec<u32>> = asks.iter().map(|(_, mask)| cpus(*mask)).collect();
            let placed: Vec<(f64, &[u32])> =
                asks.iter().zip(&lists).map(|((want, _), list)| (*want, &list[..])).collect();
            let shares = self::placed(&placed);
            for mask in 1..16 {
                let within = shares.iter().zip(&asks).filter(|(_, (_, own))| own & !mask == 0);
                let sum: f64 = within.map(|(share, _)| share).sum();
                prop_assert!(sum <= f64::from(mask.count_ones()) + 1e-9);
            }
        }
    }
}
