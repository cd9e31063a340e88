//! The regret of each of several arms over a mix of comparisons: how far it stays behind the best of them,
//! and how well that is known.
//!
//! A part of the mix compares all arms with one baseline by one figure. Its blocks are drawn again with
//! replacement, all arms of a block together, since they share what the machine did then. A mean that is
//! drawn so varies too little, by the factor `sqrt((n - 1) / n)`, and knows too well how large the noise is:
//! both are made good, so that three blocks count as three. The same draws answer what other weights and
//! more blocks would say.

use crate::summary::{mean, quantile, sorted_copy};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Blocks of a part below which nothing is known of its noise.
pub const FEWEST_BLOCKS: usize = 3;

const SEED: u64 = 0x5EED;
const MOST_DRAWS: usize = 2000;
const FEWEST_DRAWS: usize = 400;
/// Numbers that are kept in all.
const MOST_NUMBERS: usize = 20_000_000;
/// Degrees of freedom from which on the size of the noise is taken as known.
const MANY: usize = 60;

/// Gains of all arms in one block: logarithms of ratios to the baseline, positive where the arm is better.
/// None where the arm was not measured.
pub type BlockGains = Vec<Option<f64>>;

/// Weight of a part, and what its doubt is multiplied by: 1 as it was measured, 0.5 with four times the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighed {
    /// Weight, not negative.
    pub weight: f64,
    /// Factor of the doubt.
    pub spread: f64,
}

/// Value with its range: the lower and the upper end are exceeded by all but a share, and by a share, of the
/// draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Mean over the draws.
    pub expected: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Place of an arm in the mix. Gain and regret are logarithms of ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Share of the draws in which the arm is the best.
    pub chance_best: f64,
    /// Distance to the best arm.
    pub regret: Range,
    /// Gain over the baseline.
    pub gain: Range,
}

/// Means of all arms in each part, drawn many times.
#[derive(Debug, Clone)]
pub struct Draws {
    parts: Vec<Part>,
    arms: usize,
    count: usize,
}

#[derive(Debug, Clone)]
struct Part {
    means: Vec<f64>,
    /// Deviations from the means, the arms of a draw beside each other.
    deviations: Vec<f64>,
}

impl Draws {
    /// Draws of parts, each of which has its blocks. None where an arm has too few blocks in a part. The
    /// baseline is an arm, too, with gains of 0.
    pub fn from_blocks(parts: &[Vec<BlockGains>], arms: usize) -> Option<Draws> {
        let numbers = (parts.len() * arms).max(1);
        let count = (MOST_NUMBERS / numbers).clamp(FEWEST_DRAWS, MOST_DRAWS);
        let draw = |(index, blocks): (u64, &Vec<BlockGains>)| {
            let mut rng = ChaCha8Rng::seed_from_u64(SEED);
            rng.set_stream(index);
            draw_part(blocks, arms, count, &mut rng)
        };
        let parts: Option<Vec<Part>> = (0..).zip(parts).map(draw).collect();
        Some(Draws {
            parts: parts?,
            arms,
            count,
        })
    }

    /// Standings of all arms in a mix that has an entry for each part. `baseline` is the arm that gains are
    /// over, and the ends of the ranges leave out `1 - confidence` on their side. None where no part has a
    /// weight.
    pub fn judge_mix(
        &self,
        mix: &[Weighed],
        baseline: usize,
        confidence: f64,
    ) -> Option<Vec<Standing>> {
        let total: f64 = mix.iter().map(|part| part.weight).sum();
        if total <= 0.0 || !total.is_finite() {
            return None;
        }
        let mut best = vec![0_usize; self.arms];
        let mut regrets = vec![Vec::with_capacity(self.count); self.arms];
        let mut gains = regrets.clone();
        for draw in 0..self.count {
            let scores: Vec<f64> = (0..self.arms)
                .map(|arm| self.score(mix, draw, arm) / total)
                .collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let first = scores.iter().position(|score| *score == top).unwrap_or(0);
            best[first] += 1;
            for (arm, score) in scores.iter().enumerate() {
                regrets[arm].push(top - score);
                gains[arm].push(score - scores[baseline]);
            }
        }
        let standing = |arm: usize| {
            Some(Standing {
                chance_best: best[arm] as f64 / self.count as f64,
                regret: range(&regrets[arm], confidence)?,
                gain: range(&gains[arm], confidence)?,
            })
        };
        (0..self.arms).map(standing).collect()
    }

