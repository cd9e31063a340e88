//! Stretches: the runs of a series between two changes.

use crate::alarm::{Outcome, Tracked};
use crate::series::Series;
use std::ops::Range;

/// Runs of a series between two changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Indices of its runs.
    pub runs: Range<usize>,
    /// False since an arm became worse, unless that was not confirmed or was closed.
    pub is_good: bool,
}

/// The stretches of a series, the oldest first. Runs in the middle of a drift are in none.
pub fn split_series(series: &Series, alarms: &[Tracked]) -> Vec<Stretch> {
    let of_series = alarms
        .iter()
        .filter(|known| known.alarm.series == series.id);
    let mut changes: Vec<&Tracked> = of_series
        .filter(|known| known.outcome != Outcome::NotConfirmed)
        .collect();
    changes.sort_by_key(|known| known.alarm.seen_at);
    let mut stretches = Vec::new();
    let (mut start, mut is_good) = (0, true);
    for change in changes {
        let alarm = &change.alarm;
        let first = find_position(series, &alarm.first, change);
        stretches.push(Stretch {
            runs: start..first.max(start),
            is_good,
        });
        start = match alarm.is_drift {
            true => find_position(series, &alarm.seen, change),
            false => first,
        };
        is_good = !change.is_regression();
    }
    stretches.push(Stretch {
        runs: start..series.points.len(),
        is_good,
    });
    stretches.retain(|stretch| !stretch.runs.is_empty());
    stretches
}

/// Index of a run; of one that is gone the index of the first run after the change was seen.
fn find_position(series: &Series, id: &str, change: &Tracked) -> usize {
    let points = &series.points;
    let there = points.iter().position(|(run, _)| run.id == id);
    there.unwrap_or_else(|| {
        let seen_at = change.alarm.seen_at;
        points.partition_point(|(run, _)| run.created <= seen_at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::{Alarm, Turn};
    use crate::run::Run;
    use crate::series::group_series;
    use crate::testing::run;

    fn change(series: &Series, first: usize, turn: Turn, outcome: Outcome) -> Tracked {
        let at = |index: usize| series.points[index].0;
        Tracked {
            alarm: Alarm {
                id: format!("alarm at {first}"),
                series: series.id.clone(),
                key: series.key.clone(),
                title: series.title(),
                before: at(first - 1).id.clone(),
                first: at(first).id.clone(),
                seen: at(first + 1).id.clone(),
                seen_at: at(first + 1).created,
                is_drift: false,
                turn,
                change: 1.1,
                low: 1.05,
                high: 1.15,
                evidence: 1e4,
                raised: at(first + 1).created,
            },
            outcome,
            attempts: 0,
            end: None,
        }
    }

    #[test]
    fn runs_are_good_until_one_became_worse_and_from_where_it_is_better_or_closed() {
        let runs: Vec<Run> = (0..30).map(|night| run(night, 0.0)).collect();
        let all = group_series(&runs);
        let series = &all[0];
        let split = |changes: &[(usize, Turn, Outcome)]| -> Vec<(Range<usize>, bool)> {
            let alarms = changes.iter();
            let alarms: Vec<Tracked> = alarms
                .map(|(first, turn, outcome)| change(series, *first, *turn, *outcome))
                .collect();
            let stretches = split_series(series, &alarms).into_iter();
            stretches.map(|s| (s.runs, s.is_good)).collect()
        };
        use Outcome::{Closed, Confirmed, NotConfirmed, Open};
        use Turn::{Better, Worse};
        assert_eq!(split(&[]), [(0..30, true)]);
        assert_eq!(
            split(&[(10, Worse, Open)]),
            [(0..10, true), (10..30, false)]
        );
        assert_eq!(
            split(&[(10, Worse, Confirmed), (20, Better, Open)]),
            [(0..10, true), (10..20, false), (20..30, true)]
        );
        assert_eq!(split(&[(10, Worse, NotConfirmed)]), [(0..30, true)]);
        assert_eq!(
            split(&[(10, Worse, Closed)]),
            [(0..10, true), (10..30, true)]
        );
    }
}
