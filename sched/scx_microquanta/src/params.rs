//! Period and runtime, and what they may be.

use anyhow::{Result, ensure};
use std::time::Duration;

/// On every CPU, micro-quanta tasks may take `runtime_ns` of every `period_ns`
/// from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    pub period_ns: u64,
    pub runtime_ns: u64,
}

/// Those of the patch that the idea comes from.
impl Default for Params {
    fn default() -> Self {
        Params {
            period_ns: 40_000,
            runtime_ns: 20_000,
        }
    }
}

impl Params {
    pub const SHORTEST_PERIOD_NS: u64 = 2_000;
    pub const SHORTEST_RUNTIME_NS: u64 = 1_000;
    /// The others must get this much of a period, or they would be switched to
    /// and away from without coming to run.
    pub const SHORTEST_REST_NS: u64 = 1_000;
    /// And this share, or the kernel's watchdog, whose worker is one of them, would
    /// take them for stalled.
    pub const SMALLEST_REST_PERCENT: u64 = 1;
    /// Far below the watchdog's five seconds, for which a task may wait.
    pub const LONGEST_PERIOD_NS: u64 = 1_000_000_000;

    /// These parameters with those changed that are given.
    pub fn with(self, period: Option<Duration>, runtime: Option<Duration>) -> Result<Self> {
        let ns = |given: Option<Duration>, kept: u64| {
            given.map_or(kept, |d| d.as_nanos().try_into().unwrap_or(u64::MAX))
        };
        let changed = Params {
            period_ns: ns(period, self.period_ns),
            runtime_ns: ns(runtime, self.runtime_ns),
        };
        changed.check()?;
        Ok(changed)
    }

    fn check(&self) -> Result<()> {
        let Params {
            period_ns,
            runtime_ns,
        } = *self;
        ensure!(
            (Self::SHORTEST_PERIOD_NS..=Self::LONGEST_PERIOD_NS).contains(&period_ns),
            "a period of {period_ns} ns is out of range; it must be 2us to 1s"
        );
        ensure!(
            runtime_ns >= Self::SHORTEST_RUNTIME_NS,
            "a runtime of {runtime_ns} ns is too short; it must be at least 1us"
        );
        let rest_ns = Self::SHORTEST_REST_NS.max(period_ns / 100 * Self::SMALLEST_REST_PERCENT);
        ensure!(
            runtime_ns.saturating_add(rest_ns) <= period_ns,
            "a runtime of {runtime_ns} ns leaves the other tasks less than {rest_ns} ns of a \
             period of {period_ns} ns; choose a shorter runtime or a longer period"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(period_ns: u64, runtime_ns: u64) -> Result<Params> {
        let ns = |ns| Some(Duration::from_nanos(ns));
        Params::default().with(ns(period_ns), ns(runtime_ns))
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        assert!(with(2_000, 1_000).is_ok());
        assert!(with(10_000, 9_000).is_ok());
        assert!(with(1_000_000_000, 990_000_000).is_ok());
    }

    #[test]
    fn what_is_beyond_the_limits_is_refused() {
        for (period, runtime) in [
            (1_999, 1_000),
            (2_000, 999),
            (40_000, 40_000),
            (40_000, 50_000),
            (40_000, 39_001),
            (1_000_000_001, 1_000),
            (1_000_000_000, 990_000_001),
        ] {
            assert!(with(period, runtime).is_err(), "{runtime} of {period}");
        }
    }

    #[test]
    fn what_is_not_given_stays() {
        let longer = Params::default().with(Some(Duration::from_micros(50)), None);
        let expected = Params {
            period_ns: 50_000,
            runtime_ns: 20_000,
        };
        assert_eq!(longer.expect("20us of 50us is allowed"), expected);
    }

    #[test]
    fn one_changed_value_is_checked_against_the_other() {
        let shorter = Params::default().with(Some(Duration::from_micros(20)), None);
        assert!(shorter.is_err());
    }
}
