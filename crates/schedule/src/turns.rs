//! The order of turns inside one process: pairs of the baseline and another arm, each pair's
//! order drawn by a fair coin.
//!
//! A run is looked at when a process has ended, so the first ones are short: an answer that is easy comes after the
//! first second, and a process of its own draws memory layout and placement anew. If the start of each process takes
//! `h`, and the answer needs `T` of turns, processes of a length `L` take `T + h·T/L` and about `L/2` that nobody
//! needed. That is least with `L = √(2hT)`. So process `n` is `n` times as long as what is around it: after `n` of
//! them `T` is about `h·n²/2`.

use crate::length::around_a_process_ns;
use crate::order::trial_seed;
use model::check::MOST_WINDOWS;
use model::{Experiment, InPlace, Plan, PlannedTrial, Reset, TakingTurns, Turn, Turns, Workload};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stats::randomization::{Prior, fewest_pairs};

/// Sets the coins apart from what else is drawn from the seed of a trial.
const COINS: u64 = 0x7475_726e;

/// Processes are short in one block of so many at most, so that all blocks have at least nine tenths of the pairs
/// that whole ones would have.
const BLOCKS_FOR_A_SHORT_ONE: u32 = 5;

/// Turns of these lengths in the process that a block of this cell is; `None` for an arm that is
/// alone.
pub fn plan_turns(
    experiment: &Experiment,
    plan: &Plan,
    place: &PlannedTrial,
    lengths: InPlace,
) -> Option<TakingTurns> {
    let workload = &experiment.workloads[plan.cells[place.cell].workload];
    let arms = experiment.arms.len();
    if arms < 2 {
        return None;
    }
    let rounds = rounds_of_block(experiment, workload, place.block, lengths);
    let stop = &experiment.stop;
    Some(TakingTurns {
        // A fixed number of blocks ends no sooner, and neither do those before the last that there has to be.
        is_watched: place.block >= stop.min_blocks && stop.min_blocks != stop.max_blocks,
        ..drawn(experiment, plan, place, lengths, rounds)
    })
}

/// Time of all turns of these lengths in the process that this block of a workload is.
pub fn turns_ns(experiment: &Experiment, workload: &Workload, block: u32, lengths: InPlace) -> u64 {
    let rounds = rounds_of_block(experiment, workload, block, lengths);
    rounds.saturating_mul(round_ns(lengths, experiment.arms.len()))
}

/// Pairs of each arm in the process of a block: those of whole trials of all arms, or, in the first blocks, fewer,
/// but enough for an answer.
fn rounds_of_block(
    experiment: &Experiment,
    workload: &Workload,
    block: u32,
    lengths: InPlace,
) -> u64 {
    let arms = experiment.arms.len();
    let whole = rounds(lengths, process_ns(experiment, workload, u32::MAX), arms);
    let fewest = fewest_pairs(1.0 - experiment.stop.confidence, Prior::PAIRS);
    let short = rounds(lengths, process_ns(experiment, workload, block), arms);
    short.max(fewest.into()).min(whole)
}

/// Time for turns in the process of a block: that of whole trials of all arms, or less in the first blocks.
pub(crate) fn process_ns(experiment: &Experiment, workload: &Workload, block: u32) -> u64 {
    let whole_ns = workload
        .duration_ns
        .saturating_mul(experiment.arms.len() as u64);
    let stop = &experiment.stop;
    // A fixed number of blocks ends no sooner, and a machine that starts anew for a process takes longer than it.
    if stop.min_blocks == stop.max_blocks || experiment.target.reset() != Reset::None {
        return whole_ns;
    }
    let steps = (stop.max_blocks / BLOCKS_FOR_A_SHORT_ONE).max(1);
    let step_ns = around_a_process_ns(experiment, workload).max(whole_ns / u64::from(steps));
    whole_ns.min(step_ns.saturating_mul(block.into()))
}

/// Turns of a pilot: this many pairs of each arm with the baseline.
pub fn pilot_turns(
    experiment: &Experiment,
    plan: &Plan,
    place: &PlannedTrial,
    lengths: InPlace,
    pairs: u32,
) -> TakingTurns {
    drawn(experiment, plan, place, lengths, pairs.into())
}

fn drawn(
    experiment: &Experiment,
    plan: &Plan,
    place: &PlannedTrial,
    lengths: InPlace,
    rounds: u64,
) -> TakingTurns {
    let mut coins = ChaCha8Rng::seed_from_u64(trial_seed(plan.seed, place) ^ COINS);
    let (arms, baseline) = (experiment.arms.len(), experiment.baseline);
    TakingTurns {
        arms: experiment.arms.clone(),
        turns: Turns {
            lengths,
            order: order(arms, baseline, rounds, &mut coins),
        },
        is_watched: false,
    }
}

/// Pairs of each arm with the baseline that fit into the time: one at least, and no more than have
/// a place in the results.
fn rounds(lengths: InPlace, all_ns: u64, arms: usize) -> u64 {
    let others = arms.saturating_sub(1).max(1) as u64;
    let most = (MOST_WINDOWS as u64 / others).max(1);
    (all_ns / round_ns(lengths, arms).max(1)).clamp(1, most)
}

/// Time of one pair of each arm with the baseline.
fn round_ns(lengths: InPlace, arms: usize) -> u64 {
    let others = arms.saturating_sub(1).max(1) as u64;
    lengths.turn_ns().saturating_mul(2 * others)
}

/// Rounds, in each of which every other arm has one pair, in random order.
fn order(arms: usize, baseline: usize, rounds: u64, coins: &mut ChaCha8Rng) -> Vec<Turn> {
    let mut others: Vec<usize> = (0..arms).filter(|arm| *arm != baseline).collect();
    let mut order = Vec::new();
    let mut pair = 0;
    for _ in 0..rounds {
        others.shuffle(coins);
        for other in &others {
            let mut turns = [baseline, *other].map(|arm| Turn { arm, pair });
            if coins.random() {
                turns.reverse();
            }
            order.extend(turns);
            pair += 1;
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_the_baseline_and_another_arm_and_coins_draw_who_is_first() {
        let mut coins = ChaCha8Rng::seed_from_u64(1);
        let order = order(3, 1, 200, &mut coins);
        assert_eq!(order.len(), 800);
        let mut baseline_is_first = 0;
        for (pair, turns) in order.chunks(2).enumerate() {
            let arms: Vec<usize> = turns.iter().map(|turn| turn.arm).collect();
            assert!(turns.iter().all(|turn| turn.pair as usize == pair));
            assert_eq!(arms.iter().filter(|arm| **arm == 1).count(), 1, "{arms:?}");
            baseline_is_first += usize::from(arms[0] == 1);
        }
        assert!(
            (160..240).contains(&baseline_is_first),
            "{baseline_is_first}"
        );
        let of_arm = |arm| order.iter().filter(|turn| turn.arm == arm).count();
        assert_eq!([of_arm(0), of_arm(1), of_arm(2)], [200, 400, 200]);
    }

    #[test]
    fn as_many_pairs_are_made_as_fit_and_one_in_any_case() {
        let lengths = InPlace::new(200_000_000);
        assert_eq!(rounds(lengths, 4_000_000_000, 2), 9);
        assert_eq!(rounds(lengths, 6_000_000_000, 3), 6);
        assert_eq!(rounds(lengths, 1, 2), 1);
        assert_eq!(rounds(lengths, u64::MAX, 3), 5_000);
    }
}
