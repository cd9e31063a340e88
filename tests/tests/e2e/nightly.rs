//! Nights from the first run to the commit, with nobody there: a history that raises an alarm, measures it again and
//! bisects.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::print_stderr)]

use crate::bisect::{CULPRIT, STEPS, with_a_planted_slowdown, with_a_slower_program};
use std::process::Command;
use tests::{Bench, alone, beside_others, expect_code, no_guests, skipped, stdout};

/// Nights before the step. The fewer there are, the less is known of how they scatter, and the later is a step told: after
/// eight nights a large one was seen to take from five to more than eight.
const NIGHTS_BEFORE: u32 = 16;
/// Nights in which a large step is told then.
const NIGHTS_SINCE: u32 = 8;

#[test]
#[ignore = "a dozen nights in guests and seven schedulers that are built: half an hour, in make test-long"]
fn a_night_tells_a_slowdown_confirms_it_and_names_its_commit_by_itself() {
    if let Some(why) = no_guests() {
        return skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let repository = with_a_planted_slowdown(&bench);
    let text = format!(
        "name = \"nightly\"\n[target]\nkind = \"vm\"\nkernel = \"debian:sid\"\n[[arm]]\nname = \"default\"\n\
         [[arm]]\nname = \"next\"\nscheduler = {{ git = \"{repository}\", rev = \"tonight\", package = \
         \"scx_faulty\" }}\n[[workload]]\nkind = \"rr\"\nduration = \"1s\"\nmetrics = [\"requests_per_sec\"]\n\
         [stop]\nmin-blocks = 3\nmax-blocks = 3\n"
    );
    let file = bench.file("nightly.toml", &text);
    let told = || std::fs::read_to_string(bench.path("told")).unwrap_or_default();
    let is_named = |told: &str| told.contains(&format!("change {CULPRIT}"));
    for night in 0..NIGHTS_BEFORE + NIGHTS_SINCE {
        let at = if night < NIGHTS_BEFORE { "good" } else { "bad" };
        let moved = Command::new("git")
            .args(["-C", &repository, "branch", "-f", "tonight", at])
            .status();
        assert!(moved.is_ok_and(|status| status.success()));
        let words = format!(
            "run {file} -q --wait -o night{night} --history=store --confirm 5m --bisect 30m --notify"
        );
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push("exec:cat >> told; echo >> told");
        expect_code(&bench.run(&words), 0);
        if is_named(&told()) {
            break;
        }
        assert!(!told().contains("could not be measured"), "{}", told());
    }
    let told = told();
    eprintln!("{told}");
    assert!(is_named(&told), "{told}");
    for wanted in [
        "is added to the history",
        "New alarm ",
        "|",
        " is confirmed (",
    ] {
        assert!(told.contains(wanted), "{wanted} is not in {told}");
    }
}

#[test]
#[ignore = "a dozen runs and a bisection: a minute, in make test-long"]
fn the_alarm_of_a_program_goes_to_its_commit_where_the_two_ends_are_named() {
    let _turn = beside_others();
    let bench = Bench::default();
    with_a_slower_program(&bench);
    for version in ["v0", "v16"] {
        let script =
            format!("git clone -q -b {version} r {version} && cd {version} && sh build.sh");
        let made = Command::new("sh")
            .args(["-c", &script])
            .current_dir(bench.dir.path())
            .status();
        assert!(made.is_ok_and(|status| status.success()));
    }
    let program = |version: &str| bench.path(version).join("bin/count").display().to_string();
    for night in 0..NIGHTS_BEFORE + NIGHTS_SINCE {
        let tonight = program(if night < NIGHTS_BEFORE { "v0" } else { "v16" });
        let text = format!(
            "name = \"nightly\"\n[[arm]]\nname = \"anchor\"\nenv = {{ PROGRAM = {:?} }}\n[[arm]]\nname = \"next\"\n\
             env = {{ PROGRAM = {tonight:?} }}\n[[workload]]\nkind = \"command\"\n\
             command = [\"sh\", \"-c\", 'sh \"$PROGRAM\"']\n{STEPS}[stop]\nmin-blocks = 3\nmax-blocks = 3\n",
            program("v0")
        );
        let file = bench.file("nightly.toml", &text);
        let out = format!("night{night}");
        expect_code(
            &bench.run(&["run", &file, "-q", "--history=store", "-o", &out]),
            0,
        );
    }
    let checked = bench.run(&["history", "check", "--store", "store", "--format", "json"]);
    let checked: serde_json::Value = serde_json::from_str(&stdout(&checked)).expect("JSON");
    let id = &checked["alarms"][0]["alarm"]["id"];
    let id = id.as_str().unwrap_or_else(|| panic!("no alarm: {checked}"));
    let first = [
        "history", "bisect", id, "--store", "store", "-y", "--budget", "1m", "-o", "found", "--",
    ];
    let build = [
        "bin/count",
        "--build",
        "sh build.sh",
        "--repository",
        "r",
        "--good",
        "v0",
        "--bad",
        "v16",
    ];
    let output = bench.run(&[&first[..], &build].concat());
    expect_code(&output, 0);
    assert!(
        stdout(&output).contains("\n  change 11\n"),
        "{}",
        stdout(&output)
    );
}
