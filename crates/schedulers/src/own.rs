//! Schedulers of our own, which no registry has: built from `sched/` of the source
//! tree around the running program, else around the working directory.

use crate::error::Error;
use crate::registry;
use crate::version::Version;
use std::path::{Path, PathBuf};

/// A scheduler's crate in the source tree, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    pub version: Version,
    pub directory: PathBuf,
}

/// Paths above which the source tree may be.
pub(crate) fn start_directories() -> Vec<PathBuf> {
    let program = std::env::current_exe().and_then(|p| p.canonicalize());
    [program, std::env::current_dir()]
        .into_iter()
        .flatten()
        .collect()
}

/// The crate of `name` above one of `starts`; its version is asked of cargo.
pub(crate) fn find_crate(cargo: &Path, name: &str, starts: &[PathBuf]) -> Result<Own, Error> {
    let directory = find_directory(name, starts).ok_or_else(|| Error::NoSourceTree {
        name: name.to_owned(),
    })?;
    let asked = registry::version_of_path(cargo, &directory.join("Cargo.toml"));
    let version = asked.map_err(|why| Error::BadSourceTree {
        directory: directory.clone(),
        why,
    })?;
    Ok(Own { version, directory })
}

pub(crate) fn find_directory(name: &str, starts: &[PathBuf]) -> Option<PathBuf> {
    let above = starts.iter().flat_map(|start| start.ancestors());
    above
        .map(|dir| dir.join("sched").join(name))
        .find(|dir| dir.join("Cargo.toml").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_tree_is_found_from_any_depth_and_the_first_start_wins() {
        let near = tempfile::tempdir().unwrap();
        let far = tempfile::tempdir().unwrap();
        for root in [&near, &far] {
            let dir = root.path().join("sched/scx_own");
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("Cargo.toml"), "").unwrap();
        }
        let starts = [near.path().join("target/debug"), far.path().to_owned()];
        let found = find_directory("scx_own", &starts).unwrap();
        assert_eq!(found, near.path().join("sched/scx_own"));
        let found = find_directory("scx_own", &starts[1..]).unwrap();
        assert_eq!(found, far.path().join("sched/scx_own"));
        assert_eq!(find_directory("scx_other", &starts), None);
    }
}
