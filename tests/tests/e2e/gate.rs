//! `schedlab gate`: a new run against a stored one, from the command line.

use synthetic::Scenario;
use tests::{Bench, expect_code, stderr, stdout};

/// A results directory of the bench.
fn stored(bench: &Bench, name: &str, seed: u64, change: impl Fn(&mut Scenario)) {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.seed = seed;
    change(&mut scenario);
    synthetic::write(&bench.path(name), &scenario).expect("a results directory");
}

fn batch_is_slower(scenario: &mut Scenario) {
    for effect in &mut scenario.effects {
        if effect.cell == "hackbench" && effect.arm == "batch" {
            effect.throughput *= 0.7;
        }
    }
}

fn bench() -> Bench {
    let bench = Bench::default();
    stored(&bench, "good", 1, |_| {});
    stored(&bench, "same", 2, |_| {});
    stored(&bench, "slower", 3, batch_is_slower);
    stored(&bench, "other", 4, |scenario| {
        scenario.experiment.workloads[0].duration_ns += 1_000_000_000;
    });
    bench
}

#[test]
fn a_regression_fails_the_gate_and_noise_does_not() {
    let bench = bench();
    expect_code(&bench.run(&["gate", "good", "same"]), 0);
    let output = bench.run(&["gate", "good", "slower"]);
    expect_code(&output, 5);
    let said = stdout(&output);
    assert!(said.starts_with("FAILED on 1: 1 regression"), "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("a call is false with at most 10 %"), "{said}");
    // What became better fails only where that is asked for.
    expect_code(&bench.run(&["gate", "slower", "good"]), 0);
    let args = ["gate", "slower", "good", "--fail-on", "difference"];
    expect_code(&bench.run(&args), 5);
}

#[test]
fn what_is_not_decided_is_said_and_can_fail() {
    let bench = Bench::default();
    let mut any_effect = synthetic::quickstart();
    // Nothing is larger than an effect of 90 %, so no comparison is left open.
    any_effect.experiment.stop.smallest_effect = 0.9;
    for (name, scenario, open) in [
        ("three-blocks", synthetic::few_blocks(3), true),
        ("any-effect", any_effect, false),
    ] {
        let [old, new] = ["old", "new"].map(|of| format!("{name}-{of}"));
        for (name, seed) in [(&old, 1), (&new, 2)] {
            let mut scenario = scenario.clone();
            scenario.experiment.seed = seed;
            synthetic::write(&bench.path(name), &scenario).expect("a results directory");
        }
        let output = bench.run(&["gate", &old, &new]);
        expect_code(&output, 0);
        let said = stderr(&output);
        assert_eq!(said.contains("are not decided"), open, "{name}: {said}");
        let output = bench.run(&["gate", &old, &new, "--fail-on", "unknown"]);
        expect_code(&output, if open { 5 } else { 0 });
    }
}

#[test]
fn a_ci_gets_junit_ktap_and_markdown() {
    let bench = bench();
    let of = |format| stdout(&bench.run(&["gate", "good", "slower", "--format", format]));
    let junit = of("junit");
    assert_eq!(junit.matches("<failure").count(), 1, "{junit}");
    assert!(junit.contains("type=\"regression\""), "{junit}");
    let ktap = of("ktap");
    assert!(ktap.starts_with("KTAP version 1\n1.."), "{ktap}");
    assert_eq!(ktap.matches("\n  not ok ").count(), 1, "{ktap}");
    assert_eq!(ktap.matches("\nnot ok ").count(), 1, "{ktap}");
    assert!(of("markdown").contains("**regression**"));
    let json: serde_json::Value = serde_json::from_str(&of("json")).expect("JSON");
    assert_eq!(json["by"], "effects");
    let calls = json["checks"].as_array().expect("a list").iter();
    assert_eq!(calls.filter(|c| c["call"] == "regression").count(), 1);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let bench = bench();
    for (args, says) in [
        (vec!["good", "other"], "not results of the same experiment"),
        (vec!["good", "good"], "are the same run"),
        (
            vec!["good", "same", "--virtual"],
            "not measured in virtual time",
        ),
        (vec!["good", "nothing"], "does not exist"),
    ] {
        let mut all = vec!["gate"];
        all.extend(args);
        let output = bench.run(&all);
        expect_code(&output, 2);
        let said = stderr(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(said.contains(says), "{all:?}: {said}");
    }
}
