//! Verdicts on rare events: counts at their exposures.
//!
//! The input is what each block (or pair of turns) counted: how many events either arm had, in how much
//! exposure. If the label makes no difference, the counts and exposures of the two windows of a block are
//! what they are, and only the coin that drew their order says whose they are. So the evidence is that of
//! [`crate::randomization`], with another score. In a block with `n` events in the exposure `x`,
//!
//! ```text
//! s = (n_arm·x_base − n_base·x_arm) / √((n_arm + n_base)·x_arm·x_base),   E = Σ w_c Π (1 + tanh(c·s))
//! ```
//!
//! `s` changes its sign with the label and its size does not, so every factor has the mean 1 over the coin,
//! and the chance that E *ever* reaches `1/alpha` is at most `alpha` (Ville's inequality). It does not matter
//! how the events of a window hang together: a storm of a thousand events in one window is one coin and pays
//! at most twofold. With at most one event in a block of equal exposures, this is the binomial test: each
//! event belongs to the arm by its share of exposure, one half. Taking *every* event as such a draw would be
//! more evidence where a block has many, and would be wrong wherever the rate of a machine changes from one
//! window to the next: the storm would prove anything.
//!
//! **The ratio of rates.** If the arm has `θ > 1` times the events of the baseline at each moment, then its
//! events, of which each is kept with probability `1/θ`, are as many as the baseline would have had, and the
//! coin is fair again. The mean of the factor over what may be kept is a factor without chance, and the `θ`
//! that such a product does not reject are the confidence sequence. For `θ < 1` the baseline is thinned. This
//! assumes that the arm changes the rate by a factor, and nothing of the rate itself, which may rise, fall and
//! cluster. An event that **ends** its window (an ejection) leaves no time for a second one, and cannot be
//! thinned: there the time of the arm is taken as `θ` times as fast, and what would be beyond the length of a
//! window did not happen. This assumes that the chance of such an event does not depend on how long the
//! window has lasted; the evidence against equal arms does not.
//!
//! **No event at all.** `P(none in x) = exp(−rate·x)`, so what had none in `x` has a rate below
//! `−ln(alpha)/x`, at every look: to be wrong, the first event must come later than at the one moment at which
//! the bound passes the true rate. With more events, the bound for `n` holds until the next one comes, and they
//! share alpha. This takes events as a Poisson process, clusters counted once.
//!
//! Cases that break it: an event that is caused in the window of one arm and counted in that of the other (leave a
//! pause), and a choice of the threshold after the events were seen.
//!
//! Sources as in [`crate::randomization`]; thinning of point processes: Lewis, Shedler (1979).

use crate::safe_test::saturating_exp;
use crate::verdict::Verdict;
use statrs::distribution::{Binomial, ContinuousCDF, Discrete, Gamma};

/// Stakes on the score, mixed with these weights on both signs. The last one bets on the sign alone.
/// Six events in six blocks, all of one arm, decide at 5 %.
const STAKES: [(f64, f64); 7] = [
    (0.05, 0.02),
    (0.1, 0.02),
    (0.2, 0.03),
    (0.4, 0.05),
    (0.8, 0.07),
    (1.6, 0.12),
    (f64::INFINITY, 0.19),
];
/// The most that a block counts: with it even the smallest stake never loses all.
const LARGEST_SCORE: f64 = 20.0;

/// Events of one arm, or of one of its windows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// Number of events; a cluster is one.
    pub count: u32,
    /// Time (or requests) in which they could happen.
    pub exposure: f64,
}

impl Counted {
    /// Events per unit of exposure; `None` without exposure.
    pub fn rate(&self) -> Option<f64> {
        (self.exposure > 0.0).then(|| f64::from(self.count) / self.exposure)
    }

    fn add(&mut self, other: Counted) {
        self.count += other.count;
        self.exposure += other.exposure;
    }
}

/// Events of two arms in windows whose order a coin drew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Events of the baseline.
    pub baseline: Counted,
    /// Events of the arm.
    pub arm: Counted,
    /// Length of each window in which no event ends it; `None` for events that end none.
    pub full_exposure: Option<f64>,
}

/// Limits that a verdict on events is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Error rate of the comparison, in (0, 1).
    pub alpha: f64,
    /// Ratio of rates, above 1, within which arms are the same either way.
    pub same_within: Option<f64>,
    /// Rate, in events per unit of exposure, below which both arms are the same.
    pub same_below: Option<f64>,
}

