//! The directories that lead to a place, and who could change them.

#![expect(clippy::disallowed_methods, reason = "this is the door")]

use crate::read::kernel_text;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;
const WRITABLE_BY_GROUP: u32 = 0o020;
/// Limit of the kernel, too (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// Number that the kernel shows as the owner of what belongs to nobody of a user namespace.
const OVERFLOW_ID: u32 = 65_534;

/// Users whose files and directories count as ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    users: Vec<u32>,
    groups: Vec<u32>,
}

impl Trust {
    /// Root and the user of this process: for what root will run or read at another time.
    pub fn in_root() -> Trust {
        let mut trust = Trust {
            users: vec![0, rustix::process::geteuid().as_raw()],
            groups: vec![0],
        };
        if !is_root() {
            trust.groups.push(rustix::process::getegid().as_raw());
        }
        // Nobody inside of a user namespace can change what belongs to nobody in it.
        if is_in_user_namespace() {
            trust.users.push(OVERFLOW_ID);
            trust.groups.push(OVERFLOW_ID);
        }
        trust
    }

    /// Also the user who called sudo(8): for what this call writes.
    pub fn in_caller() -> Trust {
        let mut trust = Trust::in_root();
        let number = |name| std::env::var(name).ok()?.parse().ok();
        if is_root() {
            trust.users.extend::<Option<u32>>(number("SUDO_UID"));
            trust.groups.extend::<Option<u32>>(number("SUDO_GID"));
        }
        trust
    }

    /// True for a user whose files and directories count as ours.
    pub fn has_user(&self, user: u32) -> bool {
        self.users.contains(&user)
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn is_in_user_namespace() -> bool {
    let map = kernel_text("/proc/self/uid_map").unwrap_or_default();
    let words: Vec<_> = map.split_whitespace().collect();
    !words.is_empty() && words != ["0", "0", "4294967295"]
}

/// A path that somebody else can change, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    /// The file, or a directory or link that leads to it.
    pub path: PathBuf,
    /// Reason for which others may change it.
    pub how: How,
}

/// Reason for which others may change a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It belongs to this user.
    Owner(u32),
    /// Members of this group may write it.
    Group(u32),
    /// All users may write it.
    All,
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let path = self.path.display();
        match self.how {
            How::Owner(user) => write!(f, "{path} belongs to another user ({user})"),
            How::Group(group) => write!(f, "{path} may be written by all of group {group}"),
            How::All => write!(f, "{path} may be written by all users"),
        }
    }
}

impl std::error::Error for Exposed {}

/// An error with the words for those who asked to write there.
fn refused(exposed: Exposed) -> io::Error {
    let why = format!(
        "{exposed}, who could lead what is written elsewhere; choose another directory, or copy it"
    );
    io::Error::new(ErrorKind::PermissionDenied, why)
}

/// One name on the way, with the directory that holds it.
struct Name<'a> {
    above: &'a Metadata,
    path: &'a Path,
    found: &'a Metadata,
}

impl Name<'_> {
    fn exposed(&self, how: How) -> Exposed {
        Exposed {
            path: self.path.to_owned(),
            how,
        }
    }

    /// The rights that others have to change what is here, sticky directories apart: there, each
    /// user can only change what belongs to that user.
    fn changed_by(&self, trust: &Trust, groups_count: bool) -> Option<Exposed> {
        let found = self.found;
        let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
        let group = found.gid();
        let how = if !trust.has_user(found.uid()) {
            How::Owner(found.uid())
        } else if found.is_symlink() || is_sticky {
            return None;
        } else if found.mode() & WRITABLE_BY_ALL != 0 {
            How::All
        } else if groups_count
            && found.mode() & WRITABLE_BY_GROUP != 0
            && !trust.groups.contains(&group)
        {
            How::Group(group)
        } else {
            return None;
        };
        Some(self.exposed(how))
    }

    /// A link in a directory where others may put names, that neither we nor the owner of the
    /// directory made. It is the rule of `fs.protected_symlinks` (proc_sys_fs(5)), whatever that
    /// setting is, and of directories without the sticky bit, too.
    fn trap(&self) -> Option<Exposed> {
        let for_others = WRITABLE_BY_ALL | WRITABLE_BY_GROUP;
        let own = [rustix::process::geteuid().as_raw(), self.above.uid()];
        let is_trap = self.found.is_symlink()
            && self.above.mode() & for_others != 0
            && !own.contains(&self.found.uid());
        is_trap.then(|| self.exposed(How::Owner(self.found.uid())))
    }
}

