//! A race of candidates over its rounds: the gains of all arms, block by block, over the mix that counts, and
//! who cannot win any more by them.

mod confirmation;
mod goal;

pub use confirmation::{Confirmed, Elsewhere, judge_confirmation};
pub use goal::{Goal, KnownMetric};

use crate::recommend::parts::{Part, Together};
use crate::recommend::{RecommendError, Source};
use goal::Constraint;
use model::Better;
use serde::{Deserialize, Serialize};
pub use stats::race::Runner;
use stats::race::{
    Cause, Dropped, Limit, Rule, choose_runners, find_alike, find_front_runner, is_settled,
    judge_runners,
};
use stats::regret::BlockGains;
use stats::summary::mean;
use std::collections::BTreeMap;

/// Arms of a race in all, with the baseline.
pub const MOST_ARMS: usize = 40;

/// Chance that the best candidate is ever dropped, at most.
const ERROR: f64 = 0.05;

const RULE: Rule = Rule {
    error: ERROR,
    most_arms: MOST_ARMS,
};

/// Rounds of a race, judged together.
#[derive(Debug, Clone)]
pub struct Race {
    /// Names of the arms, the baseline first.
    pub names: Vec<String>,
    /// State of each arm.
    pub runners: Vec<Runner>,
    /// Arms without a block that counts, with the reason.
    pub failed: BTreeMap<String, String>,
    /// Gains over the mix, block by block.
    pub blocks: Vec<BlockGains>,
    limits: Vec<Limited>,
    objectives: Vec<(String, Vec<BlockGains>)>,
}

/// A metric of a cell with its gains, and a constraint on it.
#[derive(Debug, Clone)]
struct Limited {
    cell: String,
    metric: String,
    better: Better,
    /// Words of the constraint; empty without one.
    wanted: String,
    floor: f64,
    blocks: Vec<BlockGains>,
}

/// An arm that no other is ahead of in all objectives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrontArm {
    /// Name of the arm.
    pub arm: String,
    /// Objectives with the gain over the baseline in the race, as shares.
    pub gains: Vec<(String, f64)>,
}

impl Race {
    /// Candidates that run in the next round after so many, the most promising first.
    pub fn choose_runners(&self, rounds: u32) -> Vec<&str> {
        let chosen = choose_runners(&self.runners, rounds).into_iter();
        chosen.map(|arm| self.names[arm].as_str()).collect()
    }

    /// The candidate that is ahead; none where all were dropped.
    pub fn find_front_runner(&self) -> Option<&str> {
        find_front_runner(&self.runners).map(|arm| self.names[arm].as_str())
    }

    /// Blocks after which the gain of this arm is known to about this effect.
    pub fn blocks_to_know(&self, arm: &str, effect: f64) -> Option<usize> {
        let index = self.names.iter().position(|name| name == arm)?;
        self.runners[index].blocks_to_know(effect.ln_1p())
    }

    /// True if no other candidate is likely to be ahead of the front runner by what matters.
    pub fn is_settled(&self, smallest_effect: f64) -> bool {
        is_settled(&self.blocks, &self.runners, smallest_effect)
    }

    /// Candidates whose difference from this one is surely smaller than what matters.
    pub fn find_alike(&self, arm: &str, smallest_effect: f64) -> Vec<&str> {
        let Some(index) = self.names.iter().position(|name| name == arm) else {
            return Vec::new();
        };
        let alike = find_alike(&self.blocks, &self.runners, index, smallest_effect, &RULE);
        alike
            .into_iter()
            .map(|arm| self.names[arm].as_str())
            .collect()
    }

    /// Reason for which somebody was dropped: `behind slice=1ms, evidence 24`.
    pub fn format_drop(&self, dropped: &Dropped) -> String {
        let evidence = dropped.e_value.floor();
        match dropped.by {
            Cause::Rival(rival) => format!("behind {}, evidence {evidence:.0}", self.names[rival]),
            Cause::Limit(index) => {
                let limit = &self.limits[index];
                let (metric, cell, wanted) = (&limit.metric, &limit.cell, &limit.wanted);
                format!("{metric} of {cell} cannot be {wanted}, evidence {evidence:.0}")
            }
        }
    }

