//! A race of many candidates beside a baseline: who cannot be the best any more, who is measured next, and
//! who is ahead.
//!
//! A candidate is dropped by the mean of its e-values against all rivals, over the most arms that the race may
//! have. If it is truly the best, each of these is an e-process, and so is their mean: the chance that the
//! best candidate is ever dropped is at most the error of the race, however often one looks and however long
//! it takes. Rivals that come later begin with nothing. Who rests between two rounds is not dropped, and may
//! come back.

use crate::coins;
use crate::regret::BlockGains;
use crate::summary::{Moments, mean};
use crate::verdict::{Params, Verdict};
use model::Better;

/// Candidates that are measured on, however many there are.
const FEWEST_RUNNERS: usize = 3;

/// Error of a race, and its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Chance that the best candidate is ever dropped, at most.
    pub error: f64,
    /// Most arms that the race can have, with the baseline.
    pub most_arms: usize,
}

/// Why a candidate was dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropped {
    /// Rival that it is behind most surely.
    pub rival: usize,
    /// Evidence that it is not the best.
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
    /// Set once it cannot be the best any more.
    pub dropped: Option<Dropped>,
}

impl Runner {
    /// Mean with so many standard errors added; none with fewer than two blocks.
    fn gain_with(&self, errors: f64) -> Option<f64> {
        Some(self.gain? + errors * self.error?)
    }

    fn is_in(&self) -> bool {
        self.dropped.is_none() && self.error.is_some()
    }
}

/// States of all arms by the blocks so far, in the order of measuring. The baseline is arm 0, has a gain of 0
/// in each block, and is never dropped.
pub fn judge_runners(blocks: &[BlockGains], arms: usize, rule: &Rule) -> Vec<Runner> {
    (0..arms)
        .map(|arm| {
            let gains: Vec<f64> = blocks.iter().filter_map(|block| block[arm]).collect();
            let moments = Moments::from_values(&gains);
            let error = moments.sd().map(|sd| sd / (gains.len() as f64).sqrt());
            Runner {
                blocks: gains.len(),
                gain: mean(&gains),
                error,
                dropped: match arm {
                    0 => None,
                    _ => find_drop(blocks, arm, arms, rule),
                },
            }
        })
        .collect()
}

fn find_drop(blocks: &[BlockGains], arm: usize, arms: usize, rule: &Rule) -> Option<Dropped> {
    let rivals = (0..arms).filter(|rival| *rival != arm);
    let evidence = rivals.map(|rival| (rival, evidence_ahead(blocks, rival, arm)));
    let evidence: Vec<(usize, f64)> = evidence.collect();
    let sum: f64 = evidence.iter().map(|(_, e_value)| e_value).sum();
    let others = rule.most_arms.max(arms).saturating_sub(1).max(1);
    let e_value = sum / others as f64;
    let (rival, _) = evidence.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (e_value * rule.error >= 1.0).then_some(Dropped { rival, e_value })
}

/// Evidence that the rival is ahead of the arm: none where the blocks that have both say the contrary.
fn evidence_ahead(blocks: &[BlockGains], rival: usize, arm: usize) -> f64 {
    let both = blocks
        .iter()
        .filter_map(|block| Some(block[rival]? - block[arm]?));
    let xs: Vec<f64> = both.collect();
    match mean(&xs) {
        Some(mean) if mean > 0.0 => coins::judge(&xs, &params(0.05, 0.0)).e_value,
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

/// Candidates that are measured in the next round, the most promising first: half as many as in the round
/// before, and three at least. `round` is 1 for the first.
pub fn choose_runners(runners: &[Runner], round: u32) -> Vec<usize> {
    let mut able: Vec<usize> = (1..runners.len())
        .filter(|arm| runners[*arm].is_in())
        .collect();
    let hope = |arm: &usize| runners[*arm].gain_with(1.0).unwrap_or(f64::NEG_INFINITY);
    able.sort_by(|a, b| hope(b).total_cmp(&hope(a)));
    let halves = (runners.len() - 1) >> round.min(16);
    able.truncate(halves.max(FEWEST_RUNNERS));
    able
}

/// The candidate that is ahead: the largest gain after its standard error is taken off, so that luck in few
/// blocks is no lead. None where all are dropped.
pub fn find_front_runner(runners: &[Runner]) -> Option<usize> {
    let able = (1..runners.len()).filter(|arm| runners[*arm].is_in());
    let sure = |arm: &usize| runners[*arm].gain_with(-1.0).unwrap_or(f64::NEG_INFINITY);
    able.max_by(|a, b| sure(a).total_cmp(&sure(b)))
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
    let others = (1..runners.len()).filter(|other| *other != arm && runners[*other].is_in());
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
        let found = judge_runners(&blocks(1, 14, &[0.10, -0.10, 0.09], 0.02), 4, &RULE);
        assert!(found[2].dropped.is_some(), "{found:?}");
        assert_ne!(found[2].dropped.map(|d| d.rival), Some(2));
        assert_eq!((found[0].dropped, found[1].dropped), (None, None));
        let front = find_front_runner(&found);
        assert!(front == Some(1) || front == Some(3), "{front:?}");
        assert!(!choose_runners(&found, 1).contains(&2));
    }

    #[test]
    fn the_best_of_a_race_is_seldom_dropped_though_one_looks_often() {
        let is_dropped = |seed: u64| {
            let all = blocks(100 + seed, 40, &[0.0, 0.0, 0.0, 0.0], 0.02);
            (4..=40)
                .step_by(6)
                .any(|upto| judge_runners(&all[..upto], 5, &RULE)[1].dropped.is_some())
        };
        let dropped = (0..100).filter(|seed| is_dropped(*seed)).count();
        assert!(dropped <= 5, "{dropped} of 100");
    }

    #[test]
    fn arms_that_are_alike_are_found() {
        let all = blocks(2, 30, &[0.10, 0.10, 0.0], 0.01);
        let found = judge_runners(&all, 4, &RULE);
        assert_eq!(find_alike(&all, &found, 1, 0.02, &RULE), [2]);
    }

    #[test]
    fn who_was_not_measured_neither_runs_nor_leads() {
        let mut all = blocks(3, 8, &[0.05, 0.01], 0.01);
        for block in &mut all {
            block.push(None);
        }
        let found = judge_runners(&all, 4, &RULE);
        assert_eq!((found[3].blocks, found[3].gain), (0, None));
        assert_eq!(find_front_runner(&found), Some(1));
        assert!(!choose_runners(&found, 1).contains(&3));
    }
}
