//! A root directory with the files that a test needs.

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
