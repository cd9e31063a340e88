//! The table of success, mean, 95th percentile and goodput of services under load.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::{Better, Measurement};
use report::{Format, Options, Table};
use results::ResultSet;
use std::path::Path;

const CELL: &str = "wakeup 200%";

fn measured(metric: &str, value: f64, unit: &str) -> Measurement {
    Measurement {
        metric: metric.to_owned(),
        value,
        unit: unit.to_owned(),
        better: Better::Lower,
        own: None,
    }
}

/// Trials of one cell with several kinds of request, of which in two blocks all that `batch` was
/// asked failed, and nothing else. They took 1 ms in each block but these, and 12 ms there.
fn results(dir: &Path) -> ResultSet {
    synthetic::write(dir, &synthetic::quickstart()).unwrap();
    let mut results = ResultSet::read(dir).unwrap();
    let of_cell = results.trials.iter_mut().map(|stored| &mut stored.trial);
    for trial in of_cell.filter(|trial| trial.cell == CELL && trial.is_ok()) {
        let fails = trial.arm == "batch" && (3..5).contains(&trial.place.block);
        let (errors, mean_ns) = if fails { (100.0, 12e6) } else { (0.0, 1e6) };
        let metrics = &mut trial.result.metrics;
        metrics.push(measured("request_mean", mean_ns, "ns"));
        metrics.push(measured("request_p75", mean_ns * 1.5, "ns"));
        metrics.push(measured("error_percent", errors, "%"));
    }
    results
}

fn report(results: &ResultSet, format: &str) -> String {
    let table = Table::from_results(results);
    let format = Format::find_by_name(format).unwrap();
    format
        .render_report(&table, results, &Options::default())
        .unwrap()
        .into_string()
}

#[test]
fn an_arm_that_fails_in_a_few_trials_has_no_full_success() {
    let dir = tempfile::tempdir().unwrap();
    let results = results(dir.path());
    let csv = report(&results, "requests");
    let row = |arm: &str| -> Vec<String> {
        let mut rows = csv.lines().map(|line| line.split(','));
        let row = rows.find(|row| row.clone().nth(1) == Some(arm)).unwrap();
        row.map(str::to_owned).collect()
    };
    assert_eq!(row("default")[3], "100");
    let batch = row("batch");
    let (trials, success): (f64, f64) = (batch[2].parse().unwrap(), batch[3].parse().unwrap());
    assert!(trials > 4.0, "a median of fewer trials would have them");
    let expected = 100.0 - 200.0 / trials;
    assert!(
        (success - expected).abs() < 1e-9,
        "{success}, not {expected}"
    );
    assert_eq!(batch[4], "1000000", "latencies are medians");
}

#[test]
fn readers_are_told_that_success_is_a_mean_and_the_rest_are_medians() {
    let dir = tempfile::tempdir().unwrap();
    let results = results(dir.path());
    for format in ["text", "markdown", "html"] {
        let text = report(&results, format);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let says = "Success is a mean over the trials, the rest are medians.";
        assert!(text.contains(says), "{format}: {text}");
    }
}
