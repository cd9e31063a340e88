//! Protocols beside each other: what each finds of a change, how often it calls one where none is, and its time.
//!
//! The time of a trial, a process of turns and a run is what they take on two CPUs (docs/statistics.md), with their starts.

use crate::machine::{Arm, Machine, Noise};
use crate::protocol::{ALPHA, Call, MAX_BLOCKS, Outcome, Protocol};
use crate::studies::{NOISY, QUIET, Setup};
use crate::table::{Table, percent};
use crate::turns::{self, Windows};
use model::turns::looks_within;
use stats::randomization::{Prior, Process, estimate_centre};
use stats::t_test;

const EFFECTS: [f64; 4] = [0.0, 0.01, 0.03, 0.10];
/// Seconds of a block of two trials of 200 ms, of a pair of windows of 10 ms, of the start of their process, and of a
/// run of 3 s.
const BLOCK: f64 = 0.61;
const PAIR: f64 = 0.024;
const START: f64 = 0.1;
const RUN: f64 = 3.07;
/// Pairs of the first process, and of any at most: the second has twice as many as the first, and so on.
const FIRST_PAIRS: u32 = 14;
const MOST_PAIRS: u32 = 83;
/// Processes at most: the time of most blocks.
const PROCESSES: u32 = 14;
/// Pairs of runs of those who fix their number.
const FIXED: u32 = 10;
/// Comparisons of pairs take longer to simulate than those of blocks.
const PART: u32 = 5;

/// What a machine does to whole trials and to windows.
const WORLDS: [(&str, Noise, turns::Noise); 3] = [
    ("normal noise", Noise::Normal, turns::Noise::Normal),
    ("drift", Noise::Drift, turns::Noise::Autocorrelated),
    ("two modes", Noise::TwoModes, turns::Noise::Modes),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    InTurns,
    Whole,
    Welch,
    /// One arm and the other by turns, always in this order, a fixed number of times, and a paired t-test.
    Paired,
    Percentage,
}

impl Way {
    const ALL: [Way; 5] = [
        Way::InTurns,
        Way::Whole,
        Way::Welch,
        Way::Paired,
        Way::Percentage,
    ];

    fn name(self) -> &'static str {
        match self {
            Way::InTurns => "schedlab, in turns",
            Way::Whole => "schedlab, whole trials",
            Way::Welch => "10 + 10 runs, Welch",
            Way::Paired => "10 pairs of runs, t-test",
            Way::Percentage => "3 + 3 runs, 2 %",
        }
    }

    /// A comparison, and the seconds that it takes.
    fn compare(
        self,
        world: (&str, Noise, turns::Noise),
        effect: f64,
        at: (u64, u32),
    ) -> (Call, f64) {
        let (_, noise, of_windows) = world;
        let (seed, series) = at;
        // Runs of 3 s scatter less than trials of 200 ms.
        let pair_sd = if self == Way::Whole { NOISY } else { QUIET };
        let mut machine = Machine::new(noise, pair_sd, effect, seed, series);
        let in_runs = |outcome: Outcome| (outcome.call, 2.0 * RUN * f64::from(outcome.blocks));
        match self {
            Way::InTurns => compare_in_turns(&mut Windows::new(of_windows, seed, series), effect),
            Way::Whole => {
                let outcome = Protocol::Schedlab.compare(&mut machine);
                (outcome.call, BLOCK * f64::from(outcome.blocks))
            }
            Way::Welch => in_runs(Protocol::Welch(FIXED).compare(&mut machine)),
            Way::Percentage => in_runs(Protocol::Percentage(3).compare(&mut machine)),
            Way::Paired => (
                compare_fixed_pairs(&mut machine),
                2.0 * RUN * f64::from(FIXED),
            ),
        }
    }
}

/// Looks at the pairs within each process and after it.
fn compare_in_turns(windows: &mut Windows, effect: f64) -> (Call, f64) {
    let (mut coins, mut xs) = (Process::new(Prior::PAIRS), Vec::new());
    let seconds = |process: u32, pairs: usize| START * f64::from(process) + PAIR * pairs as f64;
    for process in 1..=PROCESSES {
        measure_process(process, windows, effect, &mut coins, &mut xs);
        if coins.ln_e() >= -ALPHA.ln() {
            let call = direction(estimate_centre(&xs).unwrap_or(0.0));
            return (call, seconds(process, xs.len()));
        }
    }
    (Call::Nothing, seconds(PROCESSES, xs.len()))
}

