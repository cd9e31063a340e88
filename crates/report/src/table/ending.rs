//! Sizes of changes where the comparison itself ended the measuring of its cell.
//!
//! The looks that count are those at which the cell would have ended by this comparison alone: not before the fewest
//! blocks, and not while another comparison that decides was open. A comparison that went on for the others has its
//! centre, which nothing has flattered.

use super::Comparison;
use judge::{Judgement, error_rate};
use model::StopRule;
use stats::randomization::Prior;
use stats::verdict::ending::{Rule, estimate_size};

/// Looks at a comparison, one after each block, or after each process in which arms took turns and within it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Looks {
    /// Numbers of blocks, or of pairs of windows, at each.
    ends: Vec<usize>,
    /// Number of those before the end of each block, or process, and at it.
    of_blocks: Vec<usize>,
    /// Index of the one that decided, if all blocks together support that.
    decided: Option<usize>,
}

impl Looks {
    /// Looks of each block or process.
    pub(super) fn new(looks: Vec<Vec<usize>>, judged: &Judgement) -> Looks {
        let of_blocks = looks.iter().scan(0, |all, looks| {
            *all += looks.len();
            Some(*all)
        });
        let of_blocks = of_blocks.collect();
        let ends = looks.concat();
        let block = judged.decided_at.filter(|_| judged.upheld);
        let at = |block: u32| ends.iter().position(|end| *end >= block as usize);
        let decided = block.and_then(at);
        Looks {
            ends,
            of_blocks,
            decided,
        }
    }

    /// Index of the first look that may end a cell of at least so many blocks.
    fn first_after(&self, blocks: u32) -> usize {
        let before = blocks.checked_sub(2).map(|last| last as usize);
        let of_those = before.map_or(Some(0), |last| self.of_blocks.get(last).copied());
        of_those.unwrap_or(self.ends.len())
    }
}

/// Gives the comparisons of a cell the size that stopping does not flatter.
pub(super) fn mend_sizes(comparisons: &mut [Comparison], stop: &StopRule) {
    let firsts = (0..comparisons.len()).map(|at| find_first_end(comparisons, at, stop));
    let firsts: Vec<Option<usize>> = firsts.collect();
    for (comparison, first) in comparisons.iter_mut().zip(firsts) {
        if let Some(first) = first {
            mend_size(comparison, first, stop);
        }
    }
}

/// Index of the first look at which the cell would have ended by this comparison; none where it did not end the cell
/// and could not have.
fn find_first_end(comparisons: &[Comparison], at: usize, stop: &StopRule) -> Option<usize> {
    let only_aa = comparisons.iter().all(|c| c.aa);
    let is_waited_for = |c: &Comparison| c.deciding && c.blocks > 0 && (only_aa || !c.aa);
    let own = comparisons.get(at).filter(|c| is_waited_for(c))?;
    let last = own.looks.ends.len().checked_sub(1)?;
    if own.looks.decided.is_some_and(|decided| decided < last) {
        return None;
    }
    let others = comparisons.iter().enumerate();
    let others = others.filter(|(other, c)| *other != at && is_waited_for(c));
    let fewest = own.looks.first_after(stop.min_blocks);
    let ends = others.map(|(_, other)| other.looks.decided);
    let ends: Option<Vec<usize>> = ends.collect();
    Some(ends?.into_iter().fold(fewest, usize::max))
}

fn mend_size(comparison: &mut Comparison, first: usize, stop: &StopRule) {
    let by_difference = comparison.difference.as_ref();
    let xs: Vec<f64> = match by_difference {
        Some(found) => found.blocks.iter().map(|b| b.difference).collect(),
        None => comparison
            .block_ratios
            .iter()
            .map(|b| b.ratio.ln())
            .collect(),
    };
    let rule = Rule {
        alpha: error_rate(stop),
        limit: by_difference.map_or(stop.smallest_effect.ln_1p(), |found| found.smallest_effect),
        prior: match comparison.in_turns {
            Some(_) => Prior::PAIRS,
            None => Prior::BLOCKS,
        },
    };
    let Some((last, earlier)) = comparison.looks.ends.split_last() else {
        return;
    };
    let looks = earlier.get(first..).unwrap_or_default();
    if *last != xs.len() || looks.is_empty() {
        return;
    }
    let size = estimate_size(&xs, looks, rule);
    if let Some(size) = size.filter(|size| size.is_finite()) {
        set_size(comparison, size);
    }
}

/// Share of the width of the interval below which a distance from the centre of the blocks needs no words.
const LEAST_SHARE: f64 = 0.02;

/// Gives the size, or the end of the interval that is nearest to it, with a note where it is not that of the blocks.
fn set_size(comparison: &mut Comparison, size: f64) {
    let by_difference = comparison.difference.is_some();
    let to_scale = |shift: f64| if by_difference { shift } else { shift.exp() };
    let to_shift = |value: f64| if by_difference { value } else { value.ln() };
    let (low, high) = match &comparison.difference {
        Some(found) => (found.low, found.high),
        None => (comparison.low, comparison.high),
    };
    let ends = low.zip(high).filter(|(low, high)| low <= high);
    let size = ends.map_or(to_scale(size), |(low, high)| {
        to_scale(size).clamp(low, high)
    });
    let blocks = comparison.format_change();
    let Some(centre) = replace_size(comparison, size) else {
        return;
    };
    comparison.centre = Some(centre);
    let width = ends.map_or(0.0, |(low, high)| to_shift(high) - to_shift(low));
    let moved = (to_shift(size) - to_shift(centre)).abs();
    let words = blocks.zip(comparison.format_change());
    if let Some((blocks, change)) = words.filter(|_| moved > LEAST_SHARE * width) {
        comparison.notes.push(format!(
            "a run that ends with its answer is more often lucky than not: the blocks lie around {blocks}, and \
             {change} makes up for that"
        ));
    }
}

/// Gives this change, and the one before.
fn replace_size(comparison: &mut Comparison, size: f64) -> Option<f64> {
    if let Some(found) = &mut comparison.difference {
        return Some(std::mem::replace(&mut found.value, size));
    }
    let before = comparison.ratio.replace(size)?;
    comparison.arm_level = comparison.baseline_level.map(|level| level * size);
    Some(before)
}
