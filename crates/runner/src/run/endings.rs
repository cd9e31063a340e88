//! Trials whose window an event ended, such as an ejection: the machine rests before the arm is measured
//! again, and an arm that had it often enough is measured no more.

use super::Run;
use crate::cells::{GivenUp, never_worked};
use crate::{Event, RunError};
use model::{Experiment, PlannedTrial, RareEvent, Severity, Trial, Warning, format_duration_ns};
use std::time::Duration;

/// Arms that are measured no more in a cell: those that never worked, and those with enough ends.
pub(super) fn find_given_up(experiment: &Experiment, trials: &[Trial]) -> GivenUp {
    let mut given_up = never_worked(trials, experiment.stop.max_attempts);
    let places = trials.iter().map(|t| (t.place.cell, t.place.arm));
    given_up.extend(places.filter(|place| has_enough(experiment, trials, *place).is_some()));
    given_up
}

/// The event that ended so many trials of an arm in a cell as are enough.
fn has_enough<'a>(
    experiment: &'a Experiment,
    trials: &[Trial],
    place: (usize, usize),
) -> Option<&'a RareEvent> {
    let here = |t: &&Trial| (t.place.cell, t.place.arm) == place && t.is_ok();
    let count = |event: &RareEvent| {
        let of_event = trials.iter().filter(here);
        of_event.filter(|t| has_ended(t, event)).count()
    };
    let mut events = experiment.observe.events.iter();
    events.find(|event| {
        let most = event.at_most.map(|most| most as usize);
        most.is_some_and(|most| count(event) >= most)
    })
}

fn has_ended(trial: &Trial, event: &RareEvent) -> bool {
    let happened = trial.find_event(&event.name);
    happened.is_some_and(|happened| happened.ended_window)
}

impl Run<'_> {
    /// After a trial that counts: lets the machine rest where its window was ended, and leaves an arm alone with
    /// which that has happened often enough. `false` when interrupted.
    pub(super) fn follow_end(&mut self, place: &PlannedTrial) -> Result<bool, RunError> {
        let Some(last) = self.trials.last() else {
            return Ok(true);
        };
        let mut events = self.experiment.observe.events.iter();
        let Some(event) = events.find(|event| has_ended(last, event)) else {
            return Ok(true);
        };
        let here = (place.cell, place.arm);
        if let Some(enough) = has_enough(self.experiment, &self.trials, here) {
            self.given_up.insert(here);
            self.say_enough(here, enough)?;
        }
        let rest = Duration::from_nanos(event.cool_down_ns);
        let step = format!(
            "resting for {} after the event {}",
            format_duration_ns(event.cool_down_ns),
            event.name
        );
        Ok(self.rest_for(rest, &step))
    }

    /// Says in the results why an arm has no further trials.
    fn say_enough(
        &mut self,
        (cell, arm): (usize, usize),
        event: &RareEvent,
    ) -> Result<(), RunError> {
        let cell = &self.plan.cells[cell].name;
        let what = format!(
            "{} is measured no more: {} {} times",
            self.experiment.arms[arm].name,
            event.name,
            event.at_most.unwrap_or_default()
        );
        (self.sink)(Event::FoundOut { cell, what: &what });
        Ok(self.writer.add_warnings(vec![Warning {
            severity: Severity::Note,
            what: format!("{cell}: {what}."),
            remedy: "`at-most` of the event says after how many".to_owned(),
        }])?)
    }
}
