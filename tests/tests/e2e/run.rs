//! A run on this machine, from the command line to the report.

#![allow(clippy::disallowed_methods)]

use model::{Fact, Role};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tests::{Bench, beside_others, expect_code, stderr, stdout, with_lock_of_runs};

/// A command whose time is steady: the verdict comes soon.
const SHORT: [&str; 3] = ["--", "sleep", "0.02"];

fn run_short(bench: &Bench, args: &[&str]) -> std::process::Output {
    let all: Vec<&str> = ["run", "-o", "out"]
        .into_iter()
        .chain(args.iter().copied())
        .chain(SHORT)
        .collect();
    bench.run(&all)
}

fn json(bench: &Bench, dir: &str) -> Value {
    let output = bench.run(&["report", dir, "--format", "json"]);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).expect("valid JSON")
}

#[test]
fn a_command_is_compared_under_two_policies_and_all_reports_can_be_made_again() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = run_short(
        &bench,
        &["-a", "default", "-a", "batch", "--max-blocks", "3"],
    );
    expect_code(&output, 0);
    assert!(stdout(&output).contains("wall_time"), "{}", stdout(&output));
    assert!(bench.path("out/report/report.html").exists());
    for format in ["text", "csv", "json", "html", "markdown"] {
        let first = bench.run(&["report", "out", "--format", format]);
        expect_code(&first, 0);
        let second = bench.run(&["report", "out", "--format", format]);
        assert_eq!(first.stdout, second.stdout, "{format} is the same twice");
        assert!(!first.stdout.is_empty(), "{format}");
    }
    let report = json(&bench, "out");
    let comparison = &report["comparisons"][0];
    for key in [
        "workload",
        "load",
        "metric",
        "better",
        "baseline",
        "arm",
        "ratio",
        "low",
        "high",
        "confidence",
        "e_value",
        "blocks",
        "verdict",
    ] {
        assert!(comparison.get(key).is_some(), "{key} in {comparison}");
    }
    assert_eq!(report["trials"]["ok"], 6);
    assert!(report["system"]["kernel_release"].is_string());
}

#[test]
fn evidence_of_the_policy_is_in_every_trial() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = run_short(
        &bench,
        &["-a", "default", "-a", "batch", "--max-blocks", "1"],
    );
    expect_code(&output, 0);
    let set = results::ResultSet::read(&bench.path("out")).expect("readable");
    let batch = set
        .trials
        .iter()
        .find(|t| t.trial.arm == "batch")
        .expect("measured");
    let policy = Fact::new("policy", "batch")
        .about_role(&Role::Load)
        .with_wanted("batch");
    let facts = &batch.trial.result.evidence.facts;
    assert!(facts.contains(&policy), "{facts:?}");
}

#[test]
fn one_arm_alone_is_summarised_without_a_comparison() {
    let _turn = beside_others();
    let bench = Bench::default();
    expect_code(&run_short(&bench, &["-a", "default"]), 0);
    let report = json(&bench, "out");
    assert_eq!(report["comparisons"].as_array().map(Vec::len), Some(0));
    assert_eq!(report["trials"]["ok"], 5);
}

