//! The size of a change where the blocks themselves ended the measuring.
//!
//! A series that goes on until it is decided ends where its blocks happen to lie far from 0 (or, for *same*, near it), so
//! their centre is too large more often than too small. Its interval holds at every look and needs no mending; the
//! centre does.
//!
//! The first blocks, up to the first look, are measured in any case: nothing has been chosen by their figures, and
//! their centre is right on average. It is also a guess from few blocks. But which of all blocks came first is chance
//! (a coin drew the order of the arms in each, and what a block is does not depend on its number). So the centre of the
//! first ones is averaged over all orders of the blocks in which the same looks would have come as far and have ended
//! in the same way. That average is as right as the first blocks are, whatever the rule that ended the series and
//! whatever the noise, and knows all that all blocks tell of it (Rao and Blackwell; for tests in stages Emerson and
//! Fleming, 1990). Where there was no look before the last it is the centre of all blocks.
//!
//! What it needs is that blocks could have come in another order. Where the difference itself drifts they could not, and
//! a report says so.
//!
//! Sources: Rao (1945); Blackwell (1947); Girshick, Mosteller and Savage, "Unbiased estimates for certain binomial
//! sampling problems with applications" (1946); Emerson and Fleming, "Parameter estimation following group sequential
//! hypothesis testing" (1990).

use crate::randomization::{Prior, Process, estimate_centre, fewest_pairs};
use crate::summary::Moments;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Orders over which the mean is taken, and those that are tried for them.
const ORDERS: u32 = 64;
const TRIED: u32 = 500;
/// Values that are looked at in all orders together, at most.
const MOST_VALUES: usize = 2_000_000;

/// The rule by which a series is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Error rate of a comparison.
    pub alpha: f64,
    /// Shifts within this are of no interest.
    pub limit: f64,
    /// Expectation with which the coins are bet on.
    pub prior: Prior,
}

/// Answer of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Call,
    Same,
    Open,
}

/// The size of the change of a series that ended at its last value. It would have ended before, at the first so many
/// values (`looks`, rising), if it had been decided there. None without values.
pub fn estimate_size(xs: &[f64], looks: &[usize], rule: Rule) -> Option<f64> {
    let centre = estimate_centre(xs)?;
    let fewest = fewest_pairs(rule.alpha, rule.prior) as usize;
    let earlier = looks.iter().copied();
    let mut earlier: Vec<usize> = earlier
        .filter(|look| (fewest..xs.len()).contains(look))
        .collect();
    earlier.dedup();
    let Some(first) = earlier.first().copied() else {
        return Some(centre);
    };
    let series = Series {
        rule,
        looks: earlier,
    };
    // Who was looked at by another rule ended by none that is known here.
    let Some(ended) = series.answer(xs) else {
        return Some(centre);
    };
    let mut order = xs.to_vec();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let (mut of_all, mut of_likely) = (Moments::default(), Moments::default());
    // The order that was seen is one of them.
    of_likely.push(estimate_centre(&xs[..first])?);
    let tries = u32::try_from(MOST_VALUES / xs.len()).unwrap_or(TRIED);
    for tried in 0..tries.min(TRIED) {
        shuffle(&mut order, &mut rng);
        let is_likely = series.answer(&order) == Some(ended);
        // As many of all orders are enough.
        if is_likely || tried < ORDERS {
            let of_first = estimate_centre(&order[..first])?;
            if tried < ORDERS {
                of_all.push(of_first);
            }
            if is_likely {
                of_likely.push(of_first);
            }
        }
        if of_likely.count() >= ORDERS && tried >= ORDERS {
            break;
        }
    }
    Some(centre + of_likely.mean() - of_all.mean())
}

/// The looks at values in some order.
struct Series {
    rule: Rule,
    /// Numbers of values at which it was looked before the last.
    looks: Vec<usize>,
}

impl Series {
    /// Answer at the last value; none where an earlier look has one.
    fn answer(&self, xs: &[f64]) -> Option<Answer> {
        let is_called = self.is_rejected_first_at_the_end(xs, &[0.0])?;
        // An end of 0 is none.
        let limit = self.rule.limit;
        let is_same = limit > 0.0 && self.is_rejected_first_at_the_end(xs, &[-limit, limit])?;
        Some(match (is_same, is_called) {
            (true, _) => Answer::Same,
            (false, true) => Answer::Call,
            (false, false) => Answer::Open,
        })
    }

