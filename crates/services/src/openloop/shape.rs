//! Shape of a load over time: a warm-up at the whole rate, then the measured window with its
//! ramp up, its steady part and its ramp down.
//!
//! A schedule at a constant rate is stretched: a start that is due when so much of the rate has
//! passed moves to the time at which the shape has let that much pass. So any spread of
//! arrivals keeps its law, at a rate that changes.

use load::pacing::IntendedStarts;
use model::{KeyDef, format_duration_ns};
use serde::{Deserialize, Serialize};

/// Ramps within the measured window. Without any, the rate is constant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Ramps {
    /// Length of the ramp up, from the begin of the window.
    pub up_ns: u64,
    /// Length of the ramp down, to the end of the window.
    pub down_ns: u64,
    /// Rate at the outer ends of the ramps, in percent of the steady one.
    pub from_percent: f64,
    /// Rate at the begin of the warm-up, in percent of the steady one. `None`: that of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_from_percent: Option<f64>,
    /// Rate at the end of the warm-up, in percent of the steady one. `None`: the steady one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_to_percent: Option<f64>,
}

impl Ramps {
    /// Keys of `[workload.phases]`, for `KeyDef` texts.
    pub const KEY: KeyDef = KeyDef::new(
        "phases",
        "table `[workload.phases]`",
        "",
        "Ramps within the window: `ramp-up` and `ramp-down` (durations), and `from`, the rate at \
         their outer ends in percent of the steady one (`0%`). Before the window, the warm-up has \
         the steady rate, or goes from `warmup-from` to `warmup-to` in percent of it: a server whose \
         code is compiled as it runs would otherwise begin with a queue that it never gets rid of. A \
         search for the highest rate has no ramps.",
    );

    /// Keys as they are written.
    pub fn read(keys: &mut load::Keys) -> Self {
        Ramps {
            up_ns: keys.duration("ramp-up").unwrap_or_default(),
            down_ns: keys.duration("ramp-down").unwrap_or_default(),
            from_percent: keys.percent("from").unwrap_or_default(),
            warmup_from_percent: keys.percent("warmup-from"),
            warmup_to_percent: keys.percent("warmup-to"),
        }
    }

    /// Reason why these ramps are impossible in a window of this length.
    pub fn fault(&self, window_ns: u64) -> Option<String> {
        if !(0.0..=100.0).contains(&self.from_percent) {
            return Some(format!(
                "the ramps begin at {} % of the rate; a percentage from 0 to 100 is possible",
                self.from_percent
            ));
        }
        let of_warmup = [self.warmup_from_percent, self.warmup_to_percent];
        let mut of_warmup = of_warmup.into_iter().flatten();
        if let Some(wrong) = of_warmup.find(|percent| !(1.0..=100.0).contains(percent)) {
            return Some(format!(
                "the warm-up has {wrong} % of the rate; a percentage from 1 to 100 is possible"
            ));
        }
        let ramps_ns = self.up_ns.saturating_add(self.down_ns);
        (ramps_ns > window_ns).then(|| {
            format!(
                "the ramps take {} and the window has only {}",
                format_duration_ns(ramps_ns),
                format_duration_ns(window_ns)
            )
        })
    }

    /// Requests of the window in comparison with one at the steady rate throughout.
    pub fn request_share(&self, window_ns: u64) -> f64 {
        let ramps_ns = self.up_ns.saturating_add(self.down_ns) as f64;
        let lost = ramps_ns * (1.0 - self.from()) / 2.0;
        1.0 - lost / (window_ns.max(1) as f64)
    }

    fn from(&self) -> f64 {
        self.from_percent / 100.0
    }

    /// Rates at the begin and the end of the warm-up, of the steady one.
    fn warmup(&self) -> (f64, f64) {
        let to = self.warmup_to_percent.unwrap_or(100.0);
        (self.warmup_from_percent.unwrap_or(to) / 100.0, to / 100.0)
    }

    fn is_flat(&self) -> bool {
        self.up_ns == 0 && self.down_ns == 0 && self.warmup() == (1.0, 1.0)
    }
}

/// Intended starts with ramps, ascending, without end.
#[derive(Debug)]
pub struct Shaped {
    starts: IntendedStarts,
    ramps: Ramps,
    warmup_ns: u64,
    duration_ns: u64,
}

impl Shaped {
    pub fn new(starts: IntendedStarts, ramps: Ramps, warmup_ns: u64, duration_ns: u64) -> Self {
        Shaped {
            starts,
            ramps,
            warmup_ns,
            duration_ns,
        }
    }

    /// The next intended start, in nanoseconds since the start of the load.
    pub fn advance(&mut self) -> u64 {
        let flat_ns = self.starts.advance();
        if self.ramps.is_flat() {
            return flat_ns;
        }
        self.stretched(flat_ns)
    }

    /// The time until which as much of the rate has passed as in `flat_ns` at a constant one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive time, which saturates where no start is due any more"
    )]
    fn stretched(&self, flat_ns: u64) -> u64 {
        let (warmup, (first, last)) = (self.warmup_ns as f64, self.ramps.warmup());
        let mut left = flat_ns as f64;
        let in_warmup = warmup * f64::midpoint(first, last);
        if left < in_warmup {
            return ramp(left, warmup, first, last) as u64;
        }
        left -= in_warmup;
        let (up, down) = (self.ramps.up_ns as f64, self.ramps.down_ns as f64);
        let (from, steady) = (self.ramps.from(), self.duration_ns as f64 - up - down);
        let mean = f64::midpoint(1.0, from);
        let mut at = warmup;
        if left < up * mean {
            return (at + ramp(left, up, from, 1.0)) as u64;
        }
        left -= up * mean;
        at += up;
        if left < steady {
            return (at + left) as u64;
        }
        left -= steady;
        at += steady;
        if left < down * mean {
            return (at + ramp(left, down, 1.0, from)) as u64;
        }
        // Beyond the window the rate is that of the end of the ramp down.
        let after = if down > 0.0 { from } else { 1.0 };
        (at + down + (left - down * mean) / after) as u64
    }
}

