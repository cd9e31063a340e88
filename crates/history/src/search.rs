//! The search for alarms in all series of a store.

use crate::alarm::{Alarm, Tracked};
use crate::series::{Series, group_series};
use crate::store::Contents;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stats::change::{Limits, Reading, Since, find_changes};

const DAYS_OF_YEAR: f64 = 365.0;
const SECONDS_OF_DAY: f64 = 86_400.0;

/// Parameters of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Smallest change of a ratio that is of interest, such as 0.03.
    pub effect: f64,
    /// False alarms that all series together may have in a year, on average.
    pub false_alarms_per_year: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            effect: 0.02,
            false_alarms_per_year: 1.0,
        }
    }
}

/// The record of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Moment of the search.
    pub at: Timestamp,
    /// Number of runs that there were.
    pub runs: usize,
    /// Parameters by which it looked.
    #[serde(flatten)]
    pub settings: Settings,
}

/// Findings of a search.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Alarms that were not told before.
    pub alarms: Vec<Alarm>,
    /// Series that were looked at.
    pub series: usize,
    /// Series that have too few runs for any alarm.
    pub too_short: usize,
    /// Runs of a series in a year, by which false alarms are counted.
    pub runs_per_year: f64,
    /// Runs of one series to one false alarm, at least.
    pub runs_to_false_alarm: f64,
}

/// Runs below which a series cannot alarm: those before a change, and those since.
const FEWEST_RUNS: usize = 7;

/// Looks for alarms in all series. One that was told is not told again, and what is before it is not looked at.
pub fn find_alarms(contents: &Contents, settings: Settings, now: Timestamp) -> Found {
    let all = group_series(&contents.runs);
    let runs_per_year = all.iter().map(count_a_year).fold(DAYS_OF_YEAR, f64::max);
    let runs_to_false_alarm =
        all.len().max(1) as f64 * runs_per_year / settings.false_alarms_per_year;
    let limits = Limits {
        smallest: (1.0 + settings.effect).ln(),
        values_to_false_alarm: runs_to_false_alarm,
    };
    let mut alarms = Vec::new();
    for series in &all {
        let since = since_told(series, &contents.alarms);
        let readings = series.points.iter().map(|(_, figure)| Reading {
            value: figure.log_ratio,
            error: figure.error,
        });
        let readings: Vec<Reading> = readings.collect();
        let changes = find_changes(&readings, since, limits);
        alarms.extend(
            changes
                .iter()
                .map(|change| Alarm::from_change(series, change, now)),
        );
    }
    Found {
        alarms,
        series: all.len(),
        too_short: all.iter().filter(|s| s.points.len() < FEWEST_RUNS).count(),
        runs_per_year,
        runs_to_false_alarm,
    }
}

/// Runs of a series in a year, as often as they came so far; of a short one nothing is known.
fn count_a_year(series: &Series) -> f64 {
    let (Some((first, _)), Some((last, _))) = (series.points.first(), series.points.last()) else {
        return 0.0;
    };
    let seconds = last.created.as_second() - first.created.as_second();
    let days = (seconds as f64 / SECONDS_OF_DAY).max(DAYS_OF_YEAR / 12.0);
    (series.points.len() as f64 - 1.0) / days * DAYS_OF_YEAR
}

/// Part of a series after its last alarm.
fn since_told(series: &Series, alarms: &[Tracked]) -> Since {
    let of_series = alarms
        .iter()
        .filter(|known| known.alarm.series == series.id);
    let Some(last) = of_series
        .map(|known| &known.alarm)
        .max_by_key(|a| a.seen_at)
    else {
        return Since::default();
    };
    let begin = match last.is_drift {
        true => &last.seen,
        false => &last.first,
    };
    // Runs that were told and are not there any more are before all that came later.
    let after = |(run, _): &(&crate::run::Run, _)| run.created > last.seen_at;
    let told = series
        .points
        .iter()
        .position(after)
        .unwrap_or(series.points.len());
    let begin = series.points.iter().position(|(run, _)| run.id == *begin);
    Since {
        begin: begin.unwrap_or(told),
        told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;
    use crate::testing::{class, run};

    const SETTINGS: Settings = Settings {
        effect: 0.02,
        false_alarms_per_year: 1.0,
    };

    fn search(runs: Vec<Run>) -> Found {
        let contents = Contents {
            runs,
            ..Contents::default()
        };
        find_alarms(&contents, SETTINGS, "2027-01-01T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn false_alarms_are_shared_by_all_series_and_counted_as_often_as_runs_come() {
        let nights: Vec<Run> = (0..60).map(|n| run(n, 0.0)).collect();
        let one = search(nights.clone());
        assert_eq!((one.series, one.runs_to_false_alarm), (1, 365.0));
        let of_two = nights.iter().enumerate().map(|(index, run)| Run {
            class: class(if index % 2 == 0 { 2 } else { 64 }),
            ..run.clone()
        });
        let two = search(of_two.collect());
        assert_eq!((two.series, two.runs_to_false_alarm), (2, 730.0));
        let often = (0..600).map(|n| Run {
            created: run(0, 0.0).created + jiff::SignedDuration::from_mins(144 * n),
            ..run(n, 0.0)
        });
        let often = search(often.collect());
        assert!(
            (often.runs_per_year - 3650.0).abs() < 10.0,
            "{}",
            often.runs_per_year
        );
    }

    #[test]
    fn what_became_worse_depends_on_the_metric() {
        let at = |n: i64| {
            let wave = 0.002 * (n as f64 * 2.4).sin();
            run(n, wave + if n < 20 { 0.0 } else { 0.05 })
        };
        let found = search((0..30).map(at).collect());
        // hackbench_time: lower is better.
        assert_eq!(found.alarms.len(), 1);
        let alarm = &found.alarms[0];
        assert_eq!((alarm.turn.as_str(), alarm.is_drift), ("worse", false));
        assert!((1.03..1.07).contains(&alarm.change), "{alarm:?}");
        assert_eq!((&alarm.before, &alarm.first), (&at(19).id, &at(20).id));
    }
}
