//! One worker: a queue of events, done one after the other in the order in which they are due.

use super::burn::Work;
use super::company::Counter;
use super::pipe::Pipe;
use super::sets::{Cycle, Event, Set, When};
use super::tally::Tally;
use super::weight;
use load::gate::{Gate, Timing};
use load::recording::{Recorder, Window};
use load::sys;
use load::worst::At;
use model::{InPlace, Turns};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "burnwait";

/// Work of one worker in one interval of the window; where arms take turns, in a half of the
/// window of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    /// Work that was done, in thousands of operations.
    pub kops: u64,
    /// CPU time of that work.
    pub cpu_ns: u64,
    /// Longest time by which an event was late.
    pub late_ns: u64,
    /// Time in which nothing was due. It is not kept where arms take turns.
    pub idle_ns: u64,
}

/// Weight and CPUs of a worker as the kernel has them, from which its entitlement follows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Weight of the thread, from its policy and nice value.
    pub weight: u32,
    /// CPUs that the thread may use; empty in a guest, which does not know.
    pub cpus: Vec<u32>,
}

impl Standing {
    /// That of the calling thread, now.
    fn own() -> Self {
        Standing {
            weight: weight::own_weight(),
            cpus: sys::allowed_cpus(),
        }
    }
}

/// A worker's place among all, the same in every trial, in whatever order they start and end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Index of its set.
    pub set: usize,
    /// Index among the workers of its set.
    pub number: usize,
}

/// Record of one worker.
#[derive(Debug, Clone)]
pub struct Record {
    /// The worker.
    pub member: Member,
    /// Standing when the window began.
    pub standing: Standing,
    /// Every interval of the window, those without work too; where arms take turns, the two halves
    /// of each turn's window.
    pub intervals: Vec<Interval>,
    /// Standing in each turn, where arms take turns; `None` where the worker did nothing in it.
    pub in_turns: Vec<Option<Standing>>,
    /// From when an event was due until it was begun.
    pub lateness: Recorder,
    /// Periodic events whose deadline is in the window.
    pub deadlines: u64,
    /// Those of them that had not ended by then.
    pub missed: u64,
    /// Longest time in the window in which something was due and no piece of work ended. It is not kept
    /// where arms take turns.
    pub longest_wait_ns: u64,
}

/// An event and when it is due.
#[derive(Debug, Clone, Copy)]
struct Due {
    at_ns: u64,
    event: Event,
    /// Pieces of it that are left now.
    left: u64,
    /// The second of two waits that were drawn together.
    drawn_ns: Option<u64>,
}

impl Due {
    fn new(event: Event) -> Self {
        Due {
            at_ns: 0,
            event,
            left: event.pieces,
            drawn_ns: None,
        }
    }

    /// A piece has ended: when the next one is due.
    fn go_on(&mut self, ended_ns: u64, random: &mut ChaCha8Rng) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.left = self.event.pieces;
        self.at_ns = match self.event.when {
            When::Every => self.at_ns.saturating_add(self.event.wait_ns),
            When::Random => ended_ns.saturating_add(self.draw(random)),
            When::Waited | When::HandedOver => ended_ns.saturating_add(self.event.wait_ns),
        };
    }

    /// From 0 to twice the wait. The second of two draws is the rest of the first, so that a
    /// worker wants the same whatever was drawn.
    fn draw(&mut self, random: &mut ChaCha8Rng) -> u64 {
        let twice_ns = self.event.wait_ns.saturating_mul(2);
        self.drawn_ns.take().unwrap_or_else(|| {
            let first_ns = random.random_range(0..=twice_ns);
            self.drawn_ns = Some(twice_ns - first_ns);
            first_ns
        })
    }
}

