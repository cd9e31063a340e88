//! The steps of a CI as its templates call them, and the container file.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tests::{
    Bench, Image, beside_others, expect_code, is_root, skipped, stderr, stdout, with_lock_of_runs,
};

const EXPERIMENT: &str = r#"
name = "ci"
[[arm]]
name = "before"
[[arm]]
name = "after"
env = { TAKES = "LATER" }
[[workload]]
name = "sleep"
kind = "command"
command = ["sh", "-c", "sleep ${TAKES:-0.03}"]
[stop]
smallest-effect = "20%"
max-blocks = 12
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `ci/compare` in the directory of the bench, after which nothing is left.
fn compare(bench: &Bench, output: &str, stored: &str) -> Output {
    let mut command = Command::new(root().join("ci/compare"));
    command
        .current_dir(bench.dir.path())
        .env("SCHEDLAB", tests::schedlab())
        .env("SCHEDLAB_STATE_DIR", bench.path("state"))
        .env("GITHUB_STEP_SUMMARY", bench.path("step-summary"))
        .env("OUTPUT", output)
        .env("STORED", stored);
    let output = command.output().expect("ci/compare starts");
    bench.expect_nothing_left();
    output
}

#[test]
fn a_job_fails_on_a_slower_program_and_keeps_a_page_and_a_capsule() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    bench.file("ci.toml", &EXPERIMENT.replace("LATER", "0.2"));
    let job = compare(&bench, "first", "");
    expect_code(&job, 5);
    let read = |name: &str| fs::read_to_string(bench.path(name)).expect(name);
    assert!(
        read("first/schedlab.xml").contains("<failure"),
        "{}",
        read("first/schedlab.xml")
    );
    assert!(
        read("first/summary.md").contains("worse"),
        "{}",
        read("first/summary.md")
    );
    assert_eq!(read("step-summary"), read("first/summary.md"));
    expect_code(&bench.run(&["verify", "first/schedlab.tar.gz"]), 0);
    // What is there already is not taken for this job's.
    let again = compare(&bench, "first", "");
    expect_code(&again, 2);
    assert!(
        stderr(&again).contains("is there already"),
        "{}",
        stderr(&again)
    );
    // The arm was as slow in the stored run, so that nothing became worse.
    let beside = compare(&bench, "second", "first/schedlab.tar.gz");
    expect_code(&beside, 0);
    assert!(
        !read("second/schedlab.xml").contains("<failure"),
        "{}",
        read("second/schedlab.xml")
    );
}

#[test]
fn a_job_with_a_file_that_is_none_measures_nothing() {
    let bench = Bench::default();
    bench.file("ci.toml", "[[arm]]\nname = 3\n");
    let job = compare(&bench, "out", "");
    expect_code(&job, 2);
    assert!(stderr(&job).contains("ci.toml:2"), "{}", stderr(&job));
    assert!(!bench.path("out/results").exists());
}

#[test]
fn the_container_file_makes_an_image() {
    if !is_root() {
        return skipped("podman is used as root");
    }
    if !Image::is_possible_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    fs::create_dir(bench.path("target")).expect("made");
    fs::copy(tests::schedlab(), bench.path("target/schedlab")).expect("copied");
    fs::copy(root().join("Containerfile"), bench.path("Containerfile")).expect("copied");
    let image = format!("schedlab-test-{}", std::process::id());
    let podman = |words: &[&str]| {
        let mut command = Command::new("podman");
        command
            .args(["--cgroup-manager=cgroupfs"])
            .args(words)
            .current_dir(bench.dir.path());
        command.output().expect("podman starts")
    };
    expect_code(&podman(&["build", "--quiet", "--tag", &image, "."]), 0);
    let looked = podman(&["image", "inspect", &image]);
    expect_code(&podman(&["image", "rm", "--force", &image]), 0);
    let images: serde_json::Value = serde_json::from_str(&stdout(&looked)).expect("JSON");
    assert_eq!(
        images[0]["Config"]["Entrypoint"][0], "/usr/bin/schedlab",
        "{images}"
    );
}
