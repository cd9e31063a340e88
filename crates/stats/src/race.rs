//! A race of many candidates beside a baseline: who cannot be the best any more, who is measured next, and
//! who is ahead.
//!
//! A candidate is dropped by the mean of its e-values against all rivals, over the most arms that the race may
//! have. If it is truly the best, each of these is an e-process, and so is their mean: the chance that the
//! best candidate is ever dropped is at most the error of the race, however often one looks and however long
//! it takes. Rivals that come later begin with nothing. Who rests between two rounds is not dropped, and may
//! come back.

use crate::coins;
use crate::randomization::{self, Prior};
use crate::regret::BlockGains;
use crate::summary::{Moments, mean};
use crate::verdict::{Params, Verdict};
use model::Better;

/// Candidates that are measured on, however many there are.
const FEWEST_RUNNERS: usize = 3;

/// Half of an interval that holds at every look, in standard errors.
const ERRORS_OF_AN_INTERVAL: f64 = 3.0;

/// Error of a race, and its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Chance that the best candidate is ever dropped, at most.
    pub error: f64,
    /// Most arms that the race can have, with the baseline.
    pub most_arms: usize,
}

/// A constraint: gains of another kind, which may not be below a floor.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Least gain over the baseline that is borne, a logarithm of a ratio.
    pub floor: f64,
    /// Gains block by block.
    pub blocks: Vec<BlockGains>,
}

/// Reason for which a candidate was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Rival that it is behind most surely.
    Rival(usize),
    /// Constraint that it breaks most surely.
    Limit(usize),
}

/// Why a candidate was dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropped {
    /// Reason for which it was dropped.
    pub by: Cause,
    /// Evidence that it is not the best, or does not hold the constraints.
    pub e_value: f64,
}

/// State of one arm of a race.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runner {
    /// Blocks in which it was measured.
    pub blocks: usize,
    /// Mean gain over the baseline, a logarithm of a ratio; none without blocks.
    pub gain: Option<f64>,
    /// Standard error of the mean; none with fewer than two blocks.
    pub error: Option<f64>,
    /// Set once it cannot be the best any more, or cannot hold a constraint.
    pub dropped: Option<Dropped>,
    /// The constraints hold as far as the means with one standard error tell.
    pub may_hold: bool,
}

impl Runner {
    /// Mean with so many standard errors added; none with fewer than two blocks.
    fn gain_with(&self, errors: f64) -> Option<f64> {
        Some(self.gain? + errors * self.error?)
    }

    /// Blocks after which an interval reaches about so far to either side, if it goes on as it did; none before two
    /// blocks.
    pub fn blocks_to_know(&self, half_width: f64) -> Option<usize> {
        let spread = self.error? * (self.blocks as f64).sqrt();
        let blocks = (ERRORS_OF_AN_INTERVAL * spread / half_width).powi(2);
        blocks
            .is_finite()
            .then(|| model::truncate_to_u64(blocks.ceil()))
            .and_then(|blocks| usize::try_from(blocks).ok())
    }

    fn is_in(&self) -> bool {
        self.dropped.is_none() && self.error.is_some()
    }
}

/// States of all arms by the blocks so far, in the order of measuring. The baseline is arm 0, has a gain of 0
/// in each block, and is never dropped. Who breaks a constraint is nobody's rival.
pub fn judge_runners(
    blocks: &[BlockGains],
    arms: usize,
    limits: &[Limit],
    rule: &Rule,
) -> Vec<Runner> {
    let broken: Vec<Option<Dropped>> = (0..arms)
        .map(|arm| match arm {
            0 => None,
            _ => find_broken(limits, arm, rule),
        })
        .collect();
    let rivals: Vec<usize> = (0..arms).filter(|arm| broken[*arm].is_none()).collect();
    let runner = |arm: usize| {
        let known = know_gains(blocks, arm);
        let behind = || find_drop(blocks, arm, &rivals, rule.most_arms.max(arms), rule);
        Runner {
            blocks: known.blocks,
            gain: known.mean,
            error: known.error,
            may_hold: arm == 0 || limits.iter().all(|limit| may_hold(limit, arm)),
            dropped: match arm {
                0 => None,
                _ => broken[arm].or_else(behind),
            },
        }
    };
    (0..arms).map(runner).collect()
}