/// Goes from `/` to the path, shows each name on the way, and follows links. What is missing is
/// given to `missing`, which may make it. Returns the path without links.
fn walk(
    path: &Path,
    look: &mut dyn FnMut(&Name) -> io::Result<()>,
    missing: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let mut way = PathBuf::from("/");
    let mut rest = names(&std::path::absolute(path)?);
    let mut links = 0;
    let mut above = fs::symlink_metadata(&way)?;
    look(&Name {
        above: &above,
        path: &way,
        found: &above,
    })?;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            way.pop();
            above = fs::symlink_metadata(&way)?;
            continue;
        }
        let next = way.join(&name);
        let found = match next.symlink_metadata() {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                missing(&next)?;
                next.symlink_metadata()?
            }
            found => found?,
        };
        look(&Name {
            above: &above,
            path: &next,
            found: &found,
        })?;
        if !found.is_symlink() {
            (way, above) = (next, found);
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            way = PathBuf::from("/");
            above = fs::symlink_metadata(&way)?;
        }
        let mut all = names(&target);
        all.append(&mut rest);
        rest = all;
    }
    Ok(way)
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

/// Who else than the trusted could change the file, or lead its name to another one: the first
/// path, from `/` on, that belongs to somebody else or may be written by others. `None` where
/// nobody can.
pub fn find_exposed(path: &Path, trust: &Trust) -> io::Result<Option<Exposed>> {
    let mut first = None;
    let mut look = |name: &Name| {
        first = first.take().or_else(|| name.changed_by(trust, true));
        Ok(())
    };
    walk(path, &mut look, &mut |_| Err(ErrorKind::NotFound.into()))?;
    Ok(first)
}

/// Refuses a name on the way to a place that is written to. As root, all directories are root's or
/// those of the user who called sudo(8), and none is for all without the sticky bit. All others
/// write where they like, but follow no link of somebody else in a directory for several.
fn check(name: &Name, trust: &Trust) -> io::Result<()> {
    let others = match is_root() && !name.found.is_symlink() {
        true => name.changed_by(trust, false),
        false => None,
    };
    match name.trap().or(others) {
        Some(exposed) => Err(refused(exposed)),
        None => Ok(()),
    }
}

/// Makes a directory, and those that lead to it, with mode 0755 less the umask. It may be there.
/// Refuses where somebody else could lead elsewhere what is written into it. Returns those that
/// were made, the first of which holds all others.
pub fn make_directory(dir: &Path) -> io::Result<Vec<PathBuf>> {
    make(dir, 0o755)
}

/// The same with mode 0700: nobody else can look into directories that are made.
pub fn make_private_directory(dir: &Path) -> io::Result<Vec<PathBuf>> {
    make(dir, 0o700)
}

fn make(dir: &Path, mode: u32) -> io::Result<Vec<PathBuf>> {
    let trust = Trust::in_caller();
    let mut made = Vec::new();
    let mut make = |path: &Path| match DirBuilder::new().mode(mode).create(path) {
        // Somebody was faster; what it is will be looked at.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
        Ok(()) => {
            made.push(path.to_owned());
            Ok(())
        }
    };
    let real = walk(dir, &mut |name| check(name, &trust), &mut make)?;
    match real.symlink_metadata()?.is_dir() {
        true => Ok(made),
        false => Err(ErrorKind::NotADirectory.into()),
    }
}

/// Makes one directory, with mode 0755 less the umask, which must not be there.
pub fn make_new_directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(real_place(dir)?)
}

/// The path of what is there, without links. Refuses where somebody else could lead elsewhere
/// what is written to it.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let trust = Trust::in_caller();
    let missing = &mut |_: &Path| Err(ErrorKind::NotFound.into());
    walk(path, &mut |name| check(name, &trust), missing)
}

/// A directory that is there, without links. Refuses where somebody else could lead elsewhere
/// what is written into it.
pub fn real_directory(dir: &Path) -> io::Result<PathBuf> {
    let real = real_path(dir)?;
    match real.symlink_metadata()?.is_dir() {
        true => Ok(real),
        false => Err(ErrorKind::NotADirectory.into()),
    }
}

