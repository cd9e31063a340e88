//! Several kinds of request to a real small service, which is no Java: Python's http.server.

#![allow(clippy::unwrap_used)]

use model::{TrialResult, TrialState};
use results::ResultSet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tests::{Bench, beside_others, expect_code, stderr, stdout};

const EXPERIMENT: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }

[[workload]]
name = "notes"
kind = "http"
loads = ["100/s"]
arrivals = "constant"
warmup = "200ms"
duration = "2s"
metrics = ["request_p50"]

[workload.phases]
ramp-up = "500ms"
ramp-down = "500ms"
from = "20%"

[[workload.setup]]
name = "Prepare"
count = 10
path = "/notes"
body = '{"text":"first","owner":"nobody"}'
expect = { status = 201 }
take = { note = "$.id", key = "$.key" }

[[workload.request]]
name = "Write"
weight = 1
path = "/notes"
body = '{"text":"{pick:CITIES}","owner":"{int:1..9}"}'
expect = { status = 201 }
take = { note = "$.id", key = "$.key" }

[[workload.request]]
name = "Give Away"
weight = 1
method = "PUT"
path = "/notes/{note}/owner/somebody"
headers = { X-Key = "{key}" }
expect = { status = 200, json = "$.owner", is = "somebody" }

[[workload.request]]
name = "Read"
weight = 3
path = "/notes/{note}"
expect = { status = 200, json = "$.text" }

[[workload.service]]
name = "notes"
command = ["python3", "SCRIPT", "{port}"]
ports = ["http"]
ready = { path = "/health" }

[stop]
min-blocks = 1
max-blocks = 1
max-attempts = 1
"#;

fn text(bench: &Bench) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/notes.py");
    let cities = bench.file("cities.txt", "Bad Ems\nUlm\n");
    let text = EXPERIMENT.replace("SCRIPT", &script.display().to_string());
    text.replace("CITIES", &cities)
}

/// The first trial of the experiment, changed so, with its folder.
fn trial(bench: &Bench, from: &str, to: &str, code: i32) -> (TrialResult, PathBuf) {
    let text = text(bench);
    assert!(text.contains(from), "{from}");
    let file = bench.file("notes.toml", &text.replacen(from, to, 1));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), code);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let left = std::fs::read_dir(bench.path("state/folders"));
    assert_eq!(left.map_or(0, Iterator::count), 0);
    let stored = &results.trials[0];
    (stored.trial.result.clone(), stored.dir.clone())
}

fn value(result: &TrialResult, name: &str) -> f64 {
    let metric = result.metrics.iter().find(|m| m.metric == name);
    metric.unwrap_or_else(|| panic!("{name} is there")).value
}

/// Offered and failed by name.
fn counts(dir: &Path) -> BTreeMap<String, (f64, f64)> {
    let table = std::fs::read_to_string(dir.join("requests-by-name.csv")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().unwrap();
        (cells[0].to_owned(), (number(1), number(3)))
    };
    table.lines().skip(1).map(row).collect()
}

#[test]
fn every_kind_has_its_share_its_figures_and_the_values_that_were_taken() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let (result, dir) = trial(&bench, "default", "default", 0);
    assert_eq!(result.state, TrialState::Ok);
    assert_eq!(value(&result, "error_percent"), 0.0, "{result:?}");
    let counts = counts(&dir);
    let names: Vec<&str> = counts.keys().map(String::as_str).collect();
    assert_eq!(names, ["Give Away", "Read", "Write"], "no set-up");
    let offered: f64 = counts.values().map(|(offered, _)| offered).sum();
    // A second at 100, and half a second up and down from 20: 160.
    assert!((offered - 160.0).abs() <= 2.0, "{offered}");
    assert_eq!(value(&result, "offered_per_sec"), offered / 2.0);
    assert!(
        (counts["Read"].0 - 0.6 * offered).abs() <= 3.0,
        "{counts:?}"
    );
    assert!(
        (counts["Write"].0 - 0.2 * offered).abs() <= 3.0,
        "{counts:?}"
    );
    assert!(value(&result, "request_mean") > 0.0);

    let report = bench.run(&["report", "out"]);
    let shown = stdout(&report);
    assert!(
        shown.contains("success") && shown.contains("goodput"),
        "{shown}"
    );
    let csv = stdout(&bench.run(&["report", "out", "--format", "requests"]));
    let rows: Vec<&str> = csv.lines().collect();
    assert!(
        rows[0].starts_with("cell,arm,trials,success_percent,mean_ns,p75_ns,p95_ns"),
        "{csv}"
    );
    assert!(rows[1].starts_with("notes 100/s,default,1,100,"), "{csv}");
    assert!(rows[2].starts_with("notes 100/s,batch,1,100,"), "{csv}");
}

#[test]
fn requests_with_another_answer_than_the_right_one_fail_and_are_named() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let broken = "path = \"/broken\"\nexpect = { status = 200 }";
    let right = "path = \"/notes/{note}\"\nexpect = { status = 200, json = \"$.text\" }";
    let (result, dir) = trial(&bench, right, broken, 0);
    assert_eq!(result.state, TrialState::Ok);
    let (offered, failed) = counts(&dir)["Read"];
    assert_eq!(offered, failed);
    assert!((value(&result, "error_percent") - 60.0).abs() < 3.0);
    let said: Vec<&str> = result.warnings.iter().map(|w| w.what.as_str()).collect();
    assert!(
        said.contains(&"failed most often: Read: status 500"),
        "{said:?}"
    );
    let shown = "a wrong answer: Read, status 500: {\"error\": \"out of ink\"}";
    assert!(said.contains(&shown), "{said:?}");
}

/// Why the first trial failed, where the file is changed so.
fn failure(from: &str, to: &str) -> String {
    let bench = Bench::default();
    match trial(&bench, from, to, 4).0.state {
        TrialState::Failed { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_up_that_fails_and_a_service_that_dies_fail_the_trial_with_their_words() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let said = failure("status = 201 }\ntake", "status = 200 }\ntake");
    let words = "set-up, `Prepare` (1 of 10): status 201, expected status 200: {\"id\": 1";
    assert!(said.contains(words), "{said}");
    let said = failure("path = \"/notes/{note}\"\n", "path = \"/end\"\n");
    assert!(said.contains("service-notes ended"), "{said}");
    assert!(said.contains("exit status 3"), "{said}");
}

#[test]
fn a_mix_that_cannot_be_is_refused_with_its_place() {
    let bench = Bench::default();
    let file = bench.file("wrong.toml", &text(&bench).replace("{key}", "{kye}"));
    let output = bench.run(&["check", &file]);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("`{kye}` stands for nothing"), "{said}");
    assert!(said.contains("did you mean `key`?"), "{said}");
    assert!(said.contains("headers = { X-Key"), "{said}");
    let missing = text(&bench).replace("cities.txt", "towns.txt");
    let output = bench.run(&["check", &bench.file("missing.toml", &missing)]);
    expect_code(&output, 3);
    assert!(stderr(&output).contains("towns.txt"), "{}", stderr(&output));
}
