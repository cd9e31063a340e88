//! The account of a worker that is alone. It is taken over whole cycles, so that every event of a
//! cycle has the same weight.

use super::sets::{Cycle, Event, Set, When};

/// Length of what is counted, at least.
pub const LEAST_NS: u64 = 500_000_000;
/// Whole cycles of a worker with one event, at least.
const CYCLES: u64 = 2;
/// The same with several events: those beside the slowest are counted to one of theirs at each end.
const CYCLES_OF_SEVERAL: u64 = 4;
/// The same with drawn waits that do not make up for each other within a cycle.
const CYCLES_OF_DRAWN: u64 = 20;
/// A thousand operations take about a microsecond.
pub const NS_PER_KOP: u64 = 1_000;

/// Work of a worker in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Thousands of operations.
    pub kops: u64,
    /// CPU time of them.
    pub cpu_ns: u64,
    /// Time that passed.
    pub took_ns: u64,
}

/// Account of one worker. Its cycles are those of its slowest event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Index of the event whose cycles are counted.
    event: usize,
    /// Times that it is due in a cycle, where it has no times on and off.
    times: u64,
    cycle: Option<Cycle>,
    least_cycles: u64,
    /// Moments at which the event was first due, and begun.
    first: Option<(u64, u64)>,
    /// Times that the event was begun since the last whole cycle.
    begun: u64,
    /// Number of the times on and off that the last whole cycle ended with.
    turn: u64,
    cycles: u64,
    whole: Done,
    all: Done,
    /// Moment at which its first piece was begun.
    first_piece_ns: Option<u64>,
}

/// Work of all events of a worker, once.
fn work_ns(set: &Set) -> u64 {
    let pieces = set
        .events
        .iter()
        .map(|event| event.kops.saturating_mul(event.pieces));
    let kops = pieces.fold(0, u64::saturating_add);
    kops.saturating_mul(NS_PER_KOP)
}

/// The slowest event of a worker, with the time in which it is where it was, about.
fn slowest(set: &Set) -> (usize, u64) {
    let work_ns = work_ns(set);
    let of = |(index, event): (usize, &Event)| {
        let ns = match event.when {
            When::Every => event.wait_ns.max(work_ns),
            // Two waits are drawn together.
            When::Random => work_ns.saturating_add(event.wait_ns).saturating_mul(2),
            When::Waited | When::HandedOver => work_ns.saturating_add(event.wait_ns),
        };
        (index, ns)
    };
    let all = set.events.iter().enumerate().map(of);
    all.max_by_key(|(_, ns)| *ns).unwrap_or_default()
}

/// Time in which a worker of the set is where it was, about.
pub fn cycle_ns(set: &Set) -> u64 {
    let (_, slowest_ns) = slowest(set);
    match set.cycle {
        None => slowest_ns,
        Some(cycle) => {
            let turns = slowest_ns.div_ceil(cycle.ns().max(1)).max(1);
            turns.saturating_mul(cycle.ns())
        }
    }
}

/// Whole cycles that are counted of a worker of the set, at least.
pub fn least_cycles(set: &Set) -> u64 {
    let is_drawn = set.events.iter().any(|event| event.when == When::Random);
    let is_several = set.events.len() > 1;
    match is_drawn && (is_several || set.cycle.is_some()) {
        true => CYCLES_OF_DRAWN,
        false if is_several => CYCLES_OF_SEVERAL,
        false => CYCLES,
    }
}

impl Tally {
    /// The account of a worker of the set, before it starts.
    pub fn new(set: &Set) -> Self {
        let (event, _) = slowest(set);
        let when = set.events.get(event).map(|event| event.when);
        Tally {
            event,
            times: if when == Some(When::Random) { 2 } else { 1 },
            cycle: set.cycle,
            least_cycles: least_cycles(set),
            ..Tally::default()
        }
    }

    /// Counts a piece that has ended.
    pub fn add_piece(&mut self, kops: u64, cpu_ns: u64, begun_ns: u64, ended_ns: u64) {
        let first_ns = *self.first_piece_ns.get_or_insert(begun_ns);
        self.all = Done {
            kops: self.all.kops.saturating_add(kops),
            cpu_ns: self.all.cpu_ns.saturating_add(cpu_ns),
            took_ns: ended_ns.saturating_sub(first_ns),
        };
    }

