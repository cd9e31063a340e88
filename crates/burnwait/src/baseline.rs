//! The baseline: what one worker of each set does when it is alone.

use super::burn;
use super::pipe::Pipe;
use super::sets::Set;
use super::tally::{self, Done, Tally};
use super::worker::{Member, Own, Shape, Worker};
use load::gate::{Gate, Timing};
use load::recording::{Recorder, Recording};
use model::{Calibration, Invalid};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Length of a run alone, at most.
const MOST_NS: u64 = 60_000_000_000;
/// Runs of all sets together, at most.
const MOST_OF_ALL_NS: u64 = 120_000_000_000;
/// Number of runs, the best of which counts: other work makes a worker slower and never faster.
const RUNS: u64 = 3;
/// Runs that are longer are not repeated.
const REPEATED_NS: u64 = 2_000_000_000;
/// Time until the first event is due, so that the start of its thread does not make it late.
const SETTLE_NS: u64 = 5_000_000;
/// A machine that is emulated, or shared, takes so many times as long at most.
const SLOWER: u64 = 4;
const NS_PER_SEC: u64 = 1_000_000_000;

/// Demand of one worker of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// Thousands of operations in a second.
    pub kops_per_sec: u64,
    /// CPU time in a second.
    pub cpu_ns_per_sec: u64,
    /// Reads of its large memory in a millisecond; 0 where it has none.
    pub reads_per_ms: u64,
    /// Mean lateness of its events; `None` where it was not measured.
    pub late_ns: Option<u64>,
}

impl Want {
    /// Keeps it among the values that hold for all trials of a cell.
    pub fn store(self, set: &str, calibration: &mut Calibration) {
        let mut keep = |name: &str, value| {
            calibration.values.insert(format!("{set}.{name}"), value);
        };
        keep("kops_per_sec", self.kops_per_sec);
        keep("cpu_ns_per_sec", self.cpu_ns_per_sec);
        if self.reads_per_ms > 0 {
            keep("reads_per_ms", self.reads_per_ms);
        }
        if let Some(late_ns) = self.late_ns {
            keep("lateness_mean_ns", late_ns);
        }
    }

    /// `None` where the cell was not calibrated.
    pub fn from_calibration(set: &str, calibration: &Calibration) -> Option<Self> {
        let value = |name: &str| calibration.values.get(&format!("{set}.{name}")).copied();
        Some(Want {
            kops_per_sec: value("kops_per_sec")?,
            cpu_ns_per_sec: value("cpu_ns_per_sec")?,
            reads_per_ms: value("reads_per_ms").unwrap_or_default(),
            late_ns: value("lateness_mean_ns"),
        })
    }

    /// The rates of what was done; how late it was is not told by it.
    fn from(done: Done, reads_per_ms: u64) -> Self {
        let per_sec = |sum: u64| {
            let took_ns = u128::from(done.took_ns.max(1));
            let rate = (u128::from(sum) * u128::from(NS_PER_SEC) + took_ns / 2) / took_ns;
            // One that does little does something.
            u64::try_from(rate).unwrap_or(u64::MAX).max(1)
        };
        Want {
            kops_per_sec: per_sec(done.kops),
            cpu_ns_per_sec: per_sec(done.cpu_ns),
            reads_per_ms,
            late_ns: None,
        }
    }

    /// Share of one CPU.
    pub fn cpus(self) -> f64 {
        self.cpu_ns_per_sec as f64 / NS_PER_SEC as f64
    }
}

/// Demand of a worker of each set, measured one after the other.
pub fn measure_wants(
    sets: &[Set],
    interval_ns: u64,
    operations_per_kop: u64,
) -> Result<Vec<Want>, String> {
    let reads = |set: &Set| {
        set.memory
            .map_or(0, |memory| burn::reads_per_ms(memory.bytes))
    };
    let alone = Alone {
        sets,
        reads_per_ms: sets.iter().map(reads).collect(),
        interval_ns,
        operations_per_kop,
    };
    (0..sets.len()).map(|set| alone.want(set)).collect()
}

/// The time that [`measure_wants`] takes, by far.
pub fn limit(sets: &[Set]) -> Duration {
    let of_set = |set| limit_ns(sets, set).saturating_mul(runs(sets, set));
    let all = (0..sets.len()).map(of_set).fold(0, u64::saturating_add);
    Duration::from_nanos(all)
}

