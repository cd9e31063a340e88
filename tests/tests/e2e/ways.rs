//! Ways of new users through the tool, step by step, with what they must see at each: somebody
//! who has ten minutes for a scheduler, somebody with a service and a noisy neighbour, somebody
//! who is sent results.

#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::process::Output;
use tests::{Bench, Terminal, beside_others, expect_code, stderr, stdout, with_lock_of_runs};

/// Columns of a terminal as most people have it.
const COLUMNS: u16 = 100;

/// The command succeeds, and says all of this.
#[track_caller]
fn says(bench: &Bench, args: &[&str], texts: &[&str]) -> String {
    let output = bench.run(args);
    expect_code(&output, 0);
    let said = stdout(&output);
    for text in texts {
        assert!(said.contains(text), "{text:?} is not in:\n{said}");
    }
    said
}

/// The command is refused, and the answer has all of this.
#[track_caller]
fn refused(bench: &Bench, args: &[&str], code: i32, texts: &[&str]) {
    let output = bench.run(args);
    expect_code(&output, code);
    let said = stderr(&output);
    for text in texts {
        assert!(said.contains(text), "{text:?} is not in: {said}");
    }
}

/// A busy machine may cost a trial.
#[track_caller]
fn expect_figures(output: &Output) {
    if output.status.code() != Some(4) {
        expect_code(output, 0);
    }
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("a file");
    assert!(text.contains(from), "{from:?} is not in:\n{text}");
    std::fs::write(path, text.replacen(from, to, 1)).expect("writable");
}

/// The command behind these words, as it is pasted.
fn pasted(said: &str, before: &str) -> Vec<String> {
    let line = said.lines().find_map(|line| line.split_once(before));
    let (_, command) = line.unwrap_or_else(|| panic!("no {before:?} in:\n{said}"));
    let words = command.split_whitespace().map(str::to_owned);
    words.collect()
}

#[test]
fn a_scheduler_developer_has_ten_minutes() {
    let _turn = beside_others();
    let bench = Bench::default();
    says(&bench, &["--help"], &["run ", "check ", "Exit codes:"]);
    let list = says(&bench, &["list", "arms"], &["eevdf, cfs, bore", "scx_NAME"]);
    assert!(list.contains("slice=TIME"), "{list}");
    refused(&bench, &["rn"], 2, &["'run'"]);
    let arms = ["-a", "default", "-a", "bathc", "-w", "wakeup"];
    let check = [&["check"][..], &arms].concat();
    refused(&bench, &check, 2, &["did you mean `batch`?"]);

    let run = ["run", "-a", "default", "-a", "batch", "--max-blocks", "2"];
    let command = bench.command(&[&run[..], &["--", "sleep", "0.2"]].concat());
    let mut terminal = Terminal::start(&command, COLUMNS);
    terminal.expect("default-or-batch-sleep: 2 arms × 1 cell, at most 2 blocks");
    terminal.expect("block 1 · ");
    // Of the run, beside its last block.
    terminal.expect("of 1 cell decided · ");
    terminal.expect("evidence ");
    terminal.expect("sleep (against default)");
    terminal.expect("wall_time");
    terminal.expect("Results  results/default-or-batch-sleep-");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(0), "{shown}");

    says(&bench, &["report"], &["sleep (against default)", "batch"]);
    says(
        &bench,
        &["report", "--format", "html"],
        &["<html", "id=\"answer\""],
    );

    // From the command line to a file, and on from there.
    let file = bench.path("mine.toml");
    let left = bench.path("results/latest/experiment.toml");
    std::fs::copy(left, &file).expect("the run left its experiment");
    edit(&file, "\"batch\" }", "\"btch\" }");
    let place = ["mine.toml:", "the word `btch` has", "did you mean `batch`?"];
    refused(&bench, &["check", "mine.toml"], 2, &place);
    edit(&file, "\"btch\" }", "\"idle\" }");
    edit(&file, "max-blocks = 2", "max-blocks = 1");
    says(&bench, &["check", "mine.toml"], &["nothing is missing"]);
    says(
        &bench,
        &["plan", "mine.toml"],
        &["idle", "at most 1 blocks"],
    );
    let output = bench.run(&["run", "-q", "mine.toml", "-o", "mine"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("batch"), "{}", stdout(&output));
}

#[test]
fn a_log_says_after_each_block_what_is_decided_open_and_left() {
    let _turn = beside_others();
    let bench = Bench::default();
    let run = [
        "run",
        "-a",
        "default",
        "-a",
        "batch",
        "-a",
        "idle",
        "--max-blocks",
        "3",
    ];
    let budget = ["--budget", "90s", "-o", "out", "--", "sleep", "0.2"];
    let output = bench.run(&[&run[..], &budget].concat());
    expect_figures(&output);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let of_block = |n: u32| {
        let mut lines = said.lines();
        let line = lines.find_map(|line| line.strip_prefix(&format!("block {n}: ")));
        line.unwrap_or_else(|| panic!("block {n} is not in:\n{said}"))
    };
    for block in 1..=2 {
        let line = of_block(block);
        assert!(line.contains(" of 1 cell decided; at most "), "{line}");
        assert!(line.contains("s left; sleep wall_time, "), "{line}");
    }
    // By then there is a change with its evidence, of the 20 that 95 % take.
    let line = of_block(3);
    assert!(line.contains(" %") && line.contains(" of 20"), "{line}");
    assert!(line.ends_with("; 1 more open"), "{line}");
}

