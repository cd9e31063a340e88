//! Verdicts on blocks in which the order of the arms was drawn.
//!
//! They are those of the safe t-test ([`verdict`]) as long as the blocks look as it assumes. Where a
//! few of them are far from all others, the variance is theirs, and the t-test is blind to an
//! effect that all others show. There the coins that drew the order decide ([`randomization`]),
//! which assume nothing of the noise and let no block count for much.
//!
//! Which of both is asked depends on the sizes `|x|` alone. Where the arms do not differ, the coins
//! are independent of them, so under normal noise the chance of a false *better* or *worse* is at most
//! `alpha · (1 + P(far blocks are seen))`, and with the limit of [`is_far`] that is `1.004 · alpha`.
//! Under other noise it is at most the sum of what both tests err by: `alpha` of the coins, and that of
//! the t-test where no block is far. The interval of a difference, and *same* with it, have only this
//! sum, since the sizes depend on the coins where there is a difference.

use crate::randomization::{self, Process};
use crate::safe_test::saturating_exp;
use crate::summary::Moments;
use crate::verdict::{
    self, Judgement, Params, Test, Verdict, blocks_needed, is_different, is_same, judge_direction,
    to_ratio,
};

/// Fewest blocks that tell that some are far from the others.
const FEWEST: usize = 8;

/// Judges the log-ratios `xs` of blocks, in the order of measuring.
pub fn judge(xs: &[f64], params: &Params) -> Judgement {
    let judged = verdict::judge(xs, params);
    if xs.iter().any(|x| !x.is_finite()) || !is_ever_far(xs) {
        return judged;
    }
    let mut looks = Looks::new(params);
    let mut called = None;
    let mut same = None;
    for x in xs {
        looks.push(*x);
        let blocks = looks.moments.count();
        if same.is_none() && looks.is_same(params) {
            same = Some((Verdict::Same, blocks));
        }
        if called.is_none() && looks.is_different(params) {
            called = Some((looks.direction(params), blocks));
        }
    }
    let decision = same.or(called);
    let verdict = decision.map_or(Verdict::Unknown, |(verdict, _)| verdict);
    let judged = Judgement {
        verdict,
        decided_at: decision.map(|(_, block)| block),
        upheld: match verdict {
            Verdict::Same => looks.is_same(params),
            Verdict::Unknown => true,
            called => looks.is_different(params) && looks.direction(params) == called,
        },
        ..judged
    };
    if !looks.is_far {
        let needed = || blocks_needed(&looks.moments, params);
        return Judgement {
            blocks_needed: (decision.is_none() || !judged.upheld)
                .then(needed)
                .flatten(),
            ..judged
        };
    }
    Judgement {
        blocks_needed: None,
        ratio: randomization::estimate_centre(xs).map_or(f64::NAN, f64::exp),
        interval: randomization::confidence_sequence(xs, params.alpha).map(to_ratio),
        e_value: saturating_exp(looks.coins.ln_e()),
        test: Test::Coins,
        ..judged
    }
}

/// True if some of the values are far from the others.
pub fn is_far(xs: &[f64]) -> bool {
    let mut sizes = Sizes::default();
    xs.iter().for_each(|x| sizes.push(*x));
    sizes.is_far()
}

fn is_ever_far(xs: &[f64]) -> bool {
    let mut sizes = Sizes::default();
    xs.iter().any(|x| {
        sizes.push(*x);
        sizes.is_far()
    })
}

/// The sizes of the values so far.
#[derive(Debug, Clone, Default)]
struct Sizes {
    /// In order of size.
    sorted: Vec<f64>,
    squares: f64,
}

impl Sizes {
    fn push(&mut self, x: f64) {
        let size = x.abs();
        let place = self.sorted.partition_point(|known| *known < size);
        self.sorted.insert(place, size);
        self.squares += size * size;
    }

    /// True if the root mean square of the sizes is far above their median. For normal values the
    /// factor is about 1.5. It is above this limit for at most 2 of 1 000 series of one length, and
    /// for 4 of 1 000 at any of the lengths from 8 to 40 (simulated, 20 000 and 5 000 series).
    fn is_far(&self) -> bool {
        let count = self.sorted.len();
        if count < FEWEST {
            return false;
        }
        let middle = f64::midpoint(self.sorted[(count - 1) / 2], self.sorted[count / 2]);
        let limit = 1.5 + 12.0 / (count as f64).sqrt();
        middle > 0.0 && (self.squares / count as f64).sqrt() > limit * middle
    }
}