/// The place of a file, which may be missing, in its directory without links.
pub fn real_place(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?;
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    Ok(real_directory(parent)?.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    const SOMEBODY: u32 = 12_345;

    /// A directory with this mode, or `None` where other users cannot be played.
    fn shared(mode: u32) -> Option<tempfile::TempDir> {
        if !is_root() {
            ::tests::skipped("to give files to another user takes root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(mode)).unwrap();
        Some(dir)
    }

    fn exposed_to_root(path: &Path) -> Option<How> {
        find_exposed(path, &Trust::in_root())
            .unwrap()
            .map(|found| found.how)
    }

    #[test]
    fn a_link_of_somebody_else_is_not_followed() {
        for mode in [0o1777, 0o1775] {
            let Some(dir) = shared(mode) else { return };
            let elsewhere = tempfile::tempdir().unwrap();
            let link = dir.path().join("results");
            symlink(elsewhere.path(), &link).unwrap();
            lchown(&link, Some(SOMEBODY), None).unwrap();
            let refused = make_directory(&link.join("x")).unwrap_err();
            assert!(refused.to_string().contains("another user"), "{refused}");
            assert!(!elsewhere.path().join("x").exists());
        }
    }

    #[test]
    fn a_directory_for_all_is_written_to_by_root_only_with_its_sticky_bit() {
        let Some(dir) = shared(0o777) else { return };
        let refused = make_directory(&dir.path().join("x/y")).unwrap_err();
        assert!(refused.to_string().contains("by all users"), "{refused}");
        assert!(!dir.path().join("x").exists());
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
        make_directory(&dir.path().join("x/y")).unwrap();
    }

    #[test]
    fn nothing_is_written_below_a_directory_of_somebody_else() {
        let Some(dir) = shared(0o1777) else { return };
        let theirs = dir.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        // Root made it, but its owner can put another one in its place.
        fs::create_dir(theirs.join("ours")).unwrap();
        chown(&theirs, Some(SOMEBODY), None).unwrap();
        assert!(make_directory(&theirs).is_err());
        assert!(real_directory(&theirs.join("ours")).is_err());
        assert!(real_place(&theirs.join("file")).is_err());
    }

    #[test]
    fn a_link_of_our_own_leads_where_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("disk");
        fs::create_dir(&real).unwrap();
        symlink("disk", dir.path().join("results")).unwrap();
        let made = make_directory(&dir.path().join("results/a/../b")).unwrap();
        assert!(real.join("b").is_dir());
        let real = fs::canonicalize(real).unwrap();
        assert_eq!(made, [real.join("a"), real.join("b")]);
        let place = real_place(&dir.path().join("results/file")).unwrap();
        assert_eq!(place, real.join("file"));
    }

    #[test]
    fn a_ring_of_links_ends() {
        let dir = tempfile::tempdir().unwrap();
        symlink("ring", dir.path().join("ring")).unwrap();
        assert!(make_directory(&dir.path().join("ring/x")).is_err());
    }

    #[test]
    fn a_file_that_others_may_write_is_exposed_at_whichever_name_leads_to_it() {
        let Some(dir) = shared(0o755) else { return };
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        mode(&file, 0o644);
        assert_eq!(exposed_to_root(&file), None);
        mode(&file, 0o666);
        assert_eq!(exposed_to_root(&file), Some(How::All));
        mode(&file, 0o664);
        assert_eq!(exposed_to_root(&file), None, "the group is root's");
        chown(&file, None, Some(SOMEBODY)).unwrap();
        assert_eq!(exposed_to_root(&file), Some(How::Group(SOMEBODY)));
        chown(&file, Some(SOMEBODY), Some(0)).unwrap();
        assert_eq!(exposed_to_root(&file), Some(How::Owner(SOMEBODY)));
        chown(&file, Some(0), None).unwrap();
        mode(dir.path(), 0o777);
        assert_eq!(exposed_to_root(&file), Some(How::All));
        mode(dir.path(), 0o1777);
        assert_eq!(exposed_to_root(&file), None);
        symlink(&file, dir.path().join("link")).unwrap();
        lchown(dir.path().join("link"), Some(SOMEBODY), None).unwrap();
        let link = exposed_to_root(&dir.path().join("link"));
        assert_eq!(link, Some(How::Owner(SOMEBODY)));
    }
}