    /// The first piece of an event is to be begun, which was due at `at_ns`: true where enough was
    /// counted before it.
    pub fn begin_event(&mut self, event: usize, at_ns: u64, begun_ns: u64) -> bool {
        if event != self.event {
            return false;
        }
        let Some((first_due_ns, first_ns)) = self.first else {
            self.first = Some((at_ns, begun_ns));
            // What other events did before it is no part of its cycles.
            self.all = Done::default();
            return false;
        };
        if self.is_within(at_ns.saturating_sub(first_due_ns)) {
            return false;
        }
        self.cycles += 1;
        // One that begins late the first time is not late by as much again, where its times are
        // counted from the start: it would seem to have taken less.
        let due_ns = at_ns.saturating_sub(first_due_ns);
        self.whole = Done {
            took_ns: begun_ns.saturating_sub(first_ns).max(due_ns),
            ..self.all
        };
        self.whole.took_ns >= LEAST_NS && self.cycles >= self.least_cycles
    }

    /// True if the event that is due so long after its first time is due in the same cycle as the last
    /// time.
    fn is_within(&mut self, due_ns: u64) -> bool {
        let Some(cycle) = self.cycle else {
            self.begun = (self.begun + 1) % self.times.max(1);
            return self.begun != 0;
        };
        let turn = due_ns / cycle.ns().max(1);
        let last = std::mem::replace(&mut self.turn, turn);
        turn == last
    }

    /// Work in whole cycles; `None` where there was none.
    fn whole(&self) -> Option<Done> {
        (self.cycles > 0).then_some(self.whole)
    }
}

