//! `schedlab import` as it is typed.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tests::{Bench, expect_code, stderr, stdout};

fn tree(dir: &Path) {
    for (run, figures) in [("6.1", "10.5\n10.25\n10.75\n"), ("6.2", "9\n9.5\n9.25\n")] {
        let load = dir.join("results/hackbench/process-pipe/group-1");
        fs::create_dir_all(&load).unwrap();
        fs::write(load.join(format!("{run}.log")), figures).unwrap();
    }
}

#[test]
fn an_import_is_reported_packed_and_verified_and_cannot_be_run() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path());
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (source, out, capsule) = (at("results"), at("out"), at("x.tar.gz"));
    let bench = Bench::default();
    let base = [
        "import",
        "schedtests",
        &source,
        "-o",
        &out,
        "--baseline",
        "6.2",
    ];
    let output = bench.run(&[&base[..], &["--format", "json"]].concat());
    expect_code(&output, 0);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["sequential"]["rows"][0]["changes"][0]["arm"], "6.1");
    let output = bench.run(&["report", &out, "--fail-on", "regression"]);
    expect_code(&output, 4);
    assert!(stdout(&output).contains("there is no verdict"));
    let output = bench.run(&["pack", &out, "-o", &capsule]);
    expect_code(&output, 0);
    let output = bench.run(&["verify", &capsule]);
    expect_code(&output, 0);
    assert!(
        stdout(&output).contains("since schedtests measured these runs"),
        "{}",
        stdout(&output)
    );
    for again in [["run", "--resume", &out], ["run", "--like", &out]] {
        let output = bench.run(&again);
        assert_ne!(output.status.code(), Some(0), "{again:?}");
        assert!(
            stderr(&output).contains("imported"),
            "{again:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_bad_log_is_an_error_with_its_line_unless_it_is_to_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path());
    let bad = dir
        .path()
        .join("results/hackbench/process-pipe/group-1/6.3.log");
    fs::write(&bad, "9.5\nTime\n").unwrap();
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (source, out) = (at("results"), at("out"));
    let bench = Bench::default();
    let import = ["import", "schedtests", &source, "-o", &out];
    let output = bench.run(&import);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(
        said.contains("6.3.log:2") && said.contains("is no number"),
        "{said}"
    );
    assert!(!Path::new(&out).exists());
    let output = bench.run(&[&import[..], &["--skip-bad"]].concat());
    expect_code(&output, 0);
    assert!(stdout(&output).contains("Left out"), "{}", stdout(&output));
}

/// An import into `out` below a folder, printed as JSON.
fn imported(dir: &Path, arguments: &[&str]) -> std::process::Output {
    let out = dir.join("out");
    let _ = fs::remove_dir_all(&out);
    let out = out.to_string_lossy().into_owned();
    let output = ["-o", &out, "--format", "json"];
    Bench::default().run(&[&["import"], arguments, &output].concat())
}

/// The first row of a report.
fn first_row(output: &std::process::Output) -> Value {
    expect_code(output, 0);
    let report: Value = serde_json::from_str(&stdout(output)).unwrap();
    report["sequential"]["rows"][0].clone()
}

#[test]
fn a_table_of_runs_is_reported_by_its_columns() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs.csv");
    let csv =
        "kernel,bench,p99\n6.1,pipe,955us\n6.1,pipe,965us\n6.2,pipe,1.03ms\n6.2,pipe,1.05ms\n";
    fs::write(&runs, csv).unwrap();
    let runs = runs.to_string_lossy().into_owned();
    let metric = ["--metric", "p99 lower us"];
    let table = ["table", &runs, "--arm", "kernel", "--cell", "bench"];
    let table = [&table[..], &metric].concat();
    let row = first_row(&imported(dir.path(), &table));
    assert_eq!((&row["cell"], &row["unit"]), (&"pipe".into(), &"us".into()));
    assert_eq!(row["arms"][0]["mean"], 960.0);
    assert_eq!(row["arms"][1]["mean"], 1040.0);
    for (from, to, said) in [
        ("p99 lower us", "p99 us", "which direction is better"),
        ("table", "schedtests", "has no columns to name"),
        ("kernel", "kernels", "no column is called"),
    ] {
        let words = table.iter().copied();
        let changed: Vec<&str> = words
            .map(|word| if word == from { to } else { word })
            .collect();
        let output = imported(dir.path(), &changed);
        expect_code(&output, 2);
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let output = imported(dir.path(), &["table", &runs]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("kernel,bench,p99"));
}

#[test]
fn one_run_of_each_commit_of_lkp_has_a_change_and_no_interval() {
    let dir = tempfile::tempdir().unwrap();
    for (run, value) in [("6.0.7", "43384.89"), ("6.1.0-rc4", "41000.0")] {
        let place = dir.path().join(format!("lkp/schbench/30s-1-32/{run}/0"));
        fs::create_dir_all(&place).unwrap();
        let text = format!("{{\"schbench.latency_99%_us\": [{value}]}}");
        fs::write(place.join("schbench.json"), text).unwrap();
    }
    let lkp = dir.path().join("lkp").to_string_lossy().into_owned();
    let row = first_row(&imported(dir.path(), &["lkp", &lkp]));
    assert_eq!(row["metric"], "latency_99%_us");
    let ratio = row["changes"][0]["ratio"].as_f64().unwrap();
    assert!((ratio - 41_000.0 / 43_384.89).abs() < 1e-9, "{row}");
    assert_eq!(row["changes"][0]["low"], Value::Null);
}

/// Rows of a table by its heads.
fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

/// Output of schedbench's own verbs for `results.bench`, which we have written in its format: its
/// `report` at `-v 1` for sets and workers, the points of its `htmlreport` for windows.
fn printed_by_schedbench(name: &str) -> Vec<BTreeMap<String, String>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/schedbench");
    table(&fs::read_to_string(dir.join(name)).unwrap())
}