/// Problem of sets whose cycles are so long that what a worker wants cannot be measured.
pub fn check(sets: &[Set]) -> Result<(), Invalid> {
    let in_words = model::format_duration_ns;
    for (index, set) in sets.iter().enumerate() {
        let run_ns = run_ns(sets, index);
        if run_ns > MOST_NS {
            let what = format!(
                "{}: one of its workers does the same again after {}, and is measured alone for {} \
                 before the trials; {} is the most",
                set.name,
                in_words(cycle_ns(sets, index)),
                in_words(run_ns),
                in_words(MOST_NS)
            );
            let key = format!("set.{index}.events");
            let remedy = "shorter events and waits, or shorter `on` and `off`";
            return Err(Invalid::new(key, what).with_remedy(remedy));
        }
    }
    let of_set = |set| run_ns(sets, set).saturating_mul(runs(sets, set));
    let all_ns = (0..sets.len()).map(of_set).fold(0, u64::saturating_add);
    if all_ns > MOST_OF_ALL_NS {
        let what = format!(
            "one worker of each set is measured alone before the trials, which takes {} for all these \
             sets; {} is the most",
            in_words(all_ns),
            in_words(MOST_OF_ALL_NS)
        );
        return Err(Invalid::new("set", what).with_remedy("fewer sets, or shorter waits"));
    }
    Ok(())
}

/// A set with those that hand over to it, the nearest first.
fn chain(sets: &[Set], set: usize) -> Vec<usize> {
    let front = |index: &usize| sets[*index].front_set(sets);
    std::iter::successors(Some(set), front).collect()
}

/// Time in which a worker, and those that hand over to it, are where they were, about.
pub fn cycle_ns(sets: &[Set], set: usize) -> u64 {
    let chain = chain(sets, set).into_iter();
    let cycles = chain.map(|index| tally::cycle_ns(&sets[index]));
    cycles.max().unwrap_or_default()
}

/// Length of a run: enough whole cycles, since the parts of one are not what a worker wants.
fn run_ns(sets: &[Set], set: usize) -> u64 {
    let front = chain(sets, set).last().copied().unwrap_or(set);
    let cycles = tally::least_cycles(&sets[front]);
    cycle_ns(sets, set)
        .saturating_mul(cycles)
        .max(tally::LEAST_NS)
}

/// Length of a run, by far.
fn limit_ns(sets: &[Set], set: usize) -> u64 {
    run_ns(sets, set)
        .saturating_mul(SLOWER)
        .saturating_add(SETTLE_NS)
}

/// Number of runs.
fn runs(sets: &[Set], set: usize) -> u64 {
    match run_ns(sets, set) <= REPEATED_NS {
        true => RUNS,
        false => 1,
    }
}

struct Alone<'a> {
    sets: &'a [Set],
    /// Rate of reads of each set.
    reads_per_ms: Vec<u64>,
    interval_ns: u64,
    operations_per_kop: u64,
}

