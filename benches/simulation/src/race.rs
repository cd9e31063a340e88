//! Races on simulated machines: how often a winner is declared where nothing differs, and what is left of a
//! declared effect on blocks that nobody chose by. Beside it the common way, the largest mean of all.

use crate::machine::normal;
use crate::studies::Setup;
use crate::table::{Table, percent};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use stats::race::{Rule, choose_runners, find_front_runner, is_settled, judge_runners};
use stats::randomization::Prior;
use stats::regret::BlockGains;
use stats::verdict::ending;
use stats::{Better, Params, Verdict};

pub const CANDIDATES: usize = 16;
/// As in `schedlab tune`.
const RULE: Rule = Rule {
    error: 0.05,
    most_arms: 40,
};
const BLOCKS: usize = 4;
const MOST_BLOCKS: usize = 24;
const ROUNDS: u32 = 6;
/// Blocks of a confirmation, and those that it has in any case.
const CONFIRMING: usize = 40;
const FEWEST: usize = 3;
pub const SMALLEST: f64 = 0.02;

#[derive(Debug, Clone, Copy)]
pub struct World {
    pub name: &'static str,
    /// Gain of the best candidate; the others lie on a curve that falls to both sides of it.
    pub best: f64,
    pub block_sd: f64,
}

impl World {
    /// The gain at a place of the space, which is from 0 to 1, as the best one is.
    pub fn gain_at(&self, place: f64, best_place: f64) -> f64 {
        self.best * (1.0 - 6.0 * (place - best_place).powi(2))
    }

    pub fn trial_sd(&self) -> f64 {
        self.block_sd / 2f64.sqrt()
    }
}

pub const WORLDS: [World; 5] = [
    World {
        name: "nothing differs, blocks of 2 %",
        best: 0.0,
        block_sd: 0.02,
    },
    World {
        name: "nothing differs, blocks of 10 %",
        best: 0.0,
        block_sd: 0.10,
    },
    World {
        name: "the best is 3 % ahead, blocks of 2 %",
        best: 0.03,
        block_sd: 0.02,
    },
    World {
        name: "the best is 10 % ahead, blocks of 5 %",
        best: 0.10,
        block_sd: 0.05,
    },
    World {
        name: "the best is 3 % ahead, blocks of 10 %",
        best: 0.03,
        block_sd: 0.10,
    },
];

#[derive(Debug, Default)]
pub struct Tally {
    pub races: u32,
    pub winners: u32,
    /// Winners whose true gain is below the confirmed one by more than what matters.
    pub lose: u32,
    /// Winners whose true gain is below the interval that was reported.
    below: u32,
    /// Winners that are truly worse than the baseline.
    pub worse: u32,
    best_dropped: u32,
    /// Sums of claimed minus true gains, of the winners, and of the largest means of the race.
    pub excess: f64,
    excess_of_largest: f64,
    /// Sum of the true gains of what one goes on with: the winner, or the baseline where there is none.
    pub kept: f64,
    pub trials: usize,
}

impl Tally {
    /// Notes a winner by what is said of it and what is true.
    pub fn note_winner(&mut self, claimed: f64, truth: f64) {
        self.winners += 1;
        self.excess += claimed - truth;
        self.lose += u32::from(claimed - truth > SMALLEST);
        self.worse += u32::from(truth < 0.0);
        self.kept += truth;
    }
}

pub fn races(setup: &Setup) -> Table {
    let header = [
        "world",
        "winner",
        "worse",
        "below interval",
        "lose 2 %",
        "claim too high by",
        "largest mean: too high by",
        "best dropped",
        "trials",
    ];
    let note = "16 candidates beside a baseline, then a confirmation of 40 blocks. Of the winners: truly worse than the\n\
                baseline; truly below the interval that is reported; truly 2 % below the figure that is reported.\n\
                Largest mean: the gain in the race of the candidate that has most of it.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Races of settings beside a baseline", header, note);
    for world in WORLDS {
        let tally = run_all(world, setup);
        let of = |part: u32, all: u32| percent(f64::from(part) / f64::from(all.max(1)));
        let races = f64::from(tally.races);
        table.push(vec![
            world.name.to_owned(),
            of(tally.winners, tally.races),
            of(tally.worse, tally.winners),
            of(tally.below, tally.winners),
            of(tally.lose, tally.winners),
            percent(tally.excess / f64::from(tally.winners.max(1))),
            percent(tally.excess_of_largest / races),
            of(tally.best_dropped, tally.races),
            format!("{:.0}", tally.trials as f64 / races),
        ]);
    }
    table
}

