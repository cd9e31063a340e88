//! One worker: a queue of events, done one after the other in the order in which they are due.

use super::burn::Burner;
use super::sets::{Event, Set};
use super::weight;
use crate::gate::{Gate, Timing};
use crate::recording::{Recorder, Window};
use crate::sys;
use crate::worst::At;

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "burnwait";

/// Work of one worker in one interval of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    /// Work that was done, in thousands of operations.
    pub kops: u64,
    /// CPU time of that work.
    pub cpu_ns: u64,
    /// Longest time by which an event was late.
    pub late_ns: u64,
}

/// Record of one worker.
#[derive(Debug, Clone)]
pub struct Record {
    /// Index of its set.
    pub set: usize,
    /// Weight of the thread when the window began, from its policy and nice value.
    pub weight: u32,
    /// Every interval of the window, those without work too.
    pub intervals: Vec<Interval>,
    /// From when an event was due until it was begun.
    pub lateness: Recorder,
    /// Periodic events whose deadline is in the window.
    pub deadlines: u64,
    /// Those of them that had not ended by then.
    pub missed: u64,
}

/// An event and when it is due.
#[derive(Debug, Clone, Copy)]
struct Due {
    at_ns: u64,
    event: Event,
}

/// A worker before it starts.
#[derive(Debug)]
pub struct Worker {
    queue: Vec<Due>,
    operations_per_kop: u64,
    burner: Burner,
    interval_ns: u64,
    /// Time from the start of the load until the first events are due.
    after_ns: u64,
    record: Record,
}

/// Lengths and the unit of work, the same for all workers.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub duration_ns: u64,
    pub interval_ns: u64,
    /// Operations of the buffer in one of the thousands that events are written in.
    pub operations_per_kop: u64,
}

/// Longest lateness that is told apart, in a window of this length.
pub fn longest_lateness_ns(duration_ns: u64) -> u64 {
    duration_ns.saturating_mul(2).max(1_000_000_000)
}

impl Worker {
    pub fn new(index: usize, set: &Set, shape: Shape) -> Result<Self, String> {
        let due = |event: &Event| Due {
            at_ns: 0,
            event: *event,
        };
        let count = shape.duration_ns.div_ceil(shape.interval_ns);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Worker {
            queue: set.events.iter().map(due).collect(),
            operations_per_kop: shape.operations_per_kop,
            burner: Burner::new(),
            interval_ns: shape.interval_ns,
            after_ns: 0,
            record: Record {
                set: index,
                weight: weight::USUAL,
                intervals: vec![Interval::default(); count],
                lateness: Recorder::new(shape.duration_ns, longest_lateness_ns(shape.duration_ns))?
                    .watched_as("lateness", At::End),
                deadlines: 0,
                missed: 0,
            },
        })
    }

    /// The worker whose first events are due so long after the start of the load.
    pub fn beginning_after(self, after_ns: u64) -> Self {
        Worker { after_ns, ..self }
    }

    /// From the gate to the end of the window.
    pub fn run(mut self, gate: &Gate) -> Record {
        sys::precise_timers();
        if let Some(timing) = gate.wait() {
            // The policy of the arm is in force by now.
            self.record.weight = weight::own();
            self.record.lateness.open(timing.window);
            self.work(gate, timing);
        }
        self.record
    }

    fn work(&mut self, gate: &Gate, timing: Timing) {
        let Timing { start_ns, window } = timing;
        let first_ns = start_ns.saturating_add(self.after_ns);
        self.queue.iter_mut().for_each(|due| due.at_ns = first_ns);
        while !gate.is_stopped() {
            // Among equals the first of the set, so that the order is always the same.
            let Some(next) = self.queue.iter_mut().min_by_key(|due| due.at_ns) else {
                return;
            };
            if next.at_ns >= window.end_ns {
                break;
            }
            let mut begun_ns = sys::now_ns();
            while begun_ns < next.at_ns {
                sys::sleep_until(next.at_ns);
                begun_ns = sys::now_ns();
            }
            if begun_ns >= window.end_ns {
                break;
            }
            let Due { at_ns, event } = *next;
            let before_ns = sys::thread_cpu_ns();
            self.burner
                .burn(event.kops.saturating_mul(self.operations_per_kop));
            let cpu_ns = sys::thread_cpu_ns() - before_ns;
            let ended_ns = sys::now_ns();
            let from_ns = if event.periodic { at_ns } else { ended_ns };
            next.at_ns = from_ns.saturating_add(event.wait_ns);
            if event.periodic {
                let deadline_ns = next.at_ns;
                self.see_deadline(window, deadline_ns, ended_ns > deadline_ns);
            }
            self.see_late(window, begun_ns, begun_ns - at_ns);
            if let Some(interval) = self.interval(window, ended_ns) {
                interval.kops += event.kops;
                interval.cpu_ns += cpu_ns;
            }
        }
        self.left_over(window);
    }

    /// Events that were due and never begun are as late as they are by the end of the window.
    fn left_over(&mut self, window: Window) {
        let last_ns = window.end_ns.saturating_sub(1);
        for index in 0..self.queue.len() {
            if let Some(late_ns) = last_ns.checked_sub(self.queue[index].at_ns) {
                self.see_late(window, last_ns, late_ns);
            }
            let Due { at_ns, event } = self.queue[index];
            let mut deadlines =
                (1..).map(|n| at_ns.saturating_add(event.wait_ns.saturating_mul(n)));
            // Those of a worker that starved are many, and all are missed.
            while let Some(at) = deadlines
                .next()
                .filter(|at| event.periodic && *at < window.end_ns)
            {
                self.see_deadline(window, at, true);
            }
        }
    }

    fn see_deadline(&mut self, window: Window, at_ns: u64, is_missed: bool) {
        if window.contains(at_ns) {
            self.record.deadlines += 1;
            self.record.missed += u64::from(is_missed);
        }
    }

    fn see_late(&mut self, window: Window, at_ns: u64, late_ns: u64) {
        self.record.lateness.record(at_ns, late_ns);
        if let Some(interval) = self.interval(window, at_ns) {
            interval.late_ns = interval.late_ns.max(late_ns);
        }
    }

    fn interval(&mut self, window: Window, at_ns: u64) -> Option<&mut Interval> {
        if !window.contains(at_ns) {
            return None;
        }
        let index = (at_ns - window.begin_ns) / self.interval_ns;
        self.record.intervals.get_mut(usize::try_from(index).ok()?)
    }
}

impl Record {
    /// Work of the whole window.
    pub fn kops(&self) -> u64 {
        self.intervals.iter().map(|interval| interval.kops).sum()
    }

    /// CPU time of the whole window.
    pub fn cpu_ns(&self) -> u64 {
        self.intervals.iter().map(|interval| interval.cpu_ns).sum()
    }
}
