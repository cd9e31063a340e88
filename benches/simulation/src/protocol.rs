//! The ways to compare two arms: schedlab's, and what is common practice.

use crate::machine::{Arm, Machine};
use stats::coins::find_first_decision;
use stats::randomization::{Prior, e_value, estimate_centre};
use stats::{Better, Judgement, Params, Verdict, judge, rank, t_test, verdict};

pub const ALPHA: f64 = 0.05;
const SMALLEST_EFFECT: f64 = 0.02;
pub const MIN_BLOCKS: u32 = 3;
pub const MAX_BLOCKS: u32 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Gain,
    Loss,
    Same,
    Nothing,
}

/// Verdict and cost of a protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    pub call: Call,
    /// Trials of each arm.
    pub blocks: u32,
    /// The evidence at the stop, of tests that may be looked at.
    pub judgement: Option<Judgement>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Interleaved blocks, their coins after each, stop at a verdict.
    Schedlab,
    /// The same with the interval at the stop, which takes longer to compute.
    Judged,
    /// The same blocks, judged by the safe t-test.
    SafeT,
    /// All runs of one arm, then all of the other; call a mean that is 2 % off.
    Percentage(u32),
    /// The same runs, and Welch's test.
    Welch(u32),
    /// The same runs, and the Mann-Whitney test.
    MannWhitney(u32),
    /// Interleaved blocks, a paired t-test after each `n`, stop at p < 0.05.
    Peeking(u32),
}

impl Protocol {
    pub const ALL: [Protocol; 9] = [
        Protocol::Schedlab,
        Protocol::SafeT,
        Protocol::Percentage(3),
        Protocol::Percentage(10),
        Protocol::Welch(3),
        Protocol::Welch(10),
        Protocol::MannWhitney(10),
        Protocol::Peeking(8),
        Protocol::Peeking(1),
    ];

    pub fn name(self) -> String {
        match self {
            Protocol::Schedlab | Protocol::Judged => "schedlab".to_owned(),
            Protocol::SafeT => "safe t".to_owned(),
            Protocol::Percentage(runs) => format!("±2% {runs}"),
            Protocol::Welch(runs) => format!("Welch {runs}"),
            Protocol::MannWhitney(runs) => format!("M-W {runs}"),
            Protocol::Peeking(1) => "peek each".to_owned(),
            Protocol::Peeking(every) => format!("peek {}x", MAX_BLOCKS / every),
        }
    }

    pub fn compare(self, machine: &mut Machine) -> Outcome {
        match self {
            Protocol::Schedlab => compare_at(machine, ALPHA),
            Protocol::Judged => compare_and_judge(machine),
            Protocol::SafeT => compare_by_t_test(machine),
            Protocol::Peeking(every) => until_significant(machine, every),
            Protocol::Percentage(runs) => fixed(machine, runs, differs_by_percentage),
            Protocol::Welch(runs) => fixed(machine, runs, |changed, baseline| {
                t_test::welch_test(changed, baseline, ALPHA).is_some_and(|test| test.p < ALPHA)
            }),
            Protocol::MannWhitney(runs) => fixed(machine, runs, |changed, baseline| {
                rank::mann_whitney_p(changed, baseline).is_some_and(|p| p < ALPHA)
            }),
        }
    }
}

/// schedlab's way at an error rate.
pub fn compare_at(machine: &mut Machine, alpha: f64) -> Outcome {
    compare_by(machine, &params(alpha))
}

/// The same for another smallest effect.
pub fn compare_by(machine: &mut Machine, params: &Params) -> Outcome {
    let xs: Vec<f64> = (0..MAX_BLOCKS).map(|_| machine.block()).collect();
    let Some(decided) = find_first_decision(&xs, params) else {
        return without_judgement(Call::Nothing, MAX_BLOCKS);
    };
    let blocks = decided.max(MIN_BLOCKS);
    let xs = &xs[..blocks as usize];
    let centre = estimate_centre(xs).unwrap_or(0.0);
    let is_called = e_value(xs, Prior::BLOCKS) >= 1.0 / params.alpha;
    // An interval is dear, and tells nothing more than that where the change is larger than the smallest effect.
    let call = match is_called && centre.abs() > params.smallest_effect.ln_1p() {
        true => direction(centre),
        false if is_called => call_of(&judge(xs, params)),
        false => Call::Same,
    };
    without_judgement(call, blocks)
}

/// The same with the interval at its stop.
fn compare_and_judge(machine: &mut Machine) -> Outcome {
    let xs: Vec<f64> = (0..MAX_BLOCKS).map(|_| machine.block()).collect();
    let params = params(ALPHA);
    let decided = find_first_decision(&xs, &params);
    let blocks = decided.map_or(MAX_BLOCKS, |block| block.max(MIN_BLOCKS));
    let judgement = judge(&xs[..blocks as usize], &params);
    Outcome {
        call: call_of(&judgement),
        blocks,
        judgement: Some(judgement),
    }
}

