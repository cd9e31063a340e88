//! The workload `gatling` with real Gatling against the real banking service, without its
//! broker: jars that `make test-java` has built.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use model::TrialState;
use results::ResultSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

const EXPERIMENT: &str = r#"
[[arm]]
name = "default"

[[workload]]
kind = "gatling"
loads = ["40/s"]
warmup = "2s"
duration = "6s"
metrics = ["request_p50"]
directory = "/DEMO"
command = [
  "java", "--add-opens", "java.base/java.lang=ALL-UNNAMED",
  "-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=9", "-Djava.util.prefs.userRoot={folder}",
  "-Dbank.baseUrl=http://127.0.0.1:{bank.port}", "-Dbank.log={folder}/requests.csv",
  "-Dbank.accounts=20", "-Dbank.steadyRate={rate}", "-Dbank.warmUp={warmup}",
  "-Dbank.duration={duration}", "-Dbank.seed={seed}",
  "-cp", "target/gatling/*:target/gatling-report/*",
  "io.gatling.app.Gatling", "-s", "schedlab.load.BankSimulation", "-rf", "{folder}/html",
]
keep = ["html"]

[[workload.service]]
name = "bank"
ports = ["http"]
directory = "/DEMO"
command = [
  "java", "-XX:TieredStopAtLevel=1", "-cp", "target/bank/*", "schedlab.bank.BankApplication",
  "--server.port={port}", "--kafka.enabled=false",
]
ready = { path = "/actuator/health" }
ready-limit = "5m"

[stop]
min-blocks = 1
max-blocks = 1
max-attempts = 1
"#;

/// A simulation that knows nothing of schedlab, as a person has it: Gatling's own log is all that
/// it leaves.
const OWN: &str = r#"
[[arm]]
name = "default"

[[workload]]
name = "notes"
kind = "gatling"
loads = ["50/s"]
warmup = "2s"
duration = "4s"
metrics = ["request_p50"]
command = [
  "java", "--add-opens", "java.base/java.lang=ALL-UNNAMED",
  "-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=9", "-Djava.util.prefs.userRoot={folder}",
  "-Durl=http://127.0.0.1:{notes.port}", "-Drate={rate}", "-Dseconds={total}",
  "-cp", "CLASSES:DEMO/target/gatling/*",
  "io.gatling.app.Gatling", "-s", "NotesSimulation", "-rf", "{folder}/results", "-nr",
]
keep = ["results"]

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

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo")
}

fn can_run() -> bool {
    let is_built = demo().join("target/gatling-report").is_dir();
    if !is_built {
        tests::skipped("demo/ is not built: make demo-jars");
    }
    is_built
}

/// The one trial of the experiment, changed so, with its folder.
fn trial(bench: &Bench, from: &str, to: &str, code: i32) -> (TrialState, PathBuf, ResultSet) {
    let demo = demo().canonicalize().unwrap().display().to_string();
    let text = EXPERIMENT.replace("/DEMO", &demo);
    assert!(text.contains(from), "{from}");
    run(bench, &text.replacen(from, to, 1), code)
}

/// The one trial of an experiment, with its folder.
fn run(bench: &Bench, text: &str, code: i32) -> (TrialState, PathBuf, ResultSet) {
    let file = bench.file("gatling.toml", text);
    expect_code(&bench.run(&["run", &file, "-o", "out"]), code);
    bench.expect_nothing_left();
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let stored = &results.trials[0];
    (
        stored.trial.result.state.clone(),
        stored.dir.clone(),
        results,
    )
}

