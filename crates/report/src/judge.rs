//! From log-ratios to what the table says of a comparison: `stats::judge`, with
//! words for what it leaves open.

use crate::table::Verdict;
use model::{Better, Stop};
use stats::{Judgement, Params};

/// A judgement in the shape of the table. No number is ever NaN or infinite.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub e_value: Option<f64>,
    pub verdict: Verdict,
    pub blocks_needed: Option<u32>,
    pub note: Option<String>,
}

/// `xs` in block order. A metric that is never judged counts as higher-is-better.
pub fn judge(xs: &[f64], better: Better, stop: &Stop) -> Judged {
    let params = Params {
        alpha: 1.0 - stop.confidence,
        smallest_effect: stop.smallest_effect,
        better: match better {
            Better::Lower => stats::Better::Lower,
            Better::Higher | Better::Neither => stats::Better::Higher,
        },
    };
    let judgement = stats::judge(xs, &params);
    let (verdict, blocks_needed) = verdict(judgement.verdict);
    Judged {
        ratio: finite(judgement.ratio),
        low: judgement.interval.and_then(|i| finite(i.low)),
        high: judgement.interval.and_then(|i| finite(i.high)),
        e_value: (xs.len() > 1).then_some(judgement.e_value),
        verdict,
        blocks_needed,
        note: note(&judgement),
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn verdict(verdict: stats::Verdict) -> (Verdict, Option<u32>) {
    match verdict {
        stats::Verdict::Better => (Verdict::Better, None),
        stats::Verdict::Worse => (Verdict::Worse, None),
        stats::Verdict::Same => (Verdict::Same, None),
        stats::Verdict::Unknown { blocks_needed } => (Verdict::Unknown, blocks_needed),
    }
}

fn note(judgement: &Judgement) -> Option<String> {
    match (judgement.blocks, judgement.decided_at) {
        (0, _) => Some("no block has figures of both arms".to_owned()),
        (1, _) => Some(
            "one block: its ratio has no interval, because nothing tells how much it varies"
                .to_owned(),
        ),
        (_, Some(block)) if !judgement.upheld => Some(format!(
            "decided after {block} blocks; all {} together no longer support it, so the noise \
             has probably changed during the run",
            judgement.blocks
        )),
        (blocks, _) if judgement.interval.is_none() => {
            Some(format!("{blocks} blocks are too few for an interval"))
        }
        _ => None,
    }
}
