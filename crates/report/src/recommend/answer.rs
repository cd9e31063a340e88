//! The answer, and what would change it.

use super::parts::{Part, Together};
use super::{Advice, ArmStanding, LeftOut, RecommendError, Recommendation, Turn, Weight};
use crate::quantity::format_percent;
use stats::regret::{BlockGains, Draws, FEWEST_BLOCKS, Standing, Weighed, choose_arm, find_leader};
use std::collections::BTreeMap;

/// Factors of a weight that are tried, the smallest changes first.
const FACTORS: [f64; 5] = [0.5, 2.0, 0.25, 4.0, 0.0];
/// Multiples of the blocks that are tried.
const MULTIPLES: [f64; 12] = [
    1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 40.0, 60.0,
];

/// Arms that are looked at over the parts that have a weight. The first arm is the baseline.
pub struct Field<'a> {
    pub names: Vec<String>,
    pub parts: Vec<&'a Part>,
    pub left_out: Vec<LeftOut>,
    /// Parts with a weight that no arm was measured in.
    pub unmeasured: Vec<&'a Part>,
    weights: Vec<f64>,
    blocks: Vec<usize>,
    draws: Draws,
    care: f64,
    confidence: f64,
}

/// Which arm, on what ground.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub advice: Advice,
    /// Index of the arm; of an open answer the one that leads.
    pub arm: usize,
    standings: Vec<Standing>,
}

