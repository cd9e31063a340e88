//! Results that nobody's schedlab wrote: an error that names the file and the key, and
//! never a panic.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use results::{ResultSet, Writer};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/results-1.0")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &place),
            false => fs::copy(&path, &place).map(|_| ()).unwrap(),
        }
    }
}

fn stored() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture(), dir.path());
    dir
}

const TRIAL: &str = "trials/00001-wakeup-50%-b1-default/trial.json";

/// The error of the stored results with one value changed.
fn refused(file: &str, key: &str, value: Value) -> String {
    let dir = stored();
    let path = dir.path().join(file);
    let mut whole: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    *whole.pointer_mut(key).unwrap() = value;
    fs::write(&path, whole.to_string()).unwrap();
    let error = ResultSet::read(dir.path()).expect_err(key).to_string();
    assert!(error.contains(file), "{error} does not name {file}");
    error
}

#[test]
fn indices_that_point_nowhere_are_refused_with_file_and_key() {
    for (file, key, said) in [
        ("experiment.json", "/baseline", "baseline: is 99"),
        (
            "plan.json",
            "/cells/0/workload",
            "cells[0].workload: is 99, but there are only 1 workloads",
        ),
        ("plan.json", "/trials/3/cell", "trials[3].cell: is 99"),
        ("plan.json", "/trials/3/arm", "trials[3].arm: is 99"),
        (
            "plan.json",
            "/trials/3/index",
            "trials[3].index: is 99, not 3",
        ),
        (
            TRIAL,
            "/place/cell",
            "place: number 1 of the plan is another",
        ),
        (
            TRIAL,
            "/place/arm",
            "place: number 1 of the plan is another",
        ),
        (TRIAL, "/place/index", "place: number 99 of the plan"),
        (
            TRIAL,
            "/place/block",
            "place: number 1 of the plan is another",
        ),
    ] {
        let error = refused(file, key, json!(99));
        assert!(error.contains(said), "{key}: {error}");
    }
}

#[test]
#[allow(clippy::too_many_lines)] // A table of cases.
fn numbers_out_of_range_are_refused_with_file_and_key() {
    let year = 400u64 * 24 * 3600 * 1_000_000_000;
    for (file, key, value, said) in [
        (
            "experiment.json",
            "/stop/confidence",
            json!(2),
            "stop.confidence",
        ),
        (
            "experiment.json",
            "/stop/confidence",
            json!(-3),
            "stop.confidence",
        ),
        (
            "experiment.json",
            "/stop/smallest_effect",
            json!(-2),
            "stop.smallest_effect",
        ),
        (
            "experiment.json",
            "/stop/max_blocks",
            json!(4_000_000_000u32),
            "stop.max_blocks",
        ),
        (
            "experiment.json",
            "/stop/max_attempts",
            json!(0),
            "stop.max_attempts",
        ),
        (
            "experiment.json",
            "/workloads/0/duration_ns",
            json!(u64::MAX),
            "workloads[0].duration_ns",
        ),
        (
            "experiment.json",
            "/workloads/0/time_limit_ns",
            json!(year),
            "workloads[0].time_limit_ns",
        ),
        (
            "experiment.json",
            "/workloads/0/loads/0/value",
            json!(-50),
            "workloads[0].loads[0]",
        ),
        (
            "plan.json",
            "/cells/0/load/value",
            json!(0),
            "cells[0].load",
        ),
        ("plan.json", "/trials/0/block", json!(7), "trials[0].block"),
        (TRIAL, "/attempt", json!(0), "attempt"),
        (
            TRIAL,
            "/result/elapsed_ns",
            json!(u64::MAX),
            "result.elapsed_ns",
        ),
        (
            TRIAL,
            "/result/started_unix_ns",
            json!(u64::MAX),
            "result.started_unix_ns",
        ),
    ] {
        let error = refused(file, key, value);
        assert!(error.contains(said), "{key}: {error}");
    }
}

