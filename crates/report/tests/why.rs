//! Counters beside a metric, in results with known relations.

#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::{Better, Measurement};
use report::table::why::{Change, Kind, Why, explain};
use results::ResultSet;

const BLOCKS: u32 = 14;
const METRIC: &str = "request_p99";

/// Noise that is the same in every run, between −1 and 1.
fn noise(block: u32, salt: u32) -> f64 {
    let mixed = (block * 7919 + salt * 104_729).wrapping_mul(2_654_435_761);
    f64::from(mixed >> 8) / f64::from(1u32 << 23) - 1.0
}

fn measured(metric: &str, better: Better, value: f64) -> Measurement {
    Measurement {
        metric: metric.to_owned(),
        unit: "count".to_owned(),
        better,
        value,
    }
}

/// The arm's p99 follows its migrations; its slices are always shorter by a tenth;
/// its faults are noise; it alone is throttled, a few times, in some blocks.
fn metrics(arm: usize, block: u32) -> Vec<Measurement> {
    let is_arm = arm == 1;
    let common = if is_arm { noise(block, 1) } else { 0.0 };
    let slices = if is_arm { 0.9 } else { 1.0 };
    let salt = u32::try_from(arm).unwrap();
    vec![
        measured(METRIC, Better::Lower, (0.2 * common).exp() * 1e6),
        measured("migrations", Better::Neither, (0.5 * common).exp() * 300.0),
        measured(
            "slice_mean",
            Better::Neither,
            slices * (1.0 + 0.01 * noise(block, 20 + salt)) * 1e5,
        ),
        measured(
            "page_faults",
            Better::Neither,
            100.0 + 10.0 * noise(block, 30 + salt),
        ),
        measured(
            "throttles",
            Better::Neither,
            f64::from(u32::from(is_arm) * (block % 2)),
        ),
    ]
}

fn results() -> (tempfile::TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::few_blocks(BLOCKS)).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    for stored in &mut results.trials {
        let place = &stored.trial.place;
        stored.trial.result.metrics = metrics(place.arm, place.block);
    }
    (dir, results)
}

fn why() -> Why {
    let (_dir, results) = results();
    explain(&results, 0, METRIC, 1).unwrap()
}

fn kind(why: &Why, counter: &str) -> Kind {
    let found = why.counters.iter().find(|c| c.counter == counter);
    found.unwrap().kind
}

#[test]
fn what_moved_with_the_metric_is_told_from_what_only_moved() {
    let why = why();
    assert_eq!(why.counters[0].counter, "migrations");
    assert_eq!(kind(&why, "migrations"), Kind::Together);
    assert_eq!(kind(&why, "slice_mean"), Kind::OnlyMoved);
    assert_eq!(kind(&why, "page_faults"), Kind::Neither);
}

#[test]
fn a_counter_that_is_zero_somewhere_is_compared_by_differences() {
    let why = why();
    let throttles = why.counters.iter().find(|c| c.counter == "throttles");
    let Change::Difference(estimate) = throttles.unwrap().change else {
        panic!("{throttles:?}");
    };
    assert_eq!(estimate.mean, 0.5);
}

#[test]
fn a_metric_that_nobody_measured_has_no_explanation() {
    let (_dir, results) = results();
    assert_eq!(explain(&results, 0, "wakeup_p99", 1), None);
}
