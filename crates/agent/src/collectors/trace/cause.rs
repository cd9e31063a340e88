//! The cause of a latency as the events show it: how long its thread waited for a CPU, and who ran
//! there.

use collect::sched_trace::{Event, Happened};
use load::Worst;
use model::Ran;
use std::collections::BTreeMap;

/// Names that are listed.
const MOST_NAMES: usize = 3;
/// Events have whole microseconds, rounded down.
const ROUNDED_NS: u64 = 1_000;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub thread_name: String,
    /// CPU on which the thread ran at the end.
    pub cpu: Option<u32>,
    pub waited_ns: Option<u64>,
    pub ran: Vec<Ran>,
}

impl Shown {
    /// The events are in the order of their time, and begin before the latency.
    pub fn from_events(events: &[Event], worst: &Worst) -> Self {
        let mut thread = Thread::new(worst);
        events.iter().for_each(|event| thread.see(event));
        let ran = thread.cpu.map(|cpu| ran(events, cpu, worst));
        Shown {
            waited_ns: thread.waited_ns(),
            thread_name: thread.name,
            cpu: thread.cpu,
            ran: ran.unwrap_or_default(),
        }
    }
}

/// State of the thread of the latency.
struct Thread<'a> {
    worst: &'a Worst,
    begin_ns: u64,
    name: String,
    /// Where it ran last, up to the end of the latency.
    cpu: Option<u32>,
    runs: bool,
    /// Since when it could run and did not.
    since_ns: Option<u64>,
    waited_ns: u64,
    /// An event within the latency says whether it waits or runs.
    is_known: bool,
}

impl<'a> Thread<'a> {
    fn new(worst: &'a Worst) -> Self {
        Thread {
            worst,
            begin_ns: worst.begin_ns().saturating_sub(ROUNDED_NS),
            name: String::new(),
            cpu: None,
            runs: false,
            since_ns: None,
            waited_ns: 0,
            is_known: false,
        }
    }

    fn see(&mut self, event: &Event) {
        if event.at_ns > self.worst.end_ns {
            return;
        }
        let is_own = |pid: i32| pid == self.worst.thread;
        match &event.happened {
            Happened::Waking(task, _) | Happened::WakeupNew(task, _) if is_own(task.pid) => {
                self.name.clone_from(&task.comm);
                if !self.runs && self.since_ns.is_none() {
                    self.since_ns = Some(event.at_ns);
                }
                self.is_known |= event.at_ns >= self.begin_ns;
            }
            Happened::Switch { prev, state, .. } if is_own(prev.pid) => {
                self.name.clone_from(&prev.comm);
                self.runs = false;
                self.since_ns = state.starts_with('R').then_some(event.at_ns);
                self.is_known |= event.at_ns >= self.begin_ns;
            }
            Happened::Switch { next, .. } if is_own(next.pid) => {
                self.name.clone_from(&next.comm);
                self.runs = true;
                self.cpu = Some(event.cpu);
                if let Some(since_ns) = self.since_ns.take() {
                    let since_ns = since_ns.max(self.begin_ns);
                    self.waited_ns += event.at_ns.saturating_sub(since_ns);
                }
                self.is_known |= event.at_ns >= self.begin_ns;
            }
            _ => {}
        }
    }

    /// A thread that still waits at the end has waited until then.
    fn waited_ns(&self) -> Option<u64> {
        let since_ns = self.since_ns.map(|since| since.max(self.begin_ns));
        let left = since_ns.map_or(0, |since| self.worst.end_ns.saturating_sub(since));
        self.is_known.then_some(self.waited_ns + left)
    }
}

