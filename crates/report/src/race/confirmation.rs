//! The confirmation of a race: an arm against the baseline in blocks that nothing was chosen by, with the
//! constraints that it has to hold, and what it costs elsewhere.

use super::{Goal, Limited, RaceSource, gains_of};
use crate::quantity::{format_change, format_interval};
use crate::recommend::{RecommendError, Source};
use model::{Better, StopRule};
use serde::{Deserialize, Serialize};
use stats::randomization::Prior;
use stats::verdict::ending::{Rule, estimate_size};
use stats::{Judgement, Params, Verdict, coins};

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
    /// Constraints, each with what became of it.
    #[serde(default)]
    pub constraints: Vec<Elsewhere>,
    /// Other metrics that are worse.
    #[serde(default)]
    pub costs: Vec<Elsewhere>,
    /// Other metrics that were looked at.
    #[serde(default)]
    pub looked_at: usize,
}

/// A metric of a cell beside what the race is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Name of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Constraint on it: `not worse`, `>= 0.98`; none of a cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// Outcome: of a constraint `held`, `broken` or `open`; of a cost `worse`.
    pub outcome: String,
    /// Metric of the arm over that of the baseline; none without a block.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Confirmed {
    /// True if the arm is better than the baseline, whatever it costs.
    pub fn is_better(&self) -> bool {
        self.verdict == Verdict::Better.as_str()
    }

    /// True if the arm is better than the baseline and holds all constraints.
    pub fn is_winner(&self) -> bool {
        self.is_better() && self.find_not_held().next().is_none()
    }

    /// Constraints that are broken, or not known to hold.
    pub fn find_not_held(&self) -> impl Iterator<Item = &Elsewhere> {
        let all = self.constraints.iter();
        all.filter(|constraint| constraint.outcome != HELD)
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

const HELD: &str = "held";

impl Elsewhere {
    fn new(limited: &Limited, judged: &Judgement, outcome: &str) -> Elsewhere {
        let ends = (judged.lower_end(), judged.upper_end());
        let turn = |gain: f64| 1.0 / gain;
        let (ratio, (low, high)) = match limited.better {
            Better::Lower => (
                judged.known_ratio().map(turn),
                (ends.1.map(turn), ends.0.map(turn)),
            ),
            Better::Higher | Better::Neither => (judged.known_ratio(), ends),
        };
        Elsewhere {
            cell: limited.cell.clone(),
            metric: limited.metric.clone(),
            wanted: (!limited.wanted.is_empty()).then(|| limited.wanted.clone()),
            outcome: outcome.to_owned(),
            ratio,
            low,
            high,
        }
    }

    /// `request_p99 of http 50% (>= 0.98): held, +1.0% [+0.2%, +1.8%]`.
    pub fn to_text(&self) -> String {
        let wanted = self.wanted.as_ref().map(|wanted| format!(" ({wanted})"));
        let change = self.ratio.map_or("not measured".to_owned(), format_change);
        let interval = self.low.zip(self.high);
        let interval = interval.map(|(low, high)| format!(" {}", format_interval(low, high)));
        format!(
            "{} of {}{}: {}, {change}{}",
            self.metric,
            self.cell,
            wanted.unwrap_or_default(),
            self.outcome,
            interval.unwrap_or_default()
        )
    }
}

/// Judges an arm by the blocks of results that nothing was chosen by.
///
/// A constraint is held if the whole interval is above its floor, and broken if all of it is below. The arm
/// wins only if all are held, so an arm that truly breaks one wins with the error of one comparison at most,
/// however many there are.
pub fn judge_confirmation(
    source: &Source,
    goal: &Goal,
    arm: &str,
) -> Result<Confirmed, RecommendError> {
    let stop = &source.results.experiment.stop;
    let params = Params {
        alpha: judge::error_rate(stop),
        smallest_effect: stop.smallest_effect,
        better: Better::Higher,
    };
    let read = RaceSource::read(&[*source], goal)?;
    let index = read.names.iter().position(|name| name == arm);
    let judge = |blocks| coins::judge(&gains_of(blocks, index), &params);
    let judged = mend_size(judge(&read.blocks), &gains_of(&read.blocks, index), stop);
    let constraints = read.limits.iter().map(|limited| {
        let judged = judge(&limited.blocks);
        Elsewhere::new(limited, &judged, find_outcome(&judged, limited.floor))
    });
    let elsewhere = read.list_elsewhere();
    let costs = elsewhere.iter().filter_map(|limited| {
        let judged = judge(&limited.blocks);
        let verdict = judged.supported_verdict();
        (verdict == Verdict::Worse).then(|| Elsewhere::new(limited, &judged, verdict.as_str()))
    });
    Ok(Confirmed {
        verdict: judged.supported_verdict().as_str().to_owned(),
        ratio: judged.known_ratio(),
        low: judged.lower_end(),
        high: judged.upper_end(),
        blocks: gains_of(&read.blocks, index).len(),
        constraints: constraints.collect(),
        costs: costs.collect(),
        looked_at: elsewhere.len(),
    })
}

/// The judgement with the size that stopping does not flatter, where the blocks could have ended the measuring.
fn mend_size(judged: Judgement, gains: &[f64], stop: &StopRule) -> Judgement {
    let looks: Vec<usize> = (stop.min_blocks as usize..gains.len()).collect();
    let rule = Rule {
        alpha: judge::error_rate(stop),
        limit: stop.smallest_effect.ln_1p(),
        prior: Prior::BLOCKS,
    };
    let size = estimate_size(gains, &looks, rule).filter(|size| size.is_finite());
    let ends = judged.lower_end().zip(judged.upper_end());
    match size.zip(ends.filter(|(low, high)| low <= high)) {
        Some((size, (low, high))) => Judgement {
            ratio: size.exp().clamp(low, high),
            ..judged
        },
        None => judged,
    }
}

fn find_outcome(judged: &Judgement, floor: f64) -> &'static str {
    let floor = floor.exp();
    if judged.lower_end().is_some_and(|low| low >= floor) {
        HELD
    } else if judged.upper_end().is_some_and(|high| high < floor) {
        "broken"
    } else {
        "open"
    }
}
