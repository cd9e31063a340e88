//! Shapes of the output of `--format json`, against docs/json.md.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tests::{Bench, expect_code, skipped, stdout};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The examples of docs/json.md by the command that stands above each.
fn documented() -> BTreeMap<String, Value> {
    let page = std::fs::read_to_string(root().join("docs/json.md")).expect("a page");
    let mut examples = BTreeMap::new();
    let mut command = String::new();
    for (index, part) in page.split("```").enumerate() {
        match part.strip_prefix("json\n") {
            Some(example) if index % 2 == 1 => {
                let value = serde_json::from_str(example).unwrap_or_else(|e| {
                    panic!("{command}: {e} in\n{example}");
                });
                assert!(
                    examples.insert(command.clone(), value).is_none(),
                    "{command}"
                );
            }
            _ => {
                let last = part.split("\n\n`").last().unwrap_or_default();
                command = last.split('`').next().unwrap_or_default().to_owned();
            }
        }
    }
    examples
}

/// Panics where the value has other keys, or values of other types, than the example.
#[track_caller]
fn expect_shape(path: &str, found: &Value, example: &Value) {
    match (found, example) {
        (Value::Object(found), Value::Object(example)) => {
            let names = |object: &serde_json::Map<String, Value>| {
                object.keys().cloned().collect::<Vec<_>>()
            };
            assert_eq!(names(found), names(example), "keys of {path}");
            for (key, value) in found {
                expect_shape(&format!("{path}.{key}"), value, &example[key]);
            }
        }
        (Value::Array(found), Value::Array(example)) => {
            for (index, value) in found.iter().enumerate() {
                if let Some(first) = example.first() {
                    expect_shape(&format!("{path}[{index}]"), value, first);
                }
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (found, example) => assert_eq!(
            std::mem::discriminant(found),
            std::mem::discriminant(example),
            "{path}: {found} is documented as {example}"
        ),
    }
}

/// Runs the command, and compares what it prints with the example of its documentation.
#[track_caller]
fn check(bench: &Bench, command: &str, code: i32, documented_as: &str) -> Value {
    let mut words: Vec<&str> = command.split(' ').collect();
    let end = words.iter().position(|word| *word == "--");
    let end = end.unwrap_or(words.len());
    words.splice(end..end, ["--format", "json"]);
    let output = bench.run(&words);
    expect_code(&output, code);
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one JSON value");
    let documented = documented();
    let example = documented.get(&format!("schedlab {documented_as}"));
    expect_shape(command, &found, example.expect(documented_as));
    found
}

#[test]
fn lists_are_as_documented() {
    let bench = Bench::default();
    for list in ["arms", "workloads", "targets", "metrics", "collectors"] {
        let command = format!("list {list}");
        let found = check(&bench, &command, 0, &command);
        let first = found.get("forms").unwrap_or(&found).get(0);
        assert!(first.is_some(), "{command} is empty");
    }
}

#[test]
fn what_comes_before_a_run_is_as_documented() {
    let bench = Bench::default();
    let plan = check(
        &bench,
        "plan -a default -a batch -w hackbench",
        0,
        "plan FILE",
    );
    assert_eq!(plan["cells"][0]["name"], "hackbench 1");
    let doctor = check(&bench, "doctor", 0, "doctor");
    assert!(!doctor["checks"].as_array().expect("a list").is_empty());
}

#[test]
fn a_check_says_what_is_missing_as_json_too() {
    let bench = Bench::default();
    let fine = check(
        &bench,
        "check -a default -a batch -w wakeup",
        0,
        "check FILE",
    );
    assert_eq!((&fine["arms"], &fine["cells"]), (&2.into(), &1.into()));
    let lacks = check(
        &bench,
        "check -a default -a batch -- no-such-program",
        3,
        "check FILE",
    );
    let missing = lacks["missing"].as_array().expect("a list");
    assert!(!missing.is_empty());
    assert!(
        missing[0]["what"]
            .as_str()
            .expect("a text")
            .contains("no-such-program")
    );
}

#[test]
fn what_is_packed_and_verified_is_as_documented() {
    let bench = Bench::default();
    let stored = root().join("tests/fixtures/results-1.0");
    let capsule = bench.path("x.tar.gz");
    let pack = format!("pack {} -o {}", stored.display(), capsule.display());
    let packed = check(&bench, &pack, 0, "pack DIR");
    let found = check(
        &bench,
        &format!("verify {}", capsule.display()),
        0,
        "verify FILE",
    );
    let fingerprint = packed["fingerprint"].as_str().expect("a text");
    assert!(
        found["ok"][0]
            .as_str()
            .is_some_and(|ok| ok.contains(fingerprint))
    );
    assert_eq!(found["differs"], serde_json::json!([]));

    let other = "0".repeat(64);
    let wrong = format!("verify {} --fingerprint {other}", capsule.display());
    let found = check(&bench, &wrong, 1, "verify FILE");
    assert!(
        found["differs"][0]
            .as_str()
            .is_some_and(|text| text.contains(&other))
    );
}

#[test]
fn a_recommendation_is_as_documented() {
    let bench = Bench::default();
    let stored = root().join("tests/fixtures/results-1.0");
    let recommend = format!("recommend {}", stored.display());
    let found = check(&bench, &recommend, 0, "recommend DIR");
    assert!(
        found["arms"].as_array().is_some_and(|arms| arms.len() > 1),
        "{found}"
    );
}

#[test]
fn nothing_to_restore_is_as_documented() {
    let bench = Bench::default();
    if bench.run(&["restore"]).status.code() != Some(0) {
        return skipped("another journal of this machine holds changes");
    }
    let found = check(&bench, "restore", 0, "restore");
    assert_eq!(found["run"]["written"], serde_json::json!([]));
}

#[test]
fn guests_and_kernels_are_as_documented() {
    let bench = Bench::default();
    for command in ["vm status", "vm snapshot list", "kernel list", "tool list"] {
        check(&bench, command, 0, command);
    }
}

/// So that no command is forgotten: all whose help has the option are on the page.
#[test]
fn every_command_with_a_format_is_on_the_page() {
    let bench = Bench::default();
    let page = std::fs::read_to_string(root().join("docs/json.md")).expect("a page");
    let documented = documented();
    for command in [
        "run",
        "certify",
        "check",
        "plan",
        "report",
        "doctor",
        "overhead",
        "pack",
        "verify",
        "compare",
        "gate",
        "recommend",
        "tune",
        "pick",
        "restore",
        "list",
        "scheduler install",
        "scheduler list",
        "tool install",
        "tool list",
        "target check",
        "vm start",
        "vm status",
        "vm snapshot restore",
        "vm snapshot list",
        "kernel list",
        "kernel build",
        "image build",
    ] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = stdout(&bench.run(&words));
        assert!(
            help.contains("--format"),
            "{command} has no --format:\n{help}"
        );
        let has_example = documented
            .keys()
            .any(|key| key.starts_with(&format!("schedlab {command}")));
        let is_named = page.contains(&format!("`{command}`"));
        assert!(has_example || is_named, "{command} is not on the page");
    }
}
