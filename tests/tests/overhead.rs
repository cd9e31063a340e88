//! `schedlab overhead`, and arms that name what is collected.

#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use serde_json::Value;
use std::fs;
use tests::{Bench, alone, expect_code, stdout};

const EXPERIMENT: &str = r#"
name = "collectors"
[[arm]]
name = "watched"
collect = ["delays"]
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
fn an_arm_has_the_collectors_that_it_names_and_no_others() {
    let _turn = alone();
    let bench = Bench::default();
    let file = bench.file("e.toml", EXPERIMENT);
    expect_code(&bench.run(&["run", &file, "-o", "out", "-q"]), 0);
    let (watched, alone) = (metrics_of(&bench, "watched"), metrics_of(&bench, "alone"));
    let has = |metrics: &[String], name: &str| metrics.iter().any(|m| m == name);
    assert!(!has(&alone, "run_delay") && !has(&alone, "context_switches"));
    assert!(!has(&watched, "context_switches"), "{watched:?}");
    assert!(has(&alone, "foreign_percent"), "{alone:?}");
    if fs::exists("/proc/self/schedstat").unwrap() {
        assert!(has(&watched, "run_delay"), "{watched:?}");
    } else {
        println!("skipped: this kernel has no schedstat of tasks");
    }
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
fn each_collector_has_its_cost_and_the_costs_are_kept() {
    let _turn = alone();
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
