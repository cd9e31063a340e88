//! Comparisons that are set aside: how many of them more blocks would have decided.

use crate::machine::{Machine, Noise};
use crate::protocol::{ALPHA, params};
use crate::studies::Setup;
use crate::table::{Table, percent};
use stats::chance::Outlook;
use stats::coins::find_first_decision;
use stats::randomization::{estimate_centre, estimate_spread};

/// Chance below which a run sets a cell aside.
const LEAST_CHANCE: f64 = 0.05;
/// Blocks before which nothing is set aside.
const FEWEST: usize = 6;
/// Most blocks of a run.
const HORIZONS: [usize; 3] = [10, 20, 40];
const SPREADS: [f64; 7] = [0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2];
const EFFECTS: [f64; 11] = [
    0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.1, 0.15, 0.2,
];

/// Counts over series of one kind.
#[derive(Default)]
struct Counts {
    series: u32,
    decided: u32,
    set_aside: u32,
    /// Set aside, and decided by the blocks that were not measured then.
    lost: u32,
    blocks: usize,
    saved: usize,
}

impl Counts {
    fn add(&mut self, xs: &[f64]) {
        let decided = find_first_decision(xs, &params(ALPHA));
        let end = decided.map_or(xs.len(), |block| block as usize);
        self.series += 1;
        self.decided += u32::from(decided.is_some());
        self.blocks += end;
        let mut looks = FEWEST..end;
        if let Some(after) = looks.find(|blocks| is_hopeless(&xs[..*blocks], xs.len())) {
            self.set_aside += 1;
            self.lost += u32::from(decided.is_some());
            self.saved += end - after;
        }
    }

    fn add_all(&mut self, other: &Counts) {
        self.series += other.series;
        self.decided += other.decided;
        self.set_aside += other.set_aside;
        self.lost += other.lost;
        self.blocks += other.blocks;
        self.saved += other.saved;
    }
}

fn is_hopeless(xs: &[f64], most: usize) -> bool {
    let (Some(centre), Some(spread)) = (estimate_centre(xs), estimate_spread(xs)) else {
        return false;
    };
    let count = |blocks: usize| u32::try_from(blocks).unwrap_or(u32::MAX);
    let outlook = Outlook {
        units: count(xs.len()),
        pairs: count(xs.len()),
        centre,
        spread,
        pair_spread: spread,
        limit: params(ALPHA).smallest_effect.ln_1p(),
    };
    outlook.chance_to_decide(ALPHA, count(most - xs.len())) < LEAST_CHANCE
}

pub fn study(setup: &Setup) -> Table {
    let header = [
        "noise",
        "most blocks",
        "decided",
        "set aside",
        "would have been decided",
        "at most lost",
        "blocks saved",
    ];
    let note = "Seven standard deviations from 1 to 20 % by eleven changes from 0 to 20 %, a fiftieth of the series\n\
                of the other tables each; a look after each block from the sixth on. Would have been decided: of\n\
                those that were set aside. At most lost: of all comparisons with one change and one standard\n\
                deviation, the worst of the 77.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Comparisons that are set aside", header, note);
    for noise in Noise::OF_THE_MACHINE {
        for most in HORIZONS {
            table.push(row(setup, noise, most));
        }
    }
    table
}

fn row(setup: &Setup, noise: Noise, most: usize) -> Vec<String> {
    let (mut all, mut most_lost) = (Counts::default(), 0.0_f64);
    for pair_sd in SPREADS {
        for effect in EFFECTS {
            let mut counts = Counts::default();
            for series in 0..(setup.series / 50).max(1) {
                let mut machine = Machine::new(noise, pair_sd, effect, setup.seed, series);
                let xs: Vec<f64> = (0..most).map(|_| machine.block()).collect();
                counts.add(&xs);
            }
            most_lost = most_lost.max(share(counts.lost, counts.series));
            all.add_all(&counts);
        }
    }
    let saved = all.saved as f64 / all.blocks as f64;
    vec![
        noise.name(),
        most.to_string(),
        percent(share(all.decided, all.series)),
        percent(share(all.set_aside, all.series)),
        percent(share(all.lost, all.set_aside)),
        percent(most_lost),
        percent(saved),
    ]
}

fn share(count: u32, of: u32) -> f64 {
    f64::from(count) / f64::from(of.max(1))
}
