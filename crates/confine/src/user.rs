//! Whom a program runs as when root starts it: passwd(5), sudo(8).

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `nobody` and `nogroup` of Debian, where passwd(5) has no other.
const NOBODY: u32 = 65_534;
/// Number of the user of builds. It is one of those that systemd keeps for users that are there for a while
/// (`DynamicUser=`), so that no user of a machine has it.
const BUILDS: u32 = 64_957;

/// A user of this machine, with the rights that a program gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Name as in passwd(5), or the number where there is none.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Id of the primary group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Home directory; `None` where it is not there.
    pub home: Option<PathBuf>,
}

impl User {
    /// Who called sudo, else nobody; `None` where this process is not root's.
    pub fn in_place_of_root() -> Option<User> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let number = |name| env::var(name).ok()?.parse::<u32>().ok();
        let caller = number("SUDO_UID").zip(number("SUDO_GID"));
        Some(match caller {
            Some((uid, gid)) if uid != 0 => User {
                gid,
                ..of_id(&passwd(), uid).unwrap_or_else(|| unnamed(uid))
            },
            _ => User::from_name("nobody").unwrap_or_else(|| unnamed(NOBODY)),
        })
    }

    /// Whom root's builds of somebody's source run as: a user who has no process, no file and no socket
    /// of anybody's, not even of who called sudo. `None` where this process is not root's.
    pub fn for_builds() -> Option<User> {
        rustix::process::geteuid()
            .is_root()
            .then(|| unnamed(BUILDS))
    }

    /// User of this name in passwd(5), without supplementary groups; `None` if there is none.
    pub fn from_name(name: &str) -> Option<User> {
        entries(&passwd()).find(|user| user.name == name)
    }

    /// True if the permission bits (path_resolution(7)) give the user all of `rights`, which
    /// are those of one digit of chmod(1). Access control lists only add to them.
    pub(crate) fn can_access(&self, rights: u32, path: &Path) -> bool {
        let Ok(found) = fs::metadata(path) else {
            return false;
        };
        let shift = if found.uid() == self.uid {
            6
        } else if found.gid() == self.gid || self.groups.contains(&found.gid()) {
            3
        } else {
            0
        };
        found.mode() >> shift & rights == rights
    }

    /// True if the user may read and write this device by its permission bits.
    pub fn may_use(&self, device: &Path) -> bool {
        const READ_AND_WRITE: u32 = 6;
        self.can_access(READ_AND_WRITE, device)
    }

    /// Let the user into the group that a device is for, if it is for one.
    pub fn join_group_of(&mut self, device: &Path) {
        const READ_AND_WRITE_OF_GROUP: u32 = 0o060;
        let Ok(found) = fs::metadata(device) else {
            return;
        };
        let is_for_group = found.mode() & READ_AND_WRITE_OF_GROUP == READ_AND_WRITE_OF_GROUP;
        if is_for_group && found.gid() != 0 {
            self.groups.push(found.gid());
        }
    }

    /// Root's and people's home directories, as far as passwd(5) has them, and the directories that
    /// usually hold homes.
    pub fn home_directories() -> Vec<PathBuf> {
        let is_person = |user: &User| user.uid == 0 || (1000..NOBODY).contains(&user.uid);
        let usual = ["/home", "/root"].map(PathBuf::from);
        let people = passwd();
        let people = entries(&people).filter(is_person);
        usual
            .into_iter()
            .chain(people.filter_map(|user| user.home))
            .collect()
    }
}

/// True for one of these homes, and for a directory with one in it. Whoever names such a directory
/// among others, as in `PATH`, does not mean all that it holds.
pub fn holds_a_home(path: &Path, homes: &[PathBuf]) -> bool {
    let is_in = |home: &PathBuf, path: &Path| {
        let home = fs::canonicalize(home);
        home.is_ok_and(|home| home.starts_with(path))
    };
    fs::canonicalize(path).is_ok_and(|path| homes.iter().any(|home| is_in(home, &path)))
}

/// The most that is read of passwd(5).
const MOST_BYTES: u64 = 16 << 20;

#[expect(clippy::disallowed_methods, reason = "the door is built on this crate")]
fn passwd() -> String {
    let mut text = String::new();
    let file = File::open("/etc/passwd").map(|file| file.take(MOST_BYTES));
    let read = file.and_then(|mut file| file.read_to_string(&mut text));
    read.map_or_else(|_| String::new(), |_| text)
}

fn of_id(passwd: &str, uid: u32) -> Option<User> {
    entries(passwd).find(|user| user.uid == uid)
}

fn unnamed(uid: u32) -> User {
    User {
        name: uid.to_string(),
        uid,
        gid: uid,
        groups: Vec::new(),
        home: None,
    }
}

/// `name:password:uid:gid:comment:home:shell`.
fn entries(passwd: &str) -> impl Iterator<Item = User> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        let home = PathBuf::from(fields.nth(1)?);
        Some(User {
            name,
            uid,
            gid,
            groups: Vec::new(),
            // A home that is the root, or is not there, is nobody's.
            home: (home.parent().is_some() && home.is_dir()).then_some(home),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_passwd_gives_ids_and_a_home_that_is_there() {
        let text = "root:x:0:0:root:/:/bin/bash\nme:x:1000:1001:Me,,,:/usr:/bin/sh\n\
                    gone:x:1002:1002::/no/such/home:/bin/sh\nbroken:x\n";
        let me = of_id(text, 1000).unwrap();
        assert_eq!((me.name.as_str(), me.gid), ("me", 1001));
        assert_eq!(me.home, Some(PathBuf::from("/usr")));
        assert_eq!(of_id(text, 1002).unwrap().home, None);
        assert_eq!(of_id(text, 0).unwrap().home, None);
        assert_eq!(of_id(text, 7), None);
    }
}
