//! Results in one file: packed, checked, tampered with, compared and repeated. All
//! start from the stored results of format 1.0, so hardly anything is measured here.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use tests::{Bench, alone, expect_code, stderr, stdout};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/results-1.0")
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

/// The stored results as `stored/`, packed as `stored.tar.gz`.
fn packed() -> Bench {
    let bench = Bench::default();
    copy(&fixture(), &bench.path("stored"));
    expect_code(&bench.run(&["pack", "stored"]), 0);
    bench
}

/// The capsule unpacked as `capsule/stored`, so that it can be tampered with.
fn unpacked() -> (Bench, PathBuf) {
    let bench = packed();
    let into = bench.path("capsule");
    results::capsule::unpack(&bench.path("stored.tar.gz"), &into).unwrap();
    (bench, into.join("stored"))
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from} is not in {}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn an_honest_capsule_is_verified() {
    let bench = packed();
    let output = bench.run(&["verify", "stored.tar.gz"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("bytes: fingerprint"), "{said}");
    assert!(said.contains("all 18 trials that count"), "{said}");
    assert!(said.contains("report: numbers"), "{said}");
}

#[test]
fn a_directory_packed_twice_is_the_same_file() {
    let bench = packed();
    let again = bench.run(&["pack", "stored", "-o", "again.tar.gz"]);
    expect_code(&again, 0);
    let bytes = |name| fs::read(bench.path(name)).unwrap();
    assert!(bytes("stored.tar.gz") == bytes("again.tar.gz"));
}

#[test]
fn a_changed_file_is_named() {
    let (bench, dir) = unpacked();
    replace(&dir.join("system.json"), "6.18.44", "7.2.0");
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    assert!(
        stdout(&output).contains("DIFFERS  system.json: its bytes"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_missing_and_an_added_file_are_named() {
    let (bench, dir) = unpacked();
    fs::remove_file(dir.join("calibration.json")).unwrap();
    fs::write(dir.join("notes.txt"), "").unwrap();
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let said = stdout(&output);
    assert!(
        said.contains("calibration.json: was packed, but is missing"),
        "{said}"
    );
    assert!(
        said.contains("notes.txt: is there, but was not packed"),
        "{said}"
    );
}

#[test]
fn a_ratio_that_does_not_follow_from_the_trials_is_named() {
    let (bench, dir) = unpacked();
    let report = dir.join("report/report.json");
    replace(&report, "\"verdict\": \"worse\"", "\"verdict\": \"better\"");
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let said = stdout(&output);
    assert!(
        said.contains("verdict: says \"better\", recomputed \"worse\""),
        "{said}"
    );
}

#[test]
fn a_figure_that_does_not_follow_from_its_histogram_is_named() {
    let (bench, dir) = unpacked();
    let trial = first_trial(&dir);
    replace(
        &trial.join("trial.json"),
        "\"metric\": \"request_p50\",\n        \"unit\": \"ns\",\n        \"better\": \"lower\",\n        \"value\": ",
        "\"metric\": \"request_p50\",\n        \"unit\": \"ns\",\n        \"better\": \"lower\",\n        \"value\": 9",
    );
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let named = "trial.json, request_p50: says 9";
    assert!(stdout(&output).contains(named), "{}", stdout(&output));
}

fn first_trial(dir: &Path) -> PathBuf {
    let entries = fs::read_dir(dir.join("trials")).unwrap();
    entries.map(|entry| entry.unwrap().path()).min().unwrap()
}

#[test]
fn a_trial_that_counts_without_proof_is_named() {
    let (bench, dir) = unpacked();
    let trials = fs::read_dir(dir.join("trials")).unwrap();
    let mut paths = trials.map(|entry| entry.unwrap().path());
    let batch = paths.find(|path| path.ends_with("00002-wakeup-50%-b1-batch+nice=5"));
    replace(
        &batch.unwrap().join("trial.json"),
        "\"class\": \"batch\"",
        "\"class\": \"other\"",
    );
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let named = "trial 2, wakeup 50%, batch+nice=5: counts, but";
    assert!(stdout(&output).contains(named), "{}", stdout(&output));
}

#[test]
fn what_is_no_capsule_is_refused() {
    let bench = packed();
    fs::write(bench.path("text.tar.gz"), "no archive").unwrap();
    let output = bench.run(&["verify", "text.tar.gz"]);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("text.tar.gz: no usable capsule"),
        "{}",
        stderr(&output)
    );
    expect_code(&bench.run(&["verify", "nothing"]), 2);
    expect_code(&bench.run(&["pack", "."]), 2);
}

#[test]
fn a_capsule_that_leads_out_of_its_place_is_refused() {
    let bench = Bench::default();
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        fs::File::create(bench.path("evil.tar.gz")).unwrap(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(2);
    header.as_old_mut().name[..9].copy_from_slice(b"../escape");
    header.set_cksum();
    archive.append(&header, &b"hi"[..]).unwrap();
    archive.into_inner().unwrap().finish().unwrap();
    let output = bench.run(&["verify", "evil.tar.gz"]);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("which no capsule has"),
        "{}",
        stderr(&output)
    );
    assert!(!bench.path("escape").exists());
}

#[test]
fn a_directory_and_its_capsule_lie_side_by_side() {
    let bench = packed();
    let output = bench.run(&["compare", "stored", "stored.tar.gz"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(
        said.contains("Nothing that was recorded differs but the time"),
        "{said}"
    );
    assert!(
        said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
}

#[test]
fn other_kernels_are_listed_and_no_cause_is_claimed() {
    let bench = packed();
    copy(&bench.path("stored"), &bench.path("other"));
    let system = bench.path("other/system.json");
    replace(
        &system,
        "\"kernel_release\": \"6.18.44\"",
        "\"kernel_release\": \"7.2.13\"",
    );
    let output = bench.run(&["compare", "stored", "other", "--format", "json"]);
    expect_code(&output, 0);
    let both: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(both["differs"][0]["what"], "kernel");
    assert_eq!(both["differs"][0]["b"], "7.2.13");
    let conclusions = both["conclusions"].to_string();
    assert!(
        conclusions.contains("kernel is the only recorded difference"),
        "{conclusions}"
    );
}

#[test]
fn the_experiment_of_a_capsule_is_repeated_here() {
    let _turn = alone();
    let bench = packed();
    let output = bench.run(&[
        "run",
        "--like",
        "stored.tar.gz",
        "-o",
        "repeated",
        "--max-blocks",
        "1",
        "-q",
    ]);
    expect_code(&output, 0);
    let read = |dir: &str| results::ResultSet::read(&bench.path(dir)).unwrap();
    let (stored, repeated) = (read("stored"), read("repeated"));
    assert_eq!(stored.experiment.arms, repeated.experiment.arms);
    assert_eq!(stored.experiment.workloads, repeated.experiment.workloads);
    assert_eq!(stored.plan.cells, repeated.plan.cells);
    assert_eq!(repeated.trials.len(), repeated.experiment.arms.len());
    expect_code(&bench.run(&["compare", "stored", "repeated"]), 0);
}
