//! The list of `schedlab kernel list`: kernels in the cache, and those of the suites whose
//! lists are already there. Nothing is fetched.

use super::apt::Suite;
use super::{Kernel, SUITES, dir_name, unpacked};
use crate::architecture;
use model::compare_releases;
use std::fs;
use std::path::{Path, PathBuf};

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name for an experiment: `debian:linux-image-…`.
    pub name: String,
    /// `uname -r`; `None` where only a suite's list names the kernel.
    pub release: Option<String>,
    /// True if the kernel is unpacked in the cache.
    pub cached: bool,
    /// `None` where the configuration is not known.
    pub sched_ext: Option<bool>,
    /// Suite, or `None` for what only the cache has.
    pub suite: Option<String>,
    /// Description of the package in one line; the version of a package that is in the cache.
    pub summary: String,
}

pub(crate) fn kernels_directory(cache: &Path) -> PathBuf {
    cache.join("kernels")
}

/// Unpacked packages (`NAME_VERSION`), sorted by name, older versions first.
pub(crate) fn cached_directories(cache: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(kernels_directory(cache))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("linux-"))
        })
        .collect();
    found.sort_by(|one, other| compare_releases(&dir_name(one), &dir_name(other)));
    found
}

/// Kernels in the cache, and those of each suite whose lists are there.
pub fn list(cache: &Path) -> Vec<Listed> {
    let mut lines: Vec<Listed> = cached_directories(cache)
        .iter()
        .filter_map(|d| cached(d))
        .collect();
    let suites = architecture::ALL
        .into_iter()
        .flat_map(|of| SUITES.into_iter().map(move |suite| (suite, of)));
    let suites = suites.filter_map(|(suite, of)| Suite::new(cache, suite, of).ok());
    for suite in suites.filter(Suite::is_fetched) {
        add_suite(&mut lines, &suite);
    }
    lines
}

fn cached(dir: &Path) -> Option<Listed> {
    let name = dir.file_name()?.to_string_lossy().into_owned();
    let (package, version) = name.split_once('_')?;
    let kernel: Kernel = unpacked(&name, dir).ok()?;
    Some(Listed {
        name: format!("debian:{package}"),
        sched_ext: kernel.sched_ext(),
        release: Some(kernel.release),
        cached: true,
        suite: None,
        summary: format!("version {version}"),
    })
}

fn add_suite(lines: &mut Vec<Listed>, suite: &Suite) {
    for package in suite.kernels().unwrap_or_default() {
        let name = format!("debian:{}", package.name);
        if let Some(line) = lines.iter_mut().find(|line| line.name == name) {
            line.suite.get_or_insert_with(|| suite.name().to_owned());
            continue;
        }
        lines.push(Listed {
            name,
            release: None,
            cached: false,
            sched_ext: None,
            suite: Some(suite.name().to_owned()),
            summary: package.summary,
        });
    }
}
