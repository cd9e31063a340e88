//! Tools that building a scheduler needs on this machine, found on a search path.
//!
//! scx crates compile their BPF half with clang (`BPF_CLANG`; their build
//! refuses versions below 18, "clang < 18 does not support -mcpu=v4"), generate
//! bindings with libclang, and link libelf and zlib through libbpf-sys.

use doors::started::{status_of, tool_at};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest clang that scx 1.1 builds with.
const OLDEST_CLANG: u32 = 18;

/// A program or library that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub what: &'static str,
    /// Debian's package; `None` where no package of a stable release is recent enough.
    pub package: Option<&'static str>,
}

/// Packages that come from another place than apt, and how.
const RUSTUP: &str = "install Rust from https://rustup.rs";

impl Missing {
    /// All of them, with one line that installs what apt can install.
    pub(crate) fn describe(missing: &[Missing]) -> String {
        let names: Vec<&str> = missing.iter().map(|m| m.what).collect();
        let packages: Vec<&str> = missing.iter().filter_map(|m| m.package).collect();
        let mut remedies = Vec::new();
        if !packages.is_empty() {
            remedies.push(format!("apt-get install {}", packages.join(" ")));
        }
        if missing.iter().any(|m| m.package.is_none()) {
            remedies.push(RUSTUP.to_owned());
        }
        format!("{}; {}", names.join(", "), remedies.join(", and "))
    }
}

/// The tools of a complete build environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    pub cargo: PathBuf,
    pub clang: PathBuf,
}

impl Toolchain {
    /// cargo alone, which is enough to ask for versions.
    pub(crate) fn find_cargo(path: &OsStr) -> Option<PathBuf> {
        program(path, "cargo")
    }

    /// Look for everything on `path` (as in `$PATH`) and name all that is missing at once.
    pub fn find(path: &OsStr) -> Result<Toolchain, Vec<Missing>> {
        let mut missing = Vec::new();
        let mut need = |found: Option<PathBuf>, what, package| {
            if found.is_none() {
                missing.push(Missing { what, package });
            }
            found.unwrap_or_default()
        };
        let cargo = need(program(path, "cargo"), "cargo", None);
        let clang = need(newest_clang(path), "clang 18 or newer", Some("clang-19"));
        need(program(path, "cc"), "a C compiler", Some("gcc"));
        need(program(path, "protoc"), "protoc", Some("protobuf-compiler"));
        let pkg_config = need(
            program(path, "pkg-config"),
            "pkg-config",
            Some("pkg-config"),
        );
        for (library, package) in [("libelf", "libelf-dev"), ("zlib", "zlib1g-dev")] {
            need(has_library(&pkg_config, library), library, Some(package));
        }
        match missing.is_empty() {
            true => Ok(Toolchain { cargo, clang }),
            false => Err(missing),
        }
    }
}

fn directories(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path).filter(|dir| dir.is_absolute())
}

/// The first of this name in one of the directories.
fn program(path: &OsStr, name: &str) -> Option<PathBuf> {
    let path = std::env::join_paths(directories(path)).ok()?;
    which::which_in(name, Some(path), "/").ok()
}

/// The highest `clang-N`, else a plain `clang` that is new enough.
fn newest_clang(path: &OsStr) -> Option<PathBuf> {
    let entries = directories(path).filter_map(|dir| fs::read_dir(dir).ok());
    let names = entries.flatten().flatten().map(|entry| entry.file_name());
    let mut versions: Vec<u32> = names.filter_map(|name| clang_suffix(&name)).collect();
    versions.retain(|version| *version >= OLDEST_CLANG);
    versions.sort_unstable_by(|a, b| b.cmp(a));
    let versioned = |version: u32| program(path, &format!("clang-{version}"));
    versions
        .into_iter()
        .find_map(versioned)
        .or_else(|| program(path, "clang").filter(|file| is_new_enough(file)))
}

/// 19 for `clang-19`; nothing for `clang-cpp-19` or `clang-format-19`.
fn clang_suffix(name: &OsString) -> Option<u32> {
    name.to_str()?.strip_prefix("clang-")?.parse().ok()
}

fn is_new_enough(clang: &Path) -> bool {
    let output = doors::read::output_of(tool_at(clang).arg("--version"));
    output
        .ok()
        .and_then(|o| clang_version(&String::from_utf8_lossy(&o.stdout)))
        .is_some_and(|version| version >= OLDEST_CLANG)
}

/// The major version in `Debian clang version 14.0.6`.
fn clang_version(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("clang version ")?;
    rest.split('.').next()?.parse().ok()
}

/// Path of a library. Where pkg-config itself is missing, libraries are not named as missing
/// too.
fn has_library(pkg_config: &Path, library: &str) -> Option<PathBuf> {
    if pkg_config.as_os_str().is_empty() {
        return Some(PathBuf::new());
    }
    let mut probe = tool_at(pkg_config);
    probe.args(["--exists", library]);
    status_of(probe)
        .is_ok_and(|s| s.success())
        .then(PathBuf::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(dir: &Path, name: &str, script: &str) {
        ::tests::write_program(&dir.join(name), format!("#!/bin/sh\n{script}\n"));
    }

    /// A search path on which everything is, in the newest version.
    fn complete() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cargo", "cc", "protoc", "pkg-config", "clang-19"] {
            fake(dir.path(), name, "exit 0");
        }
        dir
    }

    fn missing(dir: &Path) -> Vec<&'static str> {
        let found = Toolchain::find(dir.as_os_str());
        found.unwrap_err().iter().map(|m| m.what).collect()
    }

    #[test]
    fn a_complete_environment_gives_cargo_and_clang() {
        let dir = complete();
        let tools = Toolchain::find(dir.path().as_os_str()).unwrap();
        assert_eq!(tools.clang, dir.path().join("clang-19"));
        assert_eq!(tools.cargo, dir.path().join("cargo"));
    }

    #[test]
    fn the_highest_versioned_clang_is_chosen() {
        let dir = complete();
        fake(dir.path(), "clang-9", "exit 0");
        fake(dir.path(), "clang-21", "exit 0");
        fake(dir.path(), "clang-format-22", "exit 0");
        let tools = Toolchain::find(dir.path().as_os_str()).unwrap();
        assert_eq!(tools.clang, dir.path().join("clang-21"));
    }

    #[test]
    fn a_plain_clang_counts_only_when_it_is_new_enough() {
        let dir = complete();
        fs::remove_file(dir.path().join("clang-19")).unwrap();
        fake(dir.path(), "clang", "echo Debian clang version 14.0.6");
        assert_eq!(missing(dir.path()), ["clang 18 or newer"]);
        fake(dir.path(), "clang", "echo Debian clang version 20.1.2");
        assert!(Toolchain::find(dir.path().as_os_str()).is_ok());
    }

    #[test]
    fn all_that_is_missing_is_named_with_one_line_to_install_it() {
        let dir = tempfile::tempdir().unwrap();
        fake(dir.path(), "pkg-config", "test \"$2\" = zlib");
        let missing = Toolchain::find(dir.path().as_os_str()).unwrap_err();
        let text = Missing::describe(&missing);
        assert!(text.contains("apt-get install clang-19 gcc protobuf-compiler libelf-dev"));
        assert!(text.contains("rustup"), "{text}");
        assert!(!text.contains("zlib1g-dev"), "{text}");
    }

    #[test]
    fn libraries_are_not_blamed_when_pkg_config_is_missing() {
        let dir = complete();
        fs::remove_file(dir.path().join("pkg-config")).unwrap();
        assert_eq!(missing(dir.path()), ["pkg-config"]);
    }
}
