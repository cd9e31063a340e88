//! Verdicts on blocks in which a coin drew the order of the arms.
//!
//! The input is a shift of each block, in the order of measuring: `x = ln(arm / baseline)`, or the difference
//! where a ratio has no meaning. After each block the coins are looked at ([`randomization`]):
//!
//! - the interval lies inside ± the smallest effect of interest: *same*;
//! - else the evidence reaches `1/alpha`: *better* or *worse*;
//! - else *unknown*, with the number of blocks that it would take.
//!
//! Nothing is assumed of the noise. If the label makes no difference, only the coins decide the signs, and
//! the chance of *ever* calling a difference is at most `alpha`, whatever the machine does. What is said of
//! verdicts that stand, and of those that later blocks do not support, is as in [`verdict`].
//!
//! No exact test can do with fewer than six blocks at 0.05: five coins fall alike, on either side, in one case
//! of sixteen.

use crate::chance::Outlook;
use crate::randomization::{self, Prior, Process, fewest_pairs};
use crate::safe_test::{Interval, saturating_exp};
use crate::verdict::{
    Judgement, Params, Verdict, judge_direction, to_ratio, undecidable_judgement,
};

/// Judges the log-ratios `xs` of blocks.
///
/// ```
/// use stats::{Better, Params, Verdict, judge, log_ratio};
///
/// // Requests per second of (arm, baseline), block by block.
/// let blocks = [(1041.0, 1003.0), (1058.0, 1011.0), (1049.0, 1004.0),
///     (1037.0, 998.0), (1062.0, 1015.0), (1044.0, 1001.0)];
/// let xs: Vec<f64> = blocks.iter().filter_map(|&(a, b)| log_ratio(a, b)).collect();
/// let params = Params { alpha: 0.05, smallest_effect: 0.02, better: Better::Higher };
/// let judgement = judge(&xs, &params);
/// assert_eq!(judgement.verdict, Verdict::Better);
/// assert_eq!(judgement.decided_at, Some(6));
/// assert!(judgement.interval.is_some_and(|i| i.low > 1.03 && i.high < 1.06));
/// ```
pub fn judge(xs: &[f64], params: &Params) -> Judgement {
    let (judged, shift) = judge_shifts(xs, params, params.smallest_effect.ln_1p());
    match shift {
        None => judged,
        Some(shift) => Judgement {
            ratio: shift.value.exp(),
            interval: shift.interval.map(to_ratio),
            ..judged
        },
    }
}

/// The block, counted from 1, that brings a verdict on these log-ratios: where a run would have ended.
pub fn find_first_decision(xs: &[f64], params: &Params) -> Option<u32> {
    let mut looks = Looks::new(params, params.smallest_effect.ln_1p());
    let mut decides = |x: &f64| {
        looks.push(*x);
        looks.is_different() || looks.is_same()
    };
    let before = xs.iter().position(&mut decides)?;
    u32::try_from(before + 1).ok()
}

/// Size of a change, on the scale of the shifts.
pub(crate) struct Shift {
    /// Centre of the blocks.
    pub(crate) value: f64,
    /// Interval of the change, valid at every look; `None` while unbounded.
    pub(crate) interval: Option<Interval>,
}

/// The judgement on shifts of blocks, without the ratio or the difference that is made of them; no shift
/// without blocks. Shifts within `limit` are of no interest.
pub(crate) fn judge_shifts(xs: &[f64], params: &Params, limit: f64) -> (Judgement, Option<Shift>) {
    if xs.is_empty() || xs.iter().any(|x| !x.is_finite()) {
        return (undecidable_judgement(xs), None);
    }
    let mut looks = Looks::new(params, limit);
    let (mut same, mut called) = (None, None);
    for x in xs {
        looks.push(*x);
        if same.is_none() && looks.is_same() {
            same = Some((Verdict::Same, looks.count()));
        }
        if called.is_none() && looks.is_different() {
            called = Some((looks.direction(), looks.count()));
        }
    }
    let decision = same.or(called);
    let interval = looks.interval();
    let upheld = decision.is_none_or(|(verdict, _)| looks.supports(verdict, interval));
    let is_open = decision.is_none() || !upheld;
    let judged = Judgement {
        verdict: decision.map_or(Verdict::Unknown, |(verdict, _)| verdict),
        blocks_needed: is_open.then(|| looks.blocks_needed()).flatten(),
        e_value: saturating_exp(looks.coins.ln_e()),
        outlook: looks.outlook(),
        decided_at: decision.map(|(_, block)| block),
        upheld,
        ..undecidable_judgement(xs)
    };
    let shift = Shift {
        value: looks.centre(),
        interval,
    };
    (judged, Some(shift))
}

