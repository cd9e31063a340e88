//! Counts over many simulated comparisons of one kind.

use crate::machine::{Machine, Noise};
use crate::protocol::{Call, Outcome, Protocol};

/// One kind of comparison: on what machine, with what true change.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub noise: Noise,
    pub pair_sd: f64,
    pub effect: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    series: u32,
    gains: u32,
    losses: u32,
    same: u32,
    covered: u32,
    blocks: u32,
    e_values: f64,
}

impl Tally {
    pub fn of(protocol: Protocol, case: Case, series: u32, seed: u64) -> Tally {
        let mut tally = Tally::default();
        for index in 0..series {
            let mut machine = Machine::new(case.noise, case.pair_sd, case.effect, seed, index);
            tally.add(&protocol.compare(&mut machine), case.effect);
        }
        tally
    }

    fn add(&mut self, outcome: &Outcome, effect: f64) {
        self.series += 1;
        self.blocks += outcome.blocks;
        match outcome.call {
            Call::Gain => self.gains += 1,
            Call::Loss => self.losses += 1,
            Call::Same => self.same += 1,
            Call::Nothing => {}
        }
        if let Some(judgement) = outcome.judgement {
            let holds = |interval: stats::Interval| interval.contains(1.0 + effect);
            self.covered += u32::from(judgement.interval.is_none_or(holds));
            self.e_values += judgement.e_value;
        }
    }

    /// Gains and losses: the false calls where the arms are equal.
    pub fn count_calls(&self) -> u32 {
        self.gains + self.losses
    }

    pub fn called(&self) -> f64 {
        self.share(self.count_calls())
    }

    pub fn gains(&self) -> f64 {
        self.share(self.gains)
    }

    pub fn losses(&self) -> f64 {
        self.share(self.losses)
    }

    pub fn same(&self) -> f64 {
        self.share(self.same)
    }

    /// Final intervals that hold the true ratio.
    pub fn covered(&self) -> f64 {
        self.share(self.covered)
    }

    pub fn mean_blocks(&self) -> f64 {
        self.share(self.blocks)
    }

    pub fn mean_e_value(&self) -> f64 {
        self.e_values / f64::from(self.series)
    }

    fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EQUAL: Case = Case {
        noise: Noise::Normal,
        pair_sd: 0.02,
        effect: 0.0,
    };

    #[test]
    fn schedlab_keeps_its_error_rate_and_peeking_does_not() {
        let safe = Tally::of(Protocol::Schedlab, EQUAL, 1000, 1);
        let peeking = Tally::of(Protocol::Peeking(1), EQUAL, 1000, 1);
        assert!(safe.called() <= 0.05, "{}", safe.called());
        assert!(peeking.called() > 0.15, "{}", peeking.called());
    }

    #[test]
    fn welch_at_a_fixed_size_calls_as_often_as_it_states() {
        let welch = Tally::of(Protocol::Welch(10), EQUAL, 2000, 1);
        assert!((0.03..0.07).contains(&welch.called()), "{}", welch.called());
    }

    #[test]
    fn the_safe_t_test_finds_three_percent_within_the_blocks_that_were_simulated_before() {
        // An independent simulation in numpy: 8.6 blocks on average.
        let case = Case {
            effect: 0.03,
            ..EQUAL
        };
        let tally = Tally::of(Protocol::SafeT, case, 1000, 1);
        assert!(tally.gains() > 0.97, "{}", tally.gains());
        assert!(
            (8.0..9.2).contains(&tally.mean_blocks()),
            "{}",
            tally.mean_blocks()
        );
    }

    #[test]
    fn coins_need_hardly_more_blocks_than_the_t_test_of_normal_noise() {
        for (effect, pair_sd) in [(0.03, 0.02), (0.03, 0.05), (0.10, 0.05)] {
            let case = Case {
                effect,
                pair_sd,
                ..EQUAL
            };
            let [coins, t] = [Protocol::Schedlab, Protocol::SafeT]
                .map(|protocol| Tally::of(protocol, case, 300, 1).mean_blocks());
            assert!(coins < 1.2 * t, "{coins} and {t} at {effect} and {pair_sd}");
        }
    }

    #[test]
    fn coins_keep_their_error_rate_under_every_noise_of_the_machine_and_the_t_test_does_not() {
        let called = |protocol, noise| {
            let case = Case { noise, ..EQUAL };
            Tally::of(protocol, case, 200, 2).called()
        };
        for noise in Noise::OF_THE_MACHINE {
            let by_coins = called(Protocol::Schedlab, noise);
            // Three standard errors above 5 %.
            assert!(by_coins <= 0.096, "{}: {by_coins}", noise.name());
        }
        let by_t_test = called(Protocol::SafeT, Noise::Neighbour);
        assert!(by_t_test > 0.05, "{by_t_test}");
    }
}
