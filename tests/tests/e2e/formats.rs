//! Results of every released format still report, and always the same.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use tests::{Bench, expect_code, stdout};

const FORMATS: [&str; 8] = [
    "text", "lkml", "csv", "json", "html", "markdown", "junit", "ktap",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

fn report(format: &str) -> String {
    let stored = fixture("results-1.0");
    let output = Bench::default().run(&["report", stored.to_str().unwrap(), "--format", format]);
    expect_code(&output, 0);
    stdout(&output)
}

#[test]
fn results_of_format_1_0_report_in_every_format() {
    for format in FORMATS {
        // Markdown escapes underscores.
        let text = report(format).replace('\\', "");
        assert!(text.contains("requests_per_sec"), "{format}:\n{text}");
    }
}

#[test]
fn a_report_made_twice_from_one_directory_is_the_same_to_the_byte() {
    for format in FORMATS {
        assert!(report(format) == report(format), "{format}");
    }
}

#[test]
fn distributions_are_written_for_the_plotter() {
    let bench = Bench::default();
    let stored = fixture("results-1.0");
    let output = bench.run(&["report", stored.to_str().unwrap(), "--hgrm", "curves"]);
    expect_code(&output, 0);
    let files: Vec<PathBuf> = std::fs::read_dir(bench.path("curves"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("1/(1-Percentile)"), "{text}");
    }
}

#[test]
fn results_of_format_1_0_keep_their_numbers_and_verdicts() {
    let text = std::fs::read_to_string(fixture("results-1.0.expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let found: Value = serde_json::from_str(&report("json")).unwrap();
    assert_eq!(found["trials"], expected["trials"]);
    let list = |report: &Value| report["comparisons"].as_array().unwrap().clone();
    let (expected, found) = (list(&expected), list(&found));
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(&found) {
        for (key, value) in expected.as_object().unwrap() {
            assert!(is_same(value, &found[key]), "{key}: {expected} but {found}");
        }
    }
}

/// Another C library may round the last digit of a logarithm otherwise.
fn is_same(expected: &Value, found: &Value) -> bool {
    match (expected.as_f64(), found.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => expected == found,
    }
}