    fn score(&self, mix: &[Weighed], draw: usize, arm: usize) -> f64 {
        let parts = self.parts.iter().zip(mix);
        let of_part = |(part, weighed): (&Part, &Weighed)| {
            let deviation = part.deviations[draw * self.arms + arm];
            weighed.weight * (part.means[arm] + weighed.spread * deviation)
        };
        parts.map(of_part).sum()
    }
}

/// The arm to take: the baseline where it is behind the best by no more than `care`, a logarithm of a ratio;
/// else the arm with the least expected regret of those that are ahead of the baseline and behind the best by
/// no more than that. None where neither is known: the ends of the ranges decide.
pub fn choose_arm(standings: &[Standing], baseline: usize, care: f64) -> Option<usize> {
    let is_safe = |arm: &usize| standings[*arm].regret.high <= care;
    if is_safe(&baseline) {
        return Some(baseline);
    }
    let is_ahead = |arm: &usize| standings[*arm].gain.low > 0.0;
    let arms = 0..standings.len();
    let expected = |arm: &usize| standings[*arm].regret.expected;
    arms.filter(|arm| is_safe(arm) && is_ahead(arm))
        .min_by(|a, b| expected(a).total_cmp(&expected(b)))
}

/// The arm with the least expected regret, whether that is known well or not.
pub fn find_leader(standings: &[Standing]) -> Option<usize> {
    let expected = |arm: &usize| standings[*arm].regret.expected;
    (0..standings.len()).min_by(|a, b| expected(a).total_cmp(&expected(b)))
}

fn range(values: &[f64], confidence: f64) -> Option<Range> {
    // What is sorted is sorted again in no time.
    let sorted = sorted_copy(values);
    Some(Range {
        expected: mean(&sorted)?,
        low: quantile(&sorted, 1.0 - confidence)?,
        high: quantile(&sorted, confidence)?,
    })
}

