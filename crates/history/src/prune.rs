//! Runs that leave a store which is made smaller, with what only they had.

use crate::alarm::{Alarm, Outcome};
use crate::run::Run;
use crate::store::Contents;
use jiff::Timestamp;
use std::collections::BTreeSet;

/// Things that are to leave a store, by their hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruning {
    /// Runs that began before the moment.
    pub runs: BTreeSet<String>,
    /// Alarms that ended, none of whose runs stays.
    pub alarms: BTreeSet<String>,
    /// Old runs that stay, because an open alarm is about them.
    pub kept_for_alarms: usize,
}

/// The runs of before a moment, but for those of open alarms: the run with the version before the change, and those of its series since.
pub fn plan_pruning(contents: &Contents, before: Timestamp) -> Pruning {
    let open = list_open(contents);
    let old = contents.runs.iter().filter(|run| run.created < before);
    let (kept, gone): (Vec<&Run>, Vec<&Run>) = old.partition(|run| is_of_one(run, &open));
    let runs: BTreeSet<String> = gone.iter().map(|run| run.id.clone()).collect();
    let stays = |id: &String| !runs.contains(id) && contents.runs.iter().any(|run| run.id == *id);
    let ended = contents.alarms.iter().filter(|known| {
        let alarm = &known.alarm;
        known.outcome != Outcome::Open
            && ![&alarm.before, &alarm.first, &alarm.seen]
                .into_iter()
                .any(stays)
    });
    Pruning {
        alarms: ended.map(|known| known.alarm.id.clone()).collect(),
        kept_for_alarms: kept.len(),
        runs,
    }
}

/// Open alarms with the beginning of the run whose version is the one before the change.
fn list_open(contents: &Contents) -> Vec<(&Alarm, Option<Timestamp>)> {
    let open = contents.alarms.iter();
    let open = open.filter(|known| known.outcome == Outcome::Open);
    open.map(|known| {
        let pair = contents.find_pair(&known.alarm);
        (&known.alarm, pair.ok().map(|[before, _]| before.created))
    })
    .collect()
}

fn is_of_one(run: &Run, open: &[(&Alarm, Option<Timestamp>)]) -> bool {
    open.iter().any(|(alarm, before)| {
        let is_named = [&alarm.before, &alarm.first, &alarm.seen].contains(&&run.id);
        let is_since = before.is_some_and(|before| run.created >= before);
        let is_of_series = || {
            let mut figures = run.figures.iter();
            figures.any(|figure| alarm.key.has_figure(run, figure))
        };
        is_named || (is_since && is_of_series())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Settings, find_alarms};
    use crate::testing::run;
    use crate::{End, Tracked};

    fn night(n: i64) -> Run {
        let wave = 0.002 * (n as f64 * 2.4).sin();
        run(n, if n < 20 { wave } else { wave - 0.05 })
    }

    #[test]
    fn old_runs_go_but_for_those_of_an_open_alarm_and_its_end_lets_them_go() {
        let runs: Vec<Run> = (0..40).map(night).collect();
        let mut contents = Contents {
            runs,
            ..Contents::default()
        };
        let cutoff = night(30).created;
        assert_eq!(plan_pruning(&contents, cutoff).runs.len(), 30);
        let found = find_alarms(&contents, Settings::default(), cutoff).alarms;
        let alarm = found.into_iter().next().unwrap();
        let end = End {
            alarm: alarm.id.clone(),
            outcome: Outcome::Confirmed,
            at: cutoff,
            why: "measured".to_owned(),
            results: None,
        };
        contents.alarms.push(Tracked {
            alarm: alarm.clone(),
            outcome: Outcome::Open,
            attempts: 0,
            end: None,
        });
        let pruning = plan_pruning(&contents, cutoff);
        assert_eq!((pruning.runs.len(), pruning.kept_for_alarms), (19, 11));
        assert!(!pruning.runs.contains(&alarm.before) && pruning.alarms.is_empty());
        contents.alarms[0].outcome = end.outcome;
        contents.alarms[0].end = Some(end);
        let pruning = plan_pruning(&contents, cutoff);
        assert_eq!((pruning.runs.len(), pruning.kept_for_alarms), (30, 0));
        assert!(pruning.alarms.contains(&alarm.id));
    }
}
