//! `schedlab import` as it is typed.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs;
use std::path::Path;
use tests::{Bench, expect_code, stderr, stdout};

fn tree(dir: &Path) {
    for (run, figures) in [("6.1", "10.5\n10.25\n10.75\n"), ("6.2", "9\n9.5\n9.25\n")] {
        let load = dir.join("results/hackbench/process-pipe/group-1");
        fs::create_dir_all(&load).unwrap();
        fs::write(load.join(format!("{run}.log")), figures).unwrap();
    }
}

#[test]
fn an_import_is_reported_packed_and_verified_and_cannot_be_run() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path());
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (source, out, capsule) = (at("results"), at("out"), at("x.tar.gz"));
    let bench = Bench::default();
    let base = [
        "import",
        "schedtests",
        &source,
        "-o",
        &out,
        "--baseline",
        "6.2",
    ];
    let output = bench.run(&[&base[..], &["--format", "json"]].concat());
    expect_code(&output, 0);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["sequential"]["rows"][0]["changes"][0]["arm"], "6.1");
    let output = bench.run(&["report", &out, "--fail-on", "regression"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("there is no verdict"));
    let output = bench.run(&["pack", &out, "-o", &capsule]);
    expect_code(&output, 0);
    let output = bench.run(&["verify", &capsule]);
    expect_code(&output, 0);
    assert!(
        stdout(&output).contains("since schedtests measured these runs"),
        "{}",
        stdout(&output)
    );
    for again in [["run", "--resume", &out], ["run", "--like", &out]] {
        let output = bench.run(&again);
        assert_ne!(output.status.code(), Some(0), "{again:?}");
        assert!(
            stderr(&output).contains("imported"),
            "{again:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_bad_log_is_an_error_with_its_line_unless_it_is_to_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path());
    let bad = dir
        .path()
        .join("results/hackbench/process-pipe/group-1/6.3.log");
    fs::write(&bad, "9.5\nTime\n").unwrap();
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (source, out) = (at("results"), at("out"));
    let bench = Bench::default();
    let import = ["import", "schedtests", &source, "-o", &out];
    let output = bench.run(&import);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(
        said.contains("6.3.log:2") && said.contains("is no number"),
        "{said}"
    );
    assert!(!Path::new(&out).exists());
    let output = bench.run(&[&import[..], &["--skip-bad"]].concat());
    expect_code(&output, 0);
    assert!(stdout(&output).contains("Left out"), "{}", stdout(&output));
}