/// Knowledge of both tests after some blocks.
struct Looks {
    xs: Vec<f64>,
    sizes: Sizes,
    is_far: bool,
    moments: Moments,
    coins: Process,
    /// The coins of the differences from either end of *same*.
    from_ends: [(f64, Process); 2],
}

impl Looks {
    fn new(params: &Params) -> Self {
        let end = params.smallest_effect.ln_1p();
        Looks {
            xs: Vec::new(),
            sizes: Sizes::default(),
            is_far: false,
            moments: Moments::default(),
            coins: Process::default(),
            from_ends: [-end, end].map(|end| (end, Process::default())),
        }
    }

    fn push(&mut self, x: f64) {
        self.xs.push(x);
        self.sizes.push(x);
        self.is_far = self.sizes.is_far();
        self.moments.push(x);
        self.coins.push(x);
        for (end, process) in &mut self.from_ends {
            process.push(x - *end);
        }
    }

    fn is_different(&self, params: &Params) -> bool {
        match self.is_far {
            true => self.coins.ln_e() >= -params.alpha.ln(),
            false => is_different(&self.moments, params),
        }
    }

    fn is_same(&self, params: &Params) -> bool {
        if !self.is_far {
            return is_same(&self.moments, params);
        }
        let limit = params.smallest_effect.ln_1p();
        // Both ends are rejected wherever the interval lies between them, and that is soon known.
        let is_rejected = |(_, process): &(f64, Process)| process.ln_e() >= -params.alpha.ln();
        self.from_ends.iter().all(is_rejected)
            && randomization::confidence_sequence(&self.xs, params.alpha)
                .is_some_and(|found| -limit <= found.low && found.high <= limit)
    }

    fn direction(&self, params: &Params) -> Verdict {
        let centre = match self.is_far {
            true => randomization::estimate_centre(&self.xs).unwrap_or(0.0),
            false => self.moments.mean(),
        };
        judge_direction(centre, params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Normal;
    use model::Better;

    const PARAMS: Params = Params {
        alpha: 0.05,
        smallest_effect: 0.02,
        better: Better::Higher,
    };

    /// Blocks around a mean, of which every tenth is a burst to either side.
    fn bursts(seed: u64, count: usize, mean: f64) -> Vec<f64> {
        let mut normal = Normal::from_seed(seed);
        let burst = |k: usize| match k % 20 {
            4 => 2.0,
            14 => -2.0,
            _ => 0.0,
        };
        (0..count)
            .map(|k| mean + burst(k) + 0.02 * normal.next_value())
            .collect()
    }

    #[test]
    fn an_effect_among_bursts_is_found_by_the_coins_and_not_by_the_t_test() {
        let xs = bursts(1, 40, 0.03);
        assert_eq!(verdict::judge(&xs, &PARAMS).verdict, Verdict::Unknown);
        let judged = judge(&xs, &PARAMS);
        assert_eq!(
            (judged.verdict, judged.test),
            (Verdict::Better, Test::Coins)
        );
        assert!((1.01..1.05).contains(&judged.ratio), "{judged:?}");
        assert!(judged.interval.is_some_and(|i| i.low > 1.0 && i.high < 1.1));
    }

    #[test]
    fn ordinary_blocks_are_judged_by_the_t_test() {
        let mut normal = Normal::from_seed(2);
        let xs: Vec<f64> = (0..30).map(|_| 0.01 + 0.02 * normal.next_value()).collect();
        assert_eq!(judge(&xs, &PARAMS), verdict::judge(&xs, &PARAMS));
        assert!(!is_far(&xs));
    }

    #[test]
    fn a_verdict_before_the_first_burst_stands() {
        let mut xs = vec![0.1, 0.11, 0.09, 0.1, 0.11, 0.1, 0.09, 0.1];
        let before = judge(&xs, &PARAMS);
        xs.extend([-3.0, -3.0]);
        let after = judge(&xs, &PARAMS);
        assert_eq!(
            (after.verdict, after.decided_at),
            (before.verdict, before.decided_at)
        );
        assert_eq!(after.test, Test::Coins);
    }

    #[test]
    fn equal_arms_with_bursts_are_called_in_at_most_one_of_twenty() {
        let mut normal = Normal::from_seed(3);
        let mut series = || -> Vec<f64> {
            let mut xs: Vec<f64> = (0..40).map(|_| 0.02 * normal.next_value()).collect();
            for x in &mut xs {
                // One of sixteen, by the bits of the noise.
                if x.to_bits() % 16 == 0 {
                    *x *= 100.0;
                }
            }
            xs
        };
        let called = (0..400).filter(|_| judge(&series(), &PARAMS).verdict.is_call());
        let called = called.count();
        assert!(called <= 28, "{called} of 400");
    }
}
