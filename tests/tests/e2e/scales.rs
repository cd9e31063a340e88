//! Metrics that may be 0 or below it: they are compared by differences, and every verdict, exit code and
//! format says so in their unit.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use tests::{Bench, alone, beside_others, expect_code, stderr, stdout};

/// An experiment whose program prints one text for the arm `nice` and another for the baseline.
fn experiment(nice: &str, other: &str, metric: &str) -> String {
    format!(
        "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"nice\"\npolicy = {{ nice = 5 }}\n\
         [[workload]]\nname = \"told\"\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", '''if [ \"$(nice)\" = 5 ]; then {nice}; else {other}; fi''']\n\
         [[workload.metric]]\nname = \"figure\"\nregex = 'figure: (?<v>\\S+)'\n{metric}\n\
         [stop]\nmax-blocks = 10\nmin-blocks = 10\n"
    )
}

/// Prints a figure, with its last digit drawn anew each time.
fn about(start: &str) -> String {
    format!("echo \"figure: {start}$(( $(date +%N | cut -c1-9 | sed 's/^0*//') % 7 ))\"")
}

const NONE: &str = "echo 'figure: 0'";
const LOWER: &str = "better = \"lower\"";
const HIGHER: &str = "better = \"higher\"\nunit = \"us\"";

/// Runs it with `--fail-on regression`.
fn run(bench: &Bench, text: &str, code: i32) {
    let file = bench.file("scales.toml", text);
    let args = [
        "run",
        "--wait",
        &file,
        "-o",
        "out",
        "--fail-on",
        "regression",
    ];
    expect_code(&bench.run(&args), code);
}

fn report(bench: &Bench, format: &str) -> String {
    stdout(&bench.run(&["report", "out", "--format", format]))
}

fn comparison(bench: &Bench) -> Value {
    let report: Value = serde_json::from_str(&report(bench, "json")).unwrap();
    report["comparisons"][0].clone()
}

#[test]
fn slack_below_0_is_worse_by_its_difference_in_every_format() {
    let _turn = beside_others();
    let bench = Bench::default();
    let text = experiment(&about("-40"), &about("-20"), HIGHER);
    run(&bench, &text, 5);
    let found = comparison(&bench);
    assert_eq!(found["verdict"], "worse");
    assert_eq!(
        (&found["ratio"], &found["low"]),
        (&Value::Null, &Value::Null)
    );
    let difference = found["difference"]["value"].as_f64().unwrap();
    assert!((-209.0..=-191.0).contains(&difference), "{found}");
    let ends = ["low", "high"].map(|end| found["difference"][end].as_f64().unwrap());
    assert!(
        -209.0 <= ends[0] && ends[0] <= difference && ends[1] <= -191.0,
        "{found}"
    );
    for format in ["text", "html", "markdown", "lkml"] {
        let said = report(&bench, format);
        let change = (191..=209).any(|us| said.contains(&format!("-{us} us")));
        assert!(change && said.contains("worse"), "{format}: {said}");
        // The legend of the page explains the words.
        let is_compared = format == "html" || !said.contains("not compared");
        assert!(is_compared, "{format}: {said}");
    }
    let csv = report(&bench, "comparisons");
    assert!(
        csv.lines().next().unwrap().contains("difference_low"),
        "{csv}"
    );
    expect_code(&bench.run(&["verify", "out"]), 0);
    expect_code(&bench.run(&["compare", "out", "out"]), 0);
}

#[test]
fn misses_that_come_from_none_are_a_regression() {
    let _turn = beside_others();
    let bench = Bench::default();
    run(&bench, &experiment(&about("3.0"), NONE, LOWER), 5);
    let found = comparison(&bench);
    assert_eq!(found["verdict"], "worse");
    let said = report(&bench, "text");
    assert!(
        said.contains("+3.0") && said.contains("nice is worse"),
        "{said}"
    );
}

#[test]
fn misses_that_go_to_none_are_better() {
    let _turn = beside_others();
    let bench = Bench::default();
    run(&bench, &experiment(NONE, &about("3.0"), LOWER), 0);
    assert_eq!(comparison(&bench)["verdict"], "better");
}

#[test]
fn none_under_both_arms_is_the_same() {
    // Beside others most of the CPU time is theirs, and no figures count as the same.
    let _turn = alone();
    let bench = Bench::default();
    run(&bench, &experiment(NONE, NONE, LOWER), 0);
    assert_eq!(comparison(&bench)["verdict"], "same");
}

#[test]
fn a_stressor_that_falls_to_0_is_worse() {
    let _turn = beside_others();
    let bench = Bench::default();
    run(&bench, &experiment(NONE, &about("9000"), HIGHER), 5);
    assert_eq!(comparison(&bench)["verdict"], "worse");
}

#[test]
fn the_smallest_effect_of_a_difference_is_in_its_unit() {
    // Beside others most of the CPU time is theirs, and no figures count as the same.
    let _turn = alone();
    let bench = Bench::default();
    let scale = format!("{HIGHER}\nscale = \"difference\"\nsmallest-effect = 300");
    run(&bench, &experiment(&about("140"), &about("120"), &scale), 0);
    let found = comparison(&bench);
    assert_eq!(found["verdict"], "same");
    assert_eq!(found["difference"]["smallest_effect"], 300.0);
}

/// Results `name` of an experiment whose figures are in files, so that it stays the same.
fn measured(bench: &Bench, name: &str, [nice, other]: [&str; 2]) {
    bench.file("nice.sh", nice);
    bench.file("other.sh", other);
    let text = experiment("sh nice.sh", "sh other.sh", LOWER);
    let file = bench.file("scales.toml", &text);
    let output = bench.run(&["run", "--wait", &file, "-o", name]);
    expect_code(&output, 0);
}

#[test]
fn a_gate_and_a_comparison_of_two_runs_judge_misses_that_come_from_none() {
    // Beside others most of the CPU time is theirs, and no figures count as the same.
    let _turn = alone();
    let bench = Bench::default();
    measured(&bench, "none", [NONE, NONE]);
    measured(&bench, "once-more", [NONE, NONE]);
    measured(&bench, "missed", [&about("3.0"), NONE]);
    let gate = |new: &str, by: &str, code: i32| -> Value {
        let args = ["gate", "none", new, "--by", by, "--format", "json"];
        let output = bench.run(&args);
        expect_code(&output, code);
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    for by in ["effects", "levels"] {
        let of_nice = |found: &Value| {
            let mut checks = found["checks"].as_array().unwrap().iter();
            let nice = checks.find(|c| c["arm"] == "nice" && c["metric"] == "figure");
            nice.unwrap().clone()
        };
        let missed = of_nice(&gate("missed", by, 5));
        assert_eq!(missed["call"], "regression", "{by}: {missed}");
        let rose = missed["difference"]["low"].as_f64().unwrap();
        // Figures are from 3.00 to 3.06, and the end of an interval may lie a little below them.
        assert!((2.9..3.1).contains(&rose), "{by}: {missed}");
        let same = of_nice(&gate("once-more", by, 0));
        assert_eq!(same["call"], "same", "{by}: {same}");
    }
    let output = bench.run(&["compare", "none", "missed"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("[+3.0") && said.contains("differs"), "{said}");
}

#[test]
fn a_smallest_effect_in_a_unit_is_refused_for_a_ratio() {
    let bench = Bench::default();
    let scale = format!("{HIGHER}\nsmallest-effect = 300");
    let file = bench.file("scales.toml", &experiment(NONE, NONE, &scale));
    let output = bench.run(&["check", &file]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("scale = \"difference\""),
        "{}",
        stderr(&output)
    );
}