/// Demand of the first of some workers, of which each is handed over to by the next. The last one has
/// cycles.
pub fn demand(tallies: &[Tally]) -> Option<Done> {
    let (front, seconds) = tallies.split_last()?;
    let whole = front.whole()?;
    let Some(own) = seconds.first() else {
        return Some(whole);
    };
    // Those that do not keep up are still at it when the last cycle of the front has ended.
    let took = seconds.iter().map(|second| second.all.took_ns);
    let took_ns = took.fold(whole.took_ns, u64::max);
    (own.all.kops > 0).then_some(Done { took_ns, ..own.all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets;

    const MS: u64 = 1_000_000;

    fn set(events: Vec<Event>) -> Set {
        Set {
            events,
            ..sets::published_sets().remove(0)
        }
    }

    fn event(kops: u64, wait_ms: u64, when: When) -> Event {
        Event {
            when,
            ..Event::with_wait(kops, wait_ms * MS)
        }
    }

    /// Part of a CPU.
    fn cpus(done: Option<Done>) -> f64 {
        let done = done.unwrap();
        done.cpu_ns as f64 / done.took_ns as f64
    }

    /// The account of a worker of one event that burns for `burn_ms` and is begun every `every_ms`.
    fn of_one(set: &Set, burn_ms: u64, every_ms: u64) -> Tally {
        let mut tally = Tally::new(set);
        let mut begun_ns = 7 * MS;
        while !tally.begin_event(0, begun_ns, begun_ns) {
            let ended_ns = begun_ns + burn_ms * MS;
            tally.add_piece(burn_ms * 1_000, burn_ms * MS, begun_ns, ended_ns);
            begun_ns += every_ms * MS;
        }
        tally
    }

    #[test]
    fn an_event_that_is_rare_or_long_counts_with_its_whole_wait() {
        let rare = set(vec![event(100_000, 900, When::Waited)]);
        assert_eq!(cpus(demand(&[of_one(&rare, 100, 1_000)])), 0.1);
        let periodic = set(vec![event(2_000, 300, When::Every)]);
        assert_eq!(cpus(demand(&[of_one(&periodic, 2, 300)])), 2.0 / 300.0);
        let slow = set(vec![event(20, 10_000, When::Waited)]);
        let ten = demand(&[of_one(&slow, 1, 10_000)]).unwrap();
        assert_eq!((ten.kops, ten.took_ns), (2_000, 20_000 * MS));
        for burn_ms in [300, 700] {
            let busy = set(vec![event(burn_ms * 1_000, 0, When::Waited)]);
            assert_eq!(cpus(demand(&[of_one(&busy, burn_ms, burn_ms)])), 1.0);
        }
    }

    #[test]
    fn a_late_first_begin_does_not_shorten_the_cycles() {
        let periodic = set(vec![event(100_000, 400, When::Every)]);
        let mut tally = Tally::new(&periodic);
        for at_ms in (0_u64..).map(|turn| turn * 400) {
            let begun_ms = at_ms + if at_ms == 0 { 50 } else { 0 };
            if tally.begin_event(0, at_ms * MS, begun_ms * MS) {
                break;
            }
            tally.add_piece(100_000, 100 * MS, begun_ms * MS, (begun_ms + 100) * MS);
        }
        assert_eq!(cpus(demand(&[tally])), 0.25);
    }

    #[test]
    fn the_events_beside_the_slowest_are_counted_in_its_cycles() {
        let both = set(vec![
            event(400_000, 0, When::Waited),
            event(400_000, 0, When::Waited),
        ]);
        let mut tally = Tally::new(&both);
        let mut now_ns = 0;
        for index in [0, 1].into_iter().cycle() {
            if tally.begin_event(index, now_ns, now_ns) {
                break;
            }
            tally.add_piece(400_000, 400 * MS, now_ns, now_ns + 400 * MS);
            now_ns += 400 * MS;
        }
        assert_eq!(cpus(demand(&[tally])), 1.0);
    }

    #[test]
    fn a_pair_of_drawn_waits_is_one_cycle() {
        let drawn = set(vec![event(100_000, 400, When::Random)]);
        let mut tally = Tally::new(&drawn);
        let mut begun_ns = 0;
        // Of each two waits the second is the rest of 800 ms.
        for wait_ms in [790_u64, 10, 30, 770].into_iter().cycle() {
            if tally.begin_event(0, begun_ns, begun_ns) {
                break;
            }
            tally.add_piece(100_000, 100 * MS, begun_ns, begun_ns + 100 * MS);
            begun_ns += (100 + wait_ms) * MS;
        }
        assert_eq!(cpus(demand(&[tally])), 0.2);
    }

    #[test]
    fn times_on_and_off_are_counted_whole() {
        let half = Set {
            cycle: Some(Cycle {
                on_ns: 400 * MS,
                off_ns: 400 * MS,
            }),
            ..set(vec![event(100_000, 100, When::Waited)])
        };
        let mut tally = Tally::new(&half);
        let due = (0_u64..).flat_map(|turn| [0, 200].map(|at| (turn * 800 + at) * MS));
        for at_ns in due {
            if tally.begin_event(0, at_ns, at_ns) {
                break;
            }
            tally.add_piece(100_000, 100 * MS, at_ns, at_ns + 100 * MS);
        }
        assert_eq!(cpus(demand(&[tally])), 0.25);
    }

    #[test]
    fn the_second_of_a_pipeline_has_the_cycles_of_its_front() {
        let front = Set {
            cycle: Some(Cycle {
                on_ns: 50 * MS,
                off_ns: 1_950 * MS,
            }),
            ..set(vec![event(10_000, 90, When::Waited)])
        };
        let second = set(vec![event(10_000, 0, When::HandedOver)]);
        // One piece every two seconds, and 10 ms of the second after it.
        let of_front = of_one(&front, 10, 2_000);
        let mut of_second = Tally::new(&second);
        for at_ms in [17, 2_017] {
            of_second.add_piece(10_000, 10 * MS, at_ms * MS, (at_ms + 10) * MS);
        }
        assert_eq!(cpus(demand(&[of_second, of_front])), 0.005);
        // One that needs longer than the front's cycle has all of a CPU.
        let mut busy = Tally::new(&second);
        for at_ms in [17, 3_017] {
            busy.add_piece(3_000_000, 3_000 * MS, at_ms * MS, (at_ms + 3_000) * MS);
        }
        assert_eq!(cpus(demand(&[busy, of_front])), 1.0);
    }

    #[test]
    fn who_ended_no_whole_cycle_has_no_demand() {
        let slow = set(vec![event(20, 10_000, When::Waited)]);
        let mut tally = Tally::new(&slow);
        assert!(!tally.begin_event(0, 0, 0));
        tally.add_piece(20, 20_000, 0, 20_000);
        assert_eq!(demand(&[tally]), None);
        let second = set(vec![event(20, 0, When::HandedOver)]);
        let front = of_one(&slow, 1, 10_000);
        assert_eq!(demand(&[Tally::new(&second), front]), None);
    }
}