#[test]
fn real_gatling_is_measured_by_its_requests_and_its_page_is_kept() {
    if !can_run() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let (state, dir, results) = trial(&bench, "default", "default", 0);
    assert_eq!(state, TrialState::Ok);
    let metrics = &results.trials[0].trial.result.metrics;
    let value = |name: &str| metrics.iter().find(|m| m.metric == name).unwrap().value;
    assert_eq!(value("error_percent"), 0.0);
    assert!(value("request_p50") > 0.0 && value("generator_cpu") > 0.0);
    let table = std::fs::read_to_string(dir.join("requests-by-name.csv")).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|l| l.split(',').collect())
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert!(
        names.contains(&"Transfer") && names.contains(&"Prime Search"),
        "{names:?}"
    );
    // A second up, four seconds of 40, a second down, give or take what a busy machine moves over the
    // ends; none of the 80 of the warm-up.
    let offered: u64 = rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
    assert!((160..=240).contains(&offered), "{offered}");
    assert_eq!(value("offered_per_sec"), offered as f64 / 6.0);
    let runs = std::fs::read_dir(dir.join("kept/load/html")).unwrap();
    let pages = runs
        .flatten()
        .filter(|run| run.path().join("index.html").is_file());
    assert_eq!(pages.count(), 1);
    let report = dir.parent().unwrap().join("../report/report.html");
    let report = std::fs::read_to_string(report).unwrap();
    let link = format!(
        "<a href=\"../trials/{}/kept/load/html/",
        dir.file_name().unwrap().to_str().unwrap()
    );
    assert!(report.contains(&link), "{link}");
}

/// The experiment with a simulation of one's own, compiled as `javac` does it.
fn own(bench: &Bench) -> String {
    let demo = demo().canonicalize().unwrap().display().to_string();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let classes = bench.path("classes");
    let compiled = Command::new("javac")
        .args(["-cp", &format!("{demo}/target/gatling/*"), "-d"])
        .arg(&classes)
        .arg(fixtures.join("NotesSimulation.java"))
        .output()
        .unwrap();
    expect_code(&compiled, 0);
    OWN.replace("CLASSES", &classes.display().to_string())
        .replace("DEMO", &demo)
        .replace("SCRIPT", &fixtures.join("notes.py").display().to_string())
}

#[test]
fn a_simulation_of_ones_own_is_measured_by_gatlings_own_log() {
    if !can_run() || !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let (state, dir, results) = run(&bench, &own(&bench), 0);
    assert_eq!(state, TrialState::Ok);
    let result = &results.trials[0].trial.result;
    let value = |name: &str| result.metrics.iter().find(|m| m.metric == name);
    assert_eq!(value("error_percent").unwrap().value, 0.0);
    // 25 users a second with two requests each; the window begins where a user may be half way.
    let offered = value("offered_per_sec").unwrap().value;
    assert!((offered - 50.0).abs() <= 8.0, "{offered}");
    assert!(value("request_p95").unwrap().value > 0.0);
    assert!(value("generator_cpu").unwrap().value > 0.0);
    assert!(value("generator_lateness_p50").is_none());
    let said: Vec<&str> = result.warnings.iter().map(|w| w.what.as_str()).collect();
    let note = "the log does not say when requests were due";
    assert!(said.iter().any(|what| what.contains(note)), "{said:?}");
    let table = std::fs::read_to_string(dir.join("requests-by-name.csv")).unwrap();
    let names: Vec<&str> = table
        .lines()
        .skip(1)
        .filter_map(|l| l.split(',').next())
        .collect();
    assert_eq!(names, ["Read", "Write"]);
    let report = stdout(&bench.run(&["report", "out", "--full"]));
    assert!(report.contains(note), "{report}");
}

#[test]
fn a_simulation_that_leaves_no_log_in_the_folder_of_the_load_is_told_how() {
    if !can_run() || !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let elsewhere = bench.path("elsewhere").display().to_string();
    let text = own(&bench).replacen("{folder}/results", &elsewhere, 1);
    let text = text.replacen("keep = [\"results\"]", "", 1);
    let why = failure(&bench, &text);
    assert!(why.contains("-rf {folder}"), "{why}");
}

