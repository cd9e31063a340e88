//! The cache of built schedulers, and the way from a name to a program.
//!
//! A version is installed when its program is in its own root; the links in
//! `bin/` are made from that after every installation and can be made again at
//! any time.

use crate::error::Error;
use crate::version::{self, Version};
use doors::written;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory of built schedulers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

/// One installed version of one scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Name of the scheduler, `scx_rusty`.
    pub name: String,
    /// Version of the program.
    pub version: Version,
    /// Path of the program in its own root, not of a link to it.
    pub program: PathBuf,
}

impl Cache {
    /// A cache below `root`, which need not exist yet.
    pub fn in_directory(root: impl Into<PathBuf>) -> Self {
        Cache { root: root.into() }
    }

    /// The user's: `$SCHEDLAB_CACHE_DIR`, else `$XDG_CACHE_HOME/schedlab`, else
    /// `~/.cache/schedlab`.
    pub fn from_env() -> Result<Self, Error> {
        Self::from_variables(|name| std::env::var_os(name)).ok_or(Error::NoCacheDirectory)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let path = |name| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        // The XDG specification: a relative path there is to be ignored.
        let xdg = || path("XDG_CACHE_HOME").filter(|p| p.is_absolute());
        path("SCHEDLAB_CACHE_DIR")
            .or_else(|| xdg().map(|p| p.join("schedlab")))
            .or_else(|| path("HOME").map(|p| p.join(".cache/schedlab")))
            .map(Cache::in_directory)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn schedulers_dir(&self) -> PathBuf {
        self.root.join("schedulers")
    }

    /// Holds `NAME` and `NAME@VERSION` for all that is installed.
    pub fn bin_dir(&self) -> PathBuf {
        self.schedulers_dir().join("bin")
    }

    pub(crate) fn build_dir(&self) -> PathBuf {
        self.schedulers_dir().join("build")
    }

    /// Log of a build; `which` is a version or a commit.
    pub(crate) fn log_file(&self, name: &str, which: &str) -> PathBuf {
        self.schedulers_dir()
            .join(format!("log/{name}-{which}.log"))
    }

    /// The root that `cargo install` is given for one commit of a repository.
    pub(crate) fn commit_root(&self, commit: &str) -> PathBuf {
        self.schedulers_dir().join("git").join(commit)
    }

    /// Trees of commits, while they are built.
    pub(crate) fn trees_dir(&self) -> PathBuf {
        self.schedulers_dir().join("src")
    }

    /// The root that `cargo install` is given for one version.
    pub(crate) fn install_root(&self, name: &str, version: &Version) -> PathBuf {
        self.schedulers_dir().join(format!("{name}-{version}"))
    }

    /// All that is installed, in order of name and version.
    pub fn list_installed(&self) -> Result<Vec<Installed>, Error> {
        let dir = self.schedulers_dir();
        let entries = match fs::read_dir(&dir) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(Error::io("read the cache", &dir))?,
        };
        let mut found: Vec<Installed> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| installed_in(&entry.path()))
            .collect();
        found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        Ok(found)
    }

    /// The installed program of this name: the version asked for, else the newest.
    pub fn find_installed(
        &self,
        name: &str,
        version: Option<&Version>,
    ) -> Result<Option<Installed>, Error> {
        let wanted = |i: &Installed| i.name == name && version.is_none_or(|v| *v == i.version);
        Ok(self.list_installed()?.into_iter().rfind(wanted))
    }

    /// Make the links in `bin/` agree with what is installed.
    pub(crate) fn refresh_links(&self) -> Result<(), Error> {
        let dir = self.bin_dir();
        written::make_directory(&dir).map_err(Error::io("create", &dir))?;
        let links = links_for(&self.list_installed()?);
        remove_stale(&dir, &links)?;
        links
            .iter()
            .try_for_each(|(name, program)| replace_link(&dir.join(name), program))
    }
}

/// Reads `NAME-VERSION/bin/NAME`; `None` for everything else in the cache.
fn installed_in(root: &Path) -> Option<Installed> {
    let (name, version) = split_root_name(root.file_name()?.to_str()?)?;
    let program = root.join("bin").join(&name);
    program.is_file().then_some(Installed {
        name,
        version,
        program,
    })
}

/// Scheduler names have no hyphen, pre-release versions may have.
fn split_root_name(text: &str) -> Option<(String, Version)> {
    let (name, version) = text.split_once('-')?;
    Some((name.to_owned(), version::parse(version)?))
}

/// Link name to program, as seen from `bin/`, so that the cache can be moved.
/// The plain name goes to the last, so newest, version.
fn links_for(installed: &[Installed]) -> BTreeMap<String, PathBuf> {
    let mut links = BTreeMap::new();
    for Installed { name, version, .. } in installed {
        let program = PathBuf::from(format!("../{name}-{version}/bin/{name}"));
        links.insert(format!("{name}@{version}"), program.clone());
        links.insert(name.clone(), program);
    }
    links
}

