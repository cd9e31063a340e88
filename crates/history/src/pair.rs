//! The two runs whose versions an alarm is about.

use crate::alarm::Alarm;
use crate::run::Run;
use crate::store::{Contents, StoreError};

/// The beginning of a change that was seen after so many runs is known to a run, and for three times as many to so many.
const RUNS_TO_SEE: usize = 3;

impl Contents {
    /// Runs surely before and surely since a change. The beginning of a small change is where it fits best, a few runs
    /// from where it is; so both are as many runs away as it is uncertain, but in reach of no earlier alarm. What came
    /// little by little is there with the run that showed it.
    pub fn find_pair(&self, alarm: &Alarm) -> Result<[&Run; 2], StoreError> {
        let (before, first) = (self.find_run(&alarm.before)?, self.find_run(&alarm.first)?);
        let is_of_series = |run: &&Run| {
            let mut figures = run.figures.iter();
            figures.any(|figure| alarm.key.has_figure(run, figure))
        };
        let runs: Vec<&Run> = self.runs.iter().filter(is_of_series).collect();
        let find = |id: &String| runs.iter().position(|run| run.id == *id);
        let places = (find(&alarm.before), find(&alarm.first), find(&alarm.seen));
        let (Some(at), Some(from), Some(seen)) = places else {
            return Ok([before, first]);
        };
        let uncertain = seen.saturating_sub(from) / RUNS_TO_SEE;
        let since = match alarm.is_drift {
            true => seen,
            false => from + uncertain,
        };
        let earlier = self.alarms.iter().map(|known| &known.alarm);
        let earlier = earlier.filter(|a| a.series == alarm.series && a.seen_at < alarm.seen_at);
        let ends = earlier.filter_map(|a| find(if a.is_drift { &a.seen } else { &a.first }));
        let least = ends.filter(|end| *end <= at).max().unwrap_or(0);
        Ok([runs[at.saturating_sub(uncertain).max(least)], runs[since]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Settings, find_alarms};
    use crate::testing::run;

    fn pair_of(change: impl Fn(&mut Alarm)) -> [i64; 2] {
        let at = |n: i64| {
            run(
                n,
                0.002 * (n as f64 * 2.4).sin() + if n < 20 { 0.0 } else { 0.05 },
            )
        };
        let runs: Vec<Run> = (0..60).map(at).collect();
        let mut contents = Contents {
            runs,
            ..Contents::default()
        };
        let now = "2027-01-01T00:00:00Z".parse().unwrap();
        let mut alarm = find_alarms(&contents, Settings::default(), now)
            .alarms
            .remove(0);
        contents.alarms.push(crate::Tracked {
            alarm: Alarm {
                first: at(8).id,
                seen_at: at(10).created,
                ..alarm.clone()
            },
            outcome: crate::Outcome::Confirmed,
            attempts: 0,
            end: None,
        });
        change(&mut alarm);
        let night = |run: &Run| (0..60).find(|n| at(*n).id == run.id).unwrap();
        contents.find_pair(&alarm).unwrap().map(night)
    }

    #[test]
    fn a_clear_step_is_between_its_two_runs_and_one_that_took_long_to_see_within_some_more() {
        let seen = |night: i64| move |alarm: &mut Alarm| alarm.seen = run(night, 0.0).id;
        assert_eq!(pair_of(seen(22)), [19, 20]);
        assert_eq!(pair_of(seen(31)), [16, 23]);
        // It ends where an earlier change began.
        assert_eq!(pair_of(seen(59)), [8, 33]);
    }

    #[test]
    fn a_drift_is_between_the_run_before_it_and_the_one_that_showed_it() {
        let drift = |alarm: &mut Alarm| {
            alarm.is_drift = true;
            alarm.seen = run(25, 0.0).id;
        };
        assert_eq!(pair_of(drift), [18, 25]);
    }
}
