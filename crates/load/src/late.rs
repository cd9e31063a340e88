//! Latencies beyond a bound: when each was, for events that an experiment counts.
//!
//! A process of a generator is told in its job which bounds there are. A recorder of a log without one pays
//! a test of one field for each value.

use crate::recording::Window;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The most moments that a recorder keeps: more are no rare event.
const MOST: usize = 2_000;

/// Bound of a log beyond which latencies are events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Log of the latency: `request`, `wakeup`.
    pub log: String,
    /// Longest latency that is no event.
    pub beyond_ns: u64,
}

/// Latencies of one log that were beyond its lowest bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateLog {
    /// Log of the latency.
    pub log: String,
    /// Number of all values of the log.
    pub of: u64,
    /// Opening of the window, CLOCK_MONOTONIC.
    pub window_begin_ns: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// Moment of each from the opening of the window, and how long it took.
    pub moments: Vec<(u64, u64)>,
    /// Number of those whose moments were not kept.
    pub further: u64,
}

/// One list for the process: a generator has one job.
static BOUNDS: OnceLock<Vec<Bound>> = OnceLock::new();

/// Watches these bounds in this process. Only the first call counts.
pub(crate) fn watch_bounds(bounds: &[Bound]) {
    let _ = BOUNDS.set(bounds.to_vec());
}

/// Late values of one recorder, which allocates nothing when one is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Late {
    beyond_ns: u64,
    moments: Vec<(u64, u64)>,
    further: u64,
}

impl Late {
    /// For a log of this process; `None` where it has no bound.
    pub fn of_log(log: &str) -> Option<Self> {
        let bounds = BOUNDS.get().into_iter().flatten();
        let of_log = bounds.filter(|bound| bound.log == log);
        let lowest = of_log.map(|bound| bound.beyond_ns).min();
        lowest.map(Late::beyond)
    }

    fn beyond(beyond_ns: u64) -> Self {
        // Written once, so that no page is first touched inside the window.
        let mut moments = vec![(1, 1); MOST];
        moments.clear();
        Late {
            beyond_ns,
            moments,
            further: 0,
        }
    }

    /// Counts a value that was finished so long after the window opened.
    pub fn record_value(&mut self, at_ns: u64, took_ns: u64) {
        if took_ns <= self.beyond_ns {
            return;
        }
        match self.moments.len() < MOST {
            true => self.moments.push((at_ns, took_ns)),
            false => self.further += 1,
        }
    }

    /// Adds the values of another thread.
    pub fn merge_from(&mut self, other: Late) {
        self.moments.extend(other.moments);
        self.further += other.further;
    }

    /// The values in the order of time, among `of` values of the log.
    pub fn into_log(mut self, log: &str, of: u64, window: Window) -> LateLog {
        self.moments.sort_unstable();
        LateLog {
            log: log.to_owned(),
            of,
            window_begin_ns: window.begin_ns,
            window_ns: window.end_ns - window.begin_ns,
            moments: self.moments,
            further: self.further,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_bound_are_kept_with_their_moments_up_to_a_limit() {
        let mut late = Late::beyond(100);
        late.record_value(7, 100);
        late.record_value(9, 101);
        let mut other = Late::beyond(100);
        (0..2_005).for_each(|at| other.record_value(at, 200));
        late.merge_from(other);
        let window = Window {
            begin_ns: 100,
            end_ns: 5_000,
        };
        let log = late.into_log("request", 5_000, window);
        assert_eq!(log.window_ns, 4_900);
        assert_eq!((log.moments.len(), log.further), (2_001, 5));
        assert_eq!(log.moments[9..11], [(9, 101), (9, 200)]);
    }
}
