//! Blocks that an open comparison is said to need, beside those that it takes.

use crate::machine::{Machine, Noise};
use crate::protocol::{ALPHA, params};
use crate::studies::Setup;
use crate::table::{Table, percent};
use stats::coins::find_first_decision;
use stats::judge;

/// Blocks after which a run ends undecided.
const ENDS: [usize; 4] = [6, 10, 16, 24];
/// Blocks that somebody goes on for.
const MOST: usize = 300;
const SPREADS: [f64; 6] = [0.01, 0.02, 0.03, 0.05, 0.08, 0.12];
const EFFECTS: [f64; 10] = [0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.1, 0.15, 0.2];
const NOISES: [Noise; 4] = [
    Noise::Normal,
    Noise::HeavyTails,
    Noise::Bursts,
    Noise::TwoModes,
];

pub fn study(setup: &Setup) -> Table {
    let header = [
        "noise",
        "after",
        "open",
        "within a factor of 2",
        "of 4",
        "less than half",
        "more than twice",
    ];
    let note = "Six standard deviations from 1 to 12 % by ten changes from 0 to 20 %, a hundredth of the series of the\n\
                other tables each. After so many blocks those that are open say how many more would decide them; at\n\
                most 300 are run. Within: took between half as many and twice as many more blocks as was said.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("What more blocks would decide", header, note);
    for noise in NOISES {
        for end in ENDS {
            table.push(row(setup, noise, end));
        }
    }
    table
}

fn row(setup: &Setup, noise: Noise, end: usize) -> Vec<String> {
    let mut ratios = Vec::new();
    for pair_sd in SPREADS {
        for effect in EFFECTS {
            for series in 0..(setup.series / 100).max(1) {
                let mut machine = Machine::new(noise, pair_sd, effect, setup.seed, series);
                let xs: Vec<f64> = (0..MOST).map(|_| machine.block()).collect();
                ratios.extend(ratio(&xs, end));
            }
        }
    }
    let share = |is_so: &dyn Fn(f64) -> bool| {
        let count = ratios.iter().filter(|ratio| is_so(**ratio)).count();
        percent(count as f64 / ratios.len().max(1) as f64)
    };
    vec![
        noise.name(),
        end.to_string(),
        ratios.len().to_string(),
        share(&|ratio| (0.5..=2.0).contains(&ratio)),
        share(&|ratio| (0.25..=4.0).contains(&ratio)),
        share(&|ratio| ratio < 0.5),
        share(&|ratio| ratio > 2.0),
    ]
}

/// Blocks that it took over those that were said, from the end on; none where it was decided, or where more were
/// said than are run.
fn ratio(xs: &[f64], end: usize) -> Option<f64> {
    let decided = find_first_decision(xs, &params(ALPHA));
    let took = decided.map_or(f64::INFINITY, f64::from) - end as f64;
    if took <= 0.0 {
        return None;
    }
    let needed = judge(&xs[..end], &params(ALPHA)).blocks_needed?;
    let more = f64::from(needed) - end as f64;
    (needed as usize <= MOST).then_some(took / more)
}
