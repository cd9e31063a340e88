//! A machine whose truth is known: it runs trials of two arms one after the
//! other, and each trial returns the logarithm of a rate.
//!
//! Noise belongs to the machine and goes on in time, whichever arm runs, except
//! in the kinds that are named after the arm: those break what the test assumes.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Index of the arm: the baseline, and the one that has the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    Baseline,
    Changed,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    Normal,
    HeavyTails,
    Skewed,
    Bursts,
    Drift,
    Step,
    Autocorrelated,
    /// The machine is now fast and now slow, for some trials on end.
    TwoModes,
    /// It gets slower while it gets warm, and stays so.
    Ramp,
    /// A neighbour takes a part of it in every second trial.
    Neighbour,
    /// Each trial draws its luck: a layout of memory, or a boot that is made for it.
    Layouts,
    /// Noise with this correlation from one trial of an arm to its next.
    ArmAutocorrelated(f64),
    /// Draw of an arm at boot, of this many standard deviations of a trial.
    ArmLottery(f64),
}

impl Noise {
    /// Noise that the safe test is made for, and noise that interleaving is to turn into it.
    pub const OF_THE_MACHINE: [Noise; 11] = [
        Noise::Normal,
        Noise::HeavyTails,
        Noise::Skewed,
        Noise::Bursts,
        Noise::Drift,
        Noise::Step,
        Noise::Autocorrelated,
        Noise::TwoModes,
        Noise::Ramp,
        Noise::Neighbour,
        Noise::Layouts,
    ];
    /// Noise that sticks to an arm. No test on blocks of one run can tell it
    /// from a difference.
    pub const OF_THE_ARM: [Noise; 4] = [
        Noise::ArmAutocorrelated(0.2),
        Noise::ArmAutocorrelated(0.5),
        Noise::ArmLottery(0.2),
        Noise::ArmLottery(0.5),
    ];

    pub fn name(self) -> String {
        let name = match self {
            Noise::Normal => "normal",
            Noise::HeavyTails => "heavy tails (t, 3 df)",
            Noise::Skewed => "skewed (lognormal)",
            Noise::Bursts => "bursts of outliers",
            Noise::Drift => "drift 0.1 %/trial",
            Noise::Step => "a step of 5 %",
            Noise::Autocorrelated => "autocorrelated 0.7",
            Noise::TwoModes => "two modes, 10 % apart",
            Noise::Ramp => "thermal ramp of 8 %",
            Noise::Neighbour => "periodic neighbour, 10 %",
            Noise::Layouts => "layout of each trial",
            Noise::ArmAutocorrelated(correlation) => {
                return format!("autocorrelated by arm {correlation}");
            }
            Noise::ArmLottery(spread) => return format!("lottery at boot, {spread} sd"),
        };
        name.to_owned()
    }
}

/// The chance that a burst begins with a trial, and that it goes on to the next.
const BURST_BEGINS: f64 = 0.02;
const BURST_GOES_ON: f64 = 0.67;
/// Median slowdown in a burst, and the spread of its logarithm.
const BURST_DEPTH: f64 = 0.10;
const BURST_SPREAD: f64 = 0.5;
const DRIFT_PER_TRIAL: f64 = -0.001;
const STEP: f64 = -0.05;
/// The step comes at a random trial of the longest run.
const STEP_WITHIN: u32 = 80;
const MACHINE_CORRELATION: f64 = 0.7;
/// Distance of two modes, and the chance to change from one to the other between two trials.
const MODES_APART: f64 = 0.10;
const MODE_CHANGES: f64 = 0.15;
/// Loss of a warm machine, and the trials in which it gets two thirds of the way there.
const RAMP: f64 = -0.08;
const RAMP_TRIALS: f64 = 12.0;
const NEIGHBOUR: f64 = -0.10;
const LAYOUTS: [f64; 4] = [0.0, -0.02, -0.04, -0.12];

#[derive(Debug)]
pub struct Machine {
    rng: ChaCha8Rng,
    noise: Noise,
    /// Standard deviation of the logarithm of one trial.
    sd: f64,
    /// `ln(changed / baseline)`.
    effect: f64,
    trials: u32,
    step_at: u32,
    /// In a burst, or in the slower of two modes.
    burst: bool,
    /// Memory of the autocorrelated kinds: by arm, or the first alone for the machine.
    memory: [f64; 2],
}

