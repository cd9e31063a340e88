//! The 95th percentile of requests that are too few in each trial.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2Serializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use model::{Better, Measurement};
use report::{Format, Options, Table};
use results::{ResultSet, StoredTrial};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const CELL: &str = "wakeup 200%";
const MS: u64 = 1_000_000;

fn measured(metric: &str, value: f64) -> Measurement {
    Measurement {
        metric: metric.to_owned(),
        value,
        unit: "ns".to_owned(),
        better: Better::Lower,
        own: None,
    }
}

/// Trials of one cell with so many requests each, whose latencies are 1, 2, 3 … ms.
fn stored(requests: u64) -> (TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    for stored in of_cell(&mut results) {
        stored
            .trial
            .result
            .metrics
            .push(measured("request_mean", 1e6));
        std::fs::write(stored.dir.join("request.hlog"), log(requests)).unwrap();
    }
    (dir, results)
}

fn of_cell(results: &mut ResultSet) -> impl Iterator<Item = &mut StoredTrial> {
    let trials = results.trials.iter_mut();
    trials.filter(|stored| stored.trial.cell == CELL && stored.trial.is_ok())
}

fn log(requests: u64) -> Vec<u8> {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    (1..=requests).for_each(|ms| histogram.record(ms * MS).unwrap());
    let (mut bytes, mut serializer) = (Vec::new(), V2Serializer::new());
    let mut writer = IntervalLogWriterBuilder::new()
        .with_start_time(SystemTime::UNIX_EPOCH)
        .begin_log_with(&mut bytes, &mut serializer)
        .unwrap();
    writer
        .write_histogram(&histogram, Duration::ZERO, Duration::from_secs(1), None)
        .unwrap();
    bytes
}

fn report(results: &ResultSet, format: &str) -> String {
    let table = Table::from_results(results);
    let format = Format::find_by_name(format).unwrap();
    format
        .render_report(&table, results, &Options::default())
        .unwrap()
        .into_string()
}

/// The columns of the arms' rows.
fn rows(results: &ResultSet) -> Vec<Vec<String>> {
    let csv = report(results, "requests");
    let rows = csv
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect());
    rows.collect()
}

#[test]
fn it_is_that_of_all_trials_together_and_every_output_says_so() {
    let (_dir, results) = stored(80);
    let rows = rows(&results);
    assert_eq!(
        (rows[0][6].as_str(), rows[0][13].as_str()),
        ("p95_ns", "p95_pooled")
    );
    assert_eq!(rows.len(), 1 + results.experiment.arms.len());
    for row in &rows[1..] {
        let p95: f64 = row[6].parse().unwrap();
        assert!((p95 / (76 * MS) as f64 - 1.0).abs() < 1e-3, "{row:?}");
        assert_eq!(row[13], "true");
    }
    for format in ["text", "markdown", "html"] {
        let text = report(&results, format);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("76.0 ms (pooled)"), "{text}");
        assert!(
            text.contains("of the requests of all trials together"),
            "{text}"
        );
    }
    let json: serde_json::Value = serde_json::from_str(&report(&results, "json")).unwrap();
    let cells = json["cells"].as_array().unwrap();
    let cell = cells.iter().find(|cell| cell["name"] == CELL).unwrap();
    let pooled = &cell["pooled"][0];
    assert_eq!(
        (&pooled["metric"], &pooled["arm"]),
        (&"request_p95".into(), &"default".into())
    );
    let trials = pooled["trials"].as_u64().unwrap();
    assert_eq!(pooled["samples"].as_u64(), Some(80 * trials));
    let others = cells.iter().filter(|cell| cell["name"] != CELL);
    assert!(
        others
            .map(|cell| cell.get("pooled"))
            .all(|pooled| pooled.is_none())
    );
    let schema = include_str!("../../../docs/report.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    assert!(schema.is_valid(&json));
}

#[test]
fn trials_with_one_of_their_own_are_not_pooled() {
    let (_dir, mut results) = stored(80);
    for stored in of_cell(&mut results) {
        stored
            .trial
            .result
            .metrics
            .push(measured("request_p95", 5e6));
    }
    assert!(
        rows(&results)[1..]
            .iter()
            .all(|row| row[6] == "5000000" && row[13] == "false")
    );
    assert!(!report(&results, "text").contains("pooled"));
    // Without one of a single trial, a median would leave out just that one.
    let lacking = of_cell(&mut results).next().unwrap();
    lacking
        .trial
        .result
        .metrics
        .retain(|m| m.metric != "request_p95");
    assert!(rows(&results)[1..].iter().all(|row| row[13] == "true"));
}

#[test]
fn too_few_requests_in_all_or_a_damaged_log_leave_it_empty() {
    let (_dir, results) = stored(9);
    assert!(
        rows(&results)[1..]
            .iter()
            .all(|row| row[6].is_empty() && row[13] == "false")
    );
    let (_dir, mut results) = stored(80);
    let damaged = of_cell(&mut results).next().unwrap();
    std::fs::write(damaged.dir.join("request.hlog"), "0.0,1.0,2.0,HISTno!\n").unwrap();
    let arm = damaged.trial.arm.clone();
    for row in &rows(&results)[1..] {
        assert_eq!(row[13], (row[1] != arm).to_string());
    }
}

#[test]
fn ten_requests_are_beyond_it() {
    let (_dir, mut results) = stored(1);
    // All trials of an arm but its first have one request.
    let mut trials = std::collections::BTreeMap::new();
    for stored in of_cell(&mut results) {
        *trials.entry(stored.trial.arm.clone()).or_insert(0) += 1;
    }
    let mut with = |requests: u64| {
        let mut seen = std::collections::BTreeSet::new();
        for stored in of_cell(&mut results) {
            if seen.insert(stored.trial.arm.clone()) {
                let first = requests + 1 - trials[&stored.trial.arm];
                std::fs::write(stored.dir.join("request.hlog"), log(first)).unwrap();
            }
        }
        rows(&results)[1..].iter().all(|row| row[13] == "true")
    };
    assert!(!with(199));
    assert!(with(200));
}
