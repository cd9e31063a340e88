//! `schedlab tune`, from the command line.

#![allow(clippy::disallowed_methods)]

use serde_json::Value;
use tests::{Bench, alone, beside_others, expect_code, stderr, stdout};

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
#[ignore = "a minute and a half, in make test-long"]
fn a_winner_is_measured_at_half_and_at_twice_the_load() {
    let _turn = alone();
    let bench = Bench::default();
    let words = "tune --vary nice=0,1 -a handicap=100% -w wakeup:2 --duration 500ms --budget 80s -o race --quiet \
                 --format json";
    let output = bench.run(&words.split_whitespace().collect::<Vec<_>>());
    expect_code(&output, 0);
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(answer["advice"], "winner", "{answer}");
    let others = answer["other_loads"].as_array().expect("a list");
    let cells: Vec<&Value> = others.iter().map(|at| &at["cells"][0]).collect();
    assert_eq!(cells, ["wakeup 1", "wakeup 4"], "{answer}");
    for at in others {
        assert!(
            at["ratio"].as_f64() > Some(1.0),
            "half the work is ahead: {at}"
        );
        assert!(at["blocks"].as_u64() > Some(0), "{at}");
    }
    let verified = bench.run(&["verify", "race"]);
    expect_code(&verified, 0);
    assert!(stdout(&verified).contains("race/neighbours/more: "));
    // What somebody writes into the state is found.
    let state = std::fs::read_to_string(bench.path("race/tune.json")).expect("the state");
    let at = state.find("\"neighbours\"").expect("they are there");
    let (before, after) = state.split_at(at);
    let changed = after.replacen("\"blocks\": ", "\"blocks\": 1", 1);
    assert_ne!(changed, after, "{after}");
    std::fs::write(bench.path("race/tune.json"), before.to_owned() + &changed).expect("written");
    let verified = bench.run(&["verify", "race"]);
    expect_code(&verified, 1);
    assert!(
        stdout(&verified).contains("at other loads nice="),
        "{}",
        stdout(&verified)
    );
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
    let verified = bench.run(&["verify", "race"]);
    expect_code(&verified, 0);
    let said = stdout(&verified);
    assert!(said.contains("the race follows from its trials"), "{said}");
    assert!(said.contains("race/confirmation: "), "{said}");
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

/// As fast as N is small, at a cost that is too high with N = 1.
const FILE: &str = r#"
[stop]
max-blocks = 12
[tune]
vary = ["env.N=1,2,5"]
objective = "minimise took where yield >= 0.9"
must-not-worsen = ["spent"]
[[workload]]
kind = "command"
command = ["sh", "-c", "n=${N:=8}; y=100; [ $n = 1 ] && y=50; s=0; [ $n = 5 ] || s=1; echo took 1.$n$((RANDOM % 9)) yield $y.$((RANDOM % 9)) spent 7.$s$((RANDOM % 9))"]
[[workload.metric]]
name = "took"
regex = 'took (?<v>[\d.]+)'
better = "lower"
[[workload.metric]]
name = "yield"
regex = 'yield (?<v>[\d.]+)'
better = "higher"
[[workload.metric]]
name = "spent"
regex = 'spent (?<v>[\d.]+)'
better = "lower"
[[arm]]
name = "default"
"#;

#[test]
fn who_breaks_a_constraint_is_dropped_and_the_best_of_the_others_wins() {
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("x.toml", &FILE.replace("\"sh\"", "\"bash\""));
    let words = [
        "tune", &file, "-o", "race", "--budget", "40s", "--quiet", "--format", "json",
    ];
    let output = bench.run(&words);
    expect_code(&output, 0);
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(answer["advice"], "winner", "{answer}");
    assert_eq!(answer["arm"], "env.N=2", "{answer}");
    let constraints = answer["confirmation"]["constraints"]
        .as_array()
        .expect("a list");
    let outcomes: Vec<&Value> = constraints.iter().map(|c| &c["outcome"]).collect();
    assert_eq!(outcomes, ["held", "held"], "{answer}");
    let candidates = answer["candidates"].as_array().expect("a list");
    let first = candidates
        .iter()
        .find(|c| c["arm"] == "env.N=1")
        .expect("a candidate");
    assert_eq!(first["breaks"], true, "{answer}");
    let why = first["why"].as_str().unwrap_or_default();
    assert!(
        why.starts_with("yield of") && why.contains("cannot be >= 0.9"),
        "{why}"
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
    let two = format!("--vary {a} --vary {b} -w wakeup");
    for (words, says) in [
        ("-w wakeup", "the space is empty"),
        ("--vary nice=5 -w wakeup", "the space is empty"),
        ("--space scx_none -w wakeup", "no ready space `scx_none`"),
        (&two, "1002001 points"),
        ("--vary slcie=1ms..2ms -w wakeup", "slice"),
        ("--vary nice=0,99 -w wakeup", "99"),
        ("--vary nice=0,5 -w wakeup --weigh x=0", "sum to 0"),
        (&file, "lower end"),
        (
            "--vary nice=0,5 -w wakeup --objective wakeup_p99",
            "does not say what to make better",
        ),
        (
            "--vary nice=0,5 -w wakeup --must-not-worsen wakeup_p98",
            "did you mean `wakeup_p9",
        ),
        ("--vary nice=0,5 -w wakeup --weigh http=1", "called `http`"),
    ] {
        let words: Vec<&str> = ["tune", "-o", "race"]
            .into_iter()
            .chain(words.split_whitespace())
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

/// A mix that sums to 0 is refused after all candidates are read, so they can be arms.
#[test]
fn every_ready_space_has_candidates_that_can_be_arms() {
    let bench = Bench::default();
    let listed = bench.run(&["list", "spaces", "--format", "json"]);
    let options: Vec<Value> = serde_json::from_str(&stdout(&listed)).expect("JSON");
    assert!(!options.is_empty());
    for option in options {
        let space = option["space"].as_str().expect("a name");
        let output = bench.run(&["tune", "--space", space, "-w", "wakeup", "--weigh", "x=0"]);
        expect_code(&output, 2);
        assert!(
            stderr(&output).contains("sum to 0"),
            "{space}: {}",
            stderr(&output)
        );
    }
}
