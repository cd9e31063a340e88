//! `schedlab certify` and `schedlab plan`: what a machine can see.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::process::Stdio;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

const QUICK: &str = r#"
name = "quick"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }
[[workload]]
kind = "command"
command = ["true"]
[stop]
max-blocks = 4
"#;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_certificate_compares_the_baseline_with_its_copies_and_nothing_else() {
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("quick.toml", QUICK);
    let args = [
        "certify", &file, "--copies", "2", "-o", "noise", "--format", "json",
    ];
    let output = bench.run(&args);
    expect_code(&output, 0);
    let certificate = json(&stdout(&output));
    // Three equal arms are three pairs.
    assert_eq!(certificate["arms"], 3);
    for cell in certificate["cells"].as_array().unwrap() {
        assert_eq!(cell["comparisons"], 3);
        assert_eq!(cell["blocks"], 4);
        assert!(cell["spread"].as_f64() > Some(0.0), "{cell}");
    }
    let stored = std::fs::read_to_string(bench.path("noise/certificate.json")).unwrap();
    assert_eq!(json(&stored), certificate);
    let results = results::ResultSet::read(&bench.path("noise")).unwrap();
    assert_eq!(results.trials.len(), 12, "no verdict ends a cell early");
    assert!(
        results
            .experiment
            .arms
            .iter()
            .all(|arm| arm.policy.is_none())
    );
}

#[test]
fn the_certificate_for_people_says_what_each_cell_sees() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = bench.run(&[
        "certify",
        "-a",
        "default",
        "--max-blocks",
        "3",
        "-q",
        "--",
        "true",
    ]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("times the same under two names"), "{said}");
    assert!(said.contains("wall_time"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() < 78), "{said}");
}

#[test]
fn a_certificate_needs_an_experiment() {
    let output = Bench::default().run(&["certify", "missing.toml"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("missing.toml"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_pilot_says_what_the_budget_will_show_and_can_be_asked_again() {
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("quick.toml", QUICK);
    let plan = [
        "plan",
        &file,
        "--pilot=3",
        "--budget",
        "5m",
        "--effect",
        "3%",
    ];
    let output = bench.run(&plan);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(
        said.contains("true: in 5m (4 blocks) you will see"),
        "{said}"
    );
    assert!(said.contains("a change of 3.0% takes"), "{said}");
    let pilot = std::fs::read_dir(bench.path("results")).unwrap().next();
    let pilot = pilot.unwrap().unwrap().path();
    let results = results::ResultSet::read(&pilot).unwrap();
    assert_eq!(results.trials.len(), 6);
    let again = bench.run(&[
        "plan",
        "--from",
        pilot.to_str().unwrap(),
        "--format",
        "json",
    ]);
    expect_code(&again, 0);
    let forecast = json(&stdout(&again));
    assert_eq!(forecast["pilot_blocks"], 3);
    assert_eq!(forecast["times"].as_array().map(Vec::len), Some(3));
}

#[test]
fn stored_results_answer_without_measuring() {
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/results-1.0");
    let output = Bench::default().run(&["plan", "--from", stored, "--effect", "10%"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("requests_per_sec"), "{said}");
    assert!(
        said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
}

#[test]
fn an_effect_without_any_knowledge_of_noise_is_refused() {
    let output = Bench::default().run(&["plan", "-a", "default", "-w", "wakeup", "--effect", "3%"]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("--pilot"), "{}", stderr(&output));
}

#[test]
fn an_interrupt_before_two_arms_were_measured_is_told_by_its_exit_code() {
    let _turn = beside_others();
    let bench = Bench::default();
    let args = [
        "certify", "-a", "default", "-o", "noise", "--", "sleep", "99",
    ];
    let mut child = bench
        .command(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    bench.wait_for_file(&mut child, "noise/system.json");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("an end");
    expect_code(&output, 130);
    assert!(
        stderr(&output).contains("interrupted"),
        "{}",
        stderr(&output)
    );
}