impl Alone<'_> {
    fn want(&self, set: usize) -> Result<Want, String> {
        let runs = (0..runs(self.sets, set)).map(|_| self.run(set));
        let runs = runs.collect::<Result<Vec<Option<Want>>, String>>()?;
        let runs = || runs.iter().flatten().copied();
        // The run with the most work need not be the one whose events were begun the soonest.
        let late_ns = runs().filter_map(|want| want.late_ns).min();
        let best = runs().max_by_key(|want| want.kops_per_sec);
        best.map(|want| Want { late_ns, ..want }).ok_or_else(|| {
            let Set { name, .. } = &self.sets[set];
            let time = model::format_duration_ns(limit_ns(self.sets, set));
            format!("a worker of the set {name} alone ended no cycle of its events within {time}")
        })
    }

    /// A worker of the set, with those that hand over to it; `None` where no cycle ended.
    fn run(&self, set: usize) -> Result<Option<Want>, String> {
        let limit_ns = limit_ns(self.sets, set);
        let shape = Shape {
            duration_ns: limit_ns,
            interval_ns: self.interval_ns,
            operations_per_kop: self.operations_per_kop,
        };
        let order = chain(self.sets, set);
        let pipes = Pipe::lay_pipes(self.sets, &order);
        let workers = order.iter().zip(pipes).map(|(index, pipe)| {
            let own = Own {
                after_ns: SETTLE_NS,
                pipe,
                reads_per_ms: self.reads_per_ms[*index],
                ..Own::default()
            };
            let set = &self.sets[*index];
            let member = Member {
                set: *index,
                number: 0,
            };
            Ok((Worker::new(member, set, shape, own)?, Tally::new(set)))
        });
        let workers = workers.collect::<Result<Vec<(Worker, Tally)>, String>>()?;
        let gate = &Gate::default();
        gate.open(Timing::from_now(0, limit_ns));
        let done = std::thread::scope(|scope| {
            let start = |(worker, tally): (Worker, Tally)| {
                scope.spawn(move || worker.run_alone(gate, tally))
            };
            let threads: Vec<_> = workers.into_iter().map(start).collect();
            let done = threads.into_iter().map(|thread| thread.join());
            done.collect::<Result<Vec<(Recorder, Tally)>, _>>()
        });
        let done = done.map_err(|_| "a worker panicked".to_owned())?;
        let (lateness, tallies): (Vec<Recorder>, Vec<Tally>) = done.into_iter().unzip();
        let late = Recording::merge(lateness.into_iter().take(1));
        let late_ns = late
            .and_then(|late| late.mean_ns())
            .map(model::truncate_to_u64);
        let reads_per_ms = self.reads_per_ms[set];
        let want = |done| Want {
            late_ns,
            ..Want::from(done, reads_per_ms)
        };
        Ok(tally::demand(&tallies).map(want))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets::{self, Cycle, Event, When};

    const SEC: u64 = NS_PER_SEC;

    fn set(name: &str, events: Vec<Event>) -> Set {
        Set {
            name: name.to_owned(),
            events,
            ..sets::published_sets().remove(0)
        }
    }

    fn kops_per_sec(sets: &[Set], set: usize) -> u64 {
        // Ten operations for a thousand: what takes long is to wait.
        measure_wants(sets, SEC, 10).unwrap()[set].kops_per_sec
    }

    #[test]
    fn a_worker_whose_waits_do_not_fill_half_a_second_wants_what_it_does_in_a_cycle() {
        let rare = set("rare", vec![Event::with_wait(10_000, 350_000_000)]);
        // 10000 in 350 ms. Two pieces begin within half a second, which is 40000 a second.
        let found = kops_per_sec(&[rare], 0);
        assert!((23_000..29_000).contains(&found), "{found}");
    }

    #[test]
    fn the_second_of_a_pipeline_is_measured_for_the_cycles_of_its_front() {
        let front = Set {
            cycle: Some(Cycle {
                on_ns: 20_000_000,
                off_ns: 380_000_000,
            }),
            ..set("front", vec![Event::with_wait(10_000, 50_000_000)])
        };
        let back = Event {
            when: When::HandedOver,
            ..Event::with_wait(20_000, 0)
        };
        let back = Set {
            after: Some("front".to_owned()),
            ..set("back", vec![back])
        };
        let sets = [front, back];
        assert_eq!(cycle_ns(&sets, 1), 400_000_000);
        assert_eq!(run_ns(&sets, 1), 800_000_000);
        // 20000 in 400 ms, one piece for each time on. Two of them are within half a second.
        let second = kops_per_sec(&sets, 1);
        assert!((40_000..51_000).contains(&second), "{second}");
    }

    #[test]
    fn the_time_of_all_runs_follows_the_cycles_and_is_bounded() {
        let short = set("short", vec![Event::with_wait(70, 200_000)]);
        let long = set("long", vec![Event::with_wait(20, 10 * SEC)]);
        let sets = [short.clone(), long];
        // Three runs of half a second and one of two cycles.
        let expected = (3.0 * 0.5 + 20.0) * SLOWER as f64;
        assert!((limit(&sets).as_secs_f64() / expected - 1.0).abs() < 0.01);
        assert_eq!(check(&sets), Ok(()));
        let pair = vec![Event::with_wait(20, 10 * SEC), Event::with_wait(20, SEC)];
        assert_eq!(run_ns(&[set("pair", pair)], 0), 4 * (10 * SEC + 40_000));
        let all: Vec<Set> = (0..100).map(|_| short.clone()).collect();
        assert_eq!(check(&all).unwrap_err().key, "set");
    }

    #[test]
    fn a_cycle_that_cannot_be_measured_is_refused_with_its_set() {
        let short = set("short", vec![Event::with_wait(70, 200_000)]);
        let too_long = |of| {
            let wrong = check(&[short.clone(), of]).unwrap_err();
            assert_eq!(wrong.key, "set.1.events");
            assert!(wrong.what.starts_with("long: "), "{}", wrong.what);
            wrong.what
        };
        let what = too_long(set("long", vec![Event::with_wait(20, 40 * SEC)]));
        assert!(what.contains("1m20s"), "{what}");
        too_long(set("long", vec![Event::with_wait(50_000_000, 0)]));
        too_long(set("long", vec![Event::with_wait(u64::MAX, 0)]));
        let cycle = Cycle {
            on_ns: SEC,
            off_ns: 40 * SEC,
        };
        too_long(Set {
            cycle: Some(cycle),
            ..set("long", vec![Event::with_wait(70, 200_000)])
        });
    }
}