/// Verdict on the events of an arm and its baseline, and the numbers behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Verdict after the first block at which there was one; fewer events are better.
    pub verdict: Verdict,
    /// Against "the label makes no difference".
    pub e_value: f64,
    /// All events of the baseline.
    pub baseline: Counted,
    /// All events of the arm.
    pub arm: Counted,
    /// Rate of the arm over that of the baseline; `None` where the baseline had no event.
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio, at 1 − alpha and valid at every look; `None` while there is none.
    pub low: Option<f64>,
    /// Upper end of the interval of the ratio; `None` while there is none.
    pub high: Option<f64>,
    /// Number of blocks that were judged.
    pub blocks: u32,
    /// The block, counted from 1, that brought the verdict.
    pub decided_at: Option<u32>,
    /// All blocks together support the verdict; always true of *unknown*.
    pub upheld: bool,
    /// For *unknown*, the blocks in total after which a call is to be expected if the rates stay what they
    /// are; `None` where they give no hint.
    pub blocks_needed: Option<u32>,
}

impl Judgement {
    /// The verdict that all blocks together support.
    pub fn supported_verdict(&self) -> Verdict {
        match self.upheld {
            true => self.verdict,
            false => Verdict::Unknown,
        }
    }
}

/// Number of clusters among moments in their order: an event and all those less than `cluster` after it are one.
pub fn count_clusters(moments: &[u64], cluster: u64) -> u32 {
    let mut first: Option<u64> = None;
    let mut clusters = 0;
    for moment in moments {
        if first.is_none_or(|first| moment.saturating_sub(first) >= cluster) {
            first = Some(*moment);
            clusters += 1;
        }
    }
    clusters
}

/// Judges the blocks in the order of measuring, with a look after each.
///
/// ```
/// use stats::{Verdict, events::{Block, Counted, Limits, judge}};
///
/// // One ejection in each of six trials of a minute, and none under the baseline.
/// let none = Counted { count: 0, exposure: 60.0 };
/// let one = Counted { count: 1, exposure: 31.0 };
/// let block = Block { baseline: none, arm: one, full_exposure: Some(60.0) };
/// let limits = Limits { alpha: 0.05, same_within: None, same_below: None };
/// let judged = judge(&[block; 6], &limits);
/// assert_eq!(judged.verdict, Verdict::Worse);
/// assert!(judged.low.is_some_and(|low| low > 1.0) && judged.high.is_none());
/// ```
pub fn judge(blocks: &[Block], limits: &Limits) -> Judgement {
    let (mut same, mut called) = (None, None);
    let mut looks = Looks::new(limits);
    for (index, block) in blocks.iter().enumerate() {
        looks.push(block);
        let here = &blocks[..=index];
        let at = u32::try_from(here.len()).unwrap_or(u32::MAX);
        if same.is_none() && looks.is_same(here, limits) {
            same = Some((Verdict::Same, at));
        }
        if called.is_none() && looks.is_different(limits) {
            called = Some((looks.side(), at));
        }
    }
    looks.into_judgement(blocks, limits, same.or(called))
}

/// The judgement of one look at all blocks together, of runs that have ended each for itself.
pub fn judge_at_end(blocks: &[Block], limits: &Limits) -> Judgement {
    let mut looks = Looks::new(limits);
    blocks.iter().for_each(|block| looks.push(block));
    let verdict = match (looks.is_same(blocks, limits), looks.is_different(limits)) {
        (true, _) => Some(Verdict::Same),
        (false, true) => Some(looks.side()),
        (false, false) => None,
    };
    let all = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
    looks.into_judgement(blocks, limits, verdict.map(|verdict| (verdict, all)))
}

/// Knowledge after some blocks.
struct Looks {
    baseline: Counted,
    arm: Counted,
    /// Against equal arms.
    evidence: Evidence,
    /// Against either end of what counts as the same, by the logarithm of the ratio there.
    ends: Option<[(f64, Evidence); 2]>,
}

impl Looks {
    fn new(limits: &Limits) -> Self {
        let end = |within: f64| [within.ln(), -within.ln()].map(|end| (end, Evidence::default()));
        Looks {
            baseline: Counted::default(),
            arm: Counted::default(),
            evidence: Evidence::default(),
            ends: limits.same_within.map(end),
        }
    }

