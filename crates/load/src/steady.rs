//! Was a load steady within its window? Its throughput in the last third is compared
//! with that in the first third: caches, pools and compilers that are still warming
//! up make it grow, heat and filling queues make it fall.

use crate::recording::Recording;
use model::{Better, Measurement, MetricDef, Severity, Warning};

pub const THROUGHPUT_DRIFT: MetricDef = MetricDef {
    name: "throughput_drift",
    unit: "%",
    better: Better::Neither,
    text: "Throughput in the last third of the window against the first third (windows of three \
           seconds or longer).",
};

/// From here on a trial carries a warning.
const MOST_PERCENT: f64 = 10.0;
/// Differences within so many standard deviations of a Poisson count are chance.
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
    let drift = THROUGHPUT_DRIFT.measured(thirds.drift_percent());
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
    Some(Warning {
        severity: Severity::Caution,
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
