//! Was a load steady within its window? Its throughput in the last third is compared
//! with that in the first third: caches, pools and compilers that are still warming
//! up make it grow, heat and filling queues make it fall. Where the rate is given from
//! outside, it is the median latency that falls and rises.

use crate::recording::Recording;
use hdrhistogram::Histogram;
use model::{Measurement, MetricDef, Severity, Warning};
use std::ops::Range;

/// Change of throughput within the window.
pub const THROUGHPUT_DRIFT: MetricDef = MetricDef::explaining(
    "throughput_drift",
    "%",
    "Throughput in the last third of the window against the first third (windows of three \
           seconds or longer).",
);

/// Change of median latency within the window.
pub const LATENCY_DRIFT: MetricDef = MetricDef::explaining(
    "latency_drift",
    "%",
    "Median latency in the last third of the part of the window without ramps, against its first \
           third (three whole intervals at least: seconds, or tenths of a window of more than ten).",
);

/// From here on a trial carries a warning.
const MOST_PERCENT: f64 = 10.0;
const MOST_LATENCY: f64 = 1.25;
/// Differences within so many standard deviations of a Poisson count are chance, and of
/// the rank of a median.
const CHANCE: f64 = 4.0;

/// Requests in the first and in the last third.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thirds {
    first: u64,
    last: u64,
}

impl Thirds {
    /// `None` with fewer than three whole intervals, or nothing in the first third.
    fn of(counts: &[u64]) -> Option<Thirds> {
        let third = counts.len() / 3;
        let thirds = Thirds {
            first: counts[..third].iter().sum(),
            last: counts[counts.len() - third..].iter().sum(),
        };
        (thirds.first > 0).then_some(thirds)
    }

    fn drift_percent(self) -> f64 {
        100.0 * (self.last as f64 / self.first as f64 - 1.0)
    }

    fn is_chance(self) -> bool {
        let sum = (self.first + self.last) as f64;
        self.first.abs_diff(self.last) as f64 <= CHANCE * sum.sqrt()
    }
}

/// The drift of what was done in the window, and a warning if there is much of it.
pub fn judge(done: &Recording) -> (Option<Measurement>, Option<Warning>) {
    let Some(thirds) = Thirds::of(&done.whole_intervals()) else {
        return (None, None);
    };
    let drift = THROUGHPUT_DRIFT.to_measurement(thirds.drift_percent());
    (Some(drift), warning(thirds))
}

fn warning(thirds: Thirds) -> Option<Warning> {
    if thirds.is_chance() || thirds.drift_percent().abs() <= MOST_PERCENT {
        return None;
    }
    let (what, remedy) = if thirds.last > thirds.first {
        (
            "Throughput grew by more than 10 % within the window (throughput_drift): the warm-up \
             had not ended.",
            "Give the workload a longer warmup.",
        )
    } else {
        (
            "Throughput fell by more than 10 % within the window (throughput_drift): heat, a \
             queue that fills, or other work.",
            "See foreign_percent, steal_percent and cpu_mhz_change of these trials.",
        )
    };
    Some(caution(what, remedy))
}

/// The drift of the latency at a given rate, and a warning if there is much of it. The rate is constant
/// in a part of the window, in nanoseconds from its opening.
pub fn judge_latency(
    answered: &Recording,
    constant_ns: &Range<u64>,
) -> (Option<Measurement>, Option<Warning>) {
    let Some([first, last]) = answered.outer_thirds(constant_ns) else {
        return (None, None);
    };
    let (first, last) = (Median::of(&first), Median::of(&last));
    let ratio = last.ns as f64 / first.ns.max(1) as f64;
    let drift = LATENCY_DRIFT.to_measurement(100.0 * (ratio - 1.0));
    let is_chance = first.low_ns <= last.high_ns && last.low_ns <= first.high_ns;
    // As a factor, so that half and twice are equally far.
    let is_much = !(1.0 / MOST_LATENCY..=MOST_LATENCY).contains(&ratio);
    if is_chance || !is_much {
        return (Some(drift), None);
    }
    let (what, remedy) = if ratio < 1.0 {
        (
            "Latency fell by more than a fifth within the window (latency_drift): the warm-up had \
             not ended.",
            "Give the workload a longer warmup.",
        )
    } else {
        (
            "Latency rose by more than a quarter within the window (latency_drift): heat, a queue \
             that fills, or other work.",
            "See foreign_percent, steal_percent and cpu_mhz_change of these trials.",
        )
    };
    (Some(drift), Some(caution(what, remedy)))
}