#[test]
fn names_that_are_missing_or_there_twice_are_refused() {
    for (file, key, value, said) in [
        ("experiment.json", "/arms", json!([]), "there is no arm"),
        (
            "experiment.json",
            "/arms/2/name",
            json!("default"),
            "two arms `default`",
        ),
        (
            "experiment.json",
            "/arms/0/name",
            json!(" "),
            "arms[0].name: this arm has no name",
        ),
        (
            "experiment.json",
            "/aa_arm",
            json!("nobody"),
            "aa_arm: there is no arm `nobody`",
        ),
        (
            "experiment.json",
            "/workloads",
            json!([]),
            "there is no workload",
        ),
        (
            "experiment.json",
            "/workloads/0/loads",
            json!([]),
            "has no loads",
        ),
        (TRIAL, "/cell", json!("wakeup 60%"), "cell: is not the cell"),
        (TRIAL, "/arm", json!("batch"), "arm: is not the arm"),
    ] {
        let error = refused(file, key, value);
        assert!(error.contains(said), "{key}: {error}");
    }
}

#[test]
fn a_trial_of_a_start_that_never_was_is_refused() {
    let dir = stored();
    let path = dir.path().join(TRIAL);
    let mut whole: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    whole["start"] = json!(2);
    fs::write(&path, whole.to_string()).unwrap();
    let error = ResultSet::read(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("start: is 2, but the run has 1 starts"),
        "{error}"
    );
}

#[test]
fn a_trial_that_is_there_twice_is_refused() {
    let dir = stored();
    let trials = dir.path().join("trials");
    copy(
        &trials.join("00001-wakeup-50%-b1-default"),
        &trials.join("zz"),
    );
    let error = ResultSet::read(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("attempt 1 at place 1 is there twice"),
        "{error}"
    );
}

#[test]
fn what_lies_beside_the_trials_is_left_alone_and_named() {
    let dir = stored();
    let trials = dir.path().join("trials");
    fs::create_dir(trials.join("lost+found")).unwrap();
    fs::write(trials.join("notes.txt"), "x").unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    assert_eq!(results.trials.len(), 19);
    assert_eq!(results.strays, ["lost+found", "notes.txt"]);
    Writer::reopen(dir.path()).unwrap();
    assert!(trials.join("notes.txt").exists());
}

#[test]
fn links_are_not_followed() {
    for file in ["system.json", TRIAL] {
        let dir = stored();
        let path = dir.path().join(file);
        fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        let error = ResultSet::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is a link"), "{error}");
    }
    let dir = stored();
    let trials = dir.path().join("trials");
    fs::rename(&trials, dir.path().join("elsewhere")).unwrap();
    symlink("elsewhere", &trials).unwrap();
    let error = ResultSet::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("trials: is a link"), "{error}");
    assert!(Writer::reopen(dir.path()).is_err());
}

#[test]
fn a_pipe_does_not_keep_the_reader_waiting() {
    let dir = stored();
    let path = dir.path().join("system.json");
    fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let error = ResultSet::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("no regular file"), "{error}");
}

#[test]
fn a_file_beyond_all_measure_is_not_read() {
    let dir = stored();
    let file = fs::File::create(dir.path().join("system.json")).unwrap();
    // Sparse: it takes no room on the disk.
    file.set_len((4 << 20) + 1).unwrap();
    let error = ResultSet::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("larger than 4 MiB"), "{error}");
}

#[test]
fn a_small_file_with_more_values_than_memory_has_room_for_is_not_read() {
    let dir = stored();
    let path = dir.path().join("experiment.json");
    let text = fs::read_to_string(&path).unwrap();
    let zeros = "0,".repeat(1 << 20);
    let text = text.replacen("\"kind\"", &format!("\"x\": [{zeros}0], \"kind\""), 1);
    fs::write(&path, text).unwrap();
    let error = ResultSet::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("more than 100000 values"), "{error}");
}

#[test]
fn the_file_of_a_trial_is_small_unless_it_has_windows() {
    let dir = stored();
    let trials = fs::read_dir(dir.path().join("trials")).unwrap();
    let path = trials.map(|trial| trial.unwrap().path()).max().unwrap();
    let path = path.join("trial.json");
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&" ".repeat(1 << 20));
    fs::write(&path, text).unwrap();
    let error = ResultSet::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("larger than 1 MiB"), "{error}");
}

#[test]
fn a_partial_file_that_is_a_link_is_replaced_and_not_written_through() {
    let dir = stored();
    let victim = dir.path().join("victim");
    fs::write(&victim, "keep").unwrap();
    symlink(&victim, dir.path().join(".partial-manifest.json")).unwrap();
    Writer::reopen(dir.path()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "keep");
    assert!(ResultSet::read(dir.path()).is_ok());
}