/// Evidence of an arm's blocks about its gain.
struct Known {
    blocks: usize,
    mean: Option<f64>,
    error: Option<f64>,
}

fn know_gains(blocks: &[BlockGains], arm: usize) -> Known {
    let gains: Vec<f64> = blocks.iter().filter_map(|block| block[arm]).collect();
    let sd = Moments::from_values(&gains).sd();
    Known {
        blocks: gains.len(),
        mean: mean(&gains),
        error: sd.map(|sd| sd / (gains.len() as f64).sqrt()),
    }
}

fn may_hold(limit: &Limit, arm: usize) -> bool {
    let known = know_gains(&limit.blocks, arm);
    let highest = known.mean.map(|mean| mean + known.error.unwrap_or(0.0));
    highest.is_none_or(|highest| highest >= limit.floor)
}

/// The mean of the evidence against all constraints: of a candidate that holds them none grows beyond chance.
fn find_broken(limits: &[Limit], arm: usize, rule: &Rule) -> Option<Dropped> {
    let below = |limit: &Limit| {
        let gains = limit.blocks.iter().filter_map(|block| block[arm]);
        evidence_above_zero(&gains.map(|gain| limit.floor - gain).collect::<Vec<f64>>())
    };
    let evidence: Vec<f64> = limits.iter().map(below).collect();
    let e_value = mean(&evidence)?;
    let all = evidence.iter().enumerate();
    let (worst, _) = all.max_by(|a, b| a.1.total_cmp(b.1))?;
    let by = Cause::Limit(worst);
    (e_value * rule.error >= 1.0).then_some(Dropped { by, e_value })
}

fn find_drop(
    blocks: &[BlockGains],
    arm: usize,
    rivals: &[usize],
    most_arms: usize,
    rule: &Rule,
) -> Option<Dropped> {
    let rivals = rivals.iter().filter(|rival| **rival != arm);
    let evidence = rivals.map(|rival| (*rival, evidence_ahead(blocks, *rival, arm)));
    let evidence: Vec<(usize, f64)> = evidence.collect();
    let sum: f64 = evidence.iter().map(|(_, e_value)| e_value).sum();
    let e_value = sum / most_arms.saturating_sub(1).max(1) as f64;
    let (rival, _) = evidence.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let by = Cause::Rival(rival);
    (e_value * rule.error >= 1.0).then_some(Dropped { by, e_value })
}

/// Evidence that the rival is ahead of the arm: none where the blocks that have both say the contrary.
fn evidence_ahead(blocks: &[BlockGains], rival: usize, arm: usize) -> f64 {
    let both = blocks
        .iter()
        .filter_map(|block| Some(block[rival]? - block[arm]?));
    evidence_above_zero(&both.collect::<Vec<f64>>())
}

fn evidence_above_zero(xs: &[f64]) -> f64 {
    match mean(xs) {
        Some(mean) if mean > 0.0 => randomization::e_value(xs, Prior::BLOCKS),
        _ => 0.0,
    }
}

fn params(alpha: f64, smallest_effect: f64) -> Params {
    Params {
        alpha,
        smallest_effect,
        better: Better::Higher,
    }
}

