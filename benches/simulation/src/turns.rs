//! Arms that take turns inside one process: pairs of windows whose order a coin draws, under
//! noise that breaks what a t-test assumes.

use crate::machine::{gamma, normal};
use crate::protocol::ALPHA;
use crate::studies::Setup;
use crate::table::{Table, percent};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stats::randomization::{self, Prior, Process};
use stats::safe_test;
use stats::summary::Moments;

const PAIRS: u32 = 200;
const PAIR_SD: f64 = 0.10;
const EFFECT: f64 = 0.03;
/// An interval takes as long as some hundred tests.
const SERIES_FOR_AN_INTERVAL: u32 = 50;

/// Noise from window to window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    Normal,
    HeavyTails,
    Spikes,
    Autocorrelated,
    Modes,
}

impl Noise {
    pub const ALL: [Noise; 5] = [
        Noise::Normal,
        Noise::HeavyTails,
        Noise::Spikes,
        Noise::Autocorrelated,
        Noise::Modes,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Noise::Normal => "normal",
            Noise::HeavyTails => "Student t, 2.2 df",
            Noise::Spikes => "spikes",
            Noise::Autocorrelated => "autocorrelated 0.98",
            Noise::Modes => "two modes",
        }
    }
}

const FREEDOM: f64 = 2.2;
/// Chance of a spike in a window, its median size and the spread of its logarithm.
const SPIKE: f64 = 0.05;
const SPIKE_SIZE: f64 = 0.30;
const SPIKE_SPREAD: f64 = 0.5;
const CORRELATION: f64 = 0.98;
/// Distance of two modes, and the chance to change from one to the other between two windows.
const MODES_APART: f64 = 0.30;
const MODE_CHANGES: f64 = 0.05;

/// One process: windows in the order of time.
pub struct Windows {
    rng: ChaCha8Rng,
    noise: Noise,
    memory: f64,
    is_slow: bool,
}

impl Windows {
    pub fn new(noise: Noise, seed: u64, series: u32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(series));
        let memory = normal(&mut rng);
        Windows {
            rng,
            noise,
            memory,
            is_slow: false,
        }
    }

    /// Logarithm of the figure of the next window.
    fn next(&mut self) -> f64 {
        let rng = &mut self.rng;
        let sd = PAIR_SD / 2f64.sqrt();
        match self.noise {
            Noise::Normal => sd * normal(rng),
            Noise::HeavyTails => {
                let scale = (FREEDOM / (FREEDOM - 2.0)).sqrt();
                let chi_square = 2.0 * gamma(rng, FREEDOM / 2.0);
                sd / scale * normal(rng) / (chi_square / FREEDOM).sqrt()
            }
            Noise::Spikes => {
                let spike = match rng.random::<f64>() < SPIKE {
                    true => SPIKE_SIZE * (SPIKE_SPREAD * normal(rng)).exp(),
                    false => 0.0,
                };
                0.5 * sd * normal(rng) - spike
            }
            Noise::Autocorrelated => {
                let fresh = (1.0 - CORRELATION * CORRELATION).sqrt() * normal(rng);
                self.memory = CORRELATION * self.memory + fresh;
                // So that a pair has the standard deviation of the others.
                PAIR_SD / (2.0 * (1.0 - CORRELATION)).sqrt() * self.memory
            }
            Noise::Modes => {
                self.is_slow ^= rng.random::<f64>() < MODE_CHANGES;
                0.5 * sd * normal(rng) - if self.is_slow { MODES_APART } else { 0.0 }
            }
        }
    }

    /// Log-ratio of the next pair.
    pub fn pair(&mut self, effect: f64) -> f64 {
        let (first, second) = (self.next(), self.next());
        let arm_is_first: bool = self.rng.random();
        let difference = if arm_is_first {
            first - second
        } else {
            second - first
        };
        effect.ln_1p() + difference
    }
}

/// Tests that are looked at after every pair.
#[derive(Debug, Clone, Copy)]
enum Test {
    SafeT,
    /// Fixed stakes in root mean squares of the sizes, without a bound.
    MeanSquare,
    Randomization,
}

impl Test {
    const ALL: [Test; 3] = [Test::SafeT, Test::MeanSquare, Test::Randomization];

    fn name(self) -> &'static str {
        match self {
            Test::SafeT => "safe t-test",
            Test::MeanSquare => "coin, unbounded",
            Test::Randomization => "coin (schedlab)",
        }
    }

    /// The pair at which the e-value reached the threshold, and true for a gain.
    fn calls(self, mut windows: Windows, effect: f64) -> Option<(u32, bool)> {
        let mut moments = Moments::default();
        let mut coin = Process::new(Prior::PAIRS);
        let mut mean_square = MeanSquare::default();
        let mut xs = Vec::new();
        (1..=PAIRS).find_map(|pair| {
            let x = windows.pair(effect);
            moments.push(x);
            xs.push(x);
            let ln_e = match self {
                Test::SafeT => safe_test::ln_e_value(&moments),
                Test::MeanSquare => mean_square.push(x),
                Test::Randomization => {
                    coin.push(x);
                    coin.ln_e()
                }
            };
            // A burst may move the mean to the other side.
            let centre = || match self {
                Test::SafeT | Test::MeanSquare => moments.mean(),
                Test::Randomization => randomization::estimate_centre(&xs).unwrap_or(0.0),
            };
            (ln_e >= -ALPHA.ln()).then(|| (pair, centre() > 0.0))
        })
    }
}

