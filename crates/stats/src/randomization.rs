//! The randomization (design-based) e-process of pairs whose order a fair coin drew.
//!
//! A pair is two windows of one thing that runs on, or two trials of a block. The coin says which arm comes
//! first, and `x_k = ln(arm / baseline)`. If the label makes no difference, the figures of both are what they
//! are, and the coin only decides the sign of `x_k`. Whatever the machine does (drift, bursts, modes,
//! dependence from one to the next), whoever says how likely each sign is before it is shown,
//!
//! ```text
//! E = Π 2·p_k(sign of x_k),   p_k(+) + p_k(−) = 1
//! ```
//!
//! has the mean 1 and is a test martingale, for any `p_k` that is chosen from the past and from `|x_k|`:
//! the coin of pair `k` is in neither. So the chance that E *ever* reaches `1/alpha` is at most
//! `alpha` (Ville's inequality), without normality, independence or a variance.
//!
//! If the arm changes each figure by the same factor, `θ` in logarithms, then `x_k − θ` has the
//! sign of the coin: with the coin on one side `x_k = θ + d_k`, with it on the other
//! `x_k = θ − d_k`, where `d_k` is the difference between the two moments. The shifts `θ` that the
//! same test of `x_k − θ` does not reject are the confidence set.
//!
//! `p_k` is what the safe t-test ([`crate::safe_test`]) would bet on after the pairs so far: the density that it
//! gives to `x_k`, against that of `−x_k`. With `s` the sum of the values before, `q` the sum of all squares and
//! `g` the [`Prior`] variance of the effect,
//!
//! ```text
//! p(+) / p(−) = [Q(s − |x|) / Q(s + |x|)]^(k/2),   Q(u) = q − g·u² / (1 + k·g)
//! ```
//!
//! So it learns scale and effect from the pairs, and where they are normal it is as fast as that test,
//! of which it needs no assumption. In these sums no value counts for more than [`LARGEST_SIZE`] medians of all
//! sizes so far, that of pair `k` among them. That is what keeps a single burst from paying for all pairs
//! (docs/statistics-simulation.md).
//!
//! Sources: Ville (1939); Ramdas, Grünwald, Vovk, Shafer, "Game-theoretic statistics and safe
//! anytime-valid inference" (2023); Ramdas, Ruf, Larsson, Koolen, "Admissible anytime-valid
//! sequential inference must rely on nonnegative martingales" (2022), section on symmetry; de la
//! Peña, "A general class of exponential inequalities for martingales and ratios" (1999);
//! Huber, "Robust estimation of a location parameter" (1964).

use crate::crossing::narrow_crossing;
use crate::safe_test::{Interval, saturating_exp};
use crate::summary::{self, median};

/// The most that a pair counts, in medians of the sizes so far: 2.5 medians are 1.7 standard
/// deviations of normal values.
pub const LARGEST_SIZE: f64 = 2.5;

/// Expectation before the first pair: it keeps the error rate whatever it is, and moves the number of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior(f64);

impl Prior {
    /// Prior of blocks of whole trials, which are dear: an effect of more than a standard deviation of a block. Six that
    /// agree can decide at 0.05, the fewest of any exact test.
    pub const BLOCKS: Prior = Prior(2.0);
    /// Prior of pairs of windows, of which a process has many: an effect of half their standard deviation.
    pub const PAIRS: Prior = Prior(0.25);
}

/// The e-process after some pairs.
#[derive(Debug, Clone)]
pub struct Process {
    prior: f64,
    /// Values so far that are not 0, in order of size. A pair of equal figures shows no coin.
    values: Vec<f64>,
    /// Number of them, from the smallest on, that are within the largest size.
    within: usize,
    /// Sum of those within.
    sum: f64,
    /// Sum of their squares.
    squares: f64,
    /// Sum of the signs of the others.
    beyond: f64,
    /// Size for which each of the others counts.
    largest: f64,
    /// Logarithm of the e-value, but for `factor`: one logarithm for many pairs.
    ln_e: f64,
    factor: f64,
}

