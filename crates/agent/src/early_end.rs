//! The end of an arm within its window, where the experiment counts such events: an outcome, and not a trial
//! that is void.

use crate::arm::ingredient::Ending;
use crate::collectors::{rare, trace};
use crate::judge::judge_until_end;
use crate::stop::Stop;
use crate::trial::Trial;
use load::Parsed;
use model::event::MOST_MESSAGES;
use model::readings::SCHEDULER;
use model::{EvidencePoint, Fact, Happened, RareEvent};
use std::time::Instant;

impl Trial<'_, '_> {
    /// Makes an outcome of a stop because the arm was thrown out within its window. The trial has its events
    /// until then and no figures: those of a window that was cut short are compared with nothing. Any other
    /// stop stays.
    pub fn count_early_end(&mut self, stop: Stop) -> Result<(), Stop> {
        let Some((event, ending)) = self.find_counted_end() else {
            return Err(stop);
        };
        let times = self.times();
        let at_ns = self.moment_of_end(&ending, &times);
        let [opened_ns, closed_ns] = times.window_ns;
        // What ended before the window opened, or after it closed, was not in it.
        if at_ns <= opened_ns || (closed_ns > 0 && at_ns > closed_ns) {
            return Err(stop);
        }
        self.window_ns.1 = at_ns;
        self.evidence.points.retain(|point| point.at_ns < at_ns);
        self.evidence.merge_facts();
        judge_until_end(self.in_force.arm, &self.evidence).map_err(Stop::Void)?;
        self.stage.collectors.end_events(self.context.root);
        self.count_events(&Parsed::default());
        let mut happened = self.happened.iter_mut();
        if let Some(of_event) = happened.find(|happened| happened.name == event.name) {
            *of_event = Happened {
                at_ns: vec![at_ns],
                ended_window: true,
                messages: ending.messages.into_iter().take(MOST_MESSAGES).collect(),
                ..std::mem::take(of_event)
            };
        }
        Ok(())
    }

    /// The end of the arm and the event that it is, where there is a window and the experiment counts it.
    fn find_counted_end(&mut self) -> Option<(RareEvent, Ending)> {
        if self.window_ns.0 == 0 || self.rail.is_some() || self.context.interrupt.is_raised() {
            return None;
        }
        let events = &self.spec.observe.events;
        if !events.iter().any(|event| event.when.ends_window()) {
            return None;
        }
        let ending = self.in_force.find_ending(self.context.root)?;
        let event = events.iter().find(|event| event.when == ending.when)?;
        Some((event.clone(), ending))
    }

    /// From the start of the trial.
    fn moment_of_end(&self, ending: &Ending, times: &rare::Times) -> u64 {
        let now_ns = self.since_start(Instant::now());
        let of_kernel = ending.at_us.filter(|at_us| *at_us > 0);
        let said = of_kernel.map(|at_us| (at_us * 1_000).saturating_sub(times.began_ns));
        find_moment(&self.evidence.points, said)
            .unwrap_or(now_ns)
            .min(now_ns)
    }

    /// Times of the trial until now.
    pub fn times(&self) -> rare::Times {
        rare::Times {
            began_ns: trace::now_ns().saturating_sub(self.since_start(Instant::now())),
            window_ns: [self.window_ns.0, self.window_ns.1],
            load_ns: self.spec.workload.duration_ns,
        }
    }
}

/// The end as the kernel says it, which is when it is done with it: a reading may have found it at work before.
/// Without its word, the first reading that found another state.
fn find_moment(points: &[EvidencePoint], said: Option<u64>) -> Option<u64> {
    let first = |is_end: fn(&Fact) -> bool| {
        let mut points = points.iter();
        let point = points.find(|point| point.facts.iter().any(is_end));
        point.map(|point| point.at_ns)
    };
    let at_work = first(|fact| fact.what == SCHEDULER && fact.found.ends_with(DISABLING));
    let earliest = said.into_iter().chain(at_work).min();
    earliest.or_else(|| first(|fact| fact.find_disagreement().is_some()))
}

/// State of sched_ext while it takes a scheduler away (`scx_enable_state_str` of kernel/sched/ext.c).
const DISABLING: &str = "disabling";

#[cfg(test)]
mod tests {
    use super::*;
    use model::Phase;

    fn point(at_ns: u64, found: &str) -> EvidencePoint {
        EvidencePoint {
            phase: Phase::During,
            at_ns,
            threads: 0,
            facts: vec![Fact::new(SCHEDULER, found).with_wanted("lavd")],
        }
    }

    #[test]
    fn a_scheduler_that_is_being_taken_away_has_ended_before_the_kernel_says_so() {
        let points = [
            point(1, "lavd"),
            point(5, "lavd, disabling"),
            point(9, "none"),
        ];
        assert_eq!(find_moment(&points, Some(7)), Some(5));
        assert_eq!(find_moment(&points, Some(3)), Some(3));
        assert_eq!(find_moment(&points[2..], None), Some(9));
        // Another state is none that the kernel's word explains.
        assert_eq!(find_moment(&points[2..], Some(11)), Some(11));
        assert_eq!(find_moment(&points[..1], None), None);
    }
}