    fn push(&mut self, block: &Block) {
        self.baseline.add(block.baseline);
        self.arm.add(block.arm);
        self.evidence.push_shifted(block, 0.0);
        for (end, evidence) in self.ends.iter_mut().flatten() {
            evidence.push_shifted(block, *end);
        }
    }

    /// The judgement with this verdict and the block that brought it.
    fn into_judgement(
        self,
        blocks: &[Block],
        limits: &Limits,
        decision: Option<(Verdict, u32)>,
    ) -> Judgement {
        let verdict = decision.map_or(Verdict::Unknown, |(verdict, _)| verdict);
        let upheld = match verdict {
            Verdict::Unknown => true,
            Verdict::Same => self.is_same(blocks, limits),
            called => self.is_different(limits) && self.side() == called,
        };
        let (low, high) = confidence_sequence(blocks, limits.alpha);
        let is_open = verdict == Verdict::Unknown || !upheld;
        Judgement {
            verdict,
            e_value: saturating_exp(self.evidence.ln_e()),
            ratio: self.ratio(),
            baseline: self.baseline,
            arm: self.arm,
            low,
            high,
            blocks: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
            decided_at: decision.map(|(_, at)| at),
            upheld,
            blocks_needed: is_open
                .then(|| blocks_needed(blocks, limits.alpha))
                .flatten(),
        }
    }

    /// Rate of the arm over that of the baseline; `None` where the baseline had no event.
    fn ratio(&self) -> Option<f64> {
        let base = self.baseline.rate().filter(|rate| *rate > 0.0)?;
        Some(self.arm.rate()? / base)
    }

    /// Side of the larger rate.
    fn side(&self) -> Verdict {
        match self.arm.rate() > self.baseline.rate() {
            true => Verdict::Worse,
            false => Verdict::Better,
        }
    }

    fn is_different(&self, limits: &Limits) -> bool {
        self.evidence.ln_e() >= -limits.alpha.ln()
    }

    fn is_same(&self, blocks: &[Block], limits: &Limits) -> bool {
        let bounds = || [self.baseline, self.arm].map(|side| rate_bound(side, limits.alpha / 2.0));
        let is_rare = |below: f64| {
            let mut bounds = bounds().into_iter();
            bounds.all(|bound| bound.is_some_and(|bound| bound <= below))
        };
        limits.same_below.is_some_and(is_rare) || self.is_within(blocks, limits)
    }

    /// The interval of the ratio lies within the limits.
    fn is_within(&self, blocks: &[Block], limits: &Limits) -> bool {
        let (Some(ends), Some(within)) = (&self.ends, limits.same_within) else {
            return false;
        };
        // Both ends are rejected wherever the interval lies between them, and that is soon known.
        let are_rejected = ends
            .iter()
            .all(|(_, evidence)| evidence.ln_e() >= -limits.alpha.ln());
        let is_near = |ratio: f64| ratio <= within && ratio * within >= 1.0;
        are_rejected && self.ratio().is_some_and(is_near) && {
            let (low, high) = confidence_sequence(blocks, limits.alpha);
            low.is_some_and(|low| low * within >= 1.0) && high.is_some_and(|high| high <= within)
        }
    }
}

/// Largest rate, at 1 − `alpha` and valid at every look; `None` without exposure. The bounds for each count
/// share alpha: one half for no event, a sixth for one, then a twelfth.
pub fn rate_bound(counted: Counted, alpha: f64) -> Option<f64> {
    let next = f64::from(counted.count) + 1.0;
    let share = alpha / (next * (next + 1.0));
    let gamma = Gamma::new(next, 1.0).ok()?;
    (counted.exposure > 0.0).then(|| gamma.inverse_cdf(1.0 - share) / counted.exposure)
}

/// Largest rate of what had no event in this exposure, at 1 − `alpha` and valid at every look.
pub fn bound_without_event(exposure: f64, alpha: f64) -> Option<f64> {
    (exposure > 0.0).then(|| -alpha.ln() / exposure)
}

/// The score of a block: positive where the arm has the higher rate, of the size of standard deviations of
/// counts by chance; 0 without an event, or without exposure on both sides.
fn score(arm: Counted, baseline: Counted) -> f64 {
    let total = f64::from(arm.count) + f64::from(baseline.count);
    let both = arm.exposure * baseline.exposure;
    if total == 0.0 || both <= 0.0 {
        return 0.0;
    }
    let more = f64::from(arm.count) * baseline.exposure - f64::from(baseline.count) * arm.exposure;
    (more / (total * both).sqrt()).clamp(-LARGEST_SCORE, LARGEST_SCORE)
}

