//! Doubts that a judgement leaves, in words.

use stats::Judgement;

/// None where there is nothing to add.
pub fn note(judgement: &Judgement) -> Option<String> {
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