/// The smallest share of the squares that counts: one over it is a number as well.
const SMALLEST_SHARE: f64 = 1e-300;

/// Beyond these odds against the sign that was shown 1 is nothing beside them.
const MOST_ODDS: f64 = 100.0;

/// Factors of which several more can be multiplied.
const FACTORS: std::ops::Range<f64> = 1e-100..1e100;

/// Loss of digits at which sums are made anew.
const LOSS: f64 = 1e6;

impl Process {
    /// The process before the first pair.
    pub fn new(prior: Prior) -> Process {
        Process {
            prior: prior.0,
            values: Vec::new(),
            within: 0,
            sum: 0.0,
            squares: 0.0,
            beyond: 0.0,
            largest: 0.0,
            ln_e: 0.0,
            factor: 1.0,
        }
    }

    /// The process after all of these values, each shifted by `-shift`.
    pub fn from_shifted(xs: &[f64], shift: f64, prior: Prior) -> Process {
        let mut process = Process::new(prior);
        process.values.reserve(xs.len());
        xs.iter().for_each(|x| process.push(x - shift));
        process
    }

    /// Adds the value of the next pair.
    pub fn push(&mut self, x: f64) {
        if x == 0.0 {
            return;
        }
        self.insert(x);
        let middle = self.values.len() / 2;
        let median = match self.values.len() % 2 {
            0 => f64::midpoint(self.values[middle - 1].abs(), self.values[middle].abs()),
            _ => self.values[middle].abs(),
        };
        self.largest = LARGEST_SIZE * median;
        self.move_bound();
        self.bet_on(x.clamp(-self.largest, self.largest));
    }

    fn insert(&mut self, x: f64) {
        let size = x.abs();
        let place = self.values.partition_point(|known| known.abs() < size);
        self.values.insert(place, x);
        match place < self.within {
            true => {
                self.within += 1;
                self.sum += x;
                self.squares += x * x;
            }
            false => self.beyond += x.signum(),
        }
    }

    /// Makes the sums those of the values within the largest size.
    fn move_bound(&mut self) {
        let largest = self.largest;
        while let Some(next) = self.values.get(self.within).filter(|x| x.abs() <= largest) {
            self.sum += next;
            self.squares += next * next;
            self.beyond -= next.signum();
            self.within += 1;
        }
        let before = self.squares;
        while self.within > 0 && self.values[self.within - 1].abs() > largest {
            self.within -= 1;
            let last = self.values[self.within];
            self.sum -= last;
            self.squares -= last * last;
            self.beyond += last.signum();
        }
        if before > LOSS * self.squares {
            let within = &self.values[..self.within];
            self.sum = within.iter().sum();
            self.squares = within.iter().map(|x| x * x).sum();
        }
    }

    /// Takes what the bet on the sign of the newest value pays, which is in the sums.
    fn bet_on(&mut self, newest: f64) {
        let pairs = self.values.len() as f64;
        let outside = (self.values.len() - self.within) as f64;
        let squares = self.squares + outside * self.largest * self.largest;
        let sum = self.balance();
        // Q(sum) in all squares. Where they are smaller than any number there is no bet.
        let spread = |sum: f64| {
            let explained = self.prior * sum * sum / (1.0 + pairs * self.prior);
            (1.0 - explained / squares).max(SMALLEST_SHARE)
        };
        // Logarithm of the chance of the other sign over that of the one that was shown.
        let odds = 0.5 * pairs * (spread(sum) / spread(sum - 2.0 * newest)).ln();
        if odds > MOST_ODDS {
            self.ln_e += std::f64::consts::LN_2 - odds;
            return;
        }
        self.factor *= 2.0 / (1.0 + odds.exp());
        if !FACTORS.contains(&self.factor) {
            self.ln_e += self.factor.ln();
            self.factor = 1.0;
        }
    }

    /// Sum of the values, none of which counts for more than the largest size: above 0 where the centre of all
    /// ([`estimate_centre`]) is.
    pub fn balance(&self) -> f64 {
        self.sum + self.beyond * self.largest
    }