impl Machine {
    /// `pair_sd` is the standard deviation of a pair's log-ratio under independent
    /// noise; `effect` the true change (0.03 = 3 %).
    pub fn new(noise: Noise, pair_sd: f64, effect: f64, seed: u64, series: u32) -> Machine {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(series));
        let step_at = rng.random_range(0..STEP_WITHIN);
        let memory = [normal(&mut rng), normal(&mut rng)];
        Machine {
            rng,
            noise,
            sd: pair_sd / 2f64.sqrt(),
            effect: effect.ln_1p(),
            trials: 0,
            step_at,
            burst: false,
            memory,
        }
    }

    /// Runs one trial and returns the logarithm of its rate.
    pub fn trial(&mut self, arm: Arm) -> f64 {
        let noise = self.noise_of(arm);
        self.trials += 1;
        match arm {
            Arm::Baseline => noise,
            Arm::Changed => noise + self.effect,
        }
    }

    /// Runs one trial of each arm in random order and returns the log-ratio.
    pub fn block(&mut self) -> f64 {
        if self.rng.random() {
            let baseline = self.trial(Arm::Baseline);
            self.trial(Arm::Changed) - baseline
        } else {
            self.trial(Arm::Changed) - self.trial(Arm::Baseline)
        }
    }

    fn noise_of(&mut self, arm: Arm) -> f64 {
        match self.noise {
            Noise::Normal => self.sd * normal(&mut self.rng),
            Noise::HeavyTails => self.sd * student_3(&mut self.rng),
            Noise::Skewed => -self.sd * lognormal(&mut self.rng),
            Noise::Bursts => self.sd * normal(&mut self.rng) - self.slowdown(),
            Noise::Drift => {
                self.sd * normal(&mut self.rng) + DRIFT_PER_TRIAL * f64::from(self.trials)
            }
            Noise::Step => {
                let level = if self.trials < self.step_at {
                    0.0
                } else {
                    STEP
                };
                self.sd * normal(&mut self.rng) + level
            }
            Noise::Autocorrelated => self.sd * self.remembered(0, MACHINE_CORRELATION),
            Noise::TwoModes => {
                self.burst ^= self.rng.random::<f64>() < MODE_CHANGES;
                self.sd * normal(&mut self.rng) - if self.burst { MODES_APART } else { 0.0 }
            }
            Noise::Ramp => {
                let cold = (-f64::from(self.trials) / RAMP_TRIALS).exp();
                self.sd * normal(&mut self.rng) + RAMP * (1.0 - cold)
            }
            Noise::Neighbour => {
                let is_there = (self.trials + self.step_at).is_multiple_of(2);
                self.sd * normal(&mut self.rng) + if is_there { NEIGHBOUR } else { 0.0 }
            }
            Noise::Layouts => {
                let layout = LAYOUTS[self.rng.random_range(0..LAYOUTS.len())];
                self.sd * normal(&mut self.rng) + layout
            }
            Noise::ArmAutocorrelated(correlation) => {
                self.sd * self.remembered(arm as usize, correlation)
            }
            Noise::ArmLottery(spread) => {
                let drawn = spread * self.memory[arm as usize];
                self.sd * (normal(&mut self.rng) + drawn)
            }
        }
    }

    /// The next value of a first-order autoregression with unit variance.
    fn remembered(&mut self, which: usize, correlation: f64) -> f64 {
        let fresh = (1.0 - correlation * correlation).sqrt() * normal(&mut self.rng);
        self.memory[which] = correlation * self.memory[which] + fresh;
        self.memory[which]
    }

    fn slowdown(&mut self) -> f64 {
        let chance = if self.burst {
            BURST_GOES_ON
        } else {
            BURST_BEGINS
        };
        self.burst = self.rng.random::<f64>() < chance;
        if self.burst {
            BURST_DEPTH * (BURST_SPREAD * normal(&mut self.rng)).exp()
        } else {
            0.0
        }
    }
}

/// Standard normal, by Box and Muller.
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Gamma of a shape of at least 1, by Marsaglia and Tsang (2000).
pub fn gamma(rng: &mut ChaCha8Rng, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        let u = 1.0 - rng.random::<f64>();
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// Student's t with 3 degrees of freedom, scaled to unit variance.
pub fn student_3(rng: &mut ChaCha8Rng) -> f64 {
    let z = normal(rng);
    let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
    z / squares.sqrt()
}

/// `exp(normal)`, centred and scaled to unit variance.
fn lognormal(rng: &mut ChaCha8Rng) -> f64 {
    let e = std::f64::consts::E;
    (normal(rng).exp() - e.sqrt()) / (e * (e - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::summary;

    fn ratios(noise: Noise, effect: f64) -> Vec<f64> {
        (0..4000)
            .map(|series| Machine::new(noise, 0.02, effect, 5, series).block())
            .collect()
    }

    #[test]
    fn independent_noise_has_the_spread_that_was_asked_for() {
        for noise in [Noise::Normal, Noise::Skewed] {
            let sd = summary::sd(&ratios(noise, 0.0)).unwrap_or(0.0);
            assert!((sd - 0.02).abs() < 0.002, "{}: {sd}", noise.name());
        }
    }

    #[test]
    fn the_effect_is_the_mean_ratio_under_every_noise() {
        for noise in Noise::OF_THE_MACHINE.into_iter().chain(Noise::OF_THE_ARM) {
            let mean = summary::mean(&ratios(noise, 0.10)).unwrap_or(0.0);
            let off = mean - 0.10f64.ln_1p();
            // Three standard errors of the noise that is the largest.
            assert!(off.abs() < 0.005, "{}: {off}", noise.name());
        }
    }

    #[test]
    fn a_series_can_be_repeated() {
        let run = || Machine::new(Noise::Bursts, 0.02, 0.0, 9, 3).block();
        assert_eq!(run(), run());
        assert_ne!(run(), Machine::new(Noise::Bursts, 0.02, 0.0, 9, 4).block());
    }
}
