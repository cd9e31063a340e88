//! Metrics that an experiment defines, from real programs to the report, compare, verify and a
//! capsule.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use model::TrialState;
use results::ResultSet;
use std::process::Command;
use tests::{Bench, beside_others, expect_code, skipped, stderr, stdout};

const FILE: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }
[[workload]]
name = "printed"
kind = "command"
command = ["sh", "-c", "echo start; echo \"ops: $((100 + $$ % 7))\"; echo 'a,b\n1,20\n3,40' > table.csv; echo '{\"runs\": [{\"p99\": 5}]}' >&2"]
directory = "/PLACE"
[[workload.metric]]
name = "ops"
regex = '^ops: (?<v>\d+)$'
better = "higher"
unit = "1/s"
[[workload.metric]]
name = "mean_of_b"
csv = "b"
from = "table.csv"
pick = "mean"
better = "lower"
unit = "ms"
[[workload.metric]]
name = "p99_of_runs"
json = "$.runs[0].p99"
from = "stderr"
better = "lower"
unit = "us"
[stop]
min-blocks = 3
max-blocks = 3
"#;

fn text(bench: &Bench) -> String {
    FILE.replace("/PLACE", &bench.dir.path().display().to_string())
}

fn values(results: &ResultSet, metric: &str) -> Vec<f64> {
    let metrics = results.trials.iter().flat_map(|t| &t.trial.result.metrics);
    let of_it = metrics.filter(|m| m.metric == metric);
    of_it.map(|m| m.value).collect()
}

#[test]
fn own_metrics_reach_results_report_compare_verify_and_a_capsule() {
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("own.toml", &text(&bench));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(values(&results, "mean_of_b"), [30.0; 6]);
    assert_eq!(values(&results, "p99_of_runs"), [5.0; 6]);
    let ops = values(&results, "ops");
    assert!(ops.len() == 6 && ops.iter().all(|ops| (100.0..107.0).contains(ops)));
    // A run is not compared with itself.
    expect_code(&bench.run(&["run", &file, "-o", "again"]), 0);
    for args in [&["report", "out"][..], &["compare", "out", "again"]] {
        let output = bench.run(args);
        expect_code(&output, 0);
        for name in ["ops", "mean_of_b", "p99_of_runs"] {
            let said = stdout(&output);
            assert!(said.contains(name), "{args:?} has no {name}:\n{said}");
        }
    }
    expect_code(&bench.run(&["pack", "out", "-o", "out.tar.gz"]), 0);
    expect_code(&bench.run(&["verify", "out.tar.gz"]), 0);
}

/// The error that the first trial failed with, where the file is changed so.
fn failure(from: &str, to: &str) -> String {
    let bench = Bench::default();
    let changed = text(&bench).replacen(from, to, 1);
    assert_ne!(changed, text(&bench));
    let changed = changed.replace("max-blocks = 3", "max-blocks = 3\nmax-attempts = 1");
    let file = bench.file("own.toml", &changed);
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    match &results.trials[0].trial.result.state {
        TrialState::Failed { why } => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_figure_that_is_missing_doubled_or_no_number_fails_the_trial_with_its_line() {
    let _turn = beside_others();
    let said = failure("echo \\\"ops: $((", "echo \\\"opps: $((");
    assert!(
        said.contains("the metric `ops`") && said.contains("opps: 1"),
        "{said}"
    );
    let said = failure("echo start", "echo 'ops: 1'");
    assert!(said.contains("2 times, first `1` in line 1"), "{said}");
    let said = failure("1,20", "1,much");
    assert!(said.contains("`much` in line 2, `1,much`"), "{said}");
    let said = failure("> table.csv", "> other.csv");
    assert!(said.contains("table.csv cannot be read"), "{said}");
}

#[test]
fn a_file_of_an_earlier_trial_is_no_figure_of_this_one() {
    let _turn = beside_others();
    let said = failure(
        "> table.csv",
        "> new.csv\"]\nprepare = [\"sh\", \"-c\", \"echo 'a,b\\n1,2' > table.csv; true",
    );
    assert!(said.contains("table.csv is an old one"), "{said}");
}

/// Runs a command with a metric, where its program is installed.
fn figure_of(program: &str, metric: &str, command: &[&str]) -> Option<Vec<f64>> {
    let found = Command::new(program).arg("--version").output();
    if found.is_err() {
        skipped(format!("{program} is not installed"));
        return None;
    }
    let bench = Bench::default();
    let options = [
        "run",
        "-a",
        "default",
        "-a",
        "batch",
        "--max-blocks",
        "2",
        "-o",
        "out",
    ];
    let options = [&options[..], &["--metric", metric, "--", program], command].concat();
    let output = bench.run(&options);
    assert!(output.status.success(), "{}", stderr(&output));
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let name = metric.split('=').next().unwrap();
    Some(values(&results, name))
}

#[test]
fn real_programs_have_figures_of_their_own() {
    let _turn = beside_others();
    for (program, metric, command) in [
        (
            "stress-ng",
            r"ops=/cpu\s+\d+\s+\S+\s+\S+\s+\S+\s+(?<v>[\d.]+)/ higher 1/s from=stderr",
            &["--cpu", "1", "--timeout", "1", "--metrics-brief"][..],
        ),
        (
            "sysbench",
            r"events=/events per second:\s+(?<v>[\d.]+)/ higher 1/s",
            &["cpu", "--time=1", "run"],
        ),
        (
            "hackbench",
            "took=/^Time: (?<v>.+)/ lower s",
            &["-g", "1", "-l", "500"],
        ),
    ] {
        if let Some(found) = figure_of(program, metric, command) {
            assert!(
                found.len() == 4 && found.iter().all(|v| *v > 0.0),
                "{program}: {found:?}"
            );
        }
    }
}