/// Threads that ran on a CPU within the latency, also the one that it is of.
fn ran(events: &[Event], cpu: u32, worst: &Worst) -> Vec<Ran> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    let mut add = |name, pid: i32, from_ns: u64, until_ns: u64| {
        let from_ns = from_ns.max(worst.begin_ns());
        let time_ns = until_ns.min(worst.end_ns).saturating_sub(from_ns);
        if time_ns > 0 {
            *times
                .entry(if pid == 0 { "idle" } else { name })
                .or_default() += time_ns;
        }
    };
    let mut since_ns = 0;
    let mut last = None;
    for event in events.iter().filter(|event| event.cpu == cpu) {
        if let Happened::Switch { prev, next, .. } = &event.happened {
            add(prev.comm.as_str(), prev.pid, since_ns, event.at_ns);
            since_ns = event.at_ns;
            last = Some(next);
        }
    }
    if let Some(next) = last {
        add(next.comm.as_str(), next.pid, since_ns, u64::MAX);
    }
    let mut ran: Vec<Ran> = times
        .into_iter()
        .map(|(name, time_ns)| Ran {
            name: name.to_owned(),
            time_ns,
        })
        .collect();
    ran.sort_by_key(|ran| std::cmp::Reverse(ran.time_ns));
    ran.truncate(MOST_NAMES);
    ran
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use collect::sched_trace::Task;

    const US: u64 = 1_000;

    fn task(name: &str, pid: i32) -> Task {
        Task {
            comm: name.to_owned(),
            pid,
            prio: 120,
        }
    }

    fn event(at_us: u64, cpu: u32, happened: Happened) -> Event {
        Event {
            at_ns: at_us * US,
            cpu,
            by: 1,
            happened,
        }
    }

    fn switch(prev: (&str, i32), state: &str, next: (&str, i32)) -> Happened {
        Happened::Switch {
            prev: task(prev.0, prev.1),
            state: state.to_owned(),
            next: task(next.0, next.1),
        }
    }

    const WORKER: (&str, i32) = ("worker", 7);

    /// The worker sleeps, is woken at 1000 us and runs at 4000 us on CPU 1, where `hog` ran.
    pub fn late_wakeup() -> (Vec<Event>, Worst) {
        let events = vec![
            event(100, 1, switch(WORKER, "S", ("hog", 8))),
            event(1_000, 0, Happened::Waking(task("worker", 7), 1)),
            event(2_500, 1, switch(("hog", 8), "R+", ("kworker", 9))),
            event(2_600, 1, switch(("kworker", 9), "I", ("hog", 8))),
            event(4_000, 1, switch(("hog", 8), "R", WORKER)),
            event(5_000, 1, switch(WORKER, "S", ("swapper/1", 0))),
        ];
        let worst = Worst {
            took_ns: 3_010 * US,
            end_ns: 4_005 * US,
            thread: 7,
            window_begin_ns: 0,
            window_end_ns: 10_000 * US,
        };
        (events, worst)
    }

    #[test]
    fn a_late_wakeup_is_the_time_from_waking_to_running() {
        let (events, worst) = late_wakeup();
        let shown = Shown::from_events(&events, &worst);
        assert_eq!(shown.waited_ns, Some(3_000 * US));
        assert_eq!((shown.cpu, shown.thread_name.as_str()), (Some(1), "worker"));
        let ran: Vec<(&str, u64)> = shown
            .ran
            .iter()
            .map(|ran| (ran.name.as_str(), ran.time_ns / US))
            .collect();
        assert_eq!(ran, [("hog", 2_905), ("kworker", 100), ("worker", 5)]);
    }

    #[test]
    fn a_late_waker_is_no_wait_of_the_thread() {
        let (mut events, worst) = late_wakeup();
        events.remove(1);
        events.insert(3, event(3_990, 0, Happened::Waking(task("worker", 7), 1)));
        assert_eq!(Shown::from_events(&events, &worst).waited_ns, Some(10 * US));
    }

    #[test]
    fn being_put_off_the_cpu_is_waiting_too() {
        let events = [
            event(900, 1, switch(("hog", 8), "S", WORKER)),
            event(2_000, 1, switch(WORKER, "R+", ("hog", 8))),
            event(3_000, 1, switch(("hog", 8), "S", WORKER)),
            event(3_500, 1, switch(WORKER, "R+", ("hog", 8))),
        ];
        let (_, worst) = late_wakeup();
        // 1000 us, and 505 until the end of the latency.
        assert_eq!(
            Shown::from_events(&events, &worst).waited_ns,
            Some(1_505 * US)
        );
    }

    #[test]
    fn a_thread_without_events_within_the_latency_is_not_judged() {
        let (events, worst) = late_wakeup();
        let shown = Shown::from_events(&events[..1], &worst);
        assert_eq!((shown.waited_ns, shown.cpu), (None, None));
        assert_eq!(Shown::from_events(&[], &worst), Shown::default());
    }
}