    /// Natural logarithm of the e-value; 0 without pairs.
    pub fn ln_e(&self) -> f64 {
        self.ln_e + self.factor.ln()
    }
}

/// A size in medians of all sizes, at most [`LARGEST_SIZE`].
fn score(size: f64, median: f64) -> f64 {
    match (size > 0.0, median > 0.0) {
        (false, _) => 0.0,
        (true, true) => (size / median).min(LARGEST_SIZE),
        // More than half of all values are 0.
        (true, false) => LARGEST_SIZE,
    }
}

/// The e-value against "the label makes no difference". Saturates at `f64::MAX`.
pub fn e_value(xs: &[f64], prior: Prior) -> f64 {
    saturating_exp(Process::from_shifted(xs, 0.0, prior).ln_e())
}

/// Fewest pairs that can reach `1/alpha`, if all of them are alike: 6 blocks at 0.05.
pub fn fewest_pairs(alpha: f64, prior: Prior) -> u32 {
    let mut process = Process::new(prior);
    let mut pairs = 0;
    while process.ln_e() < -alpha.ln() && pairs < 10_000 {
        process.push(1.0);
        pairs += 1;
    }
    pairs
}

/// The shift at which the scores of `x − shift` are balanced: Huber's estimate of location with the
/// bound of the scores, and so about the shift that the test rejects least. The median of figures that are
/// counts, such as requests in short windows, stays at 0 where many pairs are alike; this one does not.
pub fn estimate_centre(xs: &[f64]) -> Option<f64> {
    let middle = median(xs)?;
    let ends = |pick: fn(f64, f64) -> f64| xs.iter().copied().fold(middle, pick);
    let (low, high) = (ends(f64::min), ends(f64::max));
    let at = |shift: f64| (shift, balance(xs, shift));
    let tolerance = CENTRE_TOLERANCE * (high - low);
    let (low, high) = narrow_crossing(at(low), at(high), tolerance, |shift| balance(xs, shift));
    Some(f64::midpoint(low, high))
}

/// Precision of the centre, in ranges of all values.
const CENTRE_TOLERANCE: f64 = 1e-14;

/// Sizes beyond this are taken for it where a spread is estimated, in medians: 2.7 standard deviations of
/// normal values.
const LARGEST_FOR_SPREAD: f64 = 4.0;

/// Standard deviation around the centre, of which values that are far from all others make little; `None`
/// with fewer than two values.
pub fn estimate_spread(xs: &[f64]) -> Option<f64> {
    let centre = estimate_centre(xs)?;
    let limit = LARGEST_FOR_SPREAD * scale_around(centre, xs);
    let bounded = xs.iter().map(|x| (x - centre).clamp(-limit, limit));
    summary::sd(&bounded.collect::<Vec<f64>>())
}

/// Sum of the scores of all shifted values, each with its sign.
fn balance(xs: &[f64], shift: f64) -> f64 {
    let sizes: Vec<f64> = xs.iter().map(|x| (x - shift).abs()).collect();
    let scale = median(&sizes).unwrap_or(0.0);
    let shifted = xs.iter().map(|x| x - shift);
    shifted.map(|x| score(x.abs(), scale) * x.signum()).sum()
}

/// Median distance from a middle, or the largest where more than half of the values are one; 0 where
/// all are.
fn scale_around(middle: f64, xs: &[f64]) -> f64 {
    let sizes: Vec<f64> = xs.iter().map(|x| (x - middle).abs()).collect();
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    let scale = median(&sizes).filter(|scale| *scale > 0.0);
    scale.unwrap_or(largest)
}

