//! The baseline: what one worker of each set does when it is alone.

use super::sets::Set;
use super::worker::{Shape, Worker};
use crate::gate::{Gate, Timing};
use model::Calibration;
use std::time::Duration;

/// Length of one run alone.
pub const DURATION_NS: u64 = 500_000_000;
/// Whatever else runs makes a worker slower and never faster, so the best of these counts.
const RUNS: usize = 3;
const NS_PER_SEC: u64 = 1_000_000_000;

/// Demand of one worker of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Want {
    /// Thousands of operations in a second.
    pub kops_per_sec: u64,
    /// CPU time in a second.
    pub cpu_ns_per_sec: u64,
}

impl Want {
    /// Keeps it among the values that hold for all trials of a cell.
    pub fn store(self, set: &str, calibration: &mut Calibration) {
        let mut keep = |name: &str, value| {
            calibration.values.insert(format!("{set}.{name}"), value);
        };
        keep("kops_per_sec", self.kops_per_sec);
        keep("cpu_ns_per_sec", self.cpu_ns_per_sec);
    }

    /// `None` where the cell was not calibrated.
    pub fn of(set: &str, calibration: &Calibration) -> Option<Self> {
        let value = |name: &str| calibration.values.get(&format!("{set}.{name}")).copied();
        Some(Want {
            kops_per_sec: value("kops_per_sec")?,
            cpu_ns_per_sec: value("cpu_ns_per_sec")?,
        })
    }

    /// Share of one CPU.
    pub fn cpus(self) -> f64 {
        self.cpu_ns_per_sec as f64 / NS_PER_SEC as f64
    }
}

/// Demand of a worker of each set, measured one after the other.
pub fn wants(sets: &[Set], shape: Shape) -> Result<Vec<Want>, String> {
    sets.iter().map(|set| want(set, shape)).collect()
}

/// The time that [`wants`] takes, by far.
pub fn limit(sets: &[Set]) -> Duration {
    Duration::from_nanos(DURATION_NS) * u32::try_from(RUNS * sets.len() * 4).unwrap_or(u32::MAX)
}

fn want(set: &Set, shape: Shape) -> Result<Want, String> {
    let runs = (0..RUNS).map(|_| run(set, shape));
    let runs: Result<Vec<Want>, String> = runs.collect();
    let best = runs?.into_iter().max_by_key(|want| want.kops_per_sec);
    best.filter(|want| want.kops_per_sec > 0).ok_or_else(|| {
        let time = model::format_duration_ns(shape.duration_ns);
        format!(
            "a worker of the set {} alone finished no event within {time}",
            set.name
        )
    })
}

fn run(set: &Set, shape: Shape) -> Result<Want, String> {
    let worker = Worker::new(0, set, shape)?;
    let gate = Gate::default();
    gate.open(Timing::from_now(0, shape.duration_ns));
    let record = std::thread::scope(|scope| scope.spawn(|| worker.run(&gate)).join());
    let record = record.map_err(|_| "a worker panicked".to_owned())?;
    let per_sec = |sum: u64| {
        let rate = u128::from(sum) * u128::from(NS_PER_SEC) / u128::from(shape.duration_ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    };
    Ok(Want {
        kops_per_sec: per_sec(record.kops()),
        cpu_ns_per_sec: per_sec(record.cpu_ns()),
    })
}
