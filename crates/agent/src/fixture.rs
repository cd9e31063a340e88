//! Fixtures of tests: a root directory with files, and a workload.

use model::{Kind, Workload};
use std::fs;
use tempfile::TempDir;

/// A temporary tree of `(path below the root, text)`.
pub fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// A workload that is the command `true`.
pub fn command() -> Workload {
    Workload::new(Kind::new("command").with("argv", vec!["true"]))
}
