//! Ways to look for settings that others use, with as many trials as a race and its confirmation have: what
//! they declare, what it is worth, and how much too much they say of it.

use crate::machine::{Noise, normal};
use crate::protocol::Protocol;
use crate::race::{self, CANDIDATES, SMALLEST, Tally, WORLDS, World};
use crate::studies::Setup;
use crate::table::{Table, percent};
use crate::tally::Case;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Trials of each setting that a random search tries, as scripts make them.
const RUNS: usize = 3;
/// Rungs of successive halving: 16, 8, 4 and 2 candidates.
const RUNGS: usize = 4;

type Search = fn(World, usize, &mut ChaCha8Rng, &mut Tally);

pub fn study(setup: &Setup) -> Table {
    let header = [
        "world",
        "search",
        "winner",
        "worse",
        "lose 2 %",
        "claim too high by",
        "what is kept gains",
        "verdicts",
    ];
    let note = "As many trials for each search as `tune` has on the average with its confirmation. Random search: places\n\
                of the space, three trials each, against a mean of three of the baseline. Successive halving: the half\n\
                with the larger means goes on, the baseline with it, all trials interleaved. Both declare the largest\n\
                mean if it is 2 % ahead. Kept: the winner, or the baseline where there is none. Verdicts: all trials over\n\
                those of a comparison of the best candidate with the baseline.";
    let mut table = Table::new(
        "Searches for settings with the same number of trials",
        header.map(str::to_owned).to_vec(),
        note,
    );
    for world in WORLDS {
        let raced = race::run_all(world, setup);
        let trials = raced.trials / raced.races.max(1) as usize;
        let verdicts = trials as f64 / trials_of_a_verdict(world, setup);
        table.push(describe(world, "tune", &raced, verdicts));
        let rivals: [(&str, Search); 2] = [("random", search_at_random), ("halving", halve)];
        for (name, search) in rivals {
            let tally = run_all(world, trials, search, setup, raced.races);
            table.push(describe(world, name, &tally, verdicts));
        }
    }
    table
}

fn describe(world: World, search: &str, tally: &Tally, verdicts: f64) -> Vec<String> {
    let winners = f64::from(tally.winners.max(1));
    let races = f64::from(tally.races);
    vec![
        world.name.to_owned(),
        search.to_owned(),
        percent(f64::from(tally.winners) / races),
        percent(f64::from(tally.worse) / winners),
        percent(f64::from(tally.lose) / winners),
        percent(tally.excess / winners),
        percent(tally.kept / races),
        format!("{verdicts:.0}"),
    ]
}

fn trials_of_a_verdict(world: World, setup: &Setup) -> f64 {
    let case = Case {
        noise: Noise::Normal,
        pair_sd: world.block_sd,
        effect: world.best,
    };
    2.0 * setup.tally(Protocol::Schedlab, case).mean_blocks()
}

fn run_all(world: World, trials: usize, search: Search, setup: &Setup, races: u32) -> Tally {
    let mut tally = Tally::default();
    for series in 0..races {
        let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
        rng.set_stream(u64::from(series));
        search(world, trials, &mut rng, &mut tally);
        tally.races += 1;
    }
    tally
}

fn mean_of_runs(world: World, truth: f64, rng: &mut ChaCha8Rng) -> f64 {
    truth + world.trial_sd() / (RUNS as f64).sqrt() * normal(rng)
}

fn search_at_random(world: World, trials: usize, rng: &mut ChaCha8Rng, tally: &mut Tally) {
    let best_place = (0.5 + 0.2 * normal(rng)).clamp(0.0, 1.0);
    let baseline = mean_of_runs(world, 0.0, rng);
    let tried = (0..trials / RUNS - 1).map(|_| {
        let truth = world.gain_at(rng.random(), best_place);
        (mean_of_runs(world, truth, rng) - baseline, truth)
    });
    let first = tried.max_by(|a, b| a.0.total_cmp(&b.0));
    declare(first, tally);
}

fn halve(world: World, trials: usize, rng: &mut ChaCha8Rng, tally: &mut Tally) {
    let truth = race::draw_truth(world, rng);
    let mut running: Vec<usize> = (1..=CANDIDATES).collect();
    let mut sums = vec![(0.0, 0_u32); truth.len()];
    for _ in 0..RUNGS {
        let blocks = trials / RUNGS / (running.len() + 1);
        for _ in 0..blocks {
            let block = race::measure(world, &truth, &running, rng);
            for (sum, gain) in sums.iter_mut().zip(block) {
                let Some(gain) = gain else { continue };
                *sum = (sum.0 + gain, sum.1 + 1);
            }
        }
        running.sort_by(|a, b| mean(sums[*b]).total_cmp(&mean(sums[*a])));
        running.truncate(running.len().div_ceil(2));
    }
    let first = running.first().map(|arm| (mean(sums[*arm]), truth[*arm]));
    declare(first, tally);
}

fn mean((sum, count): (f64, u32)) -> f64 {
    sum / f64::from(count.max(1))
}

/// Declares what is ahead by more than the smallest effect: its mean and its true gain.
fn declare(first: Option<(f64, f64)>, tally: &mut Tally) {
    if let Some((claimed, truth)) = first
        && claimed > SMALLEST
    {
        tally.note_winner(claimed, truth);
    }
}
