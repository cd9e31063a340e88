//! `trace = "worst"`: the scheduling events around the worst latency.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use collect::sched_trace;
use results::ResultSet;
use results::files::trace_in;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tests::{Bench, alone, expect_code, is_root, stderr, stdout};

const EXPERIMENT: &str = r#"
name = "traces"
trace = "worst"
[[arm]]
name = "default"
[[workload]]
kind = "wakeup"
loads = [2]
duration = "400ms"
warmup = "50ms"
metrics = ["wakeup_max"]
[stop]
max-blocks = 2
min-blocks = 2
"#;

fn no_tracefs() -> bool {
    let missing = match is_root() {
        true => sched_trace::missing(Path::new("/")).map(|why| why.to_string()),
        false => Some("it needs root".to_owned()),
    };
    if let Some(why) = &missing {
        tests::skipped(format!("tracefs: {why}"));
    }
    missing.is_some()
}

/// Reads the file by Perfetto's own definition of it, with protoc(1).
fn expect_a_trace_of_perfetto(file: &Path) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let read = Command::new("protoc")
        .args(["--decode=perfetto.protos.Trace", "perfetto_trace.proto"])
        .current_dir(fixtures)
        .stdin(std::fs::File::open(file).unwrap())
        .output();
    let Ok(read) = read else {
        return tests::skipped("protoc is not installed (protobuf-compiler)");
    };
    expect_code(&read, 0);
    let text = stdout(&read);
    for part in [
        "sched_switch {",
        "sched_waking {",
        "next_comm: \"wakeup-worker\"",
        "process_tree {",
        "sysname: \"Linux\"",
        "track_event {",
    ] {
        assert!(text.contains(part), "{part} is not in the trace");
    }
    // protoc shows what is not defined by its number.
    let mut names = text.lines().map(str::trim_start);
    let unknown = names.find(|name| name.starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(unknown, None);
}

#[test]
fn of_all_trials_of_an_arm_the_worst_is_kept_and_shown() {
    let _turn = alone();
    if no_tracefs() {
        return;
    }
    let rings = || sched_trace::names(Path::new("/")).unwrap();
    let before = rings();
    let bench = Bench::default();
    let file = bench.file("e.toml", EXPERIMENT);
    let said = bench.run(&["run", &file, "-o", "out", "-q", "--format", "json"]);
    expect_code(&said, 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(results.trials.len(), 2);
    let took = |stored: &results::StoredTrial| {
        let trace = stored.trial.result.trace.as_ref().unwrap();
        let longest = stored.trial.metric("wakeup_max").unwrap().value;
        // Histograms have three digits.
        assert!(
            (longest / trace.took_ns as f64 - 1.0).abs() < 0.01,
            "{trace:?}"
        );
        trace.took_ns
    };
    let worst = results.trials.iter().map(took).max().unwrap();
    for stored in &results.trials {
        assert_eq!(trace_in(&stored.dir).exists(), took(stored) == worst);
    }
    let report: Value = serde_json::from_str(&stdout(&said)).unwrap();
    let shown = &report["worst"][0]["arms"][0];
    assert_eq!(shown["took_ns"], worst);
    assert_eq!(shown["thread_name"], "wakeup-worker");
    // Events have whole microseconds. A waker that was put off itself leaves less to wait.
    assert!(
        shown["waited_ns"].as_u64().unwrap() < worst + 3_000,
        "{shown}"
    );
    expect_a_trace_of_perfetto(&bench.path("out").join(shown["file"].as_str().unwrap()));
    let text = stdout(&bench.run(&["report", "out"]));
    assert!(text.contains("https://ui.perfetto.dev"), "{text}");
    let mut left = rings();
    left.retain(|name| !before.contains(name));
    assert_eq!(left, [""; 0], "rings that a trial left");
}

#[test]
fn a_trace_that_cannot_be_had_is_refused_before_anything_runs() {
    let _turn = alone();
    let bench = Bench::default();
    let word = [
        "run",
        "-a",
        "default",
        "-w",
        "hackbench",
        "--trace",
        "worst",
    ];
    let said = bench.run(&word);
    expect_code(&said, 2);
    assert!(stderr(&said).contains("does not say when"));
    let said = bench.run(&["run", "-a", "default", "-w", "wakeup", "--trace", "best"]);
    expect_code(&said, 2);
    assert!(
        stderr(&said).contains("`worst:request`"),
        "{}",
        stderr(&said)
    );
}
