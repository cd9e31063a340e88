//! The judgement on rare events: how often either arm had them in the time in which it could.

use crate::error_rate;
use model::{RareEvent, StopRule, Trial};
use stats::events::{Block, Counted, Judgement, Limits, count_clusters};
use std::collections::BTreeMap;

/// Events of a trial and its exposure in seconds, clusters counted once; `None` where they were not counted.
pub fn count_events(trial: &Trial, event: &RareEvent) -> Option<Counted> {
    let happened = trial.find_event(&event.name)?;
    let clusters = u64::from(count_clusters(&happened.at_ns, event.cluster_ns));
    // Without a moment nobody knows what belongs to what.
    let count = clusters + happened.without_moment;
    Some(Counted {
        count: u32::try_from(count).unwrap_or(u32::MAX),
        exposure: happened.exposure_ns as f64 / 1e9,
    })
}

/// Blocks of a cell in which both arms counted the event, in their order.
pub fn pair_events<'a>(
    trials: impl IntoIterator<Item = &'a Trial>,
    cell: usize,
    event: &RareEvent,
    [arm, baseline]: [usize; 2],
) -> Vec<Block> {
    let mut blocks: BTreeMap<u32, [Option<(u32, Counted)>; 2]> = BTreeMap::new();
    let here = |trial: &&Trial| trial.place.cell == cell && trial.is_ok();
    for trial in trials.into_iter().filter(here) {
        let side = match trial.place.arm {
            of if of == baseline => 0,
            of if of == arm => 1,
            _ => continue,
        };
        let counted = count_events(trial, event).map(|counted| (trial.start, counted));
        blocks.entry(trial.place.block).or_default()[side] = counted;
    }
    let pairs = blocks.into_values().filter_map(|sides| match sides {
        // Two trials of different starts of a run are no neighbours in time.
        [Some((first, baseline)), Some((second, arm))] if first == second => Some((baseline, arm)),
        _ => None,
    });
    pairs
        .map(|(baseline, arm)| Block {
            baseline,
            arm,
            full_exposure: event
                .when
                .ends_window()
                .then_some(baseline.exposure.max(arm.exposure)),
        })
        .collect()
}

/// The blocks of an event, held to what the experiment asks.
///
/// Blocks of `merged` runs are looked at once, all together.
pub fn judge_events(
    blocks: &[Block],
    event: &RareEvent,
    stop: &StopRule,
    merged: bool,
) -> Judgement {
    let limits = Limits {
        alpha: error_rate(stop),
        same_within: event.same_within,
        same_below: event.same_below_per_sec,
    };
    match merged {
        true => stats::events::judge_at_end(blocks, &limits),
        false => stats::events::judge(blocks, &limits),
    }
}