pub fn run_all(world: World, setup: &Setup) -> Tally {
    let mut tally = Tally::default();
    for series in 0..setup.series.div_ceil(20) {
        let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
        rng.set_stream(u64::from(series));
        run_race(world, &mut rng, &mut tally);
    }
    tally
}

fn run_race(world: World, rng: &mut ChaCha8Rng, tally: &mut Tally) {
    let truth = draw_truth(world, rng);
    let mut blocks = Vec::new();
    let mut running: Vec<usize> = (1..=CANDIDATES).collect();
    let mut runners = Vec::new();
    let mut dropped = [false; CANDIDATES + 1];
    for round in 1..=ROUNDS {
        let count = (BLOCKS * (CANDIDATES + 1) / (running.len() + 1)).clamp(BLOCKS, MOST_BLOCKS);
        for _ in 0..count {
            blocks.push(measure(world, &truth, &running, rng));
        }
        tally.trials += count * (running.len() + 1);
        runners = judge_runners(&blocks, CANDIDATES + 1, &[], &RULE);
        for (seen, runner) in dropped.iter_mut().zip(&runners) {
            *seen |= runner.dropped.is_some();
        }
        running = choose_runners(&runners, round);
        let is_settled = round > 1 && is_settled(&blocks, &runners, SMALLEST);
        if running.len() < 2 || is_settled {
            break;
        }
    }
    tally.races += 1;
    let largest = |of: &dyn Fn(usize) -> f64| {
        (1..=CANDIDATES)
            .max_by(|a, b| of(*a).total_cmp(&of(*b)))
            .unwrap_or(1)
    };
    let by_mean = |arm: usize| runners[arm].gain.unwrap_or(f64::NEG_INFINITY);
    let first = largest(&by_mean);
    tally.excess_of_largest += by_mean(first) - truth[first];
    let best = largest(&|arm| truth[arm]);
    tally.best_dropped += u32::from(dropped[best]);
    if let Some(front) = find_front_runner(&runners) {
        let known = runners[front].blocks_to_know(SMALLEST.ln_1p());
        let fewest = known.unwrap_or(CONFIRMING).clamp(FEWEST, CONFIRMING);
        confirm(world, &truth, (front, fewest), rng, tally);
    }
}

fn confirm(
    world: World,
    truth: &[f64],
    (front, fewest): (usize, usize),
    rng: &mut ChaCha8Rng,
    tally: &mut Tally,
) {
    let params = Params {
        alpha: 0.05,
        smallest_effect: SMALLEST,
        better: Better::Higher,
    };
    let mut gains = Vec::new();
    let mut judged = stats::judge(&gains, &params);
    while gains.len() < CONFIRMING {
        gains.extend(measure(world, truth, &[front], rng)[front]);
        judged = stats::judge(&gains, &params);
        if gains.len() >= fewest && judged.supported_verdict() != Verdict::Unknown {
            break;
        }
    }
    tally.trials += 2 * gains.len();
    let looks: Vec<usize> = (fewest..gains.len()).collect();
    let rule = ending::Rule {
        alpha: params.alpha,
        limit: SMALLEST.ln_1p(),
        prior: Prior::BLOCKS,
    };
    let size = ending::estimate_size(&gains, &looks, rule).unwrap_or_default();
    if judged.supported_verdict() == Verdict::Better {
        let low = judged
            .interval
            .map_or(f64::NEG_INFINITY, |interval| interval.low.ln());
        tally.note_winner(size.max(low), truth[front]);
        tally.below += u32::from(truth[front] < low);
    }
}

/// True gains: a curve over the candidates, whose top is at any of them.
pub fn draw_truth(world: World, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let top = 1.0 + (CANDIDATES as f64 - 1.0) * (0.5 + 0.2 * normal(rng)).clamp(0.0, 1.0);
    let top = top.round();
    let gain = |candidate: usize| {
        world.gain_at(
            candidate as f64 / CANDIDATES as f64,
            top / CANDIDATES as f64,
        )
    };
    std::iter::once(0.0)
        .chain((1..=CANDIDATES).map(gain))
        .collect()
}

/// A block in which these candidates run beside the baseline.
pub fn measure(world: World, truth: &[f64], running: &[usize], rng: &mut ChaCha8Rng) -> BlockGains {
    let trial_sd = world.trial_sd();
    let baseline = trial_sd * normal(rng);
    let mut block = vec![None; truth.len()];
    block[0] = Some(0.0);
    for arm in running {
        block[*arm] = Some(truth[*arm] + trial_sd * normal(rng) - baseline);
    }
    block
}