fn compare_by_t_test(machine: &mut Machine) -> Outcome {
    let xs: Vec<f64> = (0..MAX_BLOCKS).map(|_| machine.block()).collect();
    let judge = |blocks: u32| verdict::judge(&xs[..blocks as usize], &params(ALPHA));
    let decides = |blocks: &u32| call_of(&judge(*blocks)) != Call::Nothing;
    let blocks = (MIN_BLOCKS..=MAX_BLOCKS).find(decides);
    let blocks = blocks.unwrap_or(MAX_BLOCKS);
    let judgement = judge(blocks);
    Outcome {
        call: call_of(&judgement),
        blocks,
        judgement: Some(judgement),
    }
}

pub fn params(alpha: f64) -> Params {
    Params {
        alpha,
        smallest_effect: SMALLEST_EFFECT,
        better: Better::Higher,
    }
}

pub fn call_of(judgement: &Judgement) -> Call {
    match judgement.verdict {
        Verdict::Better => Call::Gain,
        Verdict::Worse => Call::Loss,
        Verdict::Same => Call::Same,
        Verdict::Unknown => Call::Nothing,
    }
}

fn until_significant(machine: &mut Machine, every: u32) -> Outcome {
    let mut xs = Vec::new();
    loop {
        xs.push(machine.block());
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the loop ends at MAX_BLOCKS"
        )]
        let blocks = xs.len() as u32;
        let look = blocks >= MIN_BLOCKS && blocks.is_multiple_of(every);
        let test = look.then(|| t_test::one_sample(&xs, ALPHA)).flatten();
        let significant = test.is_some_and(|test| test.p < ALPHA);
        if significant || blocks == MAX_BLOCKS {
            let call = if significant {
                direction(mean(&xs))
            } else {
                Call::Nothing
            };
            return without_judgement(call, blocks);
        }
    }
}

/// All runs of the baseline, then all of the changed arm, as most scripts do.
fn fixed(machine: &mut Machine, runs: u32, differs: fn(&[f64], &[f64]) -> bool) -> Outcome {
    let baseline: Vec<f64> = (0..runs).map(|_| machine.trial(Arm::Baseline)).collect();
    let changed: Vec<f64> = (0..runs).map(|_| machine.trial(Arm::Changed)).collect();
    let call = if differs(&changed, &baseline) {
        direction(mean(&changed) - mean(&baseline))
    } else {
        Call::Nothing
    };
    without_judgement(call, runs)
}

/// True if the arithmetic means differ by more than the smallest effect, as a table with a
/// percentage column shows them.
fn differs_by_percentage(changed: &[f64], baseline: &[f64]) -> bool {
    let rate = |xs: &[f64]| mean(&xs.iter().map(|x| x.exp()).collect::<Vec<f64>>());
    (rate(changed) / rate(baseline) - 1.0).abs() > SMALLEST_EFFECT
}

fn mean(xs: &[f64]) -> f64 {
    stats::summary::mean(xs).unwrap_or(0.0)
}

fn direction(difference: f64) -> Call {
    if difference > 0.0 {
        Call::Gain
    } else {
        Call::Loss
    }
}

fn without_judgement(call: Call, blocks: u32) -> Outcome {
    Outcome {
        call,
        blocks,
        judgement: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Noise;

    #[test]
    fn every_protocol_finds_ten_percent_on_a_quiet_machine() {
        for protocol in Protocol::ALL {
            let mut machine = Machine::new(Noise::Normal, 0.002, 0.10, 1, 0);
            let outcome = protocol.compare(&mut machine);
            assert_eq!(outcome.call, Call::Gain, "{}", protocol.name());
        }
    }

    #[test]
    fn a_loss_is_called_a_loss() {
        for protocol in Protocol::ALL {
            let mut machine = Machine::new(Noise::Normal, 0.002, -0.10, 1, 0);
            let outcome = protocol.compare(&mut machine);
            assert_eq!(outcome.call, Call::Loss, "{}", protocol.name());
        }
    }

    #[test]
    fn schedlab_says_same_of_equal_arms_on_a_quiet_machine() {
        let mut machine = Machine::new(Noise::Normal, 0.002, 0.0, 1, 0);
        assert_eq!(Protocol::Schedlab.compare(&mut machine).call, Call::Same);
    }

    #[test]
    fn nobody_measures_longer_than_the_most_blocks() {
        for protocol in Protocol::ALL {
            let mut machine = Machine::new(Noise::Normal, 0.5, 0.0, 2, 7);
            let outcome = protocol.compare(&mut machine);
            assert!(outcome.blocks <= MAX_BLOCKS, "{}", protocol.name());
        }
    }
}
