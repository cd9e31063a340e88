//! Schedulers from a commit of a git repository, `scx_rusty@git:REPOSITORY#REVISION`: built once for
//! each commit, each in a root of its own that no plain name leads to.

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Mark between the name of a scheduler and its repository.
const MARK: &str = "@git:";
/// Directories between the top of a repository and that of a crate, at most: `scheds/rust/scx_rusty`.
const DEPTH: u32 = 4;

/// Scheduler, repository and revision of a name such as `scx_rusty@git:../scx#main`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitName<'a> {
    /// Package and program, `scx_rusty`.
    pub name: &'a str,
    /// Path or URL.
    pub repository: &'a str,
    /// Tag, branch or commit; `None`: the one that the repository is at.
    pub revision: Option<&'a str>,
}

impl<'a> GitName<'a> {
    /// Reads the name of a program; `None` if it names no repository.
    pub fn parse(program: &'a str) -> Option<Self> {
        let (name, place) = program.split_once(MARK)?;
        let (repository, revision) = match place.rsplit_once('#') {
            Some((repository, revision)) => (repository, Some(revision)),
            None => (place, None),
        };
        Some(GitName {
            name,
            repository,
            revision,
        })
    }
}

/// Directory of the crate of this name; the one that is highest in the tree.
pub(crate) fn crate_of(name: &str, tree: &Path) -> Result<PathBuf, Error> {
    let mut level = vec![tree.to_owned()];
    for _ in 0..=DEPTH {
        let mut here = level.iter().filter(|dir| is_crate(dir, name));
        if let Some(found) = here.next() {
            return Ok(found.clone());
        }
        level = level.iter().flat_map(|dir| directories(dir)).collect();
    }
    Err(Error::NoSuchCrate {
        name: name.to_owned(),
    })
}

fn is_crate(directory: &Path, name: &str) -> bool {
    let manifest = doors::read::small_file_text(directory.join("Cargo.toml")).unwrap_or_default();
    let named = |line: &str| {
        let value = line.strip_prefix("name")?.trim_start().strip_prefix('=')?;
        Some(value.trim().trim_matches('"') == name)
    };
    manifest.lines().any(|line| named(line) == Some(true))
}

fn directories(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    let shown = |name: &str| !name.starts_with('.') && name != "target";
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| entry.file_name().to_str().is_some_and(shown))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_repository_and_may_have_a_revision() {
        let read = |text| GitName::parse(text).map(|n| (n.name, n.repository, n.revision));
        let at_main = Some(("scx_rusty", "../scx", Some("main")));
        assert_eq!(read("scx_rusty@git:../scx#main"), at_main);
        let of_url = Some(("scx_rusty", "https://git.example/scx", None));
        assert_eq!(read("scx_rusty@git:https://git.example/scx"), of_url);
        assert_eq!(read("scx_rusty@1.1.4"), None);
        assert_eq!(read("/bin/scx_rusty"), None);
    }

    #[test]
    fn a_crate_is_found_wherever_the_repository_has_it_and_by_its_own_name() {
        let tree = tempfile::tempdir().unwrap();
        for (place, name) in [("scheds/rust/scx_a", "scx_a"), ("rust/other", "scx_b")] {
            let directory = tree.path().join(place);
            fs::create_dir_all(&directory).unwrap();
            let manifest = format!("[package]\nname = \"{name}\"\n");
            fs::write(directory.join("Cargo.toml"), manifest).unwrap();
        }
        let found = |name| crate_of(name, tree.path()).ok();
        assert_eq!(found("scx_a"), Some(tree.path().join("scheds/rust/scx_a")));
        assert_eq!(found("scx_b"), Some(tree.path().join("rust/other")));
        assert!(crate_of("scx_c", tree.path()).is_err());
    }
}