/// The pair at which schedlab calls a difference, and true for a gain.
pub fn find_call(noise: Noise, effect: f64, seed: u64, series: u32) -> Option<(u32, bool)> {
    Test::Randomization.calls(Windows::new(noise, seed, series), effect)
}

/// Factors of the score that are staked, mixed with equal weights and on both signs.
pub const STAKES: [f64; 6] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6];

#[derive(Debug, Default)]
struct MeanSquare {
    squares: f64,
    count: f64,
    products: [[f64; 2]; STAKES.len()],
}

impl MeanSquare {
    fn push(&mut self, x: f64) -> f64 {
        self.squares += x * x;
        self.count += 1.0;
        let score = x / (self.squares / self.count).sqrt();
        let mut sum = 0.0;
        for (product, stake) in self.products.iter_mut().zip(STAKES) {
            let bet = stake * score;
            product[0] += bet - bet.cosh().ln();
            product[1] -= bet + bet.cosh().ln();
            sum += product[0].exp() + product[1].exp();
        }
        (sum / (2.0 * STAKES.len() as f64)).ln()
    }
}

pub fn study(setup: &Setup) -> Table {
    let header = [
        "noise of windows",
        "test",
        "false calls",
        "3%: found",
        "wrong",
        "pairs",
        "covered",
    ];
    let note = "Pairs with a standard deviation of 10 %, at most 200, a look after each; found: within\n\
                these. Pairs: until the call, or 200. Covered: the interval after 200 pairs holds the\n\
                change of 3 % (of 1 in 50 of the series).";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Arms that take turns inside one process", header, note);
    for noise in Noise::ALL {
        for test in Test::ALL {
            table.push(row(setup, noise, test));
        }
    }
    table
}

fn row(setup: &Setup, noise: Noise, test: Test) -> Vec<String> {
    let all = |effect: f64| {
        let series = 0..setup.series;
        series.map(move |series| test.calls(Windows::new(noise, setup.seed, series), effect))
    };
    let share = |count: usize| percent(count as f64 / f64::from(setup.series));
    let calls: Vec<Option<(u32, bool)>> = all(EFFECT).collect();
    let called = |gain: bool| calls.iter().flatten().filter(|call| call.1 == gain).count();
    let pairs: u32 = calls
        .iter()
        .map(|call| call.map_or(PAIRS, |call| call.0))
        .sum();
    vec![
        noise.name().to_owned(),
        test.name().to_owned(),
        share(all(0.0).flatten().count()),
        share(called(true)),
        share(called(false)),
        format!("{:.0}", f64::from(pairs) / f64::from(setup.series)),
        covered(setup, noise, test),
    ]
}

fn covered(setup: &Setup, noise: Noise, test: Test) -> String {
    let series = (setup.series / SERIES_FOR_AN_INTERVAL).max(1);
    let holds = |series: u32| {
        let mut windows = Windows::new(noise, setup.seed, series);
        let xs: Vec<f64> = (0..PAIRS).map(|_| windows.pair(EFFECT)).collect();
        let interval = match test {
            Test::SafeT => safe_test::confidence_sequence(&xs, ALPHA),
            Test::MeanSquare => return false,
            Test::Randomization => randomization::confidence_sequence(&xs, ALPHA, Prior::PAIRS),
        };
        interval.is_some_and(|interval| interval.contains(EFFECT.ln_1p()))
    };
    match test {
        Test::MeanSquare => "-".to_owned(),
        _ => {
            let count = (0..series).filter(|series| holds(*series)).count();
            percent(count as f64 / f64::from(series))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(noise: Noise, test: Test, effect: f64) -> f64 {
        let calls = (0..300).filter(|series| {
            test.calls(Windows::new(noise, 2, *series), effect)
                .is_some()
        });
        calls.count() as f64 / 300.0
    }

    #[test]
    fn the_coin_keeps_its_error_rate_under_every_noise() {
        for noise in Noise::ALL {
            let called = share(noise, Test::Randomization, 0.0);
            // Three standard errors above 5 %.
            assert!(called <= 0.088, "{}: {called}", noise.name());
        }
    }

    #[test]
    fn the_coin_finds_more_than_the_t_test_where_there_are_spikes() {
        let [safe, coin] =
            [Test::SafeT, Test::Randomization].map(|test| share(Noise::Spikes, test, EFFECT));
        assert!(coin > safe + 0.2, "{safe} and {coin}");
    }

    #[test]
    fn pairs_have_the_spread_that_was_asked_for() {
        for noise in [Noise::Normal, Noise::Autocorrelated] {
            let pairs = (0..4000).map(|series| Windows::new(noise, 3, series).pair(0.0));
            let sd = stats::summary::sd(&pairs.collect::<Vec<f64>>()).unwrap_or(0.0);
            assert!((sd - PAIR_SD).abs() < 0.005, "{}: {sd}", noise.name());
        }
    }
}