/// A worker before it starts.
#[derive(Debug)]
pub struct Worker {
    queue: Vec<Due>,
    cycle: Option<Cycle>,
    work: Work,
    random: ChaCha8Rng,
    interval_ns: u64,
    /// Lengths of the turns that arms take.
    lengths: Option<InPlace>,
    /// Time from the start of the load until the first events are due.
    after_ns: u64,
    pipe: Pipe,
    /// End of the piece before.
    free_ns: u64,
    /// Account of one that is alone.
    tally: Option<Tally>,
    /// Count of one beside another load.
    counter: Option<Counter>,
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

/// Properties of one worker among those of its set.
#[derive(Debug, Default)]
pub struct Own {
    /// Time from the start of the load until its first events are due.
    pub after_ns: u64,
    /// Seed of its waits.
    pub seed: u64,
    /// Workers that it is handed over from and hands over to.
    pub pipe: Pipe,
    /// Reads of its large memory that take a millisecond.
    pub reads_per_ms: u64,
}

/// Longest lateness that is told apart, in a window of this length.
pub fn longest_lateness_ns(duration_ns: u64) -> u64 {
    duration_ns.saturating_mul(2).max(1_000_000_000)
}

impl Worker {
    pub fn new(member: Member, set: &Set, shape: Shape, own: Own) -> Result<Self, String> {
        let count = shape.duration_ns.div_ceil(shape.interval_ns);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let longest_ns = longest_lateness_ns(shape.duration_ns);
        let mut lateness = Recorder::new(shape.duration_ns, longest_ns)?;
        if set.is_judged() {
            lateness = lateness.watched_as("lateness", At::End);
        }
        Ok(Worker {
            queue: set.events.iter().copied().map(Due::new).collect(),
            cycle: set.cycle,
            work: Work::new(shape.operations_per_kop, set.memory, own.reads_per_ms),
            random: ChaCha8Rng::seed_from_u64(own.seed),
            interval_ns: shape.interval_ns,
            lengths: None,
            after_ns: own.after_ns,
            pipe: own.pipe,
            free_ns: 0,
            tally: None,
            counter: None,
            record: Record {
                member,
                standing: Standing {
                    weight: weight::USUAL,
                    cpus: Vec::new(),
                },
                intervals: vec![Interval::default(); count],
                in_turns: Vec::new(),
                lateness,
                deadlines: 0,
                missed: 0,
                longest_wait_ns: 0,
            },
        })
    }

    /// Keeps what it does by turn, where arms take turns.
    pub fn in_turns(mut self, turns: Option<&Turns>) -> Self {
        if let Some(turns) = turns {
            let count = turns.order.len();
            self.lengths = Some(turns.lengths);
            self.record.intervals = vec![Interval::default(); 2 * count];
            self.record.in_turns = vec![None; count];
            self.record.lateness = self.record.lateness.in_turns(Some(turns));
        }
        self
    }