fn draw_part(
    blocks: &[BlockGains],
    arms: usize,
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Option<Part> {
    let measured = |arm: usize| blocks.iter().filter_map(|block| block[arm]).count();
    let fewest = (0..arms).map(measured).min()?;
    if fewest < FEWEST_BLOCKS {
        return None;
    }
    let means = (0..arms).map(|arm| mean_over(blocks.iter(), arm));
    let means: Option<Vec<f64>> = means.collect();
    let means = means?;
    let corrected = (fewest as f64 / (fewest - 1) as f64).sqrt();
    let mut deviations = Vec::with_capacity(count * arms);
    for _ in 0..count {
        let drawn: Vec<&BlockGains> = (0..blocks.len())
            .map(|_| &blocks[rng.random_range(0..blocks.len())])
            .collect();
        let stretch = corrected * noise_factor(fewest - 1, rng);
        for (arm, mean) in means.iter().enumerate() {
            // An arm that no drawn block has is as it was on average.
            let again = mean_over(drawn.iter().copied(), arm).unwrap_or(*mean);
            deviations.push(stretch * (again - mean));
        }
    }
    Some(Part { means, deviations })
}

fn mean_over<'a>(blocks: impl Iterator<Item = &'a BlockGains>, arm: usize) -> Option<f64> {
    let gains = blocks.filter_map(|block| block[arm]);
    let (sum, count) = gains.fold((0.0, 0_usize), |(sum, count), gain| (sum + gain, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Factor by which the noise may be larger than these degrees of freedom show: what makes a normal
/// distribution one of Student.
fn noise_factor(freedom: usize, rng: &mut ChaCha8Rng) -> f64 {
    if freedom >= MANY {
        return 1.0;
    }
    let squares: f64 = (0..freedom).map(|_| normal(rng).powi(2)).sum();
    (freedom as f64 / squares).sqrt()
}

/// Standard normal, by Box and Muller.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::blocks_of_gains as blocks;

    const EVEN: Weighed = Weighed {
        weight: 1.0,
        spread: 1.0,
    };

    fn standings(parts: &[Vec<BlockGains>], mix: &[Weighed]) -> Vec<Standing> {
        let draws = Draws::from_blocks(parts, parts[0][0].len()).unwrap();
        draws.judge_mix(mix, 0, 0.95).unwrap()
    }

    #[test]
    fn an_arm_that_is_far_ahead_is_the_best_and_the_others_regret_it() {
        let found = standings(&[blocks(1, 10, &[0.10, 0.02], 0.01)], &[EVEN]);
        assert!(found[1].chance_best > 0.999, "{found:?}");
        assert!(found[1].regret.high < 1e-9, "{found:?}");
        assert!((found[0].regret.expected - 0.10).abs() < 0.01, "{found:?}");
        assert!(found[2].gain.low > 0.0 && found[2].gain.high < 0.04);
    }

    #[test]
    fn the_weights_decide_between_arms_that_trade() {
        let parts = [blocks(2, 10, &[0.10], 0.01), blocks(3, 10, &[-0.05], 0.01)];
        let heavy = |weight| Weighed { weight, ..EVEN };
        let first = standings(&parts, &[EVEN, EVEN]);
        assert!(first[1].chance_best > 0.99, "{first:?}");
        let second = standings(&parts, &[EVEN, heavy(4.0)]);
        assert!(second[0].chance_best > 0.99, "{second:?}");
        let none = Draws::from_blocks(&parts, 2).unwrap();
        assert_eq!(none.judge_mix(&[heavy(0.0); 2], 0, 0.95), None);
    }

    #[test]
    fn few_blocks_know_less_and_more_blocks_know_more() {
        let width = |count| {
            let found = standings(&[blocks(4, count, &[0.0], 0.02)], &[EVEN]);
            found[1].gain.high - found[1].gain.low
        };
        assert!(width(3) > 3.0 * width(30), "{} {}", width(3), width(30));
        let draws = Draws::from_blocks(&[blocks(4, 10, &[0.0], 0.02)], 2).unwrap();
        let with = |spread| {
            let mix = [Weighed { spread, ..EVEN }];
            let found = draws.judge_mix(&mix, 0, 0.95).unwrap();
            found[1].gain.high - found[1].gain.low
        };
        assert!((with(0.5) / with(1.0) - 0.5).abs() < 1e-9);
        assert!(Draws::from_blocks(&[blocks(4, 2, &[0.0], 0.02)], 2).is_none());
    }

    /// The ends are those of Student's t, so that they hold the truth as often as they say.
    #[test]
    fn the_interval_of_five_blocks_holds_the_truth_as_often_as_it_says() {
        let holds = |seed| {
            let found = standings(&[blocks(seed, 5, &[0.03], 0.02)], &[EVEN]);
            found[1].gain.low <= 0.03 && 0.03 <= found[1].gain.high
        };
        let held = (0..400).filter(|seed| holds(1000 + seed)).count();
        assert!((336..=384).contains(&held), "{held} of 400, 90 % wanted");
    }

    #[test]
    fn the_same_blocks_give_the_same_answer() {
        let parts = [blocks(5, 8, &[0.01, 0.0, 0.02], 0.03)];
        assert_eq!(standings(&parts, &[EVEN]), standings(&parts, &[EVEN]));
    }
}
