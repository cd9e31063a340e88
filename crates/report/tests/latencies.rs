//! The columns of mcperf: one row for each load, arm and log.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2Serializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use model::{Better, Measurement};
use report::{Format, Options, Table};
use results::ResultSet;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const CELL: &str = "wakeup 200%";
const US: u64 = 1_000;

/// One interval with so many requests of 1, 2, 3 … times `step` microseconds.
fn log(requests: u64, step: u64) -> Vec<u8> {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    (1..=requests).for_each(|n| histogram.record(n * step * US).unwrap());
    let (mut bytes, mut serializer) = (Vec::new(), V2Serializer::new());
    let mut writer = IntervalLogWriterBuilder::new()
        .with_start_time(SystemTime::UNIX_EPOCH)
        .begin_log_with(&mut bytes, &mut serializer)
        .unwrap();
    let second = Duration::from_secs(1);
    writer
        .write_histogram(&histogram, Duration::ZERO, second, None)
        .unwrap();
    bytes
}

/// Trials of one cell with a rate and both logs; the service takes half of what the request takes.
fn stored(requests: u64) -> (TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    let ok = results
        .trials
        .iter_mut()
        .filter(|stored| stored.trial.is_ok());
    for stored in ok.filter(|stored| stored.trial.cell == CELL) {
        for (metric, value) in [("requests_per_sec", 995.0), ("offered_per_sec", 1_003.0)] {
            stored.trial.result.metrics.retain(|m| m.metric != metric);
            stored.trial.result.metrics.push(Measurement {
                metric: metric.to_owned(),
                value,
                unit: "1/s".to_owned(),
                better: Better::Neither,
                own: None,
            });
        }
        std::fs::write(stored.dir.join("request.hlog"), log(requests, 2)).unwrap();
        std::fs::write(stored.dir.join("service.hlog"), log(requests, 1)).unwrap();
    }
    (dir, results)
}

fn rendered(results: &ResultSet, format: &str, full: bool) -> String {
    let options = Options {
        full,
        ..Options::default()
    };
    let format = Format::find_by_name(format).unwrap();
    format
        .render_report(&Table::from_results(results), results, &options)
        .unwrap()
        .into_string()
}

/// Rows of the format of mcperf whose type is this one, as numbers.
fn mcperf_rows(text: &str, kind: &str) -> Vec<Vec<f64>> {
    let rows = text
        .lines()
        .filter(|line| line.split_whitespace().next() == Some(kind));
    rows.map(|line| {
        line.split_whitespace()
            .skip(1)
            .map(|n| n.parse().unwrap())
            .collect()
    })
    .collect()
}

#[test]
fn a_scan_has_the_columns_of_mcperf_in_microseconds() {
    let (_dir, results) = stored(1_000);
    let text = rendered(&results, "mcperf", false);
    let head = text.lines().find(|line| line.starts_with("#type")).unwrap();
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>().join(" "),
        "#type avg std min p5 p10 p50 p67 p75 p80 p85 p90 p95 p99 p999 p9999 QPS target"
    );
    let arms = results.experiment.arms.len();
    let (read, request) = (mcperf_rows(&text, "read"), mcperf_rows(&text, "request"));
    assert_eq!((read.len(), request.len()), (arms, arms), "{text}");
    let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.002;
    let wanted = [
        500.5, 288.7, 1.0, 50.0, 100.0, 500.0, 670.0, 750.0, 800.0, 850.0, 900.0, 950.0, 990.0,
        999.0,
    ];
    for (found, wanted) in read[0].iter().zip(wanted) {
        assert!(near(*found, wanted), "{found} and not {wanted}: {text}");
    }
    assert!(near(request[0][5], 1_000.0), "{text}");
    assert_eq!(read[0][15..], [995.0, 1_003.0]);
}

#[test]
fn a_percentile_with_fewer_than_ten_requests_beyond_it_is_not_said() {
    let (_dir, results) = stored(50);
    let trials = results.trials.iter();
    let trials =
        trials.filter(|t| t.trial.is_ok() && t.trial.cell == CELL && t.trial.place.arm == 0);
    let all = 50 * trials.count();
    let text = rendered(&results, "mcperf", false);
    let read = &mcperf_rows(&text, "read")[0];
    // p50, p99 and p9999 of so many.
    let beyond = |percent: f64| all as f64 * (100.0 - percent) / 100.0 >= 10.0;
    for (column, percent) in [(5, 50.0), (12, 99.0), (14, 99.99)] {
        assert_eq!(
            !read[column].is_nan(),
            beyond(percent),
            "{percent} of {all}: {text}"
        );
    }
    let csv = rendered(&results, "latencies", false);
    let first = csv.lines().nth(1).unwrap();
    let fields: Vec<&str> = first.split(',').collect();
    assert_eq!(
        fields[..3],
        [CELL, results.experiment.arms[0].name.as_str(), "read"]
    );
    assert_eq!(
        (fields[4], fields[19]),
        (all.to_string().as_str(), ""),
        "{csv}"
    );
}

#[test]
fn the_full_report_and_the_page_have_the_table_and_others_do_not_change() {
    let (_dir, results) = stored(1_000);
    for (format, full) in [("text", true), ("html", false)] {
        let text = rendered(&results, format, full);
        assert!(text.contains("wakeup, latencies"), "{format}");
        assert!(text.contains("p9999"), "{format}");
    }
    assert!(!rendered(&results, "text", false).contains("p9999"));
}

#[test]
fn results_without_requests_say_so() {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    let text = rendered(&results, "mcperf", false);
    assert!(text.starts_with("# no trial"), "{text}");
    assert_eq!(rendered(&results, "latencies", false).lines().count(), 1);
}