/// The smallest interval that holds every shift which the test at `alpha` does not reject at
/// this length. With probability 1 − alpha the true shift is in the intervals of *all* lengths.
/// `None` while it is unbounded, and where no common shift of all pairs is left.
pub fn confidence_sequence(xs: &[f64], alpha: f64, prior: Prior) -> Option<Interval> {
    if xs.len() < fewest_pairs(alpha, prior) as usize {
        return None;
    }
    // Kept below 0.
    let excess = |shift: f64| Process::from_shifted(xs, shift, prior).ln_e() + alpha.ln();
    let is_kept = |shift: f64| excess(shift) < 0.0;
    // Where more than half of the values are one, hardly a shift but that one is kept.
    let middle = median(xs)?;
    let is_most = 2 * xs.iter().filter(|x| **x == middle).count() > xs.len();
    let centre = estimate_centre(xs).filter(|centre| !is_most && is_kept(*centre));
    let centre = centre.unwrap_or(middle);
    let scale = scale_around(centre, xs);
    if scale == 0.0 {
        return Some(Interval::centred_at(centre, 0.0));
    }
    let farthest = xs.iter().map(|x| (x - centre).abs()).fold(0.0, f64::max) / scale;
    let end = |side: f64| {
        outermost(farthest, |distance| {
            excess(centre + side * scale * distance)
        })
    };
    Some(Interval {
        low: centre - scale * end(-1.0)?,
        high: centre + scale * end(1.0)?,
    })
}

/// Distances from the centre that are tried, in scales: from the first on by a factor.
const FIRST_DISTANCE: f64 = 0.01;
const DISTANCE_FACTOR: f64 = 3.0;
/// Up to eighteen thousand scales.
const DISTANCES: i32 = 14;
/// Precision of an end, in distances from the centre.
const END_TOLERANCE: f64 = 1e-6;

/// Distance, in that of the farthest value, from which on the values differ in size by less than a factor of 2:
/// the farther, the more all pay alike.
const BEYOND_ALL: f64 = 3.0;

