//! The levels of two arms and the change between them, on the scale of the change.

use crate::table::{BlockDifference, BlockPoint, Difference};
use judge::Judgement;
use results::Pair;
use stats::summary::mean;

/// Geometric mean over the blocks that have a ratio.
fn baseline_level(pairs: &[Pair]) -> Option<f64> {
    let with_ratio = pairs.iter().filter(|pair| pair.log_ratio().is_some());
    let logarithms: Vec<f64> = with_ratio.map(|pair| pair.ratio_values()[0].ln()).collect();
    mean(&logarithms).map(f64::exp)
}

fn mean_of(pairs: &[Pair], of: impl Fn(&Pair) -> f64) -> Option<f64> {
    let with_difference = pairs.iter().filter(|pair| pair.difference().is_some());
    mean(&with_difference.map(of).collect::<Vec<_>>())
}

/// The levels of the baseline and of the arm, as the scale of the change has them: what the change
/// says of them is true of these figures.
pub(super) fn levels_of(
    pairs: &[Pair],
    judged: &Judgement,
    by_difference: bool,
) -> (Option<f64>, Option<f64>) {
    if by_difference {
        let of = |of: fn(&Pair) -> f64| mean_of(pairs, of);
        return (of(|pair| pair.baseline), of(|pair| pair.arm));
    }
    let baseline = baseline_level(pairs);
    let arm = baseline.zip(judged.known_ratio());
    (baseline, arm.map(|(level, ratio)| level * ratio))
}

/// The change in the unit of the metric, where that is the scale.
pub(super) fn find_difference(judged: &Judgement, pairs: &[Pair]) -> Option<Difference> {
    let found = judged.difference?;
    let block = |pair: &Pair| {
        Some(BlockDifference {
            block: pair.block,
            difference: pair.difference()?,
            baseline: pair.baseline,
            arm: pair.arm,
        })
    };
    Some(Difference {
        value: found.value,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
        smallest_effect: found.smallest,
        blocks: pairs.iter().filter_map(block).collect(),
    })
}

pub(super) fn block_point(pair: &Pair) -> Option<BlockPoint> {
    Some(BlockPoint {
        block: pair.block,
        ratio: pair.log_ratio()?.exp(),
        baseline: pair.baseline,
        arm: pair.arm,
    })
}