/// Adds the pairs of a process, which ends when they are enough: one more has been measured then. Gives the numbers
/// of pairs at which it was looked and they were not.
pub fn measure_process(
    process: u32,
    windows: &mut Windows,
    effect: f64,
    coins: &mut Process,
    xs: &mut Vec<f64>,
) -> Vec<usize> {
    let pairs = pairs_of_process(process) as usize;
    let due = looks_within(pairs);
    let (mut looks, mut is_enough) = (Vec::new(), false);
    for pair in 1..=pairs {
        let x = windows.pair(effect);
        coins.push(x);
        xs.push(x);
        if is_enough {
            break;
        }
        if due.contains(&pair) {
            is_enough = coins.ln_e() >= -ALPHA.ln();
            if !is_enough {
                looks.push(xs.len());
            }
        }
    }
    looks
}

/// Pairs of a process by its number, from 1 on (`schedule::plan_turns`).
fn pairs_of_process(process: u32) -> u32 {
    process.saturating_mul(FIRST_PAIRS).min(MOST_PAIRS)
}

fn compare_fixed_pairs(machine: &mut Machine) -> Call {
    let mut pair = || {
        let baseline = machine.trial(Arm::Baseline);
        machine.trial(Arm::Changed) - baseline
    };
    let xs: Vec<f64> = (0..FIXED).map(|_| pair()).collect();
    let test = t_test::one_sample(&xs, ALPHA);
    match test.is_some_and(|test| test.p < ALPHA) {
        true => direction(xs.iter().sum()),
        false => Call::Nothing,
    }
}

fn direction(change: f64) -> Call {
    if change > 0.0 { Call::Gain } else { Call::Loss }
}

/// Comparisons of one way with one effect.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    series: u32,
    gains: u32,
    losses: u32,
    seconds: f64,
}

fn count(way: Way, world: (&str, Noise, turns::Noise), effect: f64, setup: &Setup) -> Counts {
    let mut counts = Counts::default();
    for series in 0..(setup.series / PART).max(1) {
        let (call, seconds) = way.compare(world, effect, (setup.seed, series));
        counts.series += 1;
        counts.gains += u32::from(call == Call::Gain);
        counts.losses += u32::from(call == Call::Loss);
        counts.seconds += seconds;
    }
    counts
}

impl Counts {
    fn share(self, count: u32) -> String {
        percent(f64::from(count) / f64::from(self.series))
    }

    /// Found, false and seconds: where nothing changed all calls are false, else those of a loss.
    fn cells(self, effect: f64) -> [String; 3] {
        let seconds = format!("{:.1}", self.seconds / f64::from(self.series));
        match effect == 0.0 {
            true => [
                "-".to_owned(),
                self.share(self.gains + self.losses),
                seconds,
            ],
            false => [self.share(self.gains), self.share(self.losses), seconds],
        }
    }
}

pub fn study(setup: &Setup) -> Table {
    let header = ["noise", "change", "protocol", "found", "false", "seconds"];
    let note = format!(
        "A fifth of the comparisons of the other tables. Pairs of windows of 10 ms scatter by 10 %, blocks of trials of 200 ms\n\
         by 5 %, those of runs of 3 s by 2 %, before drift and modes; windows drift by their autocorrelation. At most {MAX_BLOCKS}\n\
         blocks, or {PROCESSES} processes of {FIRST_PAIRS} to {MOST_PAIRS} pairs: 24 s either way. False: a difference of equal arms, or a gain that is\n\
         called a loss. *Same* is not counted."
    );
    let mut table = Table::new(
        "Protocols beside each other",
        header.map(str::to_owned).to_vec(),
        &note,
    );
    for world in WORLDS {
        for effect in EFFECTS {
            for way in Way::ALL {
                let cells = count(way, world, effect, setup).cells(effect);
                let of = [
                    world.0.to_owned(),
                    format!("{:.0} %", 100.0 * effect),
                    way.name().to_owned(),
                ];
                table.push(of.into_iter().chain(cells).collect());
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup {
        series: 1000,
        seed: 1,
    };

    #[test]
    fn a_large_change_is_found_by_all_and_in_turns_in_a_second() {
        for way in Way::ALL {
            let found = count(way, WORLDS[0], 0.10, &SETUP);
            assert!(found.gains * 100 >= found.series * 99, "{way:?}: {found:?}");
            assert_eq!(found.losses, 0, "{way:?}");
        }
        let in_turns = count(Way::InTurns, WORLDS[0], 0.10, &SETUP);
        assert!(in_turns.seconds < 1.2 * f64::from(in_turns.series));
    }

    #[test]
    fn drift_makes_differences_for_who_runs_one_arm_after_the_other() {
        let called = |way| {
            let counts = count(way, WORLDS[1], 0.0, &SETUP);
            counts.gains + counts.losses
        };
        assert!(called(Way::Welch) > 40, "{}", called(Way::Welch));
        for way in [Way::InTurns, Way::Whole] {
            // Of 200, three standard errors above 5 %.
            assert!(called(way) <= 19, "{way:?}: {}", called(way));
        }
    }
}
