//! `schedlab pick`, from the command line.

#![allow(clippy::disallowed_methods)]

use serde_json::Value;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

#[test]
fn a_short_pick_answers_and_changes_nothing() {
    let _turn = beside_others();
    let bench = Bench::default();
    let words = [
        "pick", "--for", "server", "--budget", "28s", "-a", "nice=1", "--only", "-o", "out",
        "--quiet", "--format", "json",
    ];
    let output = bench.run(&words);
    // On a busy machine the time may not be enough for three blocks of each cell, and then it says so.
    match stderr(&output).contains("no arm has enough blocks") {
        true => expect_code(&output, 4),
        false => expect_code(&output, 0),
    }
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let arms = found["recommendation"]["arms"].as_array().expect("a list");
    assert_eq!(arms.len(), 2, "{found}");
    let answer = found["answer"].as_str().expect("a sentence");
    let is_known = [
        "Use nice=1",
        "Stay with what you have",
        "No difference was found in 28s",
    ];
    assert!(
        is_known.iter().any(|start| answer.starts_with(start)),
        "{answer}"
    );
    let again = bench.run(&["recommend", "out"]);
    assert_eq!(
        again.status.code(),
        output.status.code(),
        "{}",
        stderr(&again)
    );
}

#[test]
fn a_pick_of_an_arm_that_does_not_exist_is_refused() {
    let bench = Bench::default();
    let output = bench.run(&["pick", "-a", "bathc"]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("batch"), "{}", stderr(&output));
    expect_code(&bench.run(&["pick", "--for", "everything"]), 2);
}