/// A run of `results.bench`: its cell and arm, and the folder of its trial.
const RUNS: [(&str, &str, &str); 3] = [
    ("A baseline", "credit2 NumaOn", "00000-"),
    ("A 3 + B 2", "credit2 NumaOn", "00001-"),
    ("A 3 + B 2", "credit NumaOn", "00002-"),
];

fn run_of(row: &BTreeMap<String, String>) -> (&str, &str, &str) {
    RUNS[row["run"].parse::<usize>().unwrap()]
}

/// Worker 1:1 of the third run does nothing in its third window. The tool's least window of it, and
/// of its set, is that of the windows after; ours is 0.
fn forgets_zero(row: &BTreeMap<String, String>, column: &str) -> bool {
    let least = ["tmin", "umin", "ttotmin", "utotmin"].contains(&column);
    let of_worker = row.get("worker").is_none_or(|worker| worker == "1");
    least && row["run"] == "2" && row["set"] == "1" && of_worker
}

#[test]
fn an_import_of_schedbench_has_the_figures_that_its_own_reports_print() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out").to_string_lossy().into_owned();
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/schedbench/results.bench"
    );
    let bench = Bench::default();
    let import = ["import", "schedbench", file, "-o", &out, "--format", "json"];
    let output = bench.run(&import);
    expect_code(&output, 0);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    sets_are_equal(&report);
    let trials = Path::new(&out).join("trials");
    workers_are_equal(&trials);
    windows_are_equal(&trials);
    let output = bench.run(&["report", &out, "--full"]);
    // 111 823.96 and 60 347.67 of the tool's tables.
    for figure in ["112k", "60.3k"] {
        assert!(stdout(&output).contains(figure), "{}", stdout(&output));
    }
}

fn sets_are_equal(report: &Value) {
    let columns = [
        ("total", "total"),
        ("avgavg", "average"),
        ("stdev", "deviation"),
        ("avgmax", "most"),
        ("avgmin", "least"),
        ("totmax", "window_most"),
        ("totmin", "window_least"),
    ];
    let cells = report["sets"].as_array().unwrap();
    let printed = printed_by_schedbench("sets.csv");
    assert_eq!(printed.len(), 5);
    for row in &printed {
        let (cell, arm, _) = run_of(row);
        let name = format!("schedbench {cell}");
        let of_cell = cells.iter().find(|of| of["cell"] == *name).unwrap();
        let rows = of_cell["rows"].as_array().unwrap();
        let ours = rows
            .iter()
            .find(|of| of["arm"] == arm && of["set"] == *row["set"]);
        let ours = ours.unwrap();
        for (of, key) in [("t", "throughput"), ("u", "cpu_use")] {
            for (tool, column) in columns {
                let tool = format!("{of}{tool}");
                let value = ours[key][column].as_f64().unwrap();
                let wanted = match forgets_zero(row, &tool) {
                    true => "0.00",
                    false => &row[&tool],
                };
                assert_eq!(format!("{value:.2}"), wanted, "{tool} of {row:?}");
            }
        }
    }
}

/// Kept file of the trial of a run.
fn kept(trials: &Path, run: &str, name: &str) -> Vec<BTreeMap<String, String>> {
    let mut found = fs::read_dir(trials)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let trial = found.find(|path| path.file_name().unwrap().to_string_lossy().starts_with(run));
    table(&fs::read_to_string(trial.unwrap().join(name)).unwrap())
}

fn workers_are_equal(trials: &Path) {
    let printed = printed_by_schedbench("workers.csv");
    assert_eq!(printed.len(), 11);
    for row in &printed {
        let rows = kept(trials, run_of(row).2, "workers.csv");
        let same = |key: &str, of: &BTreeMap<String, String>| of[key] == row[key];
        let ours = rows
            .iter()
            .find(|of| same("set", of) && same("worker", of))
            .unwrap();
        assert_eq!(ours["toput"], row["toput"]);
        for column in [
            "time", "cpu", "tavg", "tmin", "tmax", "uavg", "umin", "umax",
        ] {
            let value: f64 = ours[column].parse().unwrap();
            let wanted = match forgets_zero(row, column) {
                true => "0.00",
                false => &row[column],
            };
            assert_eq!(format!("{value:.2}"), wanted, "{column} of {row:?}");
        }
    }
}

/// The tool draws one more point of each worker: from its start to its first report.
fn windows_are_equal(trials: &Path) {
    let printed = printed_by_schedbench("windows.csv");
    let mut compared = 0;
    for (index, (_, _, run)) in RUNS.iter().enumerate() {
        for ours in kept(trials, run, "windows.csv") {
            let end: f64 = ours["now_ns"].parse().unwrap();
            let end = format!("{:.6}", end / 1e9);
            let of_run = printed.iter().filter(|row| row["run"] == index.to_string());
            let mut same = of_run.filter(|row| row["set"] == ours["set"] && row["end"] == end);
            let row = same.next().unwrap();
            assert!(same.next().is_none(), "two windows end at {end}");
            for column in ["throughput", "utilization"] {
                let value = |of: &BTreeMap<String, String>| of[column].parse::<f64>().unwrap();
                assert_eq!(value(&ours), value(row), "{column} of {ours:?}");
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 55);
}