/// The end of the largest distance that is kept, which it is below an excess of 0; `None` where no distance is, or
/// the last one.
fn outermost(farthest: f64, excess: impl Fn(f64) -> f64) -> Option<f64> {
    let look_at = |step: i32| {
        let distance = match step {
            0 => 0.0,
            step => FIRST_DISTANCE * DISTANCE_FACTOR.powi(step - 1),
        };
        (distance, excess(distance))
    };
    let beyond =
        |step: &i32| FIRST_DISTANCE * DISTANCE_FACTOR.powi(step - 1) >= BEYOND_ALL * farthest;
    let first_beyond = (1..DISTANCES)
        .find(beyond)
        .map(|step| (step, look_at(step)));
    let (last, mut rejected) = match first_beyond {
        Some((step, here)) if here.1 >= 0.0 => (step - 1, Some(here)),
        _ => (DISTANCES, None),
    };
    for step in (0..=last).rev() {
        let here = look_at(step);
        if here.1 >= 0.0 {
            rejected = Some(here);
            continue;
        }
        let rejected = rejected?;
        let tolerance = END_TOLERANCE * rejected.0;
        return Some(narrow_crossing(here, rejected, tolerance, excess).1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Normal, assert_close};
    use proptest::prelude::*;

    const BLOCKS: Prior = Prior::BLOCKS;

    /// Values of one sign, of different sizes.
    const UP: [f64; 12] = [
        0.031, 0.018, 0.044, 0.027, 0.052, 0.012, 0.036, 0.029, 0.041, 0.022, 0.033, 0.025,
    ];

    #[test]
    fn one_pair_is_hardly_evidence_and_none_is_none() {
        assert_eq!(e_value(&[], BLOCKS), 1.0);
        // Nothing is known before the first: both signs are as likely.
        assert_close(Some(e_value(&[3.0], BLOCKS)), 1.0);
    }

    #[test]
    fn the_mean_over_all_coins_is_one() {
        let sizes = [0.03, 0.2, 0.001, 0.4, 0.05, 0.03, 9.0, 0.0, 0.02, 0.07];
        let coins = 1 << sizes.len();
        let sum: f64 = (0..coins)
            .map(|coin: u32| {
                let signed = sizes
                    .iter()
                    .enumerate()
                    .map(|(k, size)| match coin >> k & 1 {
                        0 => *size,
                        _ => -size,
                    });
                e_value(&signed.collect::<Vec<f64>>(), BLOCKS)
            })
            .sum();
        assert_close(Some(sum / f64::from(coins)), 1.0);
    }

    #[test]
    fn the_centre_of_counts_is_between_them_and_a_burst_hardly_moves_it() {
        // 31 requests against 31, in a third of the pairs 30.
        let counts: Vec<f64> = (0..60)
            .map(|k| {
                if k % 3 == 0 {
                    (30.0_f64 / 31.0).ln()
                } else {
                    0.0
                }
            })
            .collect();
        let found = estimate_centre(&counts).unwrap();
        assert!((-0.015..-0.008).contains(&found), "{found}");
        let mut with_bursts = UP.to_vec();
        with_bursts.extend([5.0, 9.0]);
        let (without, with) = (
            estimate_centre(&UP).unwrap(),
            estimate_centre(&with_bursts).unwrap(),
        );
        assert!((without - 0.031).abs() < 0.002, "{without}");
        assert!((with - without).abs() < 0.01, "{with}");
        assert_eq!(estimate_centre(&[0.02; 9]), Some(0.02));
        // More than half are 0, and one burst is against all others.
        let mut stall = vec![0.0; 120];
        stall.extend([-0.02; 79]);
        stall.push(3.9);
        let found = estimate_centre(&stall).unwrap();
        assert!((-0.012..-0.004).contains(&found), "{found}");
        assert_eq!(estimate_centre(&[]), None);
    }

    #[test]
    fn pairs_of_which_most_are_alike_have_an_interval_around_none() {
        let pair = |k: u32| match k * 7 % 200 {
            0..42 => 0.02,
            42..80 => -0.02,
            _ => 0.0,
        };
        let xs: Vec<f64> = (0..200).map(pair).collect();
        let found = confidence_sequence(&xs, 0.05, BLOCKS).unwrap();
        assert!(found.low <= 0.0 && found.high >= 0.0, "{found:?}");
        assert!(found.high - found.low < 0.02, "{found:?}");
    }

    #[test]
    fn equal_values_pay_what_the_t_test_says_of_them() {
        // Python: product over k = 2 … n of 2 / (1 + (a / b)**(k / 2)), a = k - 2*k**2 / (1 + 2*k),
        // b = k - 2*(k - 2)**2 / (1 + 2*k), for n = 9.
        assert_close(Some(e_value(&[0.02; 9], BLOCKS)), 194.77285270446282);
    }

    #[test]
    fn six_pairs_of_one_sign_can_decide_at_five_percent_and_five_cannot() {
        assert_eq!(
            (fewest_pairs(0.05, BLOCKS), fewest_pairs(0.01, BLOCKS)),
            (6, 9)
        );
        assert!(e_value(&[0.5; 5], BLOCKS) < 20.0);
        assert_eq!(confidence_sequence(&UP[..5], 0.05, BLOCKS), None);
        assert!(e_value(&[0.5; 6], BLOCKS) >= 20.0);
    }

    #[test]
    fn the_interval_holds_the_median_and_ends_where_the_evidence_does() {
        let Interval { low, high } = confidence_sequence(&UP, 0.05, BLOCKS).unwrap();
        let middle = median(&UP).unwrap();
        assert!(low < middle && middle < high, "{low} {high}");
        assert!(low > 0.0, "{low}");
        let e = |shift: f64| Process::from_shifted(&UP, shift, BLOCKS).ln_e().exp();
        assert!(e(low - 1e-4) >= 20.0 && e(high + 1e-4) >= 20.0);
        assert!(e(low + 1e-4) < 20.0 && e(high - 1e-4) < 20.0);
    }

    #[test]
    fn equal_values_leave_one_shift() {
        let point = Interval::centred_at(0.1, 0.0);
        assert_eq!(confidence_sequence(&[0.1; 9], 0.05, BLOCKS), Some(point));
        assert_eq!(confidence_sequence(&[0.1; 5], 0.05, BLOCKS), None);
    }

    #[test]
    fn one_value_out_of_all_bounds_does_not_hide_the_others() {
        let mut xs = UP.to_vec();
        xs.extend(UP);
        let clean = e_value(&xs, BLOCKS);
        xs.insert(9, -40.0);
        assert!(clean > 1000.0, "{clean}");
        assert!(e_value(&xs, BLOCKS) > 20.0, "{}", e_value(&xs, BLOCKS));
    }

    /// Windows of a machine that has bursts and remembers, without any effect: the values of
    /// pairs by seed.
    fn windows(normal: &mut Normal, pairs: usize, effect: f64) -> Vec<f64> {
        let mut memory = 0.0;
        let mut window = |normal: &mut Normal| {
            memory = 0.95 * memory + 0.1 * normal.next_value();
            let burst = (normal.next_value() - 2.0).max(0.0);
            memory + burst
        };
        let pair = |_| {
            let first = window(normal);
            let second = window(normal);
            let arm_is_first = normal.next_value() > 0.0;
            let difference = if arm_is_first {
                first - second
            } else {
                second - first
            };
            effect + difference
        };
        (0..pairs).map(pair).collect()
    }

    #[test]
    fn looking_after_every_pair_rarely_rejects_the_truth_on_a_machine_that_remembers() {
        let mut normal = Normal::from_seed(11);
        let crossed = (0..1000)
            .filter(|_| {
                let mut process = Process::new(BLOCKS);
                windows(&mut normal, 100, 0.0).into_iter().any(|x| {
                    process.push(x);
                    process.ln_e() >= 20f64.ln()
                })
            })
            .count();
        // At most 5 % by Ville's inequality; three standard errors are 2.1 %.
        assert!(crossed <= 71, "{crossed} of 1000 crossed");
        assert!(crossed > 0, "the test never rejects anything");
    }

    #[test]
    fn the_interval_covers_the_effect_on_a_machine_that_remembers() {
        let mut normal = Normal::from_seed(3);
        let covered = (0..100)
            .filter(|_| {
                let xs = windows(&mut normal, 60, 0.05);
                confidence_sequence(&xs, 0.05, BLOCKS).is_some_and(|i| i.contains(0.05))
            })
            .count();
        assert!(covered >= 92, "{covered} of 100");
    }

    proptest! {
        #[test]
        fn the_sign_of_the_values_does_not_matter(xs in prop::collection::vec(-1.0..1.0f64, 1..30)) {
            let mirrored: Vec<f64> = xs.iter().map(|x| -x).collect();
            let (a, b) = (Process::from_shifted(&xs, 0.0, BLOCKS).ln_e(), Process::from_shifted(&mirrored, 0.0, BLOCKS).ln_e());
            prop_assert!((a - b).abs() < 1e-9, "{} and {}", a, b);
        }

        #[test]
        fn the_scale_of_the_values_does_not_matter(
            xs in prop::collection::vec(-1.0..1.0f64, 1..30),
            scale in 1e-6..1e6f64,
        ) {
            let scaled: Vec<f64> = xs.iter().map(|x| x * scale).collect();
            let (a, b) = (Process::from_shifted(&xs, 0.0, BLOCKS).ln_e(), Process::from_shifted(&scaled, 0.0, BLOCKS).ln_e());
            prop_assert!((a - b).abs() < 1e-6, "{} and {}", a, b);
        }

        #[test]
        fn an_interval_moves_with_its_values(
            xs in prop::collection::vec(-1.0..1.0f64, 9..40),
            shift in -3.0..3.0f64,
        ) {
            let moved: Vec<f64> = xs.iter().map(|x| x + shift).collect();
            let (a, b) = (confidence_sequence(&xs, 0.05, BLOCKS), confidence_sequence(&moved, 0.05, BLOCKS));
            prop_assert_eq!(a.is_some(), b.is_some());
            if let (Some(a), Some(b)) = (a, b) {
                prop_assert!((a.low + shift - b.low).abs() < 1e-3, "{} {}", a.low, b.low);
                prop_assert!((a.high + shift - b.high).abs() < 1e-3, "{} {}", a.high, b.high);
            }
        }
    }
}
