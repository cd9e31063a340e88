//! List of what is installed and what could be.

use crate::cache::Cache;
use crate::catalog::{CATALOG, Source, find_known};
use crate::error::Error;
use crate::own;
use crate::registry;
use crate::toolchain::Toolchain;
use crate::version::Version;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One scheduler of `schedlab scheduler list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name of the crate and of the program.
    pub name: String,
    /// One line; empty for a scheduler that the catalog does not know.
    pub about: &'static str,
    /// Oldest first.
    pub installed: Vec<Version>,
    /// Version that is installed where none is named; `None` for one of our own, and for a
    /// scheduler that the catalog does not know.
    pub usual: Option<&'static str>,
    /// On crates.io, or in the source tree; `None` when it was not asked or did not answer.
    pub newest: Option<Version>,
}

/// All known and all installed schedulers, in order of name. With `ask` the
/// registry is asked for the newest versions; without an answer they stay open.
pub fn list_schedulers(cache: &Cache, ask: bool) -> Result<Vec<Entry>, Error> {
    let mut entries = offline(cache)?;
    if ask && let Some(cargo) = cargo() {
        let starts = own::start_directories();
        add_newest(&mut entries, |name| {
            match find_known(name).map(|k| k.source) {
                Some(Source::Tree) => Ok(own::find_crate(&cargo, name, &starts)
                    .ok()
                    .map(|o| o.version)),
                _ => registry::ask_newest(&cargo, name, Path::new("/")).map(Some),
            }
        });
    }
    Ok(entries)
}

fn offline(cache: &Cache) -> Result<Vec<Entry>, Error> {
    let installed = cache.list_installed()?;
    let of_catalog = CATALOG.iter().map(|k| k.name);
    let names: BTreeSet<&str> = of_catalog
        .chain(installed.iter().map(|i| &*i.name))
        .collect();
    let versions = |name: &str| {
        let of_name = installed.iter().filter(|i| i.name == name);
        of_name.map(|i| i.version.clone()).collect()
    };
    let entry = |name: &str| Entry {
        name: name.to_owned(),
        about: find_known(name).map_or("", |k| k.about),
        installed: versions(name),
        usual: find_known(name).and_then(|k| k.version),
        newest: None,
    };
    Ok(names.into_iter().map(entry).collect())
}

fn cargo() -> Option<PathBuf> {
    Toolchain::find_cargo(&std::env::var_os("PATH")?)
}

/// Stops at the first failure: a registry that is out of reach for one crate
/// is so for all, and each attempt may take its full time-out.
fn add_newest(entries: &mut [Entry], mut ask: impl FnMut(&str) -> Result<Option<Version>, String>) {
    for entry in entries {
        match ask(&entry.name) {
            Ok(version) => entry.newest = version,
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_empty_cache_lists_the_whole_catalog() {
        let dir = tempfile::tempdir().unwrap();
        let entries = list_schedulers(&Cache::in_directory(dir.path()), false).unwrap();
        assert_eq!(entries.len(), CATALOG.len());
        assert!(entries.iter().all(|e| e.installed.is_empty()));
    }

    #[test]
    fn an_installed_scheduler_outside_the_catalog_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(dir.path());
        let bin = cache
            .install_root("scx_own", &"0.1.0".parse().unwrap())
            .join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("scx_own"), "").unwrap();
        let entries = list_schedulers(&cache, false).unwrap();
        let own = entries.iter().find(|e| e.name == "scx_own").unwrap();
        assert_eq!(own.installed, ["0.1.0".parse().unwrap()]);
    }

    #[test]
    fn a_registry_out_of_reach_is_asked_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut entries = offline(&Cache::in_directory(dir.path())).unwrap();
        let mut asked = 0;
        add_newest(&mut entries, |_| {
            asked += 1;
            Err("no network".to_owned())
        });
        assert_eq!(asked, 1);
        assert!(entries.iter().all(|e| e.newest.is_none()));
    }
}
