//! Runs for the tests of this crate.

use crate::digest::hash_value;
use crate::run::{MachineClass, Run};
use jiff::{SignedDuration, Timestamp};
use model::Experiment;
use results::ResultSet;

/// The experiment of all these runs.
pub fn experiment() -> Experiment {
    synthetic::few_blocks(5).experiment
}

/// A run of a night, all of whose arms have this logarithm of a ratio.
pub fn run(night: i64, log_ratio: f64) -> Run {
    let dir = tempfile::tempdir().unwrap();
    thread_local! {
        static RUN: std::cell::OnceCell<Run> = const { std::cell::OnceCell::new() };
    }
    let first = RUN.with(|run| {
        let make = || {
            synthetic::write(dir.path(), &synthetic::few_blocks(5)).unwrap();
            let results = ResultSet::read(dir.path()).unwrap();
            Run::from_results(&results, "2027-01-01T00:00:00Z".parse().unwrap()).unwrap()
        };
        run.get_or_init(make).clone()
    });
    let since: Timestamp = "2026-06-01T01:30:00Z".parse().unwrap();
    let parts = vec![hash_value(&night)];
    let mut run = Run {
        id: hash_value(&parts),
        parts,
        created: since + SignedDuration::from_hours(24 * night),
        ..first
    };
    run.figures.truncate(1);
    run.figures[0].log_ratio = log_ratio;
    run.figures[0].error = 0.002;
    run
}

/// A machine with so many CPUs.
pub fn class(cpus: u32) -> MachineClass {
    MachineClass {
        cpus,
        ..run(0, 0.0).class
    }
}