    /// True if somebody was dropped for a constraint, and not for being behind.
    pub fn breaks_limit(dropped: &Dropped) -> bool {
        matches!(dropped.by, Cause::Limit(_))
    }

    /// Arms that no other is ahead of in all objectives, by the means of the race, without those that seem
    /// to break a constraint; empty with one objective.
    pub fn find_front(&self) -> Vec<FrontArm> {
        let is_able = |arm: &usize| {
            let runner = &self.runners[*arm];
            runner.may_hold && !runner.dropped.is_some_and(|d| Race::breaks_limit(&d))
        };
        let means = |arm: usize| {
            let all = self.objectives.iter();
            all.map(|(_, blocks)| mean(&gains_of(blocks, Some(arm))))
                .collect::<Option<Vec<f64>>>()
        };
        let all = (0..self.names.len()).filter(is_able);
        let all: Vec<(usize, Vec<f64>)> = all.filter_map(|arm| Some((arm, means(arm)?))).collect();
        let is_ahead = |a: &[f64], b: &[f64]| a != b && a.iter().zip(b).all(|(a, b)| a >= b);
        let front = all.iter().filter(|(_, of)| {
            !self.objectives.is_empty() && !all.iter().any(|(_, a)| is_ahead(a, of))
        });
        let names = self.objectives.iter().map(|(name, _)| name.clone());
        front
            .map(|(arm, gains)| FrontArm {
                arm: self.names[*arm].clone(),
                gains: names
                    .clone()
                    .zip(gains.iter().map(|g| g.exp_m1()))
                    .collect(),
            })
            .collect()
    }

    /// True if no candidate is likely to be ahead of the baseline by what matters, each of them known by so
    /// many blocks.
    pub fn is_hopeless(&self, smallest_effect: f64, blocks: usize) -> bool {
        let matters = smallest_effect.ln_1p();
        let mut able = self
            .runners
            .iter()
            .skip(1)
            .filter(|r| r.dropped.is_none() && r.blocks > 0);
        let highest = |runner: &Runner| Some(runner.gain? + 2.0 * runner.error?);
        able.all(|r| r.blocks >= blocks && highest(r).is_some_and(|highest| highest < matters))
    }
}

/// Judges the rounds of a race, which are results of the same cells with one baseline.
pub fn judge_race(sources: &[Source], goal: &Goal) -> Result<Race, RecommendError> {
    let read = RaceSource::read(sources, goal)?;
    let limit = |limited: &Limited| Limit {
        floor: limited.floor,
        blocks: limited.blocks.clone(),
    };
    let limits: Vec<Limit> = read.limits.iter().map(limit).collect();
    let runners = judge_runners(&read.blocks, read.names.len(), &limits, &RULE);
    let failed = read.names.iter().zip(&runners).skip(1);
    let failed = failed.filter(|(_, runner)| runner.blocks == 0);
    let failed = failed.map(|(name, _)| (name.clone(), find_reason(&read.together, name)));
    Ok(Race {
        failed: failed.collect(),
        runners,
        objectives: read.list_objectives(goal)?,
        names: read.names,
        blocks: read.blocks,
        limits: read.limits,
    })
}

/// Results of a race with the gains that it is judged by.
struct RaceSource<'a> {
    together: Together<'a>,
    /// Names of the arms, the baseline first.
    names: Vec<String>,
    weights: Vec<f64>,
    blocks: Vec<BlockGains>,
    constraints: Vec<Constraint>,
    limits: Vec<Limited>,
}