/// Knowledge after some blocks.
struct Looks<'a> {
    params: &'a Params,
    limit: f64,
    xs: Vec<f64>,
    /// Numbers of them below and above *same*.
    outside: [usize; 2],
    coins: Process,
    /// The coins of the differences from either end of *same*.
    from_ends: [(f64, Process); 2],
}

impl<'a> Looks<'a> {
    fn new(params: &'a Params, limit: f64) -> Self {
        Looks {
            params,
            limit,
            xs: Vec::new(),
            outside: [0, 0],
            coins: Process::new(Prior::BLOCKS),
            from_ends: [-limit, limit].map(|end| (end, Process::new(Prior::BLOCKS))),
        }
    }

    fn push(&mut self, x: f64) {
        self.xs.push(x);
        self.outside[0] += usize::from(x < -self.limit);
        self.outside[1] += usize::from(x > self.limit);
        self.coins.push(x);
        for (end, process) in &mut self.from_ends {
            process.push(x - *end);
        }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.xs.len()).unwrap_or(u32::MAX)
    }

    fn rejects(&self, process: &Process) -> bool {
        process.ln_e() >= -self.params.alpha.ln()
    }

    fn is_different(&self) -> bool {
        self.rejects(&self.coins)
    }

    fn is_same(&self) -> bool {
        // The interval takes many passes over all blocks. Wherever it lies between both ends they are rejected, its
        // middle is between them, and that is soon known. An end of 0 is none: blocks that are all 0 reject
        // everything else.
        let may_be = match self.limit == 0.0 {
            true => self.xs.iter().all(|x| *x == 0.0),
            false => {
                self.has_middle_between_ends()
                    && self.from_ends.iter().all(|(_, coins)| self.rejects(coins))
            }
        };
        may_be && self.interval().is_some_and(|i| self.is_within_limit(i))
    }

    fn is_within_limit(&self, interval: Interval) -> bool {
        interval.lies_within(&Interval::centred_at(0.0, self.limit))
    }

    /// True where the centre or the median may be between both ends, one of which is the middle of an interval.
    fn has_middle_between_ends(&self) -> bool {
        let [(_, from_low), (_, from_high)] = &self.from_ends;
        let has_centre = from_low.balance() >= 0.0 && from_high.balance() <= 0.0;
        has_centre || self.outside.iter().all(|count| 2 * count <= self.xs.len())
    }

    fn interval(&self) -> Option<Interval> {
        randomization::confidence_sequence(&self.xs, self.params.alpha, Prior::BLOCKS)
    }

    fn centre(&self) -> f64 {
        randomization::estimate_centre(&self.xs).unwrap_or(0.0)
    }

    /// Side of the centre; where that is 0, of most blocks.
    fn direction(&self) -> Verdict {
        let most = || {
            let sides = self.xs.iter().filter(|x| **x != 0.0);
            sides.map(|x| x.signum()).sum()
        };
        let centre = Some(self.centre()).filter(|centre| *centre != 0.0);
        judge_direction(centre.unwrap_or_else(most), self.params)
    }

    /// Is this the verdict after all blocks so far, whose interval this is?
    fn supports(&self, verdict: Verdict, interval: Option<Interval>) -> bool {
        match verdict {
            Verdict::Same => interval.is_some_and(|i| self.is_within_limit(i)),
            Verdict::Unknown => true,
            called => self.is_different() && self.direction() == called,
        }
    }

    /// The smallest number of blocks that would decide, if centre and spread stayed what they are.
    fn blocks_needed(&self) -> Option<u32> {
        let fewest = fewest_pairs(self.params.alpha, Prior::BLOCKS);
        self.outlook()?.units_needed(self.params.alpha, fewest)
    }

    fn outlook(&self) -> Option<Outlook> {
        let spread = randomization::estimate_spread(&self.xs)?;
        Some(Outlook {
            units: self.count(),
            pairs: self.count(),
            centre: self.centre(),
            spread,
            pair_spread: spread,
            limit: self.limit,
        })
    }
}

/// Blocks that coins need for one of a safe t-test whose assumptions hold, for as good a chance to find a change.
const PRICE: f64 = 1.05;

/// Blocks with which a safe t-test would know as much of normal values as coins know with this number.
pub(crate) fn as_by_t_test(blocks: u32) -> u32 {
    let blocks = model::truncate_to_u64(f64::from(blocks) / PRICE);
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
