//! Loads that are shares of the highest rate of the baseline, on a service whose capacity is
//! known: it answers one request at a time and takes 10 ms for each.

#![allow(clippy::unwrap_used)]

use results::ResultSet;
use results::read::read_calibrations;
use std::path::Path;
use std::process::Output;
use tests::{Bench, alone, expect_code, stderr, stdout};

const EXPERIMENT: &str = r#"
name = "desk"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }

[[workload]]
name = "desk"
kind = "http"
url = "/desk"
loads = { shares-of-max = ["50%", "120%"], slo = "p50 < 50ms", from = "50/s", to = "400/s" }
arrivals = "constant"
connections = 8
warmup = "100ms"
duration = "1s"
metrics = ["request_p50"]

[[workload.service]]
name = "notes"
command = ["python3", "SCRIPT", "{port}"]
ports = ["http"]
ready = { path = "/health" }

[stop]
min-blocks = 1
max-blocks = 1
"#;

/// The experiment, changed so.
fn file(bench: &Bench, from: &str, to: &str) -> String {
    assert!(EXPERIMENT.contains(from), "{from}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/notes.py");
    let text = EXPERIMENT.replacen(from, to, 1);
    bench.file(
        "desk.toml",
        &text.replace("SCRIPT", &script.display().to_string()),
    )
}

/// On a busy machine an attempt may fail; the next one makes up for it.
#[track_caller]
fn expect_figures(output: &Output) {
    if output.status.code() != Some(4) {
        expect_code(output, 0);
    }
}

fn max_per_sec(bench: &Bench) -> f64 {
    let found = read_calibrations(&bench.path("out")).unwrap();
    let rates: Vec<f64> = found.values().filter_map(|c| c.max_per_sec).collect();
    assert_eq!(rates.len(), 2, "one for each cell: {found:?}");
    assert_eq!(rates[0].to_bits(), rates[1].to_bits(), "{found:?}");
    rates[0]
}

/// Every trial offered its share of the highest rate.
fn expect_shares(bench: &Bench, max: f64) {
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let counting = results.trials.iter().filter(|t| t.trial.is_ok());
    let trials: Vec<_> = counting.map(|stored| &stored.trial).collect();
    assert!(trials.len() >= 4, "two arms at two shares: {trials:?}");
    for trial in trials {
        let share = match trial.cell.as_str() {
            "desk 50% of max" => 0.5,
            "desk 120% of max" => 1.2,
            other => panic!("{other}"),
        };
        let offered = trial.metric("offered_per_sec").unwrap().value;
        // Whole requests within a window of a second.
        assert!((offered - share * max).abs() <= 1.5, "{offered}: {trial:?}");
        let overloaded = trial.metric("overloaded").unwrap().value;
        // The service does 100 a second; a search on a busy machine may have found less.
        match share * max {
            rate if rate > 105.0 => assert_eq!(overloaded, 1.0, "{trial:?}"),
            rate if rate < 90.0 => assert_eq!(overloaded, 0.0, "{trial:?}"),
            _ => {}
        }
    }
}

#[test]
#[ignore = "a machine that nothing else uses for most of a minute: make test-long ROWS=quiet"]
fn arms_are_compared_at_shares_of_what_the_baseline_sustains_and_a_resume_has_the_same() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = alone();
    let bench = Bench::default();
    let text = file(&bench, "desk", "desk");
    let said = stdout(&bench.run(&["plan", &text]));
    let search = "before the first block: the highest rate of desk at p50 < 50ms under default, from \
                  50/s to 400/s, about";
    assert!(said.contains(search), "{said}");

    let output = bench.run(&["run", &text, "-o", "out"]);
    expect_figures(&output);
    let max = max_per_sec(&bench);
    // Within a second, half of the requests may wait for 50 ms at a rate a little above 100.
    assert!((50.0..125.0).contains(&max), "{max}");
    assert!(
        stderr(&output).contains("the highest rate of desk at p50 < 50ms is"),
        "{}",
        stderr(&output)
    );
    expect_shares(&bench, max);
    let tried = std::fs::read_to_string(bench.path("out/searches/desk.csv")).unwrap();
    assert!(tried.lines().count() > 4, "{tried}");
    let report = stdout(&bench.run(&["report", "out", "--full"]));
    let title = format!("desk 50% of max ({})", model::format_rate(0.5 * max));
    assert!(report.contains(&title), "{title} in\n{report}");

    let output = bench.run(&["run", "--resume", "out", "--max-blocks", "2"]);
    expect_figures(&output);
    assert!(
        !stderr(&output).contains("highest rate"),
        "{}",
        stderr(&output)
    );
    assert_eq!(max_per_sec(&bench).to_bits(), max.to_bits());
    expect_shares(&bench, max);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert!(results.trials.iter().any(|t| t.trial.place.block == 2));
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn a_capacity_beyond_the_ends_of_the_search_ends_the_run_with_the_end_to_move() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = alone();
    for (from, to, why, remedy) in [
        (
            "\"400/s\"",
            "\"60/s\"",
            "still holds at 60/s",
            "go on further with `to`",
        ),
        (
            "\"50/s\"",
            "\"150/s\"",
            "does not even hold at 150/s",
            "`from`",
        ),
    ] {
        let bench = Bench::default();
        let output = bench.run(&["run", &file(&bench, from, to), "-o", "out"]);
        expect_code(&output, 3);
        let said = stderr(&output);
        assert!(said.contains("workload desk: the highest rate"), "{said}");
        assert!(said.contains(why) && said.contains(remedy), "{said}");
        assert!(!bench.path("out").exists(), "nothing was measured");
    }
}

#[test]
fn shares_that_cannot_be_are_refused_with_their_place() {
    let bench = Bench::default();
    for (from, to, why) in [
        ("\"50%\"", "\"0%\"", "above 0%"),
        ("\"50%\"", "\"1001%\"", "at most 1000%"),
        ("\"50%\"", "50", "a percentage"),
        (", slo = \"p50 < 50ms\"", "", "Add slo ="),
    ] {
        let output = bench.run(&["check", &file(&bench, from, to)]);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(why), "{said}");
        assert!(said.contains("desk.toml:"), "{said}");
    }
}
