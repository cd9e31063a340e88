//! Every shipped experiment is understood and planned.

use std::path::PathBuf;
use tests::{Bench, expect_code, stdout};

fn shipped() -> Vec<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let entries = [dir.clone(), dir.join("programs")].map(std::fs::read_dir);
    let entries = entries
        .into_iter()
        .flat_map(|dir| dir.expect("experiments are shipped"));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

#[test]
fn every_shipped_experiment_can_be_planned() {
    let bench = Bench::default();
    let files = shipped();
    assert!(files.len() >= 11, "{files:?}");
    for file in files {
        let output = bench.run(&["plan", &file.display().to_string()]);
        expect_code(&output, 0);
        assert!(stdout(&output).contains("block 1"), "{}", stdout(&output));
    }
}

#[test]
fn lists_name_what_experiments_use() {
    let bench = Bench::default();
    for (what, expected) in [
        ("arms", "deadline:RUNTIME/PERIOD"),
        ("workloads", "hackbench"),
        ("targets", "vm"),
        ("metrics", "wakeup_p99"),
    ] {
        let output = bench.run(&["list", what]);
        expect_code(&output, 0);
        assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    }
}
