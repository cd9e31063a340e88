//! A test that is skipped where it could run is a failure: scripts/skipped.

#![allow(clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::Output;
use tests::{Bench, expect_code, is_root, stdout};

const LISTED: &str = "crates/collect/src/hardware.rs: a::b: no hardware counters: not supported\n";
const OTHER: &str = "tests/tests/e2e/package.rs: lintian_finds: lintian is not installed\n";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is said of these skipped tests on a machine with this /etc/os-release.
fn judged(lines: &[&str], os_release: &str, allowed: &str) -> Output {
    let bench = Bench::default();
    let file = bench.file("skipped", &lines.concat());
    let os_release = bench.file("os-release", os_release);
    std::process::Command::new(root().join("scripts/skipped"))
        .arg(file)
        .env("SCHEDLAB_OS_RELEASE", os_release)
        .env("SCHEDLAB_SKIPS", allowed)
        .output()
        .expect("bash")
}

const DEBIAN: &str = "NAME=\"Debian GNU/Linux\"\nID=debian\n";

#[test]
fn a_skipped_test_fails_the_run_of_root_on_a_debian_and_is_named() {
    let output = judged(&[LISTED, OTHER], DEBIAN, "");
    expect_code(&output, i32::from(is_root()));
    let said = stdout(&output);
    let (of_list, others) = said.split_once("\nSkipped tests:\n").expect("two lists");
    assert!(
        of_list.contains("no hardware counters") && !of_list.contains("lintian"),
        "{said}"
    );
    assert!(
        others.contains("lintian_finds: lintian is not installed"),
        "{said}"
    );
}

#[test]
fn a_test_that_may_be_skipped_fails_no_run() {
    let output = judged(&[LISTED], DEBIAN, "");
    expect_code(&output, 0);
    assert!(stdout(&output).contains("as tests/may-be-skipped says"));
    expect_code(&judged(&[], DEBIAN, ""), 0);
}

#[test]
fn elsewhere_and_where_it_is_allowed_a_skipped_test_is_told_only() {
    for (os_release, allowed) in [("ID=fedora\n", ""), (DEBIAN, "any")] {
        let output = judged(&[OTHER], os_release, allowed);
        expect_code(&output, 0);
        assert!(stdout(&output).contains("lintian is not installed"));
    }
}

#[test]
fn every_test_that_may_be_skipped_has_a_reason() {
    let list = std::fs::read_to_string(root().join("tests/may-be-skipped")).expect("a list");
    let entries = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for entry in entries {
        let (words, why) = entry.split_once(" | ").expect("words | reason");
        // Words so short would let others pass, too.
        assert!(words.trim().len() >= 10 && why.len() >= 10, "{entry}");
    }
}
