//! Which arm to use: from the answers of some results, weighed by somebody's own mix of work.
//!
//! Nothing is judged anew. The blocks of each comparison are drawn again ([`stats::regret`]), and of each
//! arm it is told how likely it is to be the best over the mix, and how far it may be behind the best. An
//! arm is recommended only if it is behind by no more than what somebody cares about; to stay with the
//! baseline is an answer like any other, and so is that nothing is known yet.

mod answer;
mod markdown;
pub(crate) mod mix;
pub(crate) mod parts;
mod reservations;
mod text;

#[cfg(test)]
mod tests;

pub use mix::Mix;

use answer::Field;
use parts::Together;
use results::ResultSet;
use serde::Serialize;
use stats::regret::{Range, Standing};

/// Results that the recommendation is made from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Name that the user gave.
    pub label: &'a str,
    /// The results.
    pub results: &'a ResultSet,
}

/// Kind of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// The baseline is behind the best arm by less than what matters.
    Baseline,
    /// An arm is ahead of the baseline, and behind the best one by less than what matters.
    Arm,
    /// Neither is known yet.
    Open,
}

/// Change with its interval, as a share: 0.03 is 3 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Expected value.
    pub expected: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// An arm over the mix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmStanding {
    /// Name of the arm.
    pub arm: String,
    /// Changes of the arm in words.
    pub summary: String,
    /// True of the arm that the others are compared with.
    pub baseline: bool,
    /// Chance that no other arm is better.
    pub chance_best: f64,
    /// Distance to the best arm.
    pub regret: Share,
    /// Distance to the baseline.
    pub gain: Share,
}

/// A metric of a cell in the mix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weight {
    /// Name of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Share of all weights.
    pub weight: f64,
    /// Blocks that it is known by.
    pub blocks: usize,
    /// Share of the doubt about the answer that its noise makes.
    pub doubt: f64,
}

/// Another weight with which the answer would be another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// Name of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Factor of its weight, 0 for none.
    pub factor: f64,
    /// Kind of the answer then.
    pub advice: Advice,
    /// Arm of the answer then.
    pub arm: String,
}

/// An arm that is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Name of the arm.
    pub arm: String,
    /// Reason.
    pub why: String,
}

/// A recommendation. It serializes to the JSON of `schedlab recommend`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// Kind of the answer.
    pub advice: Advice,
    /// The arm to use; of an open answer the one that leads.
    pub arm: String,
    /// The answer in one sentence.
    pub answer: String,
    /// Less is no reason to change anything: 0.02 is 2 %.
    pub care: f64,
    /// Share of the draws below the upper ends of the intervals.
    pub confidence: f64,
    /// Arms by their expected regret.
    pub arms: Vec<ArmStanding>,
    /// The mix.
    pub mix: Vec<Weight>,
    /// Arms that are not looked at.
    pub left_out: Vec<LeftOut>,
    /// Weights that would change the answer.
    pub turns: Vec<Turn>,
    /// Further time in nanoseconds that an open answer is likely to take; none where it is not open, or
    /// where sixty times of what was measured would not do.
    pub more_ns: Option<f64>,
    /// Reservations: everything that the answer does not cover.
    pub not_covered: Vec<String>,
    /// Arms and cells that were to be measured and were not.
    pub lacks: Vec<String>,
}

/// Why nothing can be recommended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecommendError {
    /// No results.
    #[error("no results are given")]
    NoSource,
    /// Results of another tool.
    #[error("{label} has runs of {tool}, which were not interleaved")]
    Imported {
        /// Results.
        label: String,
        /// Tool that measured.
        tool: String,
    },
    /// One run twice.
    #[error("{0} and {1} are the same run, or have one in common")]
    SameRun(String, String),
    /// Results of two machines.
    #[error("the results are of different machines: the {what} is {a} and {b}")]
    OtherMachine {
        /// The difference.
        what: &'static str,
        /// The value there, and where.
        a: String,
        /// The other value.
        b: String,
    },
    /// Results whose arms were compared with different ones.
    #[error("the results have no common baseline: it is {a} and {b}")]
    NoCommonBaseline {
        /// Baseline of the one.
        a: String,
        /// Baseline of the other.
        b: String,
    },
    /// Something of one name that is two things.
    #[error("{what} is not the same in {a} and {b}")]
    Unlike {
        /// The arm or the cell.
        what: String,
        /// The one.
        a: String,
        /// The other.
        b: String,
    },
    /// A weight that cannot be read.
    #[error("{place}: {what}")]
    BadWeight {
        /// Place of the weight.
        place: String,
        /// The fault.
        what: String,
    },
    /// Weights of nothing.
    #[error("{0}: the weights sum to 0")]
    SumOfZero(String),
    /// A file without weights.
    #[error("{0} has no weights")]
    NoWeights(String),
    /// A name that no result has.
    #[error("{place}: no cell or metric is called `{key}`")]
    UnknownCell {
        /// Place of the name.
        place: String,
        /// The name.
        key: String,
        /// The name that was probably meant.
        nearest: Option<String>,
        /// Names that there are.
        known: String,
    },
    /// An objective or a constraint that cannot be read, or does not fit the metrics.
    #[error("{place}: {what}")]
    BadGoal {
        /// Option or key.
        place: String,
        /// The fault.
        what: String,
        /// The remedy.
        remedy: String,
    },
    /// Nothing to choose from.
    #[error("no arm beside the baseline was measured in all of the mix{}", list_left_out(.0))]
    NoArm(Vec<LeftOut>),
}