/// Candidates that are measured in the next round, the most promising first, those that seem to break a
/// constraint last: half as many as in the round before, and three at least. `round` is 1 for the first.
pub fn choose_runners(runners: &[Runner], round: u32) -> Vec<usize> {
    let mut able: Vec<usize> = (1..runners.len())
        .filter(|arm| runners[*arm].is_in())
        .collect();
    let hope = |arm: &usize| runners[*arm].gain_with(1.0).unwrap_or(f64::NEG_INFINITY);
    let breaks = |arm: &usize| !runners[*arm].may_hold;
    able.sort_by(|a, b| breaks(a).cmp(&breaks(b)).then(hope(b).total_cmp(&hope(a))));
    let halves = (runners.len() - 1) >> round.min(16);
    able.truncate(halves.max(FEWEST_RUNNERS));
    able
}

/// The candidate that is ahead: the largest gain after its standard error is taken off, so that luck in few
/// blocks is no lead. None where all are dropped, or seem to break a constraint.
pub fn find_front_runner(runners: &[Runner]) -> Option<usize> {
    let able = (1..runners.len()).filter(|arm| runners[*arm].is_in() && runners[*arm].may_hold);
    let sure = |arm: &usize| runners[*arm].gain_with(-1.0).unwrap_or(f64::NEG_INFINITY);
    able.max_by(|a, b| sure(a).total_cmp(&sure(b)))
}

/// True if no other candidate is likely to be ahead of the front runner by what matters, by the blocks that have both:
/// their mean and two standard errors. It is no claim, since only a fresh measurement is one.
pub fn is_settled(blocks: &[BlockGains], runners: &[Runner], smallest_effect: f64) -> bool {
    let Some(front) = find_front_runner(runners) else {
        return false;
    };
    let is_behind = |other: &usize| {
        let both = blocks.iter();
        let ahead = both.filter_map(|block| Some(block[*other]? - block[front]?));
        let ahead: Vec<f64> = ahead.collect();
        let sd = Moments::from_values(&ahead).sd();
        let highest = mean(&ahead).zip(sd);
        let highest = highest.map(|(mean, sd)| mean + 2.0 * sd / (ahead.len() as f64).sqrt());
        highest.is_some_and(|highest| highest < smallest_effect.ln_1p())
    };
    // One that seems to break a constraint is ahead until it is known to break it.
    let mut rivals = (1..runners.len()).filter(|arm| *arm != front && runners[*arm].is_in());
    rivals.all(|arm| is_behind(&arm))
}