    /// Counts its work for somebody who reads the count meanwhile.
    pub fn counted(mut self, counter: Counter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// From the gate to the end of the window.
    pub fn run(mut self, gate: &Gate) -> Record {
        self.live(gate);
        self.record
    }

    /// From the gate until enough was counted in the account, or to the end of the window: the lateness
    /// and the account.
    pub fn run_alone(mut self, gate: &Gate, tally: Tally) -> (Recorder, Tally) {
        self.tally = Some(tally);
        self.live(gate);
        (self.record.lateness, self.tally.unwrap_or(tally))
    }

    fn live(&mut self, gate: &Gate) {
        sys::precise_timers();
        if let Some(timing) = gate.wait() {
            // The policy of the arm is in force by now.
            self.record.standing = Standing::own();
            self.record.lateness.open(timing.window);
            match self.pipe.is_second() {
                false => self.work(gate, timing),
                true => self.work_when_handed(gate, timing.window),
            }
        }
    }

    fn work(&mut self, gate: &Gate, timing: Timing) {
        let Timing { start_ns, window } = timing;
        let first_ns = start_ns.saturating_add(self.after_ns);
        self.queue.iter_mut().for_each(|due| due.at_ns = first_ns);
        while !gate.is_stopped() {
            // Among equals the first of the set, so that the order is always the same.
            let earliest = self
                .queue
                .iter()
                .enumerate()
                .min_by_key(|(_, due)| due.at_ns);
            let Some((index, due)) = earliest.map(|(index, due)| (index, *due)) else {
                return;
            };
            let Due { at_ns, event, .. } = due;
            let mut begun_ns = sys::now_ns();
            self.see_idle(window, begun_ns, at_ns);
            if at_ns >= window.end_ns {
                break;
            }
            while begun_ns < at_ns {
                sys::sleep_until(at_ns);
                begun_ns = sys::now_ns();
            }
            if begun_ns >= window.end_ns {
                break;
            }
            if due.left == event.pieces && self.is_enough(index, at_ns, begun_ns) {
                return;
            }
            let ended_ns = self.piece(window, at_ns, begun_ns, event.kops);
            let due = &mut self.queue[index];
            due.go_on(ended_ns, &mut self.random);
            let next_ns = due.at_ns;
            if let Some(cycle) = self.cycle {
                due.at_ns = cycle.next_due_ns(first_ns, next_ns);
            }
            if event.when == When::Every && next_ns != at_ns {
                self.see_deadline(window, next_ns, ended_ns > next_ns);
            }
        }
        self.left_over(window);
    }

    /// True where a worker that is alone has done enough before it begins this event.
    fn is_enough(&mut self, index: usize, at_ns: u64, begun_ns: u64) -> bool {
        let tally = self.tally.as_mut();
        tally.is_some_and(|tally| tally.begin_event(index, at_ns, begun_ns))
    }

    /// All events, once for each time that the worker before has handed over.
    fn work_when_handed(&mut self, gate: &Gate, window: Window) {
        while let Some(at_ns) = self.pipe.wait() {
            self.see_idle(window, self.free_ns, at_ns);
            for index in 0..self.queue.len() {
                let event = self.queue[index].event;
                for _ in 0..event.pieces {
                    let begun_ns = sys::now_ns();
                    if begun_ns >= window.end_ns || gate.is_stopped() {
                        self.see_late(
                            window,
                            window.end_ns - 1,
                            window.end_ns.saturating_sub(at_ns),
                        );
                        self.see_wait(window, at_ns, window.end_ns);
                        return self.left_in_pipe(window);
                    }
                    self.piece(window, at_ns, begun_ns, event.kops);
                }
            }
        }
        self.see_idle(window, self.free_ns, window.end_ns);
    }

    /// One piece of work, which was due at `at_ns`; the time of its end.
    fn piece(&mut self, window: Window, at_ns: u64, begun_ns: u64, kops: u64) -> u64 {
        let before_ns = sys::thread_cpu_ns();
        self.work.work_off(kops);
        let cpu_ns = sys::thread_cpu_ns() - before_ns;
        let ended_ns = sys::now_ns();
        self.pipe.hand_over(ended_ns);
        self.see_late(window, begun_ns, begun_ns.saturating_sub(at_ns));
        self.see_wait(window, at_ns, ended_ns);
        self.free_ns = ended_ns;
        if let Some(counter) = &mut self.counter {
            counter.add(kops);
        }
        if let Some(tally) = &mut self.tally {
            tally.add_piece(kops, cpu_ns, begun_ns, ended_ns);
        }
        if let Some(lengths) = self.lengths {
            self.count_in_turn(lengths, window, begun_ns, ended_ns, (kops, cpu_ns));
        } else if let Some(interval) = self.interval(window, ended_ns) {
            interval.kops += kops;
            interval.cpu_ns += cpu_ns;
        }
        ended_ns
    }

    /// Counts a piece in the half of a turn's window in which it ended. One that began before the
    /// second half of the washout belongs to nobody: until then the arm was being changed.
    fn count_in_turn(
        &mut self,
        lengths: InPlace,
        window: Window,
        begun_ns: u64,
        ended_ns: u64,
        (kops, cpu_ns): (u64, u64),
    ) {
        let half = lengths.half_at(ended_ns.saturating_sub(window.begin_ns));
        let Some((turn, half)) = half.filter(|_| window.contains(ended_ns)) else {
            return;
        };
        let turn_begin_ns = window.begin_ns + turn * lengths.turn_ns();
        if begun_ns < turn_begin_ns + lengths.washout_ns / 2 {
            return;
        }
        let turn = usize::try_from(turn).unwrap_or(usize::MAX);
        if let Some(interval) = self.record.intervals.get_mut(2 * turn + half) {
            interval.kops += kops;
            interval.cpu_ns += cpu_ns;
        }
        if let Some(standing) = self.record.in_turns.get_mut(turn) {
            standing.get_or_insert_with(Standing::own);
        }
    }

    /// Hand-overs that were never begun are as late as they are by the end of the window.
    fn left_in_pipe(&mut self, window: Window) {
        let last_ns = window.end_ns.saturating_sub(1);
        while let Some(at_ns) = self.pipe.next() {
            self.see_late(window, last_ns, last_ns.saturating_sub(at_ns));
        }
    }

    /// Events that were due and never begun are as late as they are by the end of the window.
    fn left_over(&mut self, window: Window) {
        let last_ns = window.end_ns.saturating_sub(1);
        for index in 0..self.queue.len() {
            let Due { at_ns, event, .. } = self.queue[index];
            if let Some(late_ns) = last_ns.checked_sub(at_ns) {
                self.see_late(window, last_ns, late_ns);
                self.see_wait(window, at_ns, window.end_ns);
            }
            let mut deadlines =
                (1..).map(|n| at_ns.saturating_add(event.wait_ns.saturating_mul(n)));
            // Those of a worker that starved are many, and all are missed.
            while let Some(at) = deadlines
                .next()
                .filter(|at| event.when == When::Every && *at < window.end_ns)
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

    /// Nothing is due from one moment to the other, which may be before it.
    fn see_idle(&mut self, window: Window, from_ns: u64, to_ns: u64) {
        let (from_ns, to_ns) = (from_ns.max(window.begin_ns), to_ns.min(window.end_ns));
        if self.lengths.is_some() || from_ns >= to_ns {
            return;
        }
        let (from_ns, to_ns) = (from_ns - window.begin_ns, to_ns - window.begin_ns);
        let first = from_ns / self.interval_ns;
        let touched = (first..).take_while(|index| index * self.interval_ns < to_ns);
        let skipped = usize::try_from(first).unwrap_or(usize::MAX);
        let intervals = self.record.intervals.iter_mut().skip(skipped);
        for (interval, index) in intervals.zip(touched) {
            let begin_ns = index * self.interval_ns;
            let end_ns = begin_ns + self.interval_ns;
            interval.idle_ns += to_ns.min(end_ns) - from_ns.max(begin_ns);
        }
    }

    /// Something was due from this moment on, and no piece of work ended until the other one.
    fn see_wait(&mut self, window: Window, due_ns: u64, ended_ns: u64) {
        if self.lengths.is_some() {
            return;
        }
        let from_ns = due_ns.max(self.free_ns).max(window.begin_ns);
        let wait_ns = ended_ns.min(window.end_ns).saturating_sub(from_ns);
        let longest_ns = &mut self.record.longest_wait_ns;
        *longest_ns = wait_ns.max(*longest_ns);
    }

    fn see_late(&mut self, window: Window, at_ns: u64, late_ns: u64) {
        self.record.lateness.record(at_ns, late_ns);
        if self.lengths.is_some() {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::super::sets;
    use super::*;

    const MS: u64 = 1_000_000;

    const WINDOW: Window = Window {
        begin_ns: 1_000 * MS,
        end_ns: 1_250 * MS,
    };

    fn worker() -> Worker {
        let shape = Shape {
            duration_ns: 250 * MS,
            interval_ns: 100 * MS,
            operations_per_kop: 1,
        };
        let set = sets::published_sets().remove(0);
        Worker::new(Member::default(), &set, shape, Own::default()).unwrap()
    }

    fn idle_ms(spans: &[(u64, u64)]) -> Vec<u64> {
        let mut worker = worker();
        for (from_ms, to_ms) in spans {
            worker.see_idle(WINDOW, from_ms * MS, to_ms * MS);
        }
        let intervals = worker.record.intervals.iter();
        intervals.map(|interval| interval.idle_ns / MS).collect()
    }

    #[test]
    fn time_in_which_nothing_is_due_is_counted_in_each_interval_that_it_touches() {
        assert_eq!(idle_ms(&[(1_010, 1_020), (1_050, 1_090)]), [50, 0, 0]);
        assert_eq!(idle_ms(&[(1_090, 1_220)]), [10, 100, 20]);
        assert_eq!(idle_ms(&[(900, 9_000)]), [100, 100, 50]);
        assert_eq!(
            idle_ms(&[(900, 1_000), (1_250, 1_300), (1_060, 1_050)]),
            [0; 3]
        );
    }

    /// Longest wait after pieces that were due and ended at these moments.
    fn wait_ms(pieces: &[(u64, u64)]) -> u64 {
        let mut worker = worker();
        for (due_ms, ended_ms) in pieces {
            worker.see_wait(WINDOW, due_ms * MS, ended_ms * MS);
            worker.free_ns = ended_ms * MS;
        }
        worker.record.longest_wait_ns / MS
    }

    #[test]
    fn a_wait_is_from_when_something_is_due_or_the_piece_before_has_ended_within_the_window() {
        assert_eq!(
            wait_ms(&[(1_010, 1_015), (1_020, 1_050), (1_100, 1_110)]),
            30
        );
        assert_eq!(wait_ms(&[(1_010, 1_100), (1_020, 1_110)]), 90);
        assert_eq!(wait_ms(&[(900, 1_040), (1_200, 1_900)]), 50);
        assert_eq!(wait_ms(&[(500, 900), (1_300, 1_400)]), 0);
    }
}
