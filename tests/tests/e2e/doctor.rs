//! `schedlab doctor`, as a user meets it. What it changes is put back at the end of
//! the test, also when the test fails.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use serde_json::Value;
use std::fs;
use tests::{Bench, alone, expect_code, is_root, stdout};

const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

fn report(bench: &Bench, args: &[&str]) -> Value {
    let output = bench.run(args);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|c| c["name"] == name).unwrap()
}

/// Puts a kernel file back when it goes out of scope.
struct PutBack {
    path: &'static str,
    text: String,
}

impl PutBack {
    fn of(path: &'static str) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        Some(PutBack { path, text })
    }
}

impl Drop for PutBack {
    fn drop(&mut self) {
        let _ = fs::write(self.path, &self.text);
    }
}

#[test]
fn every_check_says_what_is_in_force_what_it_does_and_what_to_do() {
    let report = report(&Bench::default(), &["doctor", "--format", "json"]);
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() >= 20, "{report:#}");
    for check in checks {
        for field in ["name", "value", "state", "effect", "remedy"] {
            assert_ne!(check[field], "", "{check:#}");
        }
    }
    assert_eq!(report["changed"], Value::Array(Vec::new()));
}

#[test]
fn looking_changes_nothing() {
    // Not while the test of --fix changes it.
    let _turn = alone();
    let before = fs::read_to_string(AUTOGROUP).ok();
    let output = Bench::default().run(&["doctor"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("Fine:"), "{}", stdout(&output));
    assert_eq!(fs::read_to_string(AUTOGROUP).ok(), before);
}

#[test]
fn a_fix_outlives_a_run_and_restore_puts_it_back() {
    if !is_root() {
        tests::skipped("changing the machine needs root");
        return;
    }
    // Before what is put back, so that it ends after that: drops go backwards.
    let _turn = alone();
    let Some(_put_back) = PutBack::of(AUTOGROUP) else {
        tests::skipped("this kernel has no autogroup to change");
        return;
    };
    let bench = Bench::default();
    fs::write(AUTOGROUP, "1").unwrap();

    let fixed = report(&bench, &["doctor", "--fix", "--format", "json"]);
    assert_eq!(check(&fixed, "autogroup")["value"], "off");
    let changed = fixed["changed"].as_array().unwrap();
    assert!(changed.iter().any(|c| c["path"] == AUTOGROUP), "{fixed:#}");

    let run = bench.run(&["run", "-a", "default", "--max-blocks", "1", "--", "true"]);
    expect_code(&run, 0);
    assert_eq!(fs::read_to_string(AUTOGROUP).unwrap().trim(), "0");

    expect_code(&bench.run(&["restore"]), 0);
    assert_eq!(fs::read_to_string(AUTOGROUP).unwrap().trim(), "1");
}

#[test]
fn the_results_hold_what_the_doctor_saw() {
    let _turn = alone();
    let bench = Bench::default();
    let run = bench.run(&[
        "run",
        "-o",
        "out",
        "-a",
        "default",
        "--max-blocks",
        "1",
        "--",
        "true",
    ]);
    expect_code(&run, 0);
    let text = fs::read_to_string(bench.path("out/system.json")).unwrap();
    let system: model::System = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> = system.preflight.iter().map(|c| c.name.as_str()).collect();
    assert!(names.contains(&"governor"), "{names:?}");
    assert!(names.contains(&"background-load"), "{names:?}");
}
