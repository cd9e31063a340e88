//! Nothing measured is never a pass: each cell of the table of exit codes in `docs/reference.md`.

use model::{Arm, TrialState};
use results::RunState;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use synthetic::Scenario;
use tests::{Bench, expect_code, stderr, stdout};

/// Text of the page that has the table.
const PAGE: &str = include_str!("../../../docs/reference.md");
/// Blocks of a whole run.
const BLOCKS: u32 = 12;

/// Two cells of two arms; the second has this part of the throughput of the first.
fn scenario(seed: u64, throughput: f64) -> Scenario {
    let mut scenario = synthetic::quickstart();
    let experiment = &mut scenario.experiment;
    experiment.seed = seed;
    experiment.aa_arm = None;
    let mut other = Arm::unchanged("sliced");
    other.tunables = [("base_slice".to_owned(), "3000000".to_owned())].into();
    experiment.arms = vec![Arm::unchanged("default"), other];
    experiment.workloads[0].loads.truncate(1);
    experiment.workloads[0].metrics = vec!["requests_per_sec".to_owned()];
    (experiment.stop.min_blocks, experiment.stop.max_blocks) = (BLOCKS, BLOCKS);
    // Far beyond the noise of the blocks, and far below the effects.
    experiment.stop.smallest_effect = 0.05;
    scenario.effects = ["wakeup", "hackbench"]
        .map(|cell| synthetic::Effect {
            arm: "sliced",
            cell,
            throughput,
            latency: 1.0,
            tail: 1.0,
        })
        .into();
    scenario.failed_attempts.clear();
    scenario.warnings.clear();
    scenario.plan = schedule::plan_blocks(&scenario.experiment);
    scenario
}

/// Changes the JSON of each trial; one that is to go is `Null` then.
fn each_trial(dir: &Path, change: impl Fn(&mut Value)) {
    for entry in fs::read_dir(dir.join("trials")).expect("trials") {
        let dir = entry.expect("an entry").path();
        let path = dir.join("trial.json");
        let mut trial = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
        change(&mut trial);
        match trial.is_null() {
            true => fs::remove_dir_all(&dir).expect("removed"),
            false => fs::write(&path, trial.to_string()).expect("written"),
        }
    }
}

fn void(trial: &mut Value) {
    let why = "a thread had another policy".to_owned();
    let state = serde_json::to_value(TrialState::Void { why }).expect("JSON");
    trial["result"]["outcome"] = state;
    trial["result"]["metrics"] = json!([]);
}

fn set_state(dir: &Path, state: RunState) {
    let path = dir.join("manifest.json");
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    manifest["state"] = serde_json::to_value(state).expect("JSON");
    fs::write(path, manifest.to_string()).expect("written");
}

/// Takes each trial away of which this is true.
fn take_away(dir: &Path, is_gone: impl Fn(&Value) -> bool) {
    each_trial(dir, |trial| {
        if is_gone(trial) {
            *trial = Value::Null;
        }
    });
}

/// Results of which the words are true, and stored ones to hold them against.
struct Made {
    bench: Bench,
}

impl Made {
    fn new(throughput: f64, change: impl Fn(&mut Scenario)) -> Made {
        let bench = Bench::default();
        for (name, seed) in [("stored", 5), ("new", 6)] {
            let mut scenario = scenario(seed, throughput);
            change(&mut scenario);
            scenario.plan = schedule::plan_blocks(&scenario.experiment);
            synthetic::write(&bench.path(name), &scenario).expect("results");
        }
        Made { bench }
    }

    fn new_run(&self) -> PathBuf {
        self.bench.path("new")
    }

    fn but(self, change: impl Fn(&Path)) -> Made {
        change(&self.new_run());
        self
    }
}

fn whole() -> Made {
    Made::new(1.5, |_| {})
}

fn in_state(state: RunState) -> Made {
    whole().but(|dir| set_state(dir, state))
}

fn is_of(trial: &Value, cell: &str, arm: &str) -> bool {
    trial["cell"].as_str().is_some_and(|c| c.starts_with(cell)) && trial["arm"] == arm
}