    /// True if all of these shifts are rejected at the last value; none where they are at an earlier look.
    fn is_rejected_first_at_the_end(&self, xs: &[f64], shifts: &[f64]) -> Option<bool> {
        let mut coins = vec![Process::new(self.rule.prior); shifts.len()];
        let rejects = |coins: &[Process]| coins.iter().all(|c| c.ln_e() >= -self.rule.alpha.ln());
        let mut looks = self.looks.iter().peekable();
        for (k, x) in xs.iter().enumerate() {
            for (process, shift) in coins.iter_mut().zip(shifts) {
                process.push(x - shift);
            }
            if looks.next_if_eq(&&(k + 1)).is_some() && rejects(&coins) {
                return None;
            }
        }
        Some(rejects(&coins))
    }
}

fn shuffle(values: &mut [f64], rng: &mut ChaCha8Rng) {
    for k in (1..values.len()).rev() {
        values.swap(k, rng.random_range(0..=k));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::randomization::confidence_sequence;
    use crate::testing::{Normal, assert_close};

    const RULE: Rule = Rule {
        alpha: 0.05,
        limit: 0.02,
        prior: Prior::BLOCKS,
    };
    const MOST: usize = 24;

    /// Blocks until they are decided, or the most.
    fn decided_blocks(seed: u64, change: f64) -> Vec<f64> {
        let mut normal = Normal::from_seed(seed);
        let mut xs = Vec::new();
        let mut coins = Process::new(RULE.prior);
        while xs.len() < MOST && coins.ln_e() < -RULE.alpha.ln() {
            xs.push(change + 0.1 * normal.next_value());
            xs.last().iter().for_each(|x| coins.push(**x));
        }
        xs
    }

    fn estimate(xs: &[f64]) -> f64 {
        let looks: Vec<usize> = (1..xs.len()).collect();
        estimate_size(xs, &looks, RULE).unwrap()
    }

    #[test]
    fn without_an_earlier_look_it_is_the_centre() {
        let xs = decided_blocks(1, 0.08);
        let centre = estimate_centre(&xs);
        assert_eq!(estimate_size(&xs, &[], RULE), centre);
        // Five blocks never decide.
        assert_eq!(estimate_size(&xs, &[1, 3, 5], RULE), centre);
        assert_eq!(estimate_size(&[], &[], RULE), None);
    }

    #[test]
    fn what_was_looked_at_by_another_rule_has_its_centre() {
        let xs = [0.1; 12];
        let looks: Vec<usize> = (1..12).collect();
        assert_eq!(estimate_size(&xs, &looks, RULE), Some(0.1));
    }

    #[test]
    fn blocks_that_are_mirrored_have_the_mirrored_size() {
        let xs = decided_blocks(3, 0.08);
        let mirrored: Vec<f64> = xs.iter().map(|x| -x).collect();
        assert_close(Some(-estimate(&mirrored)), estimate(&xs));
    }

    #[test]
    fn it_is_right_on_average_where_the_centre_is_too_large() {
        let change = 0.08;
        let mut mended = Moments::default();
        let mut centres = Moments::default();
        for seed in 1..=300 {
            let xs = decided_blocks(seed, change);
            mended.push(estimate(&xs) - change);
            centres.push(estimate_centre(&xs).unwrap() - change);
        }
        let bias = |errors: &Moments| errors.mean() / errors.sd().unwrap();
        assert!(bias(&centres) > 0.2, "{}", bias(&centres));
        assert!(bias(&mended).abs() < 0.1, "{}", bias(&mended));
    }

    #[test]
    fn it_is_hardly_ever_outside_of_the_interval() {
        let outside = (1..=60).filter(|seed| {
            let xs = decided_blocks(*seed, 0.1);
            let held = confidence_sequence(&xs, RULE.alpha, RULE.prior);
            held.is_some_and(|held| !held.contains(estimate(&xs)))
        });
        assert!(outside.count() <= 1);
    }
}