/// The time in a ramp of `length` by which `passed` has passed, where the rate goes from `first`
/// to `last`.
fn ramp(passed: f64, length: f64, first: f64, last: f64) -> f64 {
    // passed = first·x + (last - first)·x²/(2·length), solved for x without a difference of
    // two numbers that are nearly equal.
    let slope = (last - first) / length;
    let root = (first * first + 2.0 * slope * passed).max(0.0).sqrt();
    if first + root == 0.0 {
        return 0.0;
    }
    (2.0 * passed / (first + root)).min(length)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use load::pacing::Share;
    use model::Arrivals;

    const SECOND: u64 = 1_000_000_000;
    const RAMPS: Ramps = Ramps {
        up_ns: 4 * SECOND,
        down_ns: 2 * SECOND,
        from_percent: 20.0,
        warmup_from_percent: None,
        warmup_to_percent: None,
    };

    fn starts(ramps: Ramps) -> Vec<u64> {
        let flat = IntendedStarts::new(Arrivals::Constant, 1_000.0, 7, Share::WHOLE);
        let mut shaped = Shaped::new(flat, ramps, 2 * SECOND, 12 * SECOND);
        std::iter::repeat_with(|| shaped.advance())
            .take_while(|at| *at < 16 * SECOND)
            .collect()
    }

    fn within(starts: &[u64], from: u64, to: u64) -> usize {
        let at = |limit: u64| starts.partition_point(|start| *start < limit);
        at(to) - at(from)
    }

    #[test]
    fn the_rate_rises_stays_and_falls() {
        let starts = starts(RAMPS);
        assert!(starts.windows(2).all(|pair| pair[0] <= pair[1]));
        let in_second = |second: u64| within(&starts, second * SECOND, (second + 1) * SECOND);
        assert!(in_second(0).abs_diff(1_000) <= 1, "warm-up");
        assert!(in_second(2).abs_diff(300) <= 2, "{}", in_second(2));
        assert!(in_second(5).abs_diff(900) <= 2, "{}", in_second(5));
        assert!(in_second(8).abs_diff(1_000) <= 1);
        assert!(in_second(12).abs_diff(800) <= 2, "{}", in_second(12));
        assert!(in_second(13).abs_diff(400) <= 2, "{}", in_second(13));
        assert!(in_second(14).abs_diff(200) <= 2, "after the window");
    }

    #[test]
    fn the_window_has_the_share_of_requests_that_is_said() {
        let starts = starts(RAMPS);
        let expected = 12_000.0 * RAMPS.request_share(12 * SECOND);
        let found = within(&starts, 2 * SECOND, 14 * SECOND) as f64;
        assert!((found - expected).abs() <= 2.0, "{found}, {expected}");
        assert_eq!(Ramps::default().request_share(SECOND), 1.0);
    }

    #[test]
    fn ramps_from_nothing_begin_and_end_with_nothing() {
        let ramps = Ramps {
            from_percent: 0.0,
            ..RAMPS
        };
        let starts = starts(ramps);
        assert!(within(&starts, 2 * SECOND, 2 * SECOND + SECOND / 10) <= 2);
        assert_eq!(within(&starts, 14 * SECOND + 1, 16 * SECOND), 0);
    }

    #[test]
    fn a_warm_up_rises_to_the_rate_of_the_window() {
        let ramps = Ramps {
            warmup_from_percent: Some(10.0),
            ..Ramps::default()
        };
        let starts = starts(ramps);
        let in_second = |second: u64| within(&starts, second * SECOND, (second + 1) * SECOND);
        assert!(in_second(0).abs_diff(325) <= 2, "{}", in_second(0));
        assert!(in_second(1).abs_diff(775) <= 2, "{}", in_second(1));
        assert!((2..14).all(|second| in_second(second).abs_diff(1_000) <= 1));
        let half = Ramps {
            warmup_to_percent: Some(50.0),
            ..Ramps::default()
        };
        let starts = self::starts(half);
        let in_second = |second: u64| within(&starts, second * SECOND, (second + 1) * SECOND);
        assert!((0..2).all(|second| in_second(second).abs_diff(500) <= 1));
        assert!((2..14).all(|second| in_second(second).abs_diff(1_000) <= 1));
        let wrong = Ramps {
            warmup_from_percent: Some(0.0),
            ..ramps
        };
        assert!(wrong.fault(SECOND).unwrap().contains("1 to 100"));
    }

    #[test]
    fn without_ramps_nothing_moves() {
        let flat = IntendedStarts::new(Arrivals::Constant, 1_000.0, 7, Share::WHOLE);
        let mut flat = flat;
        let moved = starts(Ramps::default());
        assert!(moved.iter().all(|at| *at == flat.advance()));
    }

    #[test]
    fn ramps_that_do_not_fit_are_a_fault() {
        assert!(RAMPS.fault(5 * SECOND).unwrap().contains("only 5s"));
        assert_eq!(RAMPS.fault(6 * SECOND), None);
        let wrong = Ramps {
            from_percent: 120.0,
            ..RAMPS
        };
        assert!(wrong.fault(12 * SECOND).unwrap().contains("120 %"));
    }
}
