//! The death of a guest within a window, where the experiment counts it: an outcome, as an ejection is, and not a
//! trial that is void.

use model::event::MOST_MESSAGES;
use model::{Happened, Opened, RareEvent, TrialResult, TrialState, When};
use std::time::Instant;

/// A window that was open when something was last heard of it.
pub(crate) struct OpenWindow {
    opened: Opened,
    since: Instant,
    /// The agent has not answered for too long. What hangs under it is not known.
    pub is_silent: bool,
}

impl OpenWindow {
    pub fn new(opened: Opened) -> Self {
        OpenWindow {
            opened,
            since: Instant::now(),
            is_silent: false,
        }
    }

    /// Makes an outcome of a trial that is void because its guest has died just now: the events that end a window,
    /// and the time until then. A load that is told its window, `longest_ns`, would have ended it by then; a guest
    /// that hangs is noticed later. All else that is counted was in the guest.
    pub fn into_outcome(
        self,
        void: TrialResult,
        events: &[RareEvent],
        longest_ns: u64,
    ) -> TrialResult {
        let took_ns = model::whole_nanos(self.since.elapsed()).max(1);
        let exposure_ns = match longest_ns {
            0 => took_ns,
            longest_ns => took_ns.min(longest_ns),
        };
        let end_ns = self.opened.at_ns.saturating_add(exposure_ns);
        let words = void.state.why().unwrap_or_default().lines();
        let messages: Vec<String> = words.take(MOST_MESSAGES).map(str::to_owned).collect();
        let happened = |event: &RareEvent| {
            let is_death = event.when == When::GuestDeath;
            Happened {
                name: event.name.clone(),
                exposure_ns,
                at_ns: is_death.then_some(end_ns).into_iter().collect(),
                ended_window: is_death,
                messages: match is_death {
                    true => messages.clone(),
                    false => Vec::new(),
                },
                ..Happened::default()
            }
        };
        let events = events.iter().filter(|event| event.when.ends_window());
        TrialResult {
            state: TrialState::Ok,
            window_start_ns: self.opened.at_ns,
            window_end_ns: end_ns,
            evidence: self.opened.evidence,
            events: events.map(happened).collect(),
            ..void
        }
    }
}