/// The results that a row of the table is about.
fn made(state: &str) -> Made {
    match state {
        "all is measured, and nothing is worse" => whole(),
        "an arm is worse" => whole().but(|dir| {
            fs::remove_dir_all(dir).expect("removed");
            synthetic::write(dir, &scenario(6, 0.5)).expect("results");
        }),
        // The effect is the smallest one that matters, and two blocks do not tell.
        "a comparison is not decided" => Made::new(1.05, |scenario| {
            let stop = &mut scenario.experiment.stop;
            (stop.min_blocks, stop.max_blocks) = (2, 2);
        }),
        "a place of the plan has no trial that counts" => whole().but(|dir| {
            let is_it = |t: &Value| is_of(t, "wakeup", "sliced") && t["place"]["block"] == 3;
            each_trial(dir, |trial| {
                if is_it(trial) {
                    void(trial)
                }
            });
        }),
        "there is no trial" => whole().but(|dir| take_away(dir, |_| true)),
        "all trials are void" => whole().but(|dir| each_trial(dir, void)),
        "the run is under way, or was killed" => in_state(RunState::Running),
        "the run was interrupted" => in_state(RunState::Interrupted),
        "the run was ended by an error" => in_state(RunState::Aborted),
        "a metric that decides is in no trial" => whole().but(|dir| {
            each_trial(dir, |trial| {
                let metrics = trial["result"]["metrics"].as_array_mut().expect("a list");
                metrics.retain(|m| m["metric"] != "requests_per_sec");
            });
        }),
        "a cell has no trial" => {
            let is_it =
                |t: &Value| is_of(t, "hackbench", "sliced") || is_of(t, "hackbench", "default");
            whole().but(|dir| take_away(dir, is_it))
        }
        "an arm has no trial that counts in a cell" => whole().but(|dir| {
            let is_it = |t: &Value| is_of(t, "hackbench", "sliced");
            each_trial(dir, |trial| {
                if is_it(trial) {
                    void(trial)
                }
            });
        }),
        "there is one arm" => Made::new(1.0, |scenario| {
            scenario.experiment.arms.truncate(1);
            scenario.experiment.stop.smallest_effect = 0.5;
        }),
        "the last blocks of a finished run are missing" => {
            let is_late = |t: &Value| t["place"]["block"].as_u64() > Some(2);
            whole().but(|dir| take_away(dir, is_late))
        }
        other => panic!("the table has a row that no test makes: {other}"),
    }
}

/// Head and rows of the table.
fn table() -> (Vec<String>, Vec<Vec<String>>) {
    let of = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let (_, below) = PAGE
        .split_once("### What is not measured never passes")
        .expect("it is there");
    let mut lines = below.lines().filter(|line| line.starts_with('|'));
    let head = lines.next().map(of).expect("a head");
    (head, lines.skip(1).map(of).collect())
}

/// The worst of a JUnit file.
fn worst(junit: &str) -> &'static str {
    let all = [
        ("<error", "error"),
        ("<failure", "failure"),
        ("<skipped", "skipped"),
    ];
    let found = all.into_iter().find(|(element, _)| junit.contains(element));
    found.map_or("passed", |(_, word)| word)
}

/// Outcome of the command that is not in the table, if there is one.
fn wrong(made: &Made, state: &str, command: &str, answer: &str) -> Option<String> {
    let words: Vec<&str> = command.trim_matches('`').split(' ').collect();
    let results: &[&str] = match words[0] {
        "gate" | "compare" => &["stored", "new"],
        _ => &["new"],
    };
    let args = [&words[..1], results, &words[1..]].concat();
    let output = made.bench.run(&args);
    let (out, errors) = (stdout(&output), stderr(&output));
    let code = output.status.code().map(|code| code.to_string());
    let did = match words.contains(&"junit") {
        true => worst(&out).to_owned(),
        false => code.unwrap_or_default(),
    };
    let said = format!("{state}: {command}: {did} and not {answer}: {out}{errors}");
    let named = answer != "4" || errors.contains("not measured: ");
    (did != answer || !named).then_some(said)
}

#[test]
fn each_cell_of_the_table_of_exit_codes_is_what_the_program_does() {
    let (head, rows) = table();
    assert!(rows.len() > 10 && head.len() == rows[0].len());
    let mut all = Vec::new();
    for row in &rows {
        let made = made(&row[0]);
        let cells = head[1..].iter().zip(&row[1..]);
        all.extend(cells.filter_map(|(command, answer)| wrong(&made, &row[0], command, answer)));
    }
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}

#[test]
fn a_gate_that_measured_nothing_says_so_in_each_of_its_formats() {
    let made = made("there is no trial");
    let of = |format: &str| {
        let output = made
            .bench
            .run(&["gate", "stored", "new", "--format", format]);
        expect_code(&output, 4);
        stdout(&output)
    };
    assert!(of("text").starts_with("NOT MEASURED: "), "{}", of("text"));
    assert!(
        of("markdown").contains(": not measured"),
        "{}",
        of("markdown")
    );
    assert_eq!(worst(&of("junit")), "error");
    let json: Value = serde_json::from_str(&of("json")).expect("JSON");
    assert_ne!(json["lacks"], json!([]));
}
