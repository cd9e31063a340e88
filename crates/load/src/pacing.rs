//! Intended starts of an open loop: when each request should begin, whatever the
//! system under test does.
//!
//! A schedule depends on its seed alone. Several threads share a rate: their
//! schedules together have the same law as one schedule at the whole rate.

use model::Arrivals;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Which part of a rate a schedule stands for: the workers `index`, `index + groups`,
/// `index + 2 × groups`, … below `workers`, each with an equal part of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the share, below `groups`.
    pub index: u32,
    /// Number of shares, one for each thread of a generator.
    pub groups: u32,
    /// Number of workers in all shares.
    pub workers: u32,
}

impl Share {
    /// Share that is all of the rate.
    pub const WHOLE: Share = Share {
        index: 0,
        groups: 1,
        workers: 1,
    };

    /// Number of workers of the share.
    pub fn size(&self) -> u32 {
        self.workers / self.groups + u32::from(self.index < self.workers % self.groups)
    }
}

/// Nanoseconds since the start of the load, ascending, without end.
#[derive(Debug, Clone)]
pub struct IntendedStarts {
    arrivals: Arrivals,
    share: Share,
    /// Between two starts of the whole rate.
    gap_ns: f64,
    rng: ChaCha8Rng,
    /// Time of the first start of the whole rate, for constant gaps.
    phase_ns: f64,
    produced: u64,
    last_ns: f64,
}

impl IntendedStarts {
    /// The `share` of `rate_per_sec`, which must be finite and above 0.
    pub fn new(arrivals: Arrivals, rate_per_sec: f64, seed: u64, share: Share) -> Self {
        let gap_ns = 1e9 / rate_per_sec;
        let phase: f64 = ChaCha8Rng::seed_from_u64(seed).random();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(share.index) + 1);
        IntendedStarts {
            arrivals,
            share,
            gap_ns,
            rng,
            phase_ns: phase * gap_ns,
            produced: 0,
            last_ns: 0.0,
        }
    }

    /// The starts of the whole rate go round all workers in turn.
    fn constant(&self) -> f64 {
        let size = u64::from(self.share.size());
        let (round, turn) = (self.produced / size, self.produced % size);
        let worker = u64::from(self.share.index) + turn * u64::from(self.share.groups);
        let number = round * u64::from(self.share.workers) + worker;
        // A product, not a sum: no error adds up over a long schedule.
        self.phase_ns + number as f64 * self.gap_ns
    }

    fn poisson(&mut self) -> f64 {
        let uniform: f64 = self.rng.random();
        // 1 - uniform lies in (0, 1], so the logarithm is finite.
        let own_gap_ns = self.gap_ns * f64::from(self.share.workers) / f64::from(self.share.size());
        self.last_ns - (1.0 - uniform).ln() * own_gap_ns
    }

    /// The next intended start.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a schedule ends centuries before u64 nanoseconds do; beyond them a cast saturates"
    )]
    pub fn advance(&mut self) -> u64 {
        self.last_ns = match self.arrivals {
            Arrivals::Constant => self.constant(),
            Arrivals::Poisson => self.poisson(),
        };
        self.produced += 1;
        self.last_ns as u64
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts_until(end_ns: u64, mut starts: IntendedStarts) -> Vec<u64> {
        std::iter::repeat_with(|| starts.advance())
            .take_while(|at| *at < end_ns)
            .collect()
    }

    /// Eight workers in three groups, of three, three and two.
    fn share(index: u32) -> Share {
        Share {
            index,
            groups: 3,
            workers: 8,
        }
    }

    #[test]
    fn a_share_has_the_workers_that_are_dealt_to_it() {
        assert_eq!([0, 1, 2].map(|i| share(i).size()), [3, 3, 2]);
    }

    #[test]
    fn a_share_gets_the_part_of_the_rate_that_its_workers_are_of_all() {
        let starts = |index| {
            let own = IntendedStarts::new(Arrivals::Poisson, 8e4, 1, share(index));
            starts_until(1_000_000_000, own).len() as f64
        };
        assert!((starts(0) / 3e4 - 1.0).abs() < 0.05);
        assert!((starts(2) / 2e4 - 1.0).abs() < 0.05);
    }

    #[test]
    fn constant_shares_interleave_at_the_gap_of_the_whole_rate() {
        let mut all: Vec<u64> = (0..3)
            .flat_map(|index| {
                let share = share(index);
                let starts = IntendedStarts::new(Arrivals::Constant, 1000.0, 3, share);
                starts_until(100_000_000, starts)
            })
            .collect();
        all.sort_unstable();
        assert_eq!(all.len(), 100);
        assert!(
            all.windows(2)
                .all(|w| (w[1] - w[0]).abs_diff(1_000_000) <= 1)
        );
    }

    #[test]
    fn shares_of_a_poisson_schedule_differ() {
        let first = IntendedStarts::new(Arrivals::Poisson, 1e3, 3, share(0));
        let second = IntendedStarts::new(Arrivals::Poisson, 1e3, 3, share(1));
        assert_ne!(
            starts_until(100_000_000, first),
            starts_until(100_000_000, second)
        );
    }

    #[test]
    fn the_gaps_of_a_poisson_schedule_spread_as_much_as_their_mean() {
        let starts = starts_until(
            10_000_000_000,
            IntendedStarts::new(Arrivals::Poisson, 1e4, 5, Share::WHOLE),
        );
        let gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03);
    }

    fn arrivals() -> impl Strategy<Value = Arrivals> {
        prop_oneof![Just(Arrivals::Poisson), Just(Arrivals::Constant)]
    }

    proptest! {
        #[test]
        fn starts_ascend(kind in arrivals(), rate in 0.01..1e7f64, seed: u64, index in 0..3u32) {
            let mut starts = IntendedStarts::new(kind, rate, seed, share(index));
            let list: Vec<u64> = (0..1000).map(|_| starts.advance()).collect();
            prop_assert!(list.windows(2).all(|w| w[0] <= w[1]));
        }

        #[test]
        fn the_same_seed_gives_the_same_schedule(kind in arrivals(), rate in 1.0..1e5f64, seed: u64) {
            let mut one = IntendedStarts::new(kind, rate, seed, Share::WHOLE);
            let mut two = IntendedStarts::new(kind, rate, seed, Share::WHOLE);
            prop_assert!((0..200).all(|_| one.advance() == two.advance()));
        }

        #[test]
        fn the_number_of_starts_is_the_rate_times_the_time(
            kind in arrivals(), rate in 10.0..1e4f64, seed: u64,
        ) {
            let expected = 5000.0;
            let end_ns = (expected / rate * 1e9) as u64;
            let count = starts_until(end_ns, IntendedStarts::new(kind, rate, seed, Share::WHOLE)).len();
            // Seven standard deviations of a Poisson count.
            let allowed = 7.0 * f64::sqrt(expected);
            prop_assert!((count as f64 - expected).abs() < allowed, "{count}");
        }
    }
}
