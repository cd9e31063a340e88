//! Places where results may be written.
//!
//! schedlab runs as root, also in directories where everybody may write (`/tmp`). There a
//! name may be a link that somebody else has put in its place, which the kernel follows
//! unless `fs.protected_symlinks` keeps it from that (proc_sys_fs(5)). So the rule of that
//! setting is kept here, whatever the setting is.

use crate::ResultsError;
use crate::files::io;
use std::fs::{self, DirBuilder, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;

/// Makes a directory, and those that lead to it, through no link of another user. It may
/// be there, if it is a directory of ours.
pub(crate) fn make(dir: &Path) -> Result<(), ResultsError> {
    let whole = std::path::absolute(dir).map_err(io("finding", dir))?;
    let mut way = PathBuf::new();
    let mut above: Option<Metadata> = None;
    for part in whole.components() {
        way.push(part);
        let found = match way.symlink_metadata() {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                make_one(&way)?;
                way.symlink_metadata()
            }
            found => found,
        };
        let found = found.map_err(io("looking at", &way))?;
        if above.is_some_and(|above| is_trap(&above, &found)) {
            return Err(ResultsError::OfAnother {
                path: way,
                owner: found.uid(),
            });
        }
        // What a link leads to decides about what lies in it.
        above = Some(fs::metadata(&way).map_err(io("looking at", &way))?);
    }
    is_directory(dir)?;
    is_ours(dir)
}

fn make_one(dir: &Path) -> Result<(), ResultsError> {
    DirBuilder::new()
        .mode(0o755)
        .create(dir)
        .map_err(io("creating", dir))
}

/// A link in a directory for all that neither we nor the owner of the directory made.
fn is_trap(above: &Metadata, found: &Metadata) -> bool {
    let for_all = STICKY | WRITABLE_BY_ALL;
    found.is_symlink()
        && above.permissions().mode() & for_all == for_all
        && ![user(), above.uid()].contains(&found.uid())
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A new directory inside of one that is ours. What has its name is removed.
pub(crate) fn make_anew(dir: &Path) -> Result<(), ResultsError> {
    match DirBuilder::new().mode(0o755).create(dir) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            // A link is removed itself.
            fs::remove_dir_all(dir).map_err(io("removing", dir))?;
            make_one(dir)
        }
        made => made.map_err(io("creating", dir)),
    }
}

/// A directory, and no link to one.
pub(crate) fn is_directory(dir: &Path) -> Result<(), ResultsError> {
    match dir
        .symlink_metadata()
        .map_err(io("looking at", dir))?
        .is_dir()
    {
        true => Ok(()),
        false => Err(ResultsError::NotADirectory(dir.to_owned())),
    }
}

/// An error if somebody else can put links into the directory. As root, only a directory that
/// belongs to root, or to the user who called sudo(8), is written to: the owner of a directory
/// can put links into it at any time.
pub(crate) fn is_ours(dir: &Path) -> Result<(), ResultsError> {
    let owner = fs::metadata(dir).map_err(io("looking at", dir))?.uid();
    let caller = std::env::var("SUDO_UID")
        .ok()
        .and_then(|id| id.parse().ok());
    if user() != 0 || owner == 0 || caller == Some(owner) {
        return Ok(());
    }
    Err(ResultsError::OfAnother {
        path: dir.to_owned(),
        owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    const SOMEBODY: u32 = 12_345;

    /// A directory as `/tmp` is, or `None` where other users cannot be played.
    fn for_all() -> Option<tempfile::TempDir> {
        if user() != 0 {
            ::tests::skipped("to give files to another user takes root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        Some(dir)
    }

    #[test]
    fn a_link_of_somebody_else_is_not_followed() {
        let Some(dir) = for_all() else { return };
        let elsewhere = tempfile::tempdir().unwrap();
        let link = dir.path().join("results");
        symlink(elsewhere.path(), &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(SOMEBODY), None).unwrap();
        let refused = make(&link.join("x")).unwrap_err();
        assert!(refused.to_string().contains("another user"), "{refused}");
        assert!(!elsewhere.path().join("x").exists());
    }

    #[test]
    fn a_directory_of_somebody_else_is_not_written_to() {
        let Some(dir) = for_all() else { return };
        let theirs = dir.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(SOMEBODY), None).unwrap();
        assert!(make(&theirs).is_err());
        assert!(is_ours(&theirs).is_err());
    }

    #[test]
    fn a_link_of_our_own_leads_where_it_leads_but_is_no_results_directory() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("disk");
        fs::create_dir(&real).unwrap();
        symlink(&real, dir.path().join("results")).unwrap();
        make(&dir.path().join("results/a/b")).unwrap();
        assert!(real.join("a/b").is_dir());
        assert!(make(&dir.path().join("results")).is_err());
    }
}
