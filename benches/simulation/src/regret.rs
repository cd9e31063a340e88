//! Recommendations on simulated nights: an arm is chosen by the blocks of one night, and its regret is that of
//! nights that nobody measured.

use crate::machine::normal;
use crate::studies::Setup;
use crate::table::{Table, percent};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use stats::regret::{BlockGains, Draws, Standing, Weighed};

/// The smallest regret that the user cares about, to which a replay is held.
const CARE: f64 = 0.01;
const CONFIDENCE: f64 = 0.95;
/// Cells of the mix and arms beside the baseline.
const CELLS: usize = 4;
const ARMS: usize = 5;

/// A world: how far arms differ, how noisy blocks are, how far an arm's effect moves from night to night.
#[derive(Debug, Clone, Copy)]
struct World {
    name: &'static str,
    /// Standard deviation of the true effect of an arm in a cell.
    effects: f64,
    block_sd: f64,
    night_sd: f64,
    blocks: usize,
}

const WORLDS: [World; 6] = [
    World {
        name: "no differences, 10 blocks of 2 %",
        effects: 0.0,
        block_sd: 0.02,
        night_sd: 0.0,
        blocks: 10,
    },
    World {
        name: "differences of 1 %, 10 blocks of 2 %",
        effects: 0.01,
        block_sd: 0.02,
        night_sd: 0.0,
        blocks: 10,
    },
    World {
        name: "differences of 3 %, 10 blocks of 2 %",
        effects: 0.03,
        block_sd: 0.02,
        night_sd: 0.0,
        blocks: 10,
    },
    World {
        name: "differences of 3 %, 5 blocks of 5 %",
        effects: 0.03,
        block_sd: 0.05,
        night_sd: 0.0,
        blocks: 5,
    },
    World {
        name: "differences of 3 %, 40 blocks of 5 %",
        effects: 0.03,
        block_sd: 0.05,
        night_sd: 0.0,
        blocks: 40,
    },
    World {
        name: "the same, nights that differ by 0.5 %",
        effects: 0.03,
        block_sd: 0.05,
        night_sd: 0.005,
        blocks: 40,
    },
];

/// True effects of the arms, the baseline's first, by cell.
type Truth = Vec<Vec<f64>>;

#[derive(Debug, Default)]
struct Tally {
    replays: u32,
    answered: u32,
    /// Answers whose arm is behind the best by no more than what matters.
    answers_hold: u32,
    /// The same of the arm with the largest mean, answered or not.
    winners_hold: u32,
    regret: f64,
    winners_regret: f64,
}

pub fn recommendations(setup: &Setup) -> Table {
    let header = [
        "world",
        "answered",
        "answers within 1 %",
        "mean regret",
        "largest mean within 1 %",
        "its regret",
    ];
    let note = "Five arms beside the baseline, four cells. Answers are given only where the regret is\n\
                below 1 % with 95 %. The largest mean is what one takes without asking how sure it is.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new(
        "A recommended arm on nights that were not measured",
        header,
        note,
    );
    for world in WORLDS {
        let tally = replay(world, setup);
        let share = |part: u32, of: u32| percent(f64::from(part) / f64::from(of.max(1)));
        table.push(vec![
            world.name.to_owned(),
            share(tally.answered, tally.replays),
            share(tally.answers_hold, tally.answered),
            format!(
                "{:.2}%",
                100.0 * tally.regret / f64::from(tally.answered.max(1))
            ),
            share(tally.winners_hold, tally.replays),
            format!(
                "{:.2}%",
                100.0 * tally.winners_regret / f64::from(tally.replays)
            ),
        ]);
    }
    table
}

fn replay(world: World, setup: &Setup) -> Tally {
    let mut tally = Tally::default();
    // Four thousand draws of each make the others' ten thousand too many.
    for series in 0..setup.series.div_ceil(10) {
        let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
        rng.set_stream(u64::from(series));
        let truth = draw_truth(world, &mut rng);
        let measured = move_by_night(world, &truth, &mut rng);
        let parts: Vec<Vec<BlockGains>> = (0..CELLS)
            .map(|cell| measure(world, &measured[cell], &mut rng))
            .collect();
        let held_out = scores(&move_by_night(world, &truth, &mut rng));
        let best = held_out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let regret = |arm: usize| best - held_out[arm];
        let Some(standings) = judge(&parts) else {
            continue;
        };
        tally.replays += 1;
        let winner = largest_mean(&parts);
        tally.winners_regret += regret(winner);
        tally.winners_hold += u32::from(regret(winner) <= CARE.ln_1p());
        if let Some(arm) = recommended(&standings) {
            tally.answered += 1;
            tally.regret += regret(arm);
            tally.answers_hold += u32::from(regret(arm) <= CARE.ln_1p());
        }
    }
    tally
}

fn draw_truth(world: World, rng: &mut ChaCha8Rng) -> Truth {
    let cell = |rng: &mut ChaCha8Rng| {
        let arms = (0..ARMS).map(|_| world.effects * normal(rng));
        std::iter::once(0.0).chain(arms).collect()
    };
    (0..CELLS).map(|_| cell(rng)).collect()
}

fn move_by_night(world: World, truth: &Truth, rng: &mut ChaCha8Rng) -> Truth {
    let cells = truth.iter();
    let cells = cells.map(|cell| {
        let arms = cell.iter().enumerate();
        arms.map(|(arm, effect)| match arm {
            0 => 0.0,
            _ => effect + world.night_sd * normal(rng),
        })
        .collect()
    });
    cells.collect()
}

/// Blocks of a cell: each trial has noise of its own, the baseline's too, which all arms share.
fn measure(world: World, effects: &[f64], rng: &mut ChaCha8Rng) -> Vec<BlockGains> {
    let trial_sd = world.block_sd / 2f64.sqrt();
    let block = |rng: &mut ChaCha8Rng| {
        let baseline = trial_sd * normal(rng);
        let arms = effects.iter().enumerate();
        arms.map(|(arm, effect)| match arm {
            0 => Some(0.0),
            _ => Some(effect + trial_sd * normal(rng) - baseline),
        })
        .collect()
    };
    (0..world.blocks).map(|_| block(rng)).collect()
}

fn scores(truth: &Truth) -> Vec<f64> {
    let mean = |arm: usize| truth.iter().map(|cell| cell[arm]).sum::<f64>() / CELLS as f64;
    (0..=ARMS).map(mean).collect()
}

fn judge(parts: &[Vec<BlockGains>]) -> Option<Vec<Standing>> {
    let even = Weighed {
        weight: 1.0,
        spread: 1.0,
    };
    let draws = Draws::from_blocks(parts, ARMS + 1)?;
    draws.judge_mix(&[even; CELLS], 0, CONFIDENCE)
}

/// The rule of `schedlab recommend`.
fn recommended(standings: &[Standing]) -> Option<usize> {
    stats::regret::choose_arm(standings, 0, CARE.ln_1p())
}

fn largest_mean(parts: &[Vec<BlockGains>]) -> usize {
    let sum = |arm: usize| -> f64 {
        let blocks = parts.iter().flatten();
        blocks.filter_map(|block| block[arm]).sum()
    };
    let arms = 0..=ARMS;
    arms.max_by(|a, b| sum(*a).total_cmp(&sum(*b))).unwrap_or(0)
}