/// Candidates whose difference from this one is surely smaller than what matters.
pub fn find_alike(
    blocks: &[BlockGains],
    runners: &[Runner],
    arm: usize,
    smallest_effect: f64,
    rule: &Rule,
) -> Vec<usize> {
    let is_same = |other: &usize| {
        let both = blocks.iter();
        let xs: Vec<f64> = both
            .filter_map(|block| Some(block[*other]? - block[arm]?))
            .collect();
        let judged = coins::judge(&xs, &params(rule.error, smallest_effect));
        judged.supported_verdict() == Verdict::Same
    };
    let is_able = |other: usize| runners[other].is_in() && runners[other].may_hold;
    let others = (1..runners.len()).filter(|other| *other != arm && is_able(*other));
    others.filter(is_same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::blocks_of_gains as blocks;

    const RULE: Rule = Rule {
        error: 0.05,
        most_arms: 10,
    };

    #[test]
    fn the_worst_is_dropped_and_the_best_and_the_baseline_stay() {
        let found = judge_runners(&blocks(1, 14, &[0.10, -0.10, 0.09], 0.02), 4, &[], &RULE);
        assert!(found[2].dropped.is_some(), "{found:?}");
        assert_ne!(found[2].dropped.map(|d| d.by), Some(Cause::Rival(2)));
        assert_eq!((found[0].dropped, found[1].dropped), (None, None));
        let front = find_front_runner(&found);
        assert!(front == Some(1) || front == Some(3), "{front:?}");
        assert!(!choose_runners(&found, 1).contains(&2));
    }

    #[test]
    fn the_best_of_a_race_is_seldom_dropped_though_one_looks_often() {
        let is_dropped = |seed: u64| {
            let all = blocks(100 + seed, 40, &[0.0, 0.0, 0.0, 0.0], 0.02);
            (4..=40).step_by(6).any(|upto| {
                judge_runners(&all[..upto], 5, &[], &RULE)[1]
                    .dropped
                    .is_some()
            })
        };
        let dropped = (0..100).filter(|seed| is_dropped(*seed)).count();
        assert!(dropped <= 5, "{dropped} of 100");
    }

    #[test]
    fn arms_that_are_alike_are_found() {
        let all = blocks(2, 30, &[0.10, 0.10, 0.0], 0.01);
        let found = judge_runners(&all, 4, &[], &RULE);
        assert_eq!(find_alike(&all, &found, 1, 0.02, &RULE), [2]);
    }

    #[test]
    fn a_race_is_settled_where_nobody_may_be_ahead_by_what_matters() {
        let settled = |seed: u64, count: usize, gains: &[f64], smallest: f64| {
            let all = blocks(seed, count, gains, 0.01);
            let found = judge_runners(&all, gains.len() + 1, &[], &RULE);
            is_settled(&all, &found, smallest)
        };
        assert!(settled(6, 6, &[0.10, 0.0, 0.02], 0.02));
        // Two that are alike: their difference is too small to matter, or not known to be.
        assert!(settled(7, 12, &[0.10, 0.10, 0.0], 0.05));
        assert!(!settled(7, 3, &[0.10, 0.10, 0.0], 0.005));
        // Half an interval is three standard errors: 3 · 1 % / 2 % squared, by a spread that is about 1 %.
        let known = judge_runners(&blocks(8, 400, &[0.10], 0.01), 2, &[], &RULE)[1];
        let enough = known.blocks_to_know(0.02);
        assert!(
            enough.is_some_and(|blocks| (2..=6).contains(&blocks)),
            "{enough:?}"
        );
        // Nobody is ahead before there are blocks.
        assert!(!is_settled(&[], &judge_runners(&[], 3, &[], &RULE), 0.02));
    }

    #[test]
    fn who_was_not_measured_neither_runs_nor_leads() {
        let mut all = blocks(3, 8, &[0.05, 0.01], 0.01);
        for block in &mut all {
            block.push(None);
        }
        let found = judge_runners(&all, 4, &[], &RULE);
        assert_eq!((found[3].blocks, found[3].gain), (0, None));
        assert_eq!(find_front_runner(&found), Some(1));
        assert!(!choose_runners(&found, 1).contains(&3));
    }

    #[test]
    fn who_breaks_a_constraint_is_dropped_and_drops_nobody() {
        let gains = blocks(4, 20, &[0.20, 0.05], 0.01);
        let limit = Limit {
            floor: -0.02,
            blocks: blocks(5, 20, &[-0.10, 0.0], 0.01),
        };
        let found = judge_runners(&gains, 3, &[limit], &RULE);
        assert_eq!(found[1].dropped.map(|d| d.by), Some(Cause::Limit(0)));
        assert_eq!((found[2].dropped, found[2].may_hold), (None, true));
        assert_eq!(find_front_runner(&found), Some(2));
        assert!(judge_runners(&gains, 3, &[], &RULE)[2].dropped.is_some());
    }

    #[test]
    fn who_just_holds_all_constraints_is_seldom_dropped_for_one() {
        let is_dropped = |seed: u64| {
            let limits: Vec<Limit> = (0..3)
                .map(|limit| Limit {
                    floor: 0.0,
                    blocks: blocks(1000 + 3 * seed + limit, 40, &[0.0], 0.02),
                })
                .collect();
            let gains = blocks(9000 + seed, 40, &[0.1], 0.02);
            judge_runners(&gains, 2, &limits, &RULE)[1]
                .dropped
                .is_some()
        };
        let dropped = (0..100).filter(|seed| is_dropped(*seed)).count();
        assert!(dropped <= 5, "{dropped} of 100");
    }
}
