//! Doubts that a judgement leaves, in words.

use stats::Judgement;

/// Sentence on the scale where it is not the usual one.
pub fn by_difference(judgement: &Judgement) -> Option<String> {
    judgement.difference.map(|_| {
        "figures may be 0 or below it, so the change is a difference in their unit and no ratio"
            .to_owned()
    })
}

/// None where there is nothing to add.
pub fn doubt_note(judgement: &Judgement) -> Option<String> {
    match (judgement.blocks, judgement.decided_at) {
        (0, _) => Some("no block has figures of both arms".to_owned()),
        (1, _) => Some(
            "one block: its ratio has no interval, because nothing tells how much it varies"
                .to_owned(),
        ),
        (_, Some(block)) if !judgement.upheld => Some(format!(
            "{} after {block} blocks; all {} together no longer support it, so the noise \
             has probably changed during the run",
            judgement.verdict.as_str(),
            judgement.blocks
        )),
        (_, _) if judgement.is_of_these_processes() => Some(format!(
            "{} in these processes, which differ: the interval is of further ones too, and they may show no change",
            judgement.verdict.as_str()
        )),
        (blocks, _)
            if judgement
                .difference
                .is_some_and(|found| found.interval.is_none()) =>
        {
            Some(format!(
                "{blocks} blocks are too few for an interval, or no difference fits all of them"
            ))
        }
        (_, _) if judgement.difference.is_some() => None,
        (blocks, _) if judgement.interval.is_none() => Some(format!(
            "{blocks} blocks are too few for an interval, or no change fits all of them"
        )),
        _ => None,
    }
}
