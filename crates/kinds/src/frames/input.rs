//! Input: events at drawn times, and the thread that hands them to the render loop.

use load::gate::Gate;
use load::pacing::{IntendedStarts, Share};
use load::sys;
use model::Arrivals;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name of the thread, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "frames-input";

/// The schedule of events: at constant distances they would beat against the vblanks.
pub fn make_schedule(rate_per_sec: f64, seed: u64) -> IntendedStarts {
    IntendedStarts::new(Arrivals::Poisson, rate_per_sec, seed, Share::WHOLE)
}

/// Delivers each event when it is due, until the end of the window.
pub fn deliver(mut schedule: IntendedStarts, delivered: &Arc<AtomicU64>, gate: &Gate) {
    sys::precise_timers();
    let Some(timing) = gate.wait() else { return };
    loop {
        let due_ns = timing.start_ns.saturating_add(schedule.advance());
        if due_ns >= timing.window.end_ns {
            return;
        }
        while sys::now_ns() < due_ns {
            if gate.is_stopped() {
                return;
            }
            sys::sleep_until(due_ns);
        }
        delivered.fetch_add(1, Ordering::Release);
    }
}

/// Events as the render loop sees them. When each is due follows from the schedule, so all that the
/// threads share is the number of those that were delivered.
#[derive(Debug)]
pub struct Events {
    schedule: IntendedStarts,
    start_ns: u64,
    /// Number of events that frames have taken.
    taken: u64,
    /// Those that the frame in work has taken.
    in_frame: VecDeque<u64>,
}

impl Events {
    /// Events of a schedule, none taken.
    pub fn new(schedule: IntendedStarts) -> Self {
        Events {
            schedule,
            start_ns: 0,
            taken: 0,
            in_frame: VecDeque::with_capacity(4096),
        }
    }

    /// Says when the schedule begins.
    pub fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// A frame begins, after so many events were delivered.
    pub fn take(&mut self, delivered: u64) {
        while self.taken < delivered {
            let due_ns = self.start_ns.saturating_add(self.schedule.advance());
            self.in_frame.push_back(due_ns);
            self.taken += 1;
        }
    }

    /// The events of the frame that is shown.
    pub fn drain_shown(&mut self) -> impl Iterator<Item = u64> {
        self.in_frame.drain(..)
    }

    /// The events due until then that no frame has shown.
    pub fn drain_until(&mut self, last_ns: u64) -> impl Iterator<Item = u64> {
        let in_frame: Vec<u64> = self.in_frame.drain(..).collect();
        let rest = std::iter::repeat_with(|| self.start_ns.saturating_add(self.schedule.advance()));
        in_frame
            .into_iter()
            .chain(rest.take_while(move |due_ns| *due_ns <= last_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_what_was_delivered_before_it_began_and_the_rest_is_left() {
        let mut schedule = make_schedule(1000.0, 3);
        let due: Vec<u64> = (0..6).map(|_| 500 + schedule.advance()).collect();
        let mut events = Events::new(make_schedule(1000.0, 3));
        events.begin_at(500);
        events.take(2);
        assert_eq!(events.drain_shown().collect::<Vec<_>>(), due[..2]);
        events.take(2);
        assert_eq!(events.drain_shown().count(), 0);
        events.take(4);
        assert_eq!(events.drain_until(due[4]).collect::<Vec<_>>(), due[2..5]);
    }
}
