//! `schedlab tune`, from the command line.

#![allow(clippy::disallowed_methods)]

use serde_json::Value;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

/// Sleeps longer the farther N is from 6, and as without it at 1; `kill` ends it.
const WORK: &str =
    "case ${N:=1} in kill) exit 3;; esac; n=$((N - 6)); sleep 0.$((10 + 4 * ${n#-}))";

fn tune(bench: &Bench, more: &[&str]) -> std::process::Output {
    let mut words = vec![
        "tune",
        "--vary",
        "env.N=1..8",
        "-a",
        "default",
        "-a",
        "env.N=kill",
        "--weigh",
        "wall_time=1",
        "--budget",
        "30s",
        "-o",
        "race",
        "--quiet",
        "--format",
        "json",
    ];
    words.extend(more);
    words.extend(["--", "sh", "-c", WORK]);
    bench.run(&words)
}

#[test]
fn a_planted_best_value_wins_and_is_confirmed_by_blocks_of_its_own() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = tune(&bench, &[]);
    expect_code(&output, 0);
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(answer["advice"], "winner", "{answer}");
    // The sleep at 6 is a third of that at 1.
    assert!(
        answer["confirmation"]["low"]
            .as_f64()
            .is_some_and(|low| low > 1.2),
        "{answer}"
    );
    assert_eq!(answer["arm"], answer["confirmation"]["arm"]);
    let candidates = answer["candidates"].as_array().expect("a list");
    let of = |arm: &str| {
        candidates
            .iter()
            .find(|c| c["arm"] == arm)
            .expect("a candidate")
    };
    assert_eq!(of("env.N=kill")["failed"], true, "{answer}");
    let gain = |arm: &str| of(arm)["race_gain"].as_f64().expect("a gain");
    assert!(gain("env.N=6") > gain("env.N=1"), "{answer}");
    for results in ["race/rounds/01", "race/confirmation"] {
        expect_code(&bench.run(&["verify", results]), 0);
    }
    // The same command measures nothing more.
    let again = tune(&bench, &[]);
    assert_eq!(stdout(&again), stdout(&output));
    let other = bench.run(&["tune", "--vary", "nice=0,5", "-w", "wakeup", "-o", "race"]);
    expect_code(&other, 2);
    assert!(
        stderr(&other).contains("holds another race"),
        "{}",
        stderr(&other)
    );
}

#[test]
fn what_is_no_space_is_refused_before_anything_is_made() {
    let bench = Bench::default();
    let numbers: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    let list = |key: &str| format!("env.{key}={}", numbers.join(","));
    let (a, b) = (list("A"), list("B"));
    let file = bench.file(
        "x.toml",
        "[tune]\nvary = [\"nice=9..1\"]\n[[workload]]\nkind = \"wakeup\"\n",
    );
    for (words, says) in [
        (&["-w", "wakeup"][..], "the space is empty"),
        (&["--vary", "nice=5", "-w", "wakeup"], "the space is empty"),
        (
            &["--vary", &a, "--vary", &b, "-w", "wakeup"],
            "1002001 points",
        ),
        (&["--vary", "slcie=1ms..2ms", "-w", "wakeup"], "slice"),
        (&["--vary", "nice=0,99", "-w", "wakeup"], "99"),
        (
            &["--vary", "nice=0,5", "-w", "wakeup", "--weigh", "x=0"],
            "sum to 0",
        ),
        (&[&file], "lower end"),
    ] {
        let words: Vec<&str> = ["tune", "-o", "race"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        let output = bench.run(&words);
        expect_code(&output, 2);
        let said = stderr(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(!bench.path("race").exists(), "{words:?}");
    }
}