impl<'a> Field<'a> {
    pub fn new(
        together: &'a Together,
        weights: &[f64],
        care: f64,
        confidence: f64,
    ) -> Result<Field<'a>, RecommendError> {
        let weighed = together.parts.iter().zip(weights);
        let weighed = weighed.filter(|(_, weight)| **weight > 0.0);
        let (measured, unmeasured): (Vec<_>, Vec<_>) =
            weighed.partition(|(part, _)| part.arms.iter().any(has_enough));
        let parts: Vec<&Part> = measured.iter().map(|(part, _)| *part).collect();
        let mut left_out = Vec::new();
        let mut names = vec![together.baseline.clone()];
        for arm in &together.arms {
            match parts.iter().find_map(|part| missing_in(part, &arm.name)) {
                None => names.push(arm.name.clone()),
                Some(why) => left_out.push(LeftOut {
                    arm: arm.name.clone(),
                    why,
                }),
            }
        }
        let gains: Vec<Vec<BlockGains>> = parts.iter().map(|p| by_block(p, &names)).collect();
        if parts.is_empty() {
            left_out = together
                .arms
                .iter()
                .filter_map(|arm| {
                    let why = unmeasured
                        .iter()
                        .find_map(|(part, _)| missing_in(part, &arm.name))?;
                    let arm = arm.name.clone();
                    Some(LeftOut { arm, why })
                })
                .collect();
        }
        let is_nothing = names.len() < 2 || parts.is_empty();
        let draws = Draws::from_blocks(&gains, names.len()).filter(|_| !is_nothing);
        let Some(draws) = draws else {
            return Err(RecommendError::NoArm(left_out));
        };
        Ok(Field {
            blocks: gains.iter().map(Vec::len).collect(),
            weights: measured.iter().map(|(_, weight)| **weight).collect(),
            unmeasured: unmeasured.iter().map(|(part, _)| *part).collect(),
            names,
            parts,
            left_out,
            draws,
            // A loss of all has no logarithm.
            care: care.min(0.99),
            confidence,
        })
    }

    fn mix(&self) -> Vec<Weighed> {
        let weights = self.weights.iter();
        let weighed = weights.map(|weight| Weighed {
            weight: *weight,
            spread: 1.0,
        });
        weighed.collect()
    }

    /// The answer for the weights that were given.
    pub fn decide(&self) -> Decision {
        self.decide_mix(&self.mix()).unwrap_or(Decision {
            advice: Advice::Open,
            arm: 0,
            standings: Vec::new(),
        })
    }

    /// None where nothing has a weight.
    fn decide_mix(&self, mix: &[Weighed]) -> Option<Decision> {
        let standings = self.draws.judge_mix(mix, 0, self.confidence)?;
        let chosen = choose_arm(&standings, 0, -(-self.care).ln_1p());
        let (advice, arm) = match chosen {
            Some(0) => (Advice::Baseline, 0),
            Some(arm) => (Advice::Arm, arm),
            None => (Advice::Open, find_leader(&standings)?),
        };
        Some(Decision {
            advice,
            arm,
            standings,
        })
    }

    pub fn list_standings(&self, together: &Together, decision: &Decision) -> Vec<ArmStanding> {
        let summary = |name: &str| {
            let infos = together.tables.iter().flat_map(|table| &table.arms);
            let mut found = infos.filter(|info| info.name == name);
            found
                .next()
                .map_or(String::new(), |info| info.summary.clone())
        };
        let arms = self.names.iter().zip(&decision.standings).enumerate();
        let arms = arms.map(|(index, (name, standing))| {
            ArmStanding::new(name, summary(name), index == 0, standing)
        });
        let mut arms: Vec<ArmStanding> = arms.collect();
        arms.sort_by(|a, b| a.regret.expected.total_cmp(&b.regret.expected));
        arms
    }

    /// The weights, and whose noise makes the doubt: the expected regret of the best choice falls most where
    /// the noise of that part is halved.
    pub fn list_weights(&self) -> Vec<Weight> {
        let total: f64 = self.weights.iter().sum();
        let least = |mix: &[Weighed]| {
            let standings = self.draws.judge_mix(mix, 0, self.confidence);
            let regrets = standings.into_iter().flatten().map(|s| s.regret.expected);
            regrets.fold(f64::INFINITY, f64::min)
        };
        let now = least(&self.mix());
        let fall = |index: usize| {
            let mut mix = self.mix();
            mix[index].spread = 0.5;
            (now - least(&mix)).max(0.0)
        };
        let falls: Vec<f64> = (0..self.parts.len()).map(fall).collect();
        let sum: f64 = falls.iter().sum();
        let parts = self.parts.iter().enumerate();
        let weight = |(index, part): (usize, &&Part)| Weight {
            cell: part.cell.clone(),
            metric: part.metric.clone(),
            weight: self.weights[index] / total,
            blocks: self.blocks[index],
            doubt: match sum > 0.0 {
                true => falls[index] / sum,
                false => 0.0,
            },
        };
        parts.map(weight).collect()
    }

    /// The smallest change of the weight of each part that makes the answer another one.
    pub fn find_turns(&self, decision: &Decision) -> Vec<Turn> {
        let turn = |(index, part): (usize, &&Part)| {
            let changed = |factor: f64| {
                let mut mix = self.mix();
                mix[index].weight *= factor;
                let then = self.decide_mix(&mix)?;
                let is_same = (then.advice, then.arm) == (decision.advice, decision.arm);
                (!is_same).then_some((factor, then))
            };
            let (factor, then) = FACTORS.into_iter().find_map(changed)?;
            Some(Turn {
                cell: part.cell.clone(),
                metric: part.metric.clone(),
                factor,
                advice: then.advice,
                arm: self.names[then.arm].clone(),
            })
        };
        self.parts.iter().enumerate().filter_map(turn).collect()
    }

    /// The factor of blocks that an open answer is likely to take, if the means stay what they are.
    pub fn find_more_needed(&self, decision: &Decision) -> Option<f64> {
        let decides = |multiple: &f64| {
            let mut mix = self.mix();
            for part in &mut mix {
                part.spread = 1.0 / multiple.sqrt();
            }
            let then = self.decide_mix(&mix);
            then.is_some_and(|then| then.advice != Advice::Open)
        };
        match decision.advice {
            Advice::Open => MULTIPLES.into_iter().find(decides),
            Advice::Baseline | Advice::Arm => None,
        }
    }
}

fn has_enough(arm: &super::parts::ArmGains) -> bool {
    arm.blocks.len() >= FEWEST_BLOCKS
}

