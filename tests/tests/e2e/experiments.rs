//! Every shipped experiment is understood and planned.

use std::path::PathBuf;
use tests::{Bench, alone, expect_code, stdout};

fn shipped() -> Vec<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let folders = ["programs", "known", "databases"].map(|name| dir.join(name));
    let folders = [dir].into_iter().chain(folders).map(std::fs::read_dir);
    let entries = folders.flat_map(|dir| dir.expect("experiments are shipped"));
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

/// Fourteen runs of ten seconds, as schedbench plans them.
#[test]
#[ignore = "takes three minutes: make test-long ROWS=schedbench"]
fn the_shipped_file_of_schedbench_runs_to_its_end() {
    let _turn = alone();
    let bench = Bench::default();
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../experiments/schedbench.bench"
    );
    let output = bench.run(&["run", file, "--max-blocks", "1", "-o", "out"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("14 trials, all ok"), "{said}");
    for cell in [
        "A-baseline 1",
        "B-baseline 1",
        "A-B 1",
        "A-B 2",
        "A-B 4",
        "A-B 8",
        "A-B 16",
    ] {
        assert!(said.contains(cell), "{cell}: {said}");
    }
    let full = bench.run(&["report", "out", "--full"]);
    let full = stdout(&full);
    // The classic table has a row for each set, and both presets of the file.
    assert!(full.contains("16 x A") && full.contains("16 x B"), "{full}");
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
