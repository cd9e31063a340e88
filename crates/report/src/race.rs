//! A race of candidates over its rounds: the gains of all arms, block by block, over the mix that counts, and
//! who cannot win any more by them.

use crate::quantity::{format_change, format_interval};
use crate::recommend::parts::{Part, Together};
use crate::recommend::{Mix, RecommendError, Source};
use serde::{Deserialize, Serialize};
use stats::coins;
pub use stats::race::Runner;
use stats::race::{Rule, choose_runners, find_alike, find_front_runner, judge_runners};
use stats::regret::BlockGains;
use stats::{Better, Params, Verdict};
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

/// Answer of a confirmation: an arm against the baseline, over the mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    /// `better`, `worse`, `same` or `unknown`.
    pub verdict: String,
    /// Arm over baseline, above 1 where the arm is better; none without a block.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Blocks that it is known by.
    pub blocks: usize,
}

impl Confirmed {
    /// True if the arm is better than the baseline.
    pub fn is_better(&self) -> bool {
        self.verdict == Verdict::Better.as_str()
    }

    /// `+3.0%`; none without a block.
    pub fn format_change(&self) -> Option<String> {
        self.ratio.map(format_change)
    }

    /// `[+2.1%, +4.0%]`; none without an interval.
    pub fn format_interval(&self) -> Option<String> {
        let (low, high) = self.low.zip(self.high)?;
        Some(format_interval(low, high))
    }
}

/// Judges the rounds of a race, which are results of the same cells with one baseline.
pub fn judge_race(sources: &[Source], mix: &Mix) -> Result<Race, RecommendError> {
    let together = Together::from_sources(sources)?;
    let weights = mix.weigh_parts(&together.parts)?;
    let arms = together.arms.iter().map(|arm| arm.name.clone());
    let names: Vec<String> = std::iter::once(together.baseline.clone())
        .chain(arms)
        .collect();
    let blocks = weigh_blocks(&together.parts, &weights, &names);
    let runners = judge_runners(&blocks, names.len(), &RULE);
    let failed = names.iter().zip(&runners).skip(1);
    let failed = failed.filter(|(_, runner)| runner.blocks == 0);
    let failed = failed.map(|(name, _)| (name.clone(), find_reason(&together, name)));
    Ok(Race {
        failed: failed.collect(),
        names,
        runners,
        blocks,
    })
}

/// Judges an arm by the blocks of results that nothing was chosen by.
pub fn judge_confirmation(
    source: &Source,
    mix: &Mix,
    arm: &str,
) -> Result<Confirmed, RecommendError> {
    let stop = &source.results.experiment.stop;
    let race = judge_race(&[*source], mix)?;
    let index = race.names.iter().position(|name| name == arm);
    let gains = race.blocks.iter().filter_map(|block| block[index?]);
    let gains: Vec<f64> = gains.collect();
    let params = Params {
        alpha: judge::error_rate(stop),
        smallest_effect: stop.smallest_effect,
        better: Better::Higher,
    };
    let judged = coins::judge(&gains, &params);
    Ok(Confirmed {
        verdict: judged.supported_verdict().as_str().to_owned(),
        ratio: judged.known_ratio(),
        low: judged.lower_end(),
        high: judged.upper_end(),
        blocks: gains.len(),
    })
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
