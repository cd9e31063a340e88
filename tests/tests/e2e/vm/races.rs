//! Races between settings in a guest.

use super::guests::experiment;
use super::proof::{arm, no_faulty_guests};
use serde_json::Value;
use tests::{Bench, alone, expect_code, stdout};

#[test]
#[ignore = "takes minutes: make test-long ROWS=tune"]
fn a_candidate_that_is_thrown_out_is_dropped_as_such_and_the_best_of_the_others_wins() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let text = experiment(&arm("thrown", "error:2", ""), "sleep $((5 - ${N:-1}))");
    let text = text.replace(
        "min-blocks = 1\nmax-blocks = 1\nmax-attempts = 1",
        "max-blocks = 12",
    );
    let text = format!("{text}[tune]\nvary = [\"env.N=1,3\"]\n");
    let file = bench.file("race.toml", &text);
    let words = [
        "tune", &file, "-o", "race", "--budget", "8m", "--quiet", "--format", "json",
    ];
    let output = bench.run(&words);
    expect_code(&output, 0);
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(
        (&answer["advice"], &answer["arm"]),
        (&"winner".into(), &"env.N=3".into()),
        "{answer}"
    );
    let candidates = answer["candidates"].as_array().expect("a list");
    let thrown = candidates
        .iter()
        .find(|candidate| candidate["arm"] == "thrown");
    let thrown = thrown.expect("a candidate");
    assert_eq!(thrown["failed"], true, "{thrown}");
    let why = thrown["why"].as_str().unwrap_or_default();
    assert!(
        why.contains("scx_bpf_error") || why.contains("the error that was asked for"),
        "{why}"
    );
}
