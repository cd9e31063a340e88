//! How a comparison came to where it stands: its interval and its evidence after some of the blocks.

use crate::table::Verdict;
use judge::{FEWEST_BLOCKS, Judgement};
use serde::{Deserialize, Serialize};

/// Points of one comparison. More of them are no better picture.
const MOST_POINTS: usize = 24;

/// A comparison as it stood after so many blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Blocks so far; pairs of windows, where the arms took turns.
    pub blocks: usize,
    /// Arm over baseline, or arm minus baseline of a comparison by differences.
    pub change: f64,
    /// Lower end of the interval of the change.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Evidence against "no difference".
    pub e_value: f64,
    /// Verdict of these blocks.
    pub verdict: Verdict,
}

/// The standings of a comparison of `blocks` blocks; `judge` gives the judgement on the first so many.
pub(super) fn find_standings(
    blocks: usize,
    by_difference: bool,
    judge: impl Fn(usize) -> Judgement,
) -> Vec<Standing> {
    let counts = spread_counts(blocks).into_iter();
    let standings = counts.filter_map(|count| standing(count, by_difference, &judge(count)));
    standings.collect()
}

/// Numbers of blocks from the fewest with evidence to all of them, evenly spread.
fn spread_counts(blocks: usize) -> Vec<usize> {
    let steps = MOST_POINTS.min(blocks);
    let mut counts: Vec<usize> = (1..=steps)
        .map(|step| (step * blocks).div_ceil(steps))
        .filter(|count| *count >= FEWEST_BLOCKS)
        .collect();
    counts.dedup();
    counts
}

/// None where so few blocks were compared on another scale.
fn standing(blocks: usize, by_difference: bool, judged: &Judgement) -> Option<Standing> {
    let (change, low, high) = match (&judged.difference, by_difference) {
        (Some(found), true) => {
            let interval = found.interval;
            (
                found.value,
                interval.map(|i| i.low),
                interval.map(|i| i.high),
            )
        }
        (None, false) => (
            judged.known_ratio()?,
            judged.lower_end(),
            judged.upper_end(),
        ),
        _ => return None,
    };
    Some(Standing {
        blocks,
        change,
        low,
        high,
        e_value: judged.e_value,
        verdict: judged.supported_verdict(),
    })
}

/// Room around the last interval in a picture, in widths of that interval with no change in it.
const ROOM: f64 = 2.0;

/// The standings with ends that fit a picture: one that lies far outside of the last interval would flatten
/// all others.
pub fn clip_standings(standings: &[Standing], by_difference: bool) -> Vec<Standing> {
    let to = |x: f64| if by_difference { x } else { x.ln() };
    let from = |x: f64| if by_difference { x } else { x.exp() };
    let known = standings.iter().rev();
    let last = known.filter_map(|s| Some((to(s.low?), to(s.high?)))).next();
    let Some((low, high)) = last.map(|(low, high)| (low.min(0.0), high.max(0.0))) else {
        return standings.to_vec();
    };
    let room = ROOM * (high - low);
    let clip = |x: f64| from(to(x).clamp(low - room, high + room));
    let clipped = standings.iter().map(|s| Standing {
        change: clip(s.change),
        low: s.low.map(clip),
        high: s.high.map(clip),
        ..*s
    });
    clipped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Better, StopRule};

    #[test]
    fn counts_are_spread_from_the_fewest_to_all() {
        assert!(spread_counts(0).is_empty() && spread_counts(1).is_empty());
        assert_eq!(spread_counts(4), [2, 3, 4]);
        let many = spread_counts(1000);
        assert_eq!((many.len(), many.last()), (MOST_POINTS, Some(&1000)));
        assert!(many.is_sorted() && many[0] < 50, "{many:?}");
    }

    #[test]
    fn an_interval_narrows_and_its_last_standing_is_that_of_all_blocks() {
        let stop = StopRule::default();
        let xs: Vec<f64> = (0..30).map(|k| 0.2 + 0.03 * f64::from(k % 3)).collect();
        let judge = |count| judge::judge_blocks(&xs[..count], Better::Lower, &stop);
        let standings = find_standings(xs.len(), false, judge);
        let width = |s: &Standing| s.high.zip(s.low).map(|(high, low)| high - low);
        let (first, last) = (&standings[4], &standings[standings.len() - 1]);
        assert!(width(last) < width(first), "{first:?} {last:?}");
        let all = judge(xs.len());
        assert_eq!((last.blocks, last.e_value), (30, all.e_value));
        assert_eq!(last.verdict, Verdict::Worse);
        // The last one is drawn as it is, and no other flattens it.
        let wide = Standing {
            high: Some(1e9),
            ..standings[0]
        };
        let clipped = clip_standings(&[&[wide], &standings[1..]].concat(), false);
        assert_eq!(clipped.last(), standings.last());
        assert!(clipped[0].high < Some(10.0), "{clipped:?}");
        // On the other scale there is no standing.
        assert!(find_standings(xs.len(), true, judge).is_empty());
    }
}