/// Why the trial failed.
fn failure(bench: &Bench, text: &str) -> String {
    match run(bench, text, 4).0 {
        TrialState::Failed { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_simulation_that_cannot_be_made_or_compiled_fails_the_trial_with_its_words() {
    if !can_run() || !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let text = own(&bench);
    let why = failure(&bench, &text.replacen("\"-Drate={rate}\", ", "", 1));
    assert!(why.contains("-Drate is missing"), "{why}");
    assert!(why.contains("before its injection began"), "{why}");

    let bench = Bench::default();
    let broken = bench.file("Broken.java", "class Broken { int i = ; }\n");
    // As a build tool does it that compiles first.
    let compile = format!("\"sh\", \"-c\", 'javac {broken} && exec \"$@\"', \"sh\", \"java\"");
    let why = failure(&bench, &text.replacen("\"java\"", &compile, 1));
    assert!(why.contains("illegal start of expression"), "{why}");
    assert!(why.contains("before its injection began"), "{why}");
}

#[test]
fn a_simulation_that_is_not_there_fails_the_trial_with_its_words() {
    if !can_run() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let (state, ..) = trial(
        &bench,
        "schedlab.load.BankSimulation",
        "no.such.Simulation",
        4,
    );
    match state {
        TrialState::Failed { why } => {
            assert!(why.contains("no.such.Simulation"), "{why}");
            assert!(why.contains("before its injection began"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_java_or_maven_the_package_is_named() {
    let bench = Bench::default();
    let file = bench.file("gatling.toml", &EXPERIMENT.replace("/DEMO", "."));
    let nothing = bench.path("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let check = bench
        .command(&["check", &file])
        .env("PATH", &nothing)
        .output();
    let check = check.unwrap();
    expect_code(&check, 3);
    let said = stderr(&check);
    assert!(said.contains("there is no program `java`"), "{said}");
    assert!(
        said.contains("apt-get install default-jre-headless"),
        "{said}"
    );

    // Building the jars as nobody who could install something.
    let tools = bench.path("tools");
    std::fs::create_dir(&tools).unwrap();
    tests::write_program(&tools.join("id"), "#!/bin/sh\necho 1000\n");
    let sed = Command::new("sh")
        .args(["-c", "command -v sed"])
        .output()
        .unwrap();
    std::os::unix::fs::symlink(stdout(&sed).trim(), tools.join("sed")).unwrap();
    let setup = Command::new("/bin/bash")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/setup"))
        .arg("jars")
        .env("PATH", &tools)
        .output()
        .unwrap();
    expect_code(&setup, 3);
    let said = stderr(&setup);
    assert!(
        said.contains("apt-get install default-jdk-headless maven"),
        "{said}"
    );
}

#[test]
fn what_the_simulation_lacks_is_said_before_anything_runs() {
    let bench = Bench::default();
    let file = bench.file(
        "gatling.toml",
        &EXPERIMENT.replacen("\"java\"", "\"no-such-java\"", 1),
    );
    let output = bench.run(&["check", &file]);
    expect_code(&output, 3);
    assert!(
        stderr(&output).contains("/DEMO does not exist"),
        "{}",
        stderr(&output)
    );
}

#[test]
#[ignore = "a dozen trials: make test-long ROWS=gatling"]
fn shares_of_what_the_baseline_sustains_are_looked_for_by_whole_trials() {
    if !can_run() {
        return;
    }
    let _turn = tests::alone();
    let bench = Bench::default();
    let shares = "loads = { shares-of-max = [\"50%\"], slo = \"p95 < 300ms\", from = \"40/s\", to = \"5k/s\" }";
    let (state, _, results) = trial(&bench, "loads = [\"40/s\"]", shares, 0);
    assert_eq!(state, TrialState::Ok);
    let found = results::read::read_calibrations(&bench.path("out")).unwrap();
    let most = found.values().find_map(|found| found.max_per_sec).unwrap();
    assert!((40.0..5000.0).contains(&most), "{most}");
    let sent = results.trials[0]
        .trial
        .metric("requests_per_sec")
        .unwrap()
        .value;
    assert!((0.3..0.7).contains(&(sent / most)), "{sent} of {most}");
    let said = stdout(&bench.run(&["report", "out"]));
    assert!(said.contains("50% of max"), "{said}");
}