fn remove_stale(dir: &Path, wanted: &BTreeMap<String, PathBuf>) -> Result<(), Error> {
    let entries = fs::read_dir(dir).map_err(Error::io("read", dir))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        if !wanted.contains_key(&*name.to_string_lossy()) {
            let path = entry.path();
            written::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// By rename, so that a reader never finds the name missing.
fn replace_link(link: &Path, program: &Path) -> Result<(), Error> {
    if fs::read_link(link).is_ok_and(|now| now == program) {
        return Ok(());
    }
    written::write_link(program, link).map_err(Error::io("write a link", link))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(cache: &Cache, name: &str, version: &str) {
        let bin = cache
            .install_root(name, &version.parse().unwrap())
            .join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join(name), version).unwrap();
    }

    fn content(cache: &Cache, link: &str) -> Option<String> {
        fs::read_to_string(cache.bin_dir().join(link)).ok()
    }

    fn cache_dir_with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let lookup = |name: &str| {
            let pair = variables.iter().find(|(n, _)| *n == name);
            pair.map(|(_, value)| OsString::from(value))
        };
        Cache::from_variables(lookup).map(|c| c.root)
    }

    #[test]
    fn the_own_variable_wins_over_xdg_and_home() {
        let home = ("HOME", "/home/u");
        let xdg = ("XDG_CACHE_HOME", "/xdg");
        let own = ("SCHEDLAB_CACHE_DIR", "/own");
        let path = |text| Some(PathBuf::from(text));
        assert_eq!(cache_dir_with(&[home, xdg, own]), path("/own"));
        assert_eq!(cache_dir_with(&[home, xdg]), path("/xdg/schedlab"));
        assert_eq!(cache_dir_with(&[home]), path("/home/u/.cache/schedlab"));
        assert_eq!(cache_dir_with(&[]), None);
    }

    #[test]
    fn empty_and_relative_variables_are_passed_over() {
        let found = cache_dir_with(&[
            ("SCHEDLAB_CACHE_DIR", ""),
            ("XDG_CACHE_HOME", "relative"),
            ("HOME", "/home/u"),
        ]);
        assert_eq!(found, Some(PathBuf::from("/home/u/.cache/schedlab")));
    }

    #[test]
    fn a_cache_that_does_not_exist_has_nothing_installed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(dir.path().join("none"));
        assert_eq!(cache.list_installed().unwrap(), []);
        assert_eq!(cache.find_installed("scx_rusty", None).unwrap(), None);
    }

    #[test]
    fn the_newest_version_is_found_unless_another_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(dir.path());
        for version in ["1.1.9", "1.1.10", "1.1.10-rc.1"] {
            put(&cache, "scx_rusty", version);
        }
        let newest = cache.find_installed("scx_rusty", None).unwrap().unwrap();
        assert_eq!(newest.version.to_string(), "1.1.10");
        let wanted = "1.1.9".parse().unwrap();
        let named = cache
            .find_installed("scx_rusty", Some(&wanted))
            .unwrap()
            .unwrap();
        assert_eq!(named.version, wanted);
    }

    #[test]
    fn a_root_without_its_program_does_not_count_as_installed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(dir.path());
        let root = cache.install_root("scx_lavd", &"1.1.4".parse().unwrap());
        fs::create_dir_all(root.join("bin")).unwrap();
        assert_eq!(cache.list_installed().unwrap(), []);
    }

    #[test]
    fn links_lead_to_the_newest_and_to_each_version() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(dir.path());
        put(&cache, "scx_rusty", "1.1.4");
        cache.refresh_links().unwrap();
        assert_eq!(content(&cache, "scx_rusty").as_deref(), Some("1.1.4"));
        put(&cache, "scx_rusty", "1.2.0");
        cache.refresh_links().unwrap();
        assert_eq!(content(&cache, "scx_rusty").as_deref(), Some("1.2.0"));
        assert_eq!(content(&cache, "scx_rusty@1.1.4").as_deref(), Some("1.1.4"));
    }

    #[test]
    fn links_of_removed_versions_disappear() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(dir.path());
        put(&cache, "scx_rusty", "1.1.4");
        put(&cache, "scx_rusty", "1.2.0");
        cache.refresh_links().unwrap();
        fs::remove_dir_all(cache.install_root("scx_rusty", &"1.2.0".parse().unwrap())).unwrap();
        cache.refresh_links().unwrap();
        assert_eq!(content(&cache, "scx_rusty").as_deref(), Some("1.1.4"));
        assert!(!cache.bin_dir().join("scx_rusty@1.2.0").is_symlink());
    }
}
