//! Files that schedlab writes, and those that it leaves alone.

#![allow(clippy::disallowed_methods)]

use crate::limits::{pack, results_with};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tests::{Bench, expect_code, stderr, stdout};

const EXPERIMENT: &str = r#"
name = "mine"

[[workload]]
name = "missing"
kind = "command"
command = ["/no/such/program"]

[[arm]]
name = "default"
"#;

/// Results that can be reported, in `run`.
fn results(bench: &Bench) {
    let scenario = synthetic::quickstart();
    synthetic::write(&bench.path("run"), &scenario).expect("a results directory");
}

fn text(bench: &Bench, file: &str) -> String {
    fs::read_to_string(bench.path(file)).expect("the file is there")
}

#[test]
fn a_run_into_the_directory_of_its_experiment_neither_deletes_nor_replaces_it() {
    let bench = Bench::default();
    fs::write(bench.path("experiment.toml"), EXPERIMENT).expect("written");
    for args in [
        &["run", "experiment.toml", "-o", "."][..],
        &["run", "-a", "default", "-o", ".", "--", "true"],
    ] {
        let output = bench.run(args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        assert!(
            stderr(&output).contains("choose another directory"),
            "{}",
            stderr(&output)
        );
        assert_eq!(text(&bench, "experiment.toml"), EXPERIMENT, "{args:?}");
        assert_eq!(fs::read_dir(bench.path(".")).expect("listed").count(), 1);
    }
}

#[test]
fn results_that_another_process_has_are_not_resumed() {
    let bench = Bench::default();
    results(&bench);
    let mark = File::create_new(bench.path("run/.schedlab")).expect("a mark");
    mark.lock().expect("locked");
    let before = text(&bench, "run/manifest.json");
    let output = bench.run(&["run", "--resume", "run"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("another run measures into it"),
        "{}",
        stderr(&output)
    );
    assert_eq!(text(&bench, "run/manifest.json"), before);
    // Readers are let in.
    expect_code(&bench.run(&["report", "run"]), 0);
}

#[test]
fn the_mark_of_results_is_neither_packed_nor_spoken_of() {
    let bench = Bench::default();
    results(&bench);
    fs::write(bench.path("run/.schedlab"), "made by schedlab\n").expect("a mark");
    let output = bench.run(&["pack", "run", "-o", "run.tar.gz"]);
    expect_code(&output, 0);
    let said = stdout(&output) + &stderr(&output);
    assert!(!said.contains(".schedlab"), "{said}");
    let verified = bench.run(&["verify", "run"]);
    assert!(
        !stdout(&verified).contains(".schedlab"),
        "{}",
        stdout(&verified)
    );
}

/// Starts the program where a file may have no byte, as on a full disk.
fn on_a_full_disk(bench: &Bench, args: &[&str]) -> Output {
    let schedlab = bench.command(args);
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"ulimit -f 0; trap "" XFSZ; exec "$@""#, "sh"])
        .arg(schedlab.get_program())
        .args(schedlab.get_args());
    for (name, value) in schedlab.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.current_dir(bench.path("."));
    command.output().expect("sh starts")
}

#[test]
fn a_report_that_finds_no_room_leaves_the_one_that_was_there() {
    let bench = Bench::default();
    results(&bench);
    fs::write(bench.path("report.txt"), "the old report").expect("written");
    let output = on_a_full_disk(&bench, &["report", "run", "-o", "report.txt"]);
    expect_code(&output, 1);
    assert_eq!(text(&bench, "report.txt"), "the old report");
    let names = fs::read_dir(bench.path(".")).expect("listed").flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is left beside it: {names:?}");
}

#[test]
fn root_writes_no_report_through_a_link_of_another_user() {
    if !tests::is_root() {
        tests::skipped("to give a link to another user takes root");
        return;
    }
    let bench = Bench::default();
    results(&bench);
    fs::write(bench.path("victim"), "keep").expect("written");
    let shared = bench.path("shared");
    fs::create_dir(&shared).expect("made");
    for mode in [0o1777, 0o777] {
        fs::set_permissions(&shared, Permissions::from_mode(mode)).expect("set");
        let link = shared.join("report.txt");
        symlink(bench.path("victim"), &link).expect("linked");
        std::os::unix::fs::lchown(&link, Some(65_534), None).expect("given away");
        let output = bench.run(&["report", "run", "-o", "shared/report.txt"]);
        expect_code(&output, 1);
        assert!(stderr(&output).contains("choose another directory"));
        assert_eq!(text(&bench, "victim"), "keep", "{mode:o}");
        fs::remove_file(link).expect("removed");
    }
}

#[test]
fn a_report_for_a_device_leaves_it_a_device() {
    let bench = Bench::default();
    results(&bench);
    let output = bench.run(&["report", "run", "-o", "/dev/stdout"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("hackbench"));
}

/// True once a file below it has bytes.
fn has_bytes(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => has_bytes(&entry.path()),
        Ok(found) => found.len() > 0 && entry.file_name() != ".schedlab",
        Err(_) => false,
    })
}

/// Exit code of a `verify` that gets a signal as soon as it has unpacked something.
fn verified_until(bench: &Bench, temporary: &Path, signal: Signal) -> Option<i32> {
    let mut command = bench.command(&["verify", "r.tar.gz"]);
    command.env("TMPDIR", temporary);
    let mut child = command
        .stdout(Stdio::null())
        .spawn()
        .expect("schedlab starts");
    while !has_bytes(temporary) {
        if let Some(ended) = child.try_wait().expect("it is ours") {
            return ended.code();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    child.wait().expect("it ends").code()
}

#[test]
fn a_signal_while_a_capsule_is_unpacked_leaves_nothing_of_it() {
    let bench = Bench::default();
    results_with(&bench, "r", "\"x\": 0");
    for index in 0..2 {
        let large = bench.path(&format!("r/trials/large-{index}"));
        File::create(large).unwrap().set_len(30 << 20).unwrap();
    }
    pack(&bench, "r");
    let temporary = bench.path("tmp");
    fs::create_dir(&temporary).unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        // On a busy machine it may have ended before the signal.
        let mut ends = (0..20).map(|_| verified_until(&bench, &temporary, signal));
        let code = ends.find(|code| *code != Some(0));
        assert_eq!(code, Some(Some(130)), "{signal:?}");
        let left: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().collect();
        assert!(left.is_empty(), "{signal:?}: {left:?}");
    }
}
