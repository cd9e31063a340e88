//! Estimates at the stop: how far they are from the truth on average, where a run ends with its answer.

use crate::machine::{Machine, Noise};
use crate::protocol::{ALPHA, MAX_BLOCKS, params};
use crate::studies::Setup;
use crate::table::{Table, percent, whole_percent};
use crate::turns::{self, Windows};
use crate::verdicts::measure_process;
use stats::coins::find_first_decision;
use stats::randomization::{Prior, Process, estimate_centre};
use stats::summary::Moments;
use stats::verdict::ending::{Rule, estimate_size};

const EFFECTS: [f64; 3] = [0.01, 0.03, 0.10];
/// Standard deviations of a block, beside which some of these are found and some are not.
const SPREADS: [f64; 3] = [0.02, 0.05, 0.12];
const NOISES: [Noise; 5] = [
    Noise::Normal,
    Noise::HeavyTails,
    Noise::Skewed,
    Noise::Bursts,
    Noise::TwoModes,
];
/// Processes in which arms take turns, at most.
const PROCESSES: u32 = 8;
/// An estimate takes as long as some hundred tests.
const PART: u32 = 10;

/// Errors of an estimate.
#[derive(Debug, Clone, Default)]
struct Errors {
    all: Moments,
    of_calls: Moments,
}

impl Errors {
    fn add(&mut self, error: f64, is_call: bool) {
        self.all.push(error);
        if is_call {
            self.of_calls.push(error);
        }
    }

    /// Mean error in standard deviations of the estimate.
    fn bias(&self) -> f64 {
        self.all.mean() / self.all.sd().unwrap_or(f64::NAN)
    }

    fn cells(&self) -> Vec<String> {
        vec![
            format!("{:+.2}", self.bias()),
            format!("{:.2}%", 100.0 * self.all.sd().unwrap_or(f64::NAN)),
            match self.of_calls.count() {
                0 => "-".to_owned(),
                _ => format!("{:+.2}%", 100.0 * self.of_calls.mean()),
            },
        ]
    }
}

/// Errors of the centre of all values, and of the estimate that is reported.
#[derive(Debug, Clone, Default)]
struct Both {
    centre: Errors,
    reported: Errors,
    units: Moments,
}

impl Both {
    /// Looks at a series after so many values each, until one decides.
    fn add(&mut self, xs: &[f64], looks: &[usize], decided: Option<usize>, truth: f64, rule: Rule) {
        let end = decided.unwrap_or(xs.len());
        let xs = &xs[..end];
        let is_call = Process::from_shifted(xs, 0.0, rule.prior).ln_e() >= -ALPHA.ln();
        let error = |found: Option<f64>| found.unwrap_or(f64::NAN) - truth;
        self.centre.add(error(estimate_centre(xs)), is_call);
        self.reported
            .add(error(estimate_size(xs, looks, rule)), is_call);
        self.units.push(end as f64);
    }

    fn cells(&self) -> Vec<String> {
        let called = self.centre.of_calls.count();
        let called = f64::from(called) / f64::from(self.centre.all.count());
        let ends = vec![percent(called), format!("{:.1}", self.units.mean())];
        [ends, self.centre.cells(), self.reported.cells()].concat()
    }
}

fn in_blocks(setup: &Setup, noise: Noise, effect: f64, pair_sd: f64) -> Both {
    let params = params(ALPHA);
    let (limit, prior) = (params.smallest_effect.ln_1p(), Prior::BLOCKS);
    let rule = Rule {
        alpha: ALPHA,
        limit,
        prior,
    };
    let mut both = Both::default();
    for series in 0..(setup.series / PART).max(2) {
        let mut machine = Machine::new(noise, pair_sd, effect, setup.seed, series);
        let xs: Vec<f64> = (0..MAX_BLOCKS).map(|_| machine.block()).collect();
        let decided = find_first_decision(&xs, &params).map(|block| block as usize);
        let looks: Vec<usize> = (1..=xs.len()).collect();
        both.add(&xs, &looks, decided, effect.ln_1p(), rule);
    }
    both
}

fn in_turns(setup: &Setup, noise: turns::Noise, effect: f64) -> Both {
    let rule = Rule {
        alpha: ALPHA,
        limit: 0.0,
        prior: Prior::PAIRS,
    };
    let mut both = Both::default();
    for series in 0..(setup.series / PART).max(2) {
        let mut windows = Windows::new(noise, setup.seed, series);
        let mut coins = Process::new(rule.prior);
        let (mut xs, mut looks, mut decided) = (Vec::new(), Vec::new(), None);
        for process in 1..=PROCESSES {
            let within = measure_process(process, &mut windows, effect, &mut coins, &mut xs);
            looks.extend(within);
            looks.push(xs.len());
            if coins.ln_e() >= -ALPHA.ln() {
                decided = Some(xs.len());
                break;
            }
        }
        both.add(&xs, &looks, decided, effect.ln_1p(), rule);
    }
    both
}

fn header(first: &[&str]) -> Vec<String> {
    let estimates = ["bias", "sd", "of calls", "shown: bias", "sd", "of calls"];
    let all = first.iter().chain(&estimates);
    all.map(|name| (*name).to_owned()).collect()
}

pub fn study_blocks(setup: &Setup) -> Table {
    let note = "A tenth of the series of the other tables; 3 to 40 blocks, and the first verdict ends a series. Bias: mean\n\
                error of the centre of the blocks, and of the change that is shown, over all series however they ended,\n\
                in standard deviations of the estimate (sd). Of calls: mean error of those that were called.";
    let first = ["noise", "change", "sd", "called", "blocks"];
    let mut table = Table::new("Estimates at the stop, whole trials", header(&first), note);
    for noise in NOISES {
        for effect in EFFECTS {
            for pair_sd in SPREADS {
                let of = vec![noise.name(), whole_percent(effect), whole_percent(pair_sd)];
                table.push([of, in_blocks(setup, noise, effect, pair_sd).cells()].concat());
            }
        }
    }
    table
}

pub fn study_pairs(setup: &Setup) -> Table {
    let note = "The same of pairs with a standard deviation of 10 %, 14 in the first process, 28 in the second and so on, and 83 at\n\
                most; looks within and after each of at most eight.";
    let first = ["noise of windows", "change", "called", "pairs"];
    let mut table = Table::new("Estimates at the stop, in turns", header(&first), note);
    for noise in turns::Noise::ALL {
        for effect in EFFECTS {
            let of = vec![noise.name().to_owned(), whole_percent(effect)];
            table.push([of, in_turns(setup, noise, effect).cells()].concat());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup {
        series: 3000,
        seed: 1,
    };

    #[test]
    fn stopping_flatters_the_centre_and_hardly_what_is_shown() {
        let both = in_blocks(&SETUP, Noise::TwoModes, 0.10, 0.12);
        let [centre, shown] = [&both.centre, &both.reported].map(Errors::bias);
        assert!(centre > 0.2, "{centre}");
        assert!(shown.abs() < 0.1, "{shown}");
    }
}