fn list_left_out(arms: &[LeftOut]) -> String {
    let lines = arms.iter().map(|out| format!("\n{}: {}", out.arm, out.why));
    lines.collect()
}

impl RecommendError {
    /// The remedy.
    pub fn remedy(&self) -> String {
        match self {
            RecommendError::NoSource => "name a results directory or a capsule".to_owned(),
            RecommendError::Imported { .. } => {
                "recommend from runs of schedlab; `schedlab report` describes imported ones"
                    .to_owned()
            }
            RecommendError::SameRun(..) => {
                "name each run once, since its evidence counts once".to_owned()
            }
            RecommendError::OtherMachine { .. } => {
                "recommend for one machine at a time: name the results of one".to_owned()
            }
            RecommendError::NoCommonBaseline { .. } => {
                "name results that were measured against the same first arm".to_owned()
            }
            RecommendError::Unlike { .. } => {
                "name one of the two, or give what differs another name and measure again"
                    .to_owned()
            }
            RecommendError::BadWeight { .. } => {
                "write NAME=NUMBER, joined by commas: --weigh 'http p99=3, hackbench=1'".to_owned()
            }
            RecommendError::SumOfZero(_) | RecommendError::NoWeights(_) => {
                "give at least one cell a weight above 0".to_owned()
            }
            RecommendError::UnknownCell { nearest, known, .. } => {
                let near = nearest.as_ref();
                let near = near.map(|near| format!("did you mean `{near}`? "));
                format!("{}there are: {known}", near.unwrap_or_default())
            }
            RecommendError::BadGoal { remedy, .. } => remedy.clone(),
            RecommendError::NoArm(_) => format!(
                "measure at least {} blocks of two arms in each cell, or give the cells that lack \
                 them no weight",
                stats::regret::FEWEST_BLOCKS
            ),
        }
    }
}

/// Recommends an arm from the results. `care`: a smaller regret is no reason to change anything; none for
/// the smallest effect of the first results.
pub fn recommend_arm(
    sources: &[Source],
    mix: &Mix,
    care: Option<f64>,
) -> Result<Recommendation, RecommendError> {
    let together = Together::from_sources(sources)?;
    let weights = mix.weigh_parts(&together.parts)?;
    let first = &sources[0].results.experiment.stop;
    let care = care.unwrap_or(first.smallest_effect);
    let field = Field::new(&together, &weights, care, first.confidence)?;
    let decision = field.decide();
    let took_ns: u64 = together.tables.iter().map(|table| table.took_ns).sum();
    let more = field.find_more_needed(&decision);
    let mut recommendation = Recommendation {
        advice: decision.advice,
        arm: field.names[decision.arm].clone(),
        answer: String::new(),
        care,
        confidence: first.confidence,
        arms: field.list_standings(&together, &decision),
        mix: field.list_weights(),
        turns: field.find_turns(&decision),
        more_ns: more.map(|factor| (factor - 1.0) * took_ns as f64),
        not_covered: Vec::new(),
        lacks: reservations::find_lacks(&together, sources, &field),
        left_out: field.left_out.clone(),
    };
    recommendation.not_covered = reservations::list_uncovered(&together, sources, &recommendation);
    recommendation.answer = answer::answer_sentence(&recommendation);
    Ok(recommendation)
}

impl Share {
    /// Logarithms of ratios to something as shares by which they are above it.
    fn above(range: Range) -> Share {
        Share {
            expected: range.expected.exp_m1(),
            low: range.low.exp_m1(),
            high: range.high.exp_m1(),
        }
    }

    /// The same as shares of the best that are lost: half as good is 50 % behind.
    fn lost(range: Range) -> Share {
        Share {
            expected: -(-range.expected).exp_m1(),
            low: -(-range.low).exp_m1(),
            high: -(-range.high).exp_m1(),
        }
    }
}

impl ArmStanding {
    fn new(arm: &str, summary: String, baseline: bool, standing: &Standing) -> ArmStanding {
        ArmStanding {
            arm: arm.to_owned(),
            summary,
            baseline,
            chance_best: standing.chance_best,
            regret: Share::lost(standing.regret),
            gain: Share::above(standing.gain),
        }
    }
}

impl Recommendation {
    fn find_arm(&self, name: &str) -> Option<&ArmStanding> {
        self.arms.iter().find(|standing| standing.arm == name)
    }

    fn baseline(&self) -> Option<&ArmStanding> {
        self.arms.iter().find(|standing| standing.baseline)
    }
}
