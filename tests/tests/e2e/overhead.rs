//! `schedlab overhead`, and arms that name what is collected.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use results::ResultSet;
use serde_json::Value;
use std::fs;
use std::process::Command;
use tests::{Bench, expect_code, is_root, sched_program, stderr, stdout, with_lock_of_runs};

const EXPERIMENT: &str = r#"
name = "collectors"
collect = ["delays"]
[[arm]]
name = "watched"
[[arm]]
name = "alone"
collect = []
[[workload]]
kind = "wakeup"
loads = [1]
duration = "300ms"
warmup = "50ms"
[stop]
max-blocks = 1
min-blocks = 1
"#;

fn metrics_of(bench: &Bench, arm: &str) -> Vec<String> {
    let trials = fs::read_dir(bench.path("out/trials")).unwrap();
    let directory = trials
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(&format!("-{arm}")))
        .unwrap();
    let text = fs::read_to_string(directory.join("trial.json")).unwrap();
    let trial: Value = serde_json::from_str(&text).unwrap();
    let metrics = trial["result"]["metrics"].as_array().unwrap();
    let names = metrics.iter().map(|m| m["metric"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn arms_have_the_collectors_of_the_experiment_or_their_own_and_no_others() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let file = bench.file("e.toml", EXPERIMENT);
    expect_code(&bench.run(&["run", &file, "-o", "out", "-q"]), 0);
    let (watched, alone) = (metrics_of(&bench, "watched"), metrics_of(&bench, "alone"));
    let has = |metrics: &[String], name: &str| metrics.iter().any(|m| m == name);
    assert!(!has(&alone, "run_delay") && !has(&alone, "context_switches"));
    assert!(!has(&watched, "context_switches"), "{watched:?}");
    assert!(has(&alone, "foreign_percent"), "{alone:?}");
    if fs::exists("/proc/self/sched").unwrap() {
        // From /proc at both ends of the window, whatever is collected.
        assert!(has(&alone, "migrations"), "{alone:?}");
    }
    if fs::exists("/proc/self/schedstat").unwrap() {
        assert!(has(&watched, "run_delay"), "{watched:?}");
    } else {
        tests::skipped("this kernel has no schedstat of tasks");
    }
}

/// Four spinners on one CPU take turns, so that most of their time is waiting.
const CROWDED: &str = r#"
name = "crowded"
collect = ["delays", "runqueue"]
[[arm]]
name = "counted"
[[workload]]
name = "whole"
kind = "command"
command = ["sh", "-c", """
for i in 1 2 3 4; do
  taskset -c 0 timeout 1 sh -c 'while :; do :; done' &
done
wait"""]
[[workload]]
name = "phased"
kind = "wakeup"
loads = [8]
duration = "1s"
warmup = "100ms"
[stop]
max-blocks = 1
min-blocks = 1
"#;

#[test]
fn run_queue_latency_is_counted_by_bpf_for_each_cpu() {
    let Some(collector) = sched_program("schedlab_runqueue").filter(|_| is_root()) else {
        return tests::skipped("needs root, and sched/schedlab_runqueue, which make test builds");
    };
    if !fs::exists("/sys/kernel/btf/vmlinux").unwrap() {
        return tests::skipped("this kernel has no BTF");
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let file = bench.file("e.toml", CROWDED);
    let before = collectors_running();
    let path = std::env::var("PATH").unwrap();
    let output = bench
        .command(&["run", &file, "-o", "out", "-q"])
        .env(
            "PATH",
            format!("{}:{path}", collector.parent().unwrap().display()),
        )
        .output();
    expect_code(&output.unwrap(), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(results.trials.len(), 2);
    for stored in &results.trials {
        let result = &stored.trial.result;
        let of = |name: &str| {
            let mut metrics = result.metrics.iter();
            let found = metrics.find(|m| m.metric == name);
            found
                .unwrap_or_else(|| panic!("no {name}: {:?}", result.warnings))
                .value
        };
        let (half, longest) = (of("runqueue_p50"), of("runqueue_max"));
        // Not below: where only ticks end turns, each wait is the same three turns.
        assert!(0.0 < half && half <= longest, "{half} {longest}");
        // A turn of the others on the same CPU.
        assert!(longest > 1e6, "{longest} ns");
        let log = fs::read_to_string(stored.dir.join("runqueue.hlog")).unwrap();
        assert!(log.contains("Tag=cpu0,"), "{log}");
        if result.metrics.iter().any(|m| m.metric == "run_delay") {
            let waited = mean_ns(&log) / of("run_delay_mean");
            assert!((0.5..2.0).contains(&waited), "{waited} of schedstat's");
        }
    }
    let verified = bench.run(&["verify", "out"]);
    expect_code(&verified, 0);
    let left = collectors_running();
    assert!(left.iter().all(|pid| before.contains(pid)), "{left:?}");
}

/// Those of others too: nobody else's test is ended here.
fn collectors_running() -> Vec<String> {
    let found = Command::new("pgrep")
        .args(["-x", "schedlab_runque"])
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    found.lines().map(str::to_owned).collect()
}

/// Mean of all intervals of an HdrHistogram interval log.
fn mean_ns(log: &str) -> f64 {
    let mut sum = Histogram::<u64>::new(3).unwrap();
    sum.auto(true);
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
            sum += Deserializer::new()
                .deserialize::<u64, _>(&mut bytes.as_slice())
                .unwrap();
        }
    }
    sum.mean()
}

#[test]
fn a_run_queue_collector_that_is_not_installed_is_said_before_the_run() {
    let bench = Bench::default();
    let file = bench.file("e.toml", CROWDED);
    let output = bench
        .command(&["check", &file])
        .env("SCHEDLAB_CACHE_DIR", bench.path("cache"))
        .output();
    let output = output.unwrap();
    expect_code(&output, 3);
    let said = stdout(&output) + &stderr(&output);
    assert!(said.contains("collect runqueue"), "{said}");
    assert!(
        said.contains("schedlab scheduler install schedlab_runqueue"),
        "{said}"
    );
}

#[test]
fn a_collector_that_there_is_not_is_named_with_its_place() {
    let bench = Bench::default();
    let file = bench.file("e.toml", &EXPERIMENT.replace("delays", "delay"));
    let output = bench.run(&["check", &file]);
    expect_code(&output, 2);
    assert!(tests::stderr(&output).contains("delays"));
}

#[test]
#[ignore = "half a minute: make test-long ROWS=quiet"]
fn each_collector_has_its_cost_and_the_costs_are_kept() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let args = [
        "overhead",
        "-w",
        "wakeup:1",
        "--max-blocks",
        "2",
        "--budget",
        "20s",
        "--format",
        "json",
        "-q",
    ];
    let output = bench.run(&args);
    expect_code(&output, 0);
    let costs: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_ne!(costs["kernel_release"], "");
    let kept = fs::read_to_string(bench.path("state/overhead.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), costs);
}