/// The e-process of one ratio of rates: the products of the factors of all stakes, by their sign.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence([[f64; 2]; STAKES.len()]);

impl Evidence {
    /// Adds a block, against "the arm has `exp(shift)` times the events of the baseline".
    pub fn push_shifted(&mut self, block: &Block, shift: f64) {
        let (sign, faster) = match shift < 0.0 {
            true => (-1.0, [block.baseline, block.arm]),
            false => (1.0, [block.arm, block.baseline]),
        };
        let scores = slowed_scores(faster, block.full_exposure, shift.abs());
        for (products, (stake, _)) in self.0.iter_mut().zip(STAKES) {
            for (product, of) in products.iter_mut().zip([sign, -sign]) {
                let factors = scores.iter();
                let factors = factors.map(|(share, score)| share * factor(stake, of * score));
                *product += factors.sum::<f64>().ln();
            }
        }
    }

    /// Natural logarithm of the e-value; 0 without blocks.
    pub fn ln_e(&self) -> f64 {
        let weighted = self.0.iter().zip(STAKES);
        let weighted = weighted
            .flat_map(|(products, (_, weight))| products.map(|product| product + weight.ln()));
        let terms: Vec<f64> = weighted.collect();
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest
            + terms
                .iter()
                .map(|term| (term - largest).exp())
                .sum::<f64>()
                .ln()
    }
}

/// Value of a stake on a score: `exp(c·s) / cosh(c·s)`.
fn factor(stake: f64, score: f64) -> f64 {
    match score == 0.0 {
        true => 1.0,
        false => 1.0 + (stake * score).tanh(),
    }
}

/// Logarithm of the evidence against "the arm has `exp(shift)` times the events of the baseline".
fn ln_e_of_shift(blocks: &[Block], shift: f64) -> f64 {
    let mut evidence = Evidence::default();
    for block in blocks {
        evidence.push_shifted(block, shift);
    }
    evidence.ln_e()
}

/// Scores of the one that has more events, slowed down by `exp(shift)`, against the other, with their
/// probabilities.
fn slowed_scores(
    [faster, other]: [Counted; 2],
    full_exposure: Option<f64>,
    shift: f64,
) -> Vec<(f64, f64)> {
    if let Some(full) = full_exposure {
        let slowed = Counted {
            exposure: faster.exposure * shift.exp(),
            ..faster
        };
        return vec![(1.0, score(cut_off(slowed, full), cut_off(other, full)))];
    }
    let kept = kept_counts(faster.count, (-shift).exp());
    let counted = |count| Counted { count, ..faster };
    kept.into_iter()
        .map(|(share, count)| (share, score(counted(count), other)))
        .collect()
}

/// The same window, had it ended at this exposure.
fn cut_off(counted: Counted, full: f64) -> Counted {
    match counted.exposure > full {
        true => Counted {
            count: 0,
            exposure: full,
        },
        false => counted,
    }
}

/// Counts that may be left of so many when each is kept with this probability, with their probabilities.
/// The rarest, fewer than 1 in 10^12 together, are left out, and of very many every few.
fn kept_counts(count: u32, share: f64) -> Vec<(f64, u32)> {
    const MOST_TRIED: u32 = 100;
    let binomial = Binomial::new(share, u64::from(count));
    let Some(binomial) = binomial.ok().filter(|_| count > 1 && share < 1.0) else {
        return vec![(1.0 - share, 0), (share, count)];
    };
    let mean = f64::from(count) * share;
    let reach = 8.0 * (mean * (1.0 - share)).sqrt() + 12.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the count"
    )]
    let [first, last] =
        [mean - reach, mean + reach].map(|end| end.clamp(0.0, f64::from(count)).round() as u32);
    let step = ((last - first) / MOST_TRIED).max(1);
    let chances: Vec<(f64, u32)> = (first..=last)
        .step_by(step as usize)
        .map(|kept| (binomial.pmf(u64::from(kept)), kept))
        .collect();
    let all: f64 = chances.iter().map(|(chance, _)| chance).sum();
    let chances = chances.into_iter();
    chances.map(|(chance, kept)| (chance / all, kept)).collect()
}