/// Why an arm cannot be looked at in a part; none where it can.
fn missing_in(part: &Part, arm: &str) -> Option<String> {
    let place = format!("{} {}", part.cell, part.metric);
    let Some(found) = part.arms.iter().find(|of| of.arm == arm) else {
        return Some(format!("it was not measured in {place}"));
    };
    let note = found.note.as_ref();
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    match found.blocks.len() {
        0 => Some(format!("it has no block that counts in {place}{note}")),
        few if few < FEWEST_BLOCKS => {
            Some(format!("it has {few} of {FEWEST_BLOCKS} blocks in {place}"))
        }
        _ => None,
    }
}

/// Gains of the arms by block; the baseline has 0 in each.
fn by_block(part: &Part, names: &[String]) -> Vec<BlockGains> {
    let mut blocks: BTreeMap<(usize, u32), BlockGains> = BTreeMap::new();
    for arm in &part.arms {
        let Some(index) = names.iter().position(|name| *name == arm.arm) else {
            continue;
        };
        for (block, gain) in &arm.blocks {
            let all = blocks.entry(*block).or_insert_with(|| {
                let mut all = vec![None; names.len()];
                all[0] = Some(0.0);
                all
            });
            all[index] = Some(*gain);
        }
    }
    blocks.into_values().collect()
}

/// The answer in one sentence.
pub fn answer_sentence(of: &Recommendation) -> String {
    let care = format_percent(of.care);
    let (Some(arm), Some(baseline)) = (of.find_arm(&of.arm), of.baseline()) else {
        return "Nothing was compared.".to_owned();
    };
    let stay = stay_words(&baseline.arm);
    let others = of.arms.iter().filter(|standing| !standing.baseline);
    let best_other = others.min_by(|a, b| b.gain.expected.total_cmp(&a.gain.expected));
    let behind = percent_words(arm.regret.high);
    match of.advice {
        Advice::Baseline => match best_other.filter(|other| other.gain.expected > 0.0) {
            Some(other) => format!(
                "{stay}: the best other arm, {}, is ahead by {}, and by {} at most, which is less than \
                 the {care} % that you care about.",
                other.arm,
                percent_words(other.gain.expected),
                percent_words(baseline.regret.high.max(0.0))
            ),
            None => format!(
                "{stay}: no other arm is known to be ahead, and if one is, then by {} at most, less than the \
                 {care} % that you care about.",
                percent_words(baseline.regret.high)
            ),
        },
        Advice::Arm => format!(
            "Take {}: it is ahead of {} by {} (between {} and {}), and behind the best arm by {behind} \
             at most.",
            arm.arm,
            baseline.arm,
            percent_words(arm.gain.expected),
            percent_words(arm.gain.low),
            percent_words(arm.gain.high)
        ),
        Advice::Open => format!(
            "Not known yet: {} leads, and {}; until more is measured, {}.",
            arm.arm,
            doubt_words(of, arm, baseline),
            lower_first(&stay)
        ),
    }
}

/// Doubts that stay although an arm leads.
fn doubt_words(of: &Recommendation, leader: &ArmStanding, baseline: &ArmStanding) -> String {
    let behind = percent_words(leader.regret.high);
    if leader.baseline {
        return format!("another arm may be ahead of it by {behind}");
    }
    let is_behind = leader.regret.high > of.care;
    let is_none = leader.gain.low <= 0.0;
    let no_better = format!("may be no better than {}", baseline.arm);
    let far = format!("may be behind the best arm by {behind}");
    match (is_none, is_behind) {
        (true, true) => format!("{no_better}, or {far}"),
        (true, false) => no_better,
        _ => far,
    }
}

fn stay_words(baseline: &str) -> String {
    match baseline {
        "default" => "Take the default".to_owned(),
        name => format!("Stay with {name}"),
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// `0.4 %`, `12 %`.
pub fn percent_words(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() < 9.95 {
        // No zero has a sign.
        true => format!("{:.1} %", (percent * 10.0).round() / 10.0 + 0.0),
        false => format!("{percent:.0} %"),
    }
}