impl<'a> RaceSource<'a> {
    fn read(sources: &[Source<'a>], goal: &Goal) -> Result<RaceSource<'a>, RecommendError> {
        let together = Together::from_sources(sources)?;
        let smallest = sources[0].results.experiment.stop.smallest_effect;
        let arms = together.arms.iter().map(|arm| arm.name.clone());
        let names: Vec<String> = std::iter::once(together.baseline.clone())
            .chain(arms)
            .collect();
        let weights = goal.weigh_parts(&together.parts)?;
        let constraints = goal.find_constraints(&together.parts, smallest)?;
        let mut read = RaceSource {
            blocks: weigh_blocks(&together.parts, &weights, &names),
            limits: Vec::new(),
            together,
            names,
            weights,
            constraints,
        };
        let limits = read.constraints.iter();
        let limits = limits.map(|c| read.limit_part(c.part, &c.wanted, c.floor));
        read.limits = limits.collect();
        Ok(read)
    }

    fn limit_part(&self, index: usize, wanted: &str, floor: f64) -> Limited {
        let part = &self.together.parts[index];
        Limited {
            cell: part.cell.clone(),
            metric: part.metric.clone(),
            better: part.better,
            wanted: wanted.to_owned(),
            floor,
            blocks: self.gains_of_parts(&[index]),
        }
    }

    fn gains_of_parts(&self, indices: &[usize]) -> Vec<BlockGains> {
        let parts = indices
            .iter()
            .map(|index| self.together.parts[*index].clone());
        weigh_blocks(
            &parts.collect::<Vec<Part>>(),
            &vec![1.0; indices.len()],
            &self.names,
        )
    }

    /// Metrics that are better in one direction, without the constraints and what alone counts.
    fn list_elsewhere(&self) -> Vec<Limited> {
        let counting = self.weights.iter().filter(|weight| **weight > 0.0).count();
        let is_elsewhere = |index: &usize| {
            let is_goal = counting == 1 && self.weights[*index] > 0.0;
            let part = &self.together.parts[*index];
            part.better != Better::Neither
                && !is_goal
                && self.constraints.iter().all(|c| c.part != *index)
        };
        let indices = (0..self.together.parts.len()).filter(is_elsewhere);
        indices
            .map(|index| self.limit_part(index, "", 0.0))
            .collect()
    }

    fn list_objectives(
        &self,
        goal: &Goal,
    ) -> Result<Vec<(String, Vec<BlockGains>)>, RecommendError> {
        let named = goal.split_objectives(&self.together.parts)?.into_iter();
        let gains = named.map(|(name, parts)| (name, self.gains_of_parts(&parts)));
        Ok(gains.collect())
    }
}

/// Gains of an arm in the blocks that have it.
fn gains_of(blocks: &[BlockGains], arm: Option<usize>) -> Vec<f64> {
    let gains = blocks.iter().filter_map(|block| block[arm?]);
    gains.collect()
}

/// Weighed means of the gains of each arm in each block, where it has all of them.
fn weigh_blocks(parts: &[Part], weights: &[f64], names: &[String]) -> Vec<BlockGains> {
    let is_measured = |part: &Part| part.arms.iter().any(|arm| !arm.blocks.is_empty());
    let weighed = parts.iter().zip(weights);
    let weighed = weighed.filter(|(part, weight)| **weight > 0.0 && is_measured(part));
    let weighed: Vec<(&Part, f64)> = weighed.map(|(part, weight)| (part, *weight)).collect();
    let total: f64 = weighed.iter().map(|(_, weight)| weight).sum();
    // Sums of weights and of weighed gains by block and arm.
    let mut sums: BTreeMap<(usize, u32), Vec<(usize, f64)>> = BTreeMap::new();
    for (part, weight) in &weighed {
        for arm in &part.arms {
            let Some(index) = names.iter().position(|name| *name == arm.arm) else {
                continue;
            };
            for (block, gain) in &arm.blocks {
                let all = sums
                    .entry(*block)
                    .or_insert_with(|| vec![(0, 0.0); names.len()]);
                all[index].0 += 1;
                all[index].1 += weight * gain / total;
            }
        }
    }
    let gains = |sums: Vec<(usize, f64)>| {
        let arms = sums.into_iter().enumerate();
        arms.map(|(index, (count, sum))| match index {
            0 => Some(0.0),
            _ => (count == weighed.len()).then_some(sum),
        })
        .collect()
    };
    sums.into_values().map(gains).collect()
}

/// Why no trial of an arm counts, as the first cell that lacks it says.
fn find_reason(together: &Together, arm: &str) -> String {
    let cells = together.tables.iter().flat_map(|table| &table.cells);
    let lacking = cells.flat_map(|cell| &cell.not_measured);
    let mut lacking = lacking.filter(|n| n.arm == arm && !n.why.is_empty());
    let first = lacking.next().map(|n| n.why.clone());
    first.unwrap_or_else(|| "no block of it counts".to_owned())
}