fn caution(what: &str, remedy: &str) -> Warning {
    Warning {
        severity: Severity::Caution,
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// A median, and between what it is by its rank.
#[derive(Debug)]
struct Median {
    low_ns: u64,
    ns: u64,
    high_ns: u64,
}

impl Median {
    fn of(histogram: &Histogram<u32>) -> Self {
        let beside = CHANCE / 2.0 / (histogram.len() as f64).sqrt();
        let at = |quantile: f64| histogram.value_at_quantile(quantile.clamp(0.0, 1.0));
        Median {
            low_ns: at(0.5 - beside),
            ns: at(0.5),
            high_ns: at(0.5 + beside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Recorder, Window};

    const SECOND: u64 = 1_000_000_000;

    /// Recording with `per_second` answers in each second, around the latency of that second.
    fn answered(per_second: u64, latencies_ns: &[u64]) -> Recording {
        let duration = latencies_ns.len() as u64 * SECOND;
        let mut recorder = Recorder::new(duration, 60 * SECOND).unwrap();
        recorder.open(Window {
            begin_ns: 0,
            end_ns: duration,
        });
        for (second, ns) in latencies_ns.iter().enumerate() {
            for n in 0..per_second {
                let spread = ns / 2 + ns * n / per_second;
                recorder.record(second as u64 * SECOND + n, spread);
            }
        }
        Recording::merge([recorder]).unwrap()
    }

    fn latency(per_second: u64, latencies_ns: &[u64]) -> (f64, Option<String>) {
        let whole = 0..latencies_ns.len() as u64 * SECOND;
        let (drift, warning) = judge_latency(&answered(per_second, latencies_ns), &whole);
        (drift.unwrap().value, warning.map(|w| w.what))
    }

    #[test]
    fn latency_that_falls_is_an_unfinished_warm_up_and_a_rise_is_not() {
        let (drift, warning) = latency(1000, &[200_000, 100_000, 100_000]);
        assert!((drift + 50.0).abs() < 1.0, "{drift}");
        assert!(warning.unwrap().contains("warm-up"));
        let (drift, warning) = latency(1000, &[100_000, 900_000, 200_000]);
        assert!((drift - 100.0).abs() < 1.0, "{drift}");
        assert!(warning.unwrap().contains("rose"));
    }

    #[test]
    fn a_small_change_of_latency_and_a_few_answers_are_no_drift() {
        assert_eq!(latency(1000, &[100_000, 100_000, 110_000]).1, None);
        assert_eq!(latency(9, &[100_000, 100_000, 140_000]).1, None);
        let short = answered(1000, &[1000, 2000]);
        assert!(judge_latency(&short, &(0..2 * SECOND)).0.is_none());
    }

    #[test]
    fn ramps_are_no_drift() {
        let ramped = answered(1000, &[9000, 50_000, 50_000, 50_000, 50_000, 50_000, 9000]);
        let drift = |part| judge_latency(&ramped, &part).0.map(|drift| drift.value);
        let steady = drift(SECOND..6 * SECOND).unwrap();
        assert!(steady.abs() < 1.0, "{steady}");
        assert!(drift(0..5 * SECOND).unwrap() > 40.0);
        assert_eq!(drift(SECOND..4 * SECOND - 1), None, "two whole seconds");
    }

    fn warned(counts: &[u64]) -> Option<String> {
        Some(warning(Thirds::of(counts)?)?.what)
    }

    #[test]
    fn the_middle_of_the_window_does_not_count() {
        let thirds = Thirds::of(&[100, 900, 110]).unwrap();
        assert_eq!((thirds.first, thirds.last), (100, 110));
        assert!((thirds.drift_percent() - 10.0).abs() < 1e-9);
        let thirds = Thirds::of(&[1, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!((thirds.first, thirds.last), (3, 13));
    }

    #[test]
    fn growth_is_an_unfinished_warm_up_and_loss_is_not() {
        assert!(warned(&[10_000, 11_000, 12_000]).unwrap().contains("grew"));
        assert!(warned(&[12_000, 11_000, 10_000]).unwrap().contains("fell"));
        assert_eq!(warned(&[10_000, 12_000, 10_500]), None);
    }

    #[test]
    fn few_requests_differ_by_chance() {
        assert_eq!(warned(&[10, 12, 15]), None);
    }

    #[test]
    fn a_short_window_has_no_thirds() {
        assert_eq!(Thirds::of(&[5, 5]), None);
        assert_eq!(Thirds::of(&[0, 5, 5]), None);
    }
}
