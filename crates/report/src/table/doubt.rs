//! Doubts that a judgement leaves, in words.

use stats::{Judgement, Test};

/// Sentence on the test where it is not the usual one.
pub fn by_coins(judgement: &Judgement) -> Option<String> {
    if judgement.difference.is_some() {
        return Some(
            "figures may be 0 or below it, so the change is a difference in their unit and no ratio: evidence \
             and interval are by the coins that drew the order of the arms in each block"
                .to_owned(),
        );
    }
    (judgement.test == Test::Coins).then(|| {
        "some blocks are far from all others, which hides an effect from a t-test: evidence, interval \
         and change are by the coins that drew the order of the arms in each block"
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
        (_, _) if judgement.interval.is_none() && judgement.test == Test::Coins => {
            Some("no interval holds all changes that the coins allow".to_owned())
        }
        (blocks, _) if judgement.interval.is_none() => {
            Some(format!("{blocks} blocks are too few for an interval"))
        }
        _ => None,
    }
}
