//! The cache of fetched and built things: kernels, initramfs files, images.

use super::failure::{io, unmet_error};
use crate::VmError;
use doors::written::{self, Beside, Marked};
use std::env;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// `$SCHEDLAB_CACHE_DIR`, else `$XDG_CACHE_HOME/schedlab`, else `~/.cache/schedlab`.
pub fn directory() -> Result<PathBuf, VmError> {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("SCHEDLAB_CACHE_DIR")
        .or_else(|| {
            Some(
                set("XDG_CACHE_HOME")
                    .filter(|p| p.is_absolute())?
                    .join("schedlab"),
            )
        })
        .or_else(|| Some(set("HOME")?.join(".cache/schedlab")))
        .ok_or_else(|| {
            unmet_error(
                "the cache directory",
                "HOME is not set, so there is no place for it",
                "set SCHEDLAB_CACHE_DIR",
            )
        })
}

/// Write a file that is whole or absent, and that everybody may read.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), VmError> {
    let written = Beside::create_for(path).and_then(|mut beside| {
        beside.file().write_all(bytes)?;
        let for_all = fs::Permissions::from_mode(0o644);
        beside.file().set_permissions(for_all)?;
        beside.put_in_place()
    });
    written.map_err(io("write", path))
}

pub(crate) fn is_for_all(path: &Path) -> bool {
    const READ_BY_ALL: u32 = 0o004;
    fs::metadata(path).is_ok_and(|found| found.mode() & READ_BY_ALL != 0)
}

/// A file that everybody may read: this one, or a copy in the cache. QEMU runs as somebody
/// else where root starts it, and a distribution may keep its kernels for root.
pub(crate) fn for_all(path: &Path, key: &str, cache: &Path) -> Result<PathBuf, VmError> {
    if is_for_all(path) {
        return Ok(path.to_owned());
    }
    let dir = cache.join("readable");
    let copy = dir.join(key);
    if !copy.exists() {
        written::make_directory(&dir).map_err(io("create", &dir))?;
        let bytes = doors::read::large_file_bytes(path).map_err(io("read", path))?;
        write_whole(&copy, &bytes)?;
    }
    Ok(copy)
}

/// Make a directory whose files have names that others use too (`status`, `lock`), or
/// find it made by schedlab before; nothing is ever written into one that is not.
pub(crate) fn own_directory(dir: &Path) -> Result<(), VmError> {
    let taken = match dir.is_symlink() {
        true => Err(ErrorKind::NotADirectory.into()),
        false => Marked::claim_dir(dir),
    };
    let why = match taken {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    if ![ErrorKind::AlreadyExists, ErrorKind::NotADirectory].contains(&why.kind()) {
        return Err(io("take", dir)(why));
    }
    Err(unmet_error(
        &dir.display().to_string(),
        "schedlab did not make this directory, so it writes nothing there",
        "remove it, or set SCHEDLAB_CACHE_DIR to another place",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_once_and_found_again() {
        let cache = tempfile::tempdir().unwrap();
        let dir = cache.path().join("apt/sid");
        own_directory(&dir).unwrap();
        fs::write(dir.join("status"), "ours").unwrap();
        own_directory(&dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join("status")).unwrap(), "ours");
    }

    #[test]
    fn directories_of_others_and_links_are_refused() {
        let cache = tempfile::tempdir().unwrap();
        let theirs = cache.path().join("dpkg");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("status"), "keep").unwrap();
        let link = cache.path().join("link");
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        for dir in [&theirs, &link] {
            let error = own_directory(dir).unwrap_err().to_string();
            assert!(error.contains("did not make this directory"), "{error}");
        }
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
        let empty = cache.path().join("empty");
        fs::create_dir(&empty).unwrap();
        let link = cache.path().join("link to nothing");
        std::os::unix::fs::symlink(&empty, &link).unwrap();
        assert!(own_directory(&link).is_err());
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    }
}
