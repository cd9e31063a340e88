//! The baseline: what one worker of each set does when it is alone.

use super::burn;
use super::pipe::Pipe;
use super::sets::Set;
use super::worker::{Own, Record, Shape, Worker};
use crate::gate::{Gate, Timing};
use crate::recording::Recording;
use model::Calibration;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Length of one run alone, at least.
const DURATION_NS: u64 = 500_000_000;
/// Number of runs, the best of which counts: other work makes a worker slower and never faster.
const RUNS: usize = 3;
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
    pub fn of(set: &str, calibration: &Calibration) -> Option<Self> {
        let value = |name: &str| calibration.values.get(&format!("{set}.{name}")).copied();
        Some(Want {
            kops_per_sec: value("kops_per_sec")?,
            cpu_ns_per_sec: value("cpu_ns_per_sec")?,
            reads_per_ms: value("reads_per_ms").unwrap_or_default(),
            late_ns: value("lateness_mean_ns"),
        })
    }

    /// Share of one CPU.
    pub fn cpus(self) -> f64 {
        self.cpu_ns_per_sec as f64 / NS_PER_SEC as f64
    }
}

/// Demand of a worker of each set, measured one after the other.
pub fn wants(sets: &[Set], interval_ns: u64, operations_per_kop: u64) -> Result<Vec<Want>, String> {
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

/// The time that [`wants`] takes, by far.
pub fn limit(sets: &[Set]) -> Duration {
    let all = sets
        .iter()
        .map(|set| Duration::from_nanos(duration_ns(set)));
    all.sum::<Duration>() * u32::try_from(RUNS * 4).unwrap_or(u32::MAX)
}

/// Length of a run: whole cycles, since the parts of one are not what a worker wants.
fn duration_ns(set: &Set) -> u64 {
    let cycle_ns = set.cycle.map_or(1, |cycle| cycle.ns());
    DURATION_NS.div_ceil(cycle_ns).saturating_mul(cycle_ns)
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
        let runs = (0..RUNS).map(|_| self.run(set));
        let runs = runs.collect::<Result<Vec<Want>, String>>()?;
        // The run with the most work need not be the one whose events were begun the soonest.
        let late_ns = runs.iter().filter_map(|want| want.late_ns).min();
        let best = runs.into_iter().max_by_key(|want| want.kops_per_sec);
        let best = best.map(|want| Want { late_ns, ..want });
        best.filter(|want| want.kops_per_sec > 0).ok_or_else(|| {
            let Set { name, .. } = &self.sets[set];
            let time = model::format_duration_ns(duration_ns(&self.sets[set]));
            format!("a worker of the set {name} alone finished no event within {time}")
        })
    }

    /// A worker of the set, with those that hand over to it.
    fn run(&self, set: usize) -> Result<Want, String> {
        let duration_ns = duration_ns(&self.sets[set]);
        let shape = Shape {
            duration_ns,
            interval_ns: self.interval_ns,
            operations_per_kop: self.operations_per_kop,
        };
        let front = |index: &usize| self.sets[*index].front(self.sets);
        let order: Vec<usize> = std::iter::successors(Some(set), front).collect();
        let pipes = Pipe::lay(self.sets, &order);
        let workers = order.iter().zip(pipes).map(|(index, pipe)| {
            let own = Own {
                pipe,
                reads_per_ms: self.reads_per_ms[*index],
                ..Own::default()
            };
            Worker::new(*index, &self.sets[*index], shape, own)
        });
        let workers = workers.collect::<Result<Vec<Worker>, String>>()?;
        let gate = Gate::default();
        gate.open(Timing::from_now(0, duration_ns));
        let record = std::thread::scope(|scope| {
            let start = |worker: Worker| scope.spawn(|| worker.run(&gate));
            let threads: Vec<_> = workers.into_iter().map(start).collect();
            let records = threads.into_iter().map(|thread| thread.join());
            records.collect::<Result<Vec<Record>, _>>()
        });
        let records = record.map_err(|_| "a worker panicked".to_owned())?;
        let record = &records[0];
        let late = Recording::merge([record.lateness.clone()]);
        let per_sec = |sum: u64| {
            let rate = u128::from(sum) * u128::from(NS_PER_SEC) / u128::from(duration_ns);
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        Ok(Want {
            kops_per_sec: per_sec(record.kops()),
            cpu_ns_per_sec: per_sec(record.cpu_ns()),
            reads_per_ms: self.reads_per_ms[set],
            late_ns: late.and_then(|late| late.mean_ns()).map(model::whole),
        })
    }
}