#[test]
fn a_run_that_is_interrupted_is_taken_up_by_the_command_that_it_prints() {
    let _turn = beside_others();
    let bench = Bench::default();
    let run = ["run", "-a", "default", "-a", "batch", "--max-blocks", "40"];
    let command = bench.command(&[&run[..], &["--", "sleep", "0.3"]].concat());
    let mut terminal = Terminal::start(&command, COLUMNS);
    terminal.expect("block 2 · ");
    terminal.press("\u{3}");
    terminal.expect("Interrupted; go on with: ");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    let words = pasted(&shown, "Interrupted; go on with: schedlab ");
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(words[..2], ["run", "--resume"]);
    // Long enough for nothing but the report.
    words.extend(["--quiet", "--budget", "1ms"]);
    let output = bench.run(&words);
    expect_code(&output, 0);
    let report = stdout(&output);
    assert!(report.contains("sleep (against default)"), "{report}");
}

#[test]
fn a_performance_engineer_has_nginx_and_a_noisy_neighbour() {
    let bench = Bench::default();
    let nginx = ["-w", "nginx"];
    let arms = ["-a", "default", "-a", "batch"];
    let wrong = [&["check"][..], &arms, &nginx].concat();
    refused(&bench, &wrong, 2, &["-w http --server nginx"]);
    let installed = std::process::Command::new("nginx").arg("-v").output();
    if installed.is_err() {
        return tests::skipped("nginx is not installed");
    }
    let _turn = with_lock_of_runs();
    let words = [
        "-w",
        "http:2k/s",
        "--server",
        "nginx",
        "--beside",
        "spinner",
    ];
    let with = |command: &[&'static str]| [command, &arms, &words].concat();
    says(&bench, &with(&["check"]), &["nothing is missing"]);
    says(
        &bench,
        &with(&["plan"]),
        &["default-or-batch-http", "cell http 2k/s", "block 1"],
    );
    let short = ["run", "-q", "-o", "first", "--max-blocks", "1"];
    let output = bench.run(&with(&short));
    expect_figures(&output);
    let report = stdout(&output);
    assert!(report.contains("http 2k/s"), "{report}");

    // Alone and beside the neighbour, by one key of the file that the run left.
    let file = bench.path("neighbour.toml");
    std::fs::copy(bench.path("first/experiment.toml"), &file).expect("the run left its experiment");
    edit(
        &file,
        "kind = \"http\"\n",
        "kind = \"http\"\nantagonists = \"eahc\"\n",
    );
    let place = ["neighbour.toml:", "did you mean `each`?"];
    refused(&bench, &["check", "neighbour.toml"], 2, &place);
    let keys = "\"each\"\nduration = \"500ms\"\nwarmup = \"100ms\"\nmetrics = [\"request_p95\"]";
    edit(&file, "\"eahc\"", keys);
    says(
        &bench,
        &["check", "neighbour.toml"],
        &["2 cells", "nothing is missing"],
    );
    let output = bench.run(&["run", "-q", "neighbour.toml", "-o", "second"]);
    expect_figures(&output);
    let report = stdout(&output);
    assert!(report.contains("http + spinner 2k/s"), "{report}");
}

#[test]
fn somebody_is_sent_results() {
    let _turn = beside_others();
    let bench = Bench::default();
    let run = ["run", "-q", "-o", "theirs", "-a", "default", "-a", "batch"];
    let command = ["--max-blocks", "1", "--", "sleep", "0.02"];
    expect_code(&bench.run(&[&run[..], &command].concat()), 0);
    says(
        &bench,
        &["pack", "theirs", "-o", "sent.tar.gz"],
        &["sent.tar.gz"],
    );
    std::fs::remove_dir_all(bench.path("theirs")).expect("only the capsule was sent");

    says(&bench, &["verify", "sent.tar.gz"], &["ok"]);
    let report = says(
        &bench,
        &["report", "sent.tar.gz"],
        &["sleep (against default)"],
    );
    let head: Vec<&str> = report.lines().take(8).collect();
    assert!(
        head.join(" ").contains("batch"),
        "the answer is first:\n{report}"
    );
    says(
        &bench,
        &["report", "sent.tar.gz", "--format", "html"],
        &["id=\"answer\""],
    );
    says(
        &bench,
        &["compare", "sent.tar.gz", "sent.tar.gz"],
        &["the same run"],
    );

    // A stranger's command runs only where somebody agrees to it.
    let like = bench.command(&["run", "--like", "sent.tar.gz", "-o", "here"]);
    let mut terminal = Terminal::start(&like, COLUMNS);
    terminal.expect("runs: sleep 0.02");
    terminal.expect("Run this? [y/N]");
    terminal.press("n\n");
    terminal.expect("not started");
    assert_eq!(terminal.end().0.code(), Some(2));
    assert!(!bench.path("here").exists());
    let mut terminal = Terminal::start(&like, COLUMNS);
    terminal.expect("Run this? [y/N]");
    terminal.press("y\n");
    terminal.expect("sleep (against default)");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(bench.path("here/experiment.toml").exists(), "{shown}");
    says(&bench, &["compare", "sent.tar.gz", "here"], &["sleep"]);
}