#[test]
fn one_block_gives_no_interval_and_the_report_says_so() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = run_short(
        &bench,
        &["-a", "default", "-a", "batch", "--max-blocks", "1"],
    );
    expect_code(&output, 0);
    let report = json(&bench, "out");
    assert!(report["comparisons"][0]["low"].is_null());
    assert!(
        stdout(&output).contains("has no interval"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_failing_command_is_no_fast_one() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = bench.run(&[
        "run", "-o", "out", "-a", "default", "-a", "batch", "--", "false",
    ]);
    expect_code(&output, 4);
    let report = json(&bench, "out");
    assert_eq!(report["trials"]["ok"], 0);
    assert!(
        stdout(&output).contains("exit status"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_command_that_hangs_is_ended_at_its_time_limit() {
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file(
        "hang.toml",
        "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"command\"\ncommand = [\"sleep\", \"1000\"]\n\
         time-limit = \"300ms\"\n[stop]\nmax-attempts = 1\n",
    );
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 4);
    let set = results::ResultSet::read(&bench.path("out")).expect("readable");
    assert!(set.trials.iter().all(|t| !t.trial.is_ok()));
}

#[test]
fn a_regression_has_its_own_exit_code_only_when_asked_for() {
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file(
        "slower.toml",
        "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"slower\"\nhandicap = \"900%\"\n[[workload]]\n\
         kind = \"wakeup\"\nloads = [1]\nduration = \"300ms\"\nwarmup = \"50ms\"\noperations = 1\n\
         metrics = [\"requests_per_sec\"]\n[stop]\nmax-blocks = 12\n",
    );
    let output = bench.run(&["run", &file, "-o", "out", "--fail-on", "regression"]);
    expect_code(&output, 5);
    expect_code(&bench.run(&["report", "out"]), 0);
    expect_code(&bench.run(&["report", "out", "--fail-on", "regression"]), 5);
}

#[test]
fn an_interrupted_run_ends_in_order_and_resume_completes_it() {
    let _turn = beside_others();
    let bench = Bench::default();
    let args = [
        "run",
        "-o",
        "out",
        "-a",
        "default",
        "-a",
        "batch",
        "--max-blocks",
        "4",
        "--",
        "sleep",
        "0.3",
    ];
    let mut child = bench
        .command(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    while std::fs::read_dir(bench.path("out/trials")).map_or(0, Iterator::count) < 2 {
        assert!(
            child.try_wait().expect("a child").is_none(),
            "it ended too soon"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    // As timeout(1) sends it: twice at once.
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        rustix::process::kill_process(pid, signal).expect("a signal");
    }
    let output = child.wait_with_output().expect("an end");
    expect_code(&output, 130);
    assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
    let trials = bench.path("out/trials");
    let before = texts(&trials);
    assert!((1..8).contains(&before.len()));
    expect_code(&bench.run(&["run", "--resume", "out"]), 0);
    let set = results::ResultSet::read(&bench.path("out")).expect("readable");
    assert_eq!(set.trials.len(), 8);
    let after = texts(&trials);
    for (name, text) in before {
        let now = after.get(&name);
        assert_eq!(now, Some(&text), "finished trials are not touched");
    }
}

/// `trial.json` of every trial, by the name of its directory.
fn texts(trials: &Path) -> BTreeMap<OsString, String> {
    let entries = std::fs::read_dir(trials).expect("trials").flatten();
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a trial");
    entries
        .map(|entry| (entry.file_name(), read(entry.path().join("trial.json"))))
        .collect()
}

/// Somebody else's results may hold any command. The same run at its own place goes on unasked.
#[test]
fn a_run_that_was_begun_elsewhere_goes_on_only_if_somebody_agrees() {
    let _turn = beside_others();
    let bench = Bench::default();
    let command = ["--", "touch", "ran"];
    let start = [
        "run",
        "-a",
        "default",
        "-a",
        "batch",
        "--max-blocks",
        "1",
        "-o",
        "out",
    ];
    expect_code(&bench.run(&[&start[..], &command].concat()), 0);
    let ran = bench.path("ran");
    let more = |dir: &'static str, blocks: &'static str, yes: &'static [&'static str]| {
        std::fs::remove_file(&ran).expect("it has run");
        let words = ["run", "--resume", dir, "--max-blocks", blocks];
        bench.run(&[&words[..], yes].concat())
    };
    expect_code(&more("out", "2", &[]), 0);
    // The longer one is known, too.
    expect_code(&more("out", "3", &[]), 0);
    let copied = std::process::Command::new("cp");
    let copied = { copied }
        .args(["-a", "out", "copy"])
        .current_dir(bench.dir.path())
        .status();
    assert!(copied.is_ok_and(|status| status.success()), "cp is there");
    let unasked = more("copy", "4", &[]);
    expect_code(&unasked, 2);
    let said = stderr(&unasked);
    assert!(
        said.contains("runs: touch ran") && said.contains("--yes"),
        "{said}"
    );
    assert!(!ran.exists(), "{said}");
    std::fs::write(&ran, "").expect("its directory is there");
    expect_code(&more("copy", "4", &["--yes"]), 0);
    // Asked once.
    expect_code(&more("copy", "5", &[]), 0);
    // Whoever changes the experiment in place is a stranger again.
    let experiment = bench.path("copy/experiment.json");
    let text = std::fs::read_to_string(&experiment).expect("an experiment");
    std::fs::write(&experiment, text.replace("touch", "true ")).expect("it is ours");
    expect_code(&more("copy", "6", &[]), 2);
}

#[test]
fn a_resume_gives_a_run_more_blocks_and_refuses_other_changes() {
    let _turn = beside_others();
    let bench = Bench::default();
    let arms = ["-a", "default", "-a", "batch", "--max-blocks", "2"];
    expect_code(&run_short(&bench, &arms), 0);
    let refused = bench.run(&["run", "--resume", "out", "--seed", "7"]);
    expect_code(&refused, 2);
    assert!(stderr(&refused).contains("--seed"), "{}", stderr(&refused));
    expect_code(
        &bench.run(&["run", "--resume", "out", "--max-blocks", "1"]),
        2,
    );
    let endless = bench.run(&["run", "--resume", "out", "--max-blocks", "4000000000"]);
    expect_code(&endless, 2);
    assert!(
        stderr(&endless).contains("max-blocks"),
        "{}",
        stderr(&endless)
    );
    let before = texts(&bench.path("out/trials"));
    assert_eq!(before.len(), 4);

    expect_code(
        &bench.run(&["run", "--resume", "out", "--max-blocks", "3"]),
        0,
    );
    let after = texts(&bench.path("out/trials"));
    assert_eq!(after.len(), 6);
    assert!(
        before
            .iter()
            .all(|(name, text)| after.get(name) == Some(text))
    );
    // The longer plan follows from the seed as the shorter one did.
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn a_cell_of_a_file_is_measured_alone_and_a_resume_goes_on_with_some_of_them() {
    let _turn = beside_others();
    let bench = Bench::default();
    let cell = |name: &str| {
        format!("[[workload]]\nname = \"{name}\"\nkind = \"command\"\ncommand = [\"true\"]\n")
    };
    let text = format!(
        "arm = [{{ name = \"default\" }}, {{ name = \"other\", policy = {{ class = \"other\" }} }}]\n\
         stop = {{ min-blocks = 2, max-blocks = 2 }}\n{}{}",
        cell("first"),
        cell("second")
    );
    let file = bench.file("two.toml", &text);
    let count = |out: &str, cell: &str| {
        let results = results::ResultSet::read(&bench.path(out)).expect("results");
        let mut trials = results.trials.iter();
        trials.by_ref().filter(|t| t.trial.cell == cell).count()
    };
    expect_code(
        &bench.run(&["run", &file, "--only", "fir*", "-o", "alone", "-q"]),
        0,
    );
    assert_eq!((count("alone", "first"), count("alone", "second")), (4, 0));
    let planned = stdout(&bench.run(&["plan", &file, "--skip", "first"]));
    assert!(
        planned.contains("second") && !planned.contains("first"),
        "{planned}"
    );
    let checked = bench.run(&["check", &file, "--only", "third", "--no-start"]);
    expect_code(&checked, 2);
    let said = stderr(&checked);
    assert!(said.contains("no cell is called `third`"), "{said}");
    assert!(said.contains("the cells are: first, second"), "{said}");

    expect_code(
        &bench.run(&["run", &file, "--max-blocks", "1", "-o", "both", "-q"]),
        0,
    );
    let resumed = ["run", "--resume", "both", "--max-blocks", "2", "-q"];
    expect_code(
        &bench.run(&[&resumed[..], &["--only", "second"]].concat()),
        0,
    );
    assert_eq!((count("both", "first"), count("both", "second")), (2, 4));
    expect_code(&bench.run(&["run", "--resume", "both", "-q"]), 0);
    assert_eq!((count("both", "first"), count("both", "second")), (4, 4));
    expect_code(&bench.run(&["verify", "both"]), 0);
}

#[test]
fn the_budget_that_ended_a_run_is_told_how_to_extend_it() {
    let _turn = beside_others();
    let bench = Bench::default();
    // Two blocks at the most, and three decide nothing.
    let output = bench.run(&[
        "run", "-o", "out", "-a", "default", "-a", "batch", "--budget", "2s", "--", "sleep", "0.6",
    ]);
    let told = |bench: &Bench| {
        let set = results::ResultSet::read(&bench.path("out")).expect("readable");
        let all = set.manifest.warnings.into_iter();
        all.filter(|w| w.what.contains("ended the run"))
            .collect::<Vec<_>>()
    };
    let first = told(&bench);
    let advice = &first[0].remedy;
    let has_room = advice.contains("schedlab run --resume out --budget ");
    assert!(
        has_room && advice.contains("about 6 blocks in all"),
        "{advice}"
    );
    let more = bench.run(&["run", "--resume", "out", "--budget", "4s"]);
    expect_code(&more, output.status.code().unwrap_or_default());
    // What was said of the shorter budget holds no longer.
    let second = told(&bench);
    assert_eq!(second.len(), 1, "{second:?}");
    assert!(second[0].what.contains("budget of 4s"), "{second:?}");
}

#[test]
fn the_newest_run_is_taken_where_none_is_named() {
    let _turn = beside_others();
    let bench = Bench::default();
    let nothing = bench.run(&["report"]);
    expect_code(&nothing, 2);
    assert!(
        stderr(&nothing).contains("results/latest"),
        "{}",
        stderr(&nothing)
    );
    let run = |arm: &str| {
        let words = ["run", "-q", "-a", "default", "-a", arm, "--max-blocks", "1"];
        expect_code(&bench.run(&[&words[..], &["--", "true"]].concat()), 0);
    };
    run("batch");
    run("idle");
    let report = bench.run(&["report", "--format", "json"]);
    expect_code(&report, 0);
    assert!(stdout(&report).contains("idle"), "{}", stdout(&report));
    let said = stderr(&report);
    assert!(
        said.contains("The newest run: results/default-or-idle-true-"),
        "{said}"
    );
    expect_code(&bench.run(&["verify"]), 0);
    expect_code(&bench.run(&["verify", "results/latest"]), 0);
}

#[test]
fn a_run_of_the_command_line_leaves_a_file_that_repeats_it() {
    let _turn = beside_others();
    let bench = Bench::default();
    let words = [
        "run",
        "-q",
        "-o",
        "out",
        "-a",
        "default",
        "-a",
        "calm:=batch",
        "-w",
        "hackbench:1",
        "--seed",
        "7",
        "--max-blocks",
        "1",
        "--",
        "true",
    ];
    expect_code(&bench.run(&words), 0);
    expect_code(
        &bench.run(&["run", "-q", "out/experiment.toml", "-o", "again"]),
        0,
    );
    let experiment = |dir: &str| {
        let path = bench.path(dir).join("experiment.json");
        std::fs::read_to_string(path).expect("an experiment")
    };
    assert_eq!(experiment("out"), experiment("again"));
    let page = std::fs::read_to_string(bench.path("out/report/report.html")).expect("a page");
    assert!(page.contains("[[arm]]"), "the page shows the file");
}

#[test]
fn a_run_waits_for_another_one_where_that_is_asked_for() {
    let _turn = beside_others();
    let bench = Bench::default();
    fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
        let words = ["run", "-q", "-a", "default", "--max-blocks", "1", "-o"];
        [&words[..], more].concat()
    }
    let mut first = bench.command(&with(&["one", "--", "sleep", "4"]));
    let mut first = first.spawn().expect("schedlab starts");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let refused = bench.run(&with(&["two", "--", "true"]));
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(
        said.contains("sleep 4") && said.contains("--wait"),
        "{said}"
    );
    let waited = bench.run(&with(&["two", "--wait", "--", "true"]));
    expect_code(&waited, 0);
    let said = stderr(&waited);
    assert!(said.contains("Waiting for its end: "), "{said}");
    assert!(
        said.contains("Waited ") && !said.contains("or end it"),
        "{said}"
    );
    assert!(first.wait().expect("ends").success());
}

#[test]
fn a_command_that_is_used_in_a_wrong_way_is_tried_once() {
    let _turn = beside_others();
    let bench = Bench::default();
    let wrong = ["--", "sh", "-c", "echo usage >&2; exit 2"];
    let arms = ["run", "-o", "out", "-a", "default", "-a", "batch"];
    expect_code(&bench.run(&[&arms[..], &wrong].concat()), 4);
    let set = results::ResultSet::read(&bench.path("out")).expect("readable");
    assert!(set.trials.iter().all(|t| t.trial.attempt == 1));
    assert!(set.trials.len() <= 2, "{}", set.trials.len());
}

#[test]
fn a_command_that_finds_its_work_done_is_said_and_prepared() {
    let _turn = beside_others();
    let bench = Bench::default();
    let script = "test -e done || sleep 0.5; touch done";
    let run = |out: &str, prepare: &[&str]| {
        let mut args = vec![
            "run",
            "-a",
            "default",
            "-a",
            "batch",
            "--max-blocks",
            "2",
            "-o",
            out,
        ];
        args.extend(prepare);
        args.extend(["--", "sh", "-c", script]);
        stdout(&bench.run(&args))
    };
    let said = run("once", &[]);
    assert!(said.contains("--prepare"), "{said}");
    let said = run("prepared", &["--prepare", "rm -f done"]);
    assert!(!said.contains("--prepare"), "{said}");
}

#[test]
fn a_resume_after_the_machine_has_changed_is_refused_and_loses_nothing() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = run_short(
        &bench,
        &["-a", "default", "-a", "batch", "--max-blocks", "2"],
    );
    expect_code(&output, 0);
    let starts = bench.path("out/starts.json");
    let text = std::fs::read_to_string(&starts).expect("starts");
    let mut changed: Value = serde_json::from_str(&text).expect("JSON");
    changed[0]["machines"][0]["system"]["kernel_release"] = "1.2.3".into();
    std::fs::write(&starts, changed.to_string()).expect("writable");
    std::fs::write(bench.path("out/notes.txt"), "mine").expect("writable");
    let trials = bench.path("out/trials");
    // A run that lacks nothing measures nothing more, so it mixes nothing.
    let whole = texts(&trials);
    expect_code(&bench.run(&["run", "--resume", "out"]), 0);
    assert_eq!(texts(&trials), whole);
    let last = whole.last_key_value().expect("a trial").0;
    std::fs::remove_dir_all(trials.join(last)).expect("a directory");
    let before = texts(&trials);

    let refused = bench.run(&["run", "--resume", "out"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(
        said.contains("1.2.3") && said.contains("--anyway"),
        "{said}"
    );
    assert_eq!(texts(&trials), before);
    assert!(bench.path("out/notes.txt").exists());

    let anyway = bench.run(&["run", "--resume", "out", "--anyway"]);
    expect_code(&anyway, 0);
    assert!(stdout(&anyway).contains("1.2.3"), "{}", stdout(&anyway));
}

#[test]
fn two_runs_at_once_on_one_machine_are_refused() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let args = [
        "run", "--wait", "-o", "first", "-a", "default", "--", "sleep", "3",
    ];
    let mut first = bench
        .command(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    bench.wait_for_file(&mut first, "first/manifest.json");
    let second = bench.run(&["run", "-o", "second", "-a", "default", "--", "true"]);
    first
        .kill()
        .and_then(|()| first.wait().map(drop))
        .expect("it can be ended");
    expect_code(&second, 3);
    assert!(
        stderr(&second).contains("another run"),
        "{}",
        stderr(&second)
    );
    assert!(
        !bench.path("second").exists(),
        "nothing is left of the refused run"
    );
}