/// Logarithms of ratios that are tried, from no difference on: up to a factor of a million.
const LARGEST_SHIFT: f64 = 14.0;
const SHIFTS: u32 = 42;
const HALVINGS: u32 = 16;

/// The smallest interval of the ratio of rates that holds every one that is not rejected; an end is `None`
/// where there is none.
pub fn confidence_sequence(blocks: &[Block], alpha: f64) -> (Option<f64>, Option<f64>) {
    let had = |block: &&Block| block.baseline.count > 0 || block.arm.count > 0;
    let with_events: Vec<Block> = blocks.iter().filter(had).copied().collect();
    if with_events.is_empty() {
        return (None, None);
    }
    let is_kept = |shift: f64| ln_e_of_shift(&with_events, shift) < -alpha.ln();
    let end = |side: f64| outermost(|shift| is_kept(side * shift)).map(|end| (side * end).exp());
    (end(-1.0), end(1.0))
}

/// The outermost shift, from the one end of all shifts to the other, that is kept; `None` where the first
/// one tried is, or none.
fn outermost(is_kept: impl Fn(f64) -> bool) -> Option<f64> {
    let step = LARGEST_SHIFT / f64::from(SHIFTS);
    let shifts = (0..=2 * SHIFTS).map(|index| LARGEST_SHIFT - step * f64::from(index));
    let mut outer = None;
    for shift in shifts {
        if is_kept(shift) {
            return outer.map(|rejected| halve(shift, rejected, &is_kept));
        }
        outer = Some(shift);
    }
    None
}

fn halve(mut kept: f64, mut rejected: f64, is_kept: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(kept, rejected);
        match is_kept(middle) {
            true => kept = middle,
            false => rejected = middle,
        }
    }
    rejected
}

/// An estimate beyond this many blocks is not worth giving.
const MOST_BLOCKS: f64 = 100_000.0;

/// Blocks in total after which a call is to be expected, if blocks are like those that were measured.
fn blocks_needed(blocks: &[Block], alpha: f64) -> Option<u32> {
    let scores: Vec<f64> = blocks.iter().map(|b| score(b.arm, b.baseline)).collect();
    expect_blocks(&scores, 1.0 / scores.len() as f64, alpha)
}

/// Blocks after which a call is to be expected, of an event at these rates in windows of this exposure, for
/// an event that ends no window.
pub fn expect_decision(rates: [f64; 2], exposure: f64, alpha: f64) -> Option<u32> {
    const DRAWN: u32 = 400;
    let counts = rates.map(|rate| spread_counts(rate * exposure, DRAWN));
    // Each count of one arm beside another of the other arm, in an order without connection.
    let scores: Vec<f64> = (0..DRAWN as usize)
        .map(|index| {
            let of = |counts: &[u32], index: usize| Counted {
                count: counts[index],
                exposure,
            };
            let beside = (index * 149) % DRAWN as usize;
            score(of(&counts[1], index), of(&counts[0], beside))
        })
        .collect();
    expect_blocks(&scores, 1.0 / f64::from(DRAWN), alpha)
}

/// Counts of a Poisson variable at evenly spread probabilities.
fn spread_counts(mean: f64, drawn: u32) -> Vec<u32> {
    let mut counts = Vec::new();
    let (mut count, mut chance) = (0, (-mean).exp());
    let mut below = chance;
    for index in 0..drawn {
        let at = (f64::from(index) + 0.5) / f64::from(drawn);
        while below < at && count < 10_000 {
            count += 1;
            chance *= mean / f64::from(count);
            below += chance;
        }
        counts.push(count);
    }
    counts
}

/// Blocks until the best stake reaches `1/alpha`, by its mean growth over these scores.
fn expect_blocks(scores: &[f64], share: f64, alpha: f64) -> Option<u32> {
    let needed = STAKES.iter().flat_map(|(stake, weight)| {
        [1.0, -1.0].map(|sign| {
            let growth = scores.iter().map(|score| factor(*stake, sign * score).ln());
            let growth = growth.sum::<f64>() * share;
            match growth > 0.0 {
                true => (-alpha.ln() - weight.ln()) / growth,
                false => f64::INFINITY,
            }
        })
    });
    let fewest = needed.fold(f64::INFINITY, f64::min);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the most blocks"
    )]
    (fewest <= MOST_BLOCKS).then(|| fewest.ceil() as u32)
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
