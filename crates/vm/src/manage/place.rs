//! Place of the state of a background guest: a directory with a lock, which the keeper holds as
//! long as it lives, and its socket and status. Only directories that are this user's are
//! looked at, and only files of these names are ever removed.

use crate::VmError;
use crate::cache;
use crate::failure::{io, unmet_error};
use doors::written;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Status, check_name, command};

const LOCK: &str = "lock";
const SOCKET: &str = "socket";
const STATUS: &str = "status.json";
/// `sun_path` of unix(7), with its final NUL.
const LONGEST_SOCKET: usize = 108;
/// Somebody who only looks whether a guest runs holds its lock for a moment.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// `$XDG_RUNTIME_DIR/schedlab/vm`, else below the cache. A directory of another user is
/// passed over: after su(1) or `sudo -E` the variable still names that one's.
fn runtime_directory() -> Result<PathBuf, VmError> {
    let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    Ok(match session.filter(|dir| is_own_directory(dir)) {
        Some(dir) => dir.join("schedlab/vm"),
        None => cache::directory()?.join("run/vm"),
    })
}

/// A directory and no link to one, and this user's.
fn is_own_directory(dir: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    dir.symlink_metadata()
        .is_ok_and(|found| found.is_dir() && found.uid() == own)
}

#[derive(Debug, Clone)]
pub(super) struct Place {
    dir: PathBuf,
}

/// A guest's name, taken as long as this lives. Then its files are removed.
#[derive(Debug)]
pub(super) struct Claim {
    pub place: Place,
    _lock: File,
}

impl Place {
    pub fn for_guest(name: &str) -> Result<Self, VmError> {
        check_name("guest", name)?;
        let place = Place {
            dir: runtime_directory()?.join(name),
        };
        if place.socket().as_os_str().len() >= LONGEST_SOCKET {
            return Err(unmet_error(
                &place.socket().display().to_string(),
                "the path is too long for a socket",
                "set XDG_RUNTIME_DIR to a directory with a shorter path",
            ));
        }
        Ok(place)
    }

    /// Places of every guest that there is, or was.
    pub fn list_all() -> Result<Vec<Place>, VmError> {
        let runtime = runtime_directory()?;
        let entries = fs::read_dir(&runtime).into_iter().flatten().flatten();
        let places = entries.map(|entry| Place { dir: entry.path() });
        Ok(places.filter(Place::is_own).collect())
    }

    /// The directories that schedlab made are this user's, and no links.
    fn is_own(&self) -> bool {
        self.dir.ancestors().take(3).all(is_own_directory)
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join(SOCKET)
    }

    pub fn status_file(&self) -> PathBuf {
        self.dir.join(STATUS)
    }

    pub fn connect(&self) -> std::io::Result<UnixStream> {
        if !self.is_own() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        UnixStream::connect(self.socket())
    }

    pub fn status(&self) -> Option<Status> {
        serde_json::from_slice(&doors::read::small_file_bytes(self.status_file()).ok()?).ok()
    }

    /// The process that has taken the name, whether its guest is ready or not.
    pub fn keeper(&self) -> Option<u32> {
        let lock = self.open_lock(OFlags::RDWR).ok()?;
        // Who has it lets go of it only by ending.
        if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        let pid = doors::read::stream_text(lock, 64).ok()?;
        Some(pid.trim().parse().unwrap_or(0))
    }

    /// Take the name before anything is booted for it.
    pub fn claim(self, name: &str) -> Result<Claim, VmError> {
        let start = Instant::now();
        loop {
            self.make()?;
            let lock = self.open_lock(OFlags::RDWR | OFlags::CREATE);
            let lock = lock.map_err(io("open", &self.dir.join(LOCK)))?;
            let taken = flock(&lock, FlockOperation::NonBlockingLockExclusive);
            if taken.is_ok() && self.is_current(&lock) {
                return self.begin(lock);
            }
            if start.elapsed() > LOOK_LIMIT {
                return Err(self.taken(name));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn taken(&self, name: &str) -> VmError {
        let what = match (self.status().is_some(), self.keeper()) {
            (false, Some(pid)) => format!("it is being started, by process {pid}"),
            _ => "it is running already".to_owned(),
        };
        unmet_error(
            &format!("guest {name}"),
            &what,
            &format!("use it, or end it with `{}`", command("stop", name)),
        )
    }

    fn make(&self) -> Result<(), VmError> {
        written::make_private_directory(&self.dir).map_err(io("create", &self.dir))?;
        if self.is_own() {
            return Ok(());
        }
        Err(unmet_error(
            &self.dir.display().to_string(),
            "this directory, or one above it, is a link or another user's",
            "remove it, or set XDG_RUNTIME_DIR to a directory of your own",
        ))
    }

    fn open_lock(&self, how: OFlags) -> std::io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = how | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::open(self.dir.join(LOCK), flags, mode)?.into())
    }

    /// Whoever had the lock before may have removed the file meanwhile.
    fn is_current(&self, lock: &File) -> bool {
        let there = fs::symlink_metadata(self.dir.join(LOCK)).map(|m| m.ino());
        let held = lock.metadata().map(|m| m.ino());
        there.is_ok() && there.ok() == held.ok()
    }

    fn begin(self, mut lock: File) -> Result<Claim, VmError> {
        self.remove_files();
        let pid = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        pid.map_err(io("write", &self.dir.join(LOCK)))?;
        Ok(Claim {
            place: self,
            _lock: lock,
        })
    }

    /// Removes the files of a keeper that was killed. Those of one that lives, and files that
    /// are not of our making, stay.
    pub fn tidy(&self) {
        let Ok(lock) = self.open_lock(OFlags::RDWR) else {
            return;
        };
        let free = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if free && self.is_current(&lock) {
            self.remove();
        }
    }

    fn remove_files(&self) {
        // They may be gone already, which is what is wanted.
        for file in [self.socket(), self.status_file()] {
            let _ = written::remove_file(&file);
        }
    }

    fn remove(&self) {
        self.remove_files();
        let _ = written::remove_file(&self.dir.join(LOCK));
        let _ = written::remove_empty_directory(&self.dir);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.place.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn place(runtime: &Path, name: &str) -> Place {
        let vm = runtime.join("schedlab/vm");
        fs::create_dir_all(&vm).unwrap();
        Place { dir: vm.join(name) }
    }

    #[test]
    fn names_cannot_leave_the_runtime_directory() {
        for name in ["", "..", "a/b", ".hidden", "a b"] {
            let error = Place::for_guest(name).unwrap_err().to_string();
            assert!(error.contains("not a name"), "{name}: {error}");
        }
    }

    #[test]
    fn a_name_is_taken_once_and_free_again_afterwards() {
        let runtime = tempfile::tempdir().unwrap();
        let place = place(runtime.path(), "lab");
        assert_eq!(place.keeper(), None);
        let claim = place.clone().claim("lab").unwrap();
        assert_eq!(place.keeper(), Some(std::process::id()));
        let error = place.clone().claim("lab").unwrap_err().to_string();
        assert!(error.contains("is being started, by process"), "{error}");
        place.tidy();
        assert!(place.dir.exists(), "who starts is left alone");
        drop(claim);
        assert!(!place.dir.exists());
        assert!(place.claim("lab").is_ok());
    }

    #[test]
    fn what_a_killed_keeper_left_is_removed_and_nothing_else() {
        let runtime = tempfile::tempdir().unwrap();
        let left = place(runtime.path(), "left");
        fs::create_dir(&left.dir).unwrap();
        for file in [LOCK, SOCKET, STATUS] {
            fs::write(left.dir.join(file), "").unwrap();
        }
        left.tidy();
        assert!(!left.dir.exists());

        let others = place(runtime.path(), "others");
        fs::create_dir(&others.dir).unwrap();
        fs::write(others.dir.join(STATUS), "{}").unwrap();
        others.tidy();
        assert!(
            others.status_file().exists(),
            "without a lock it is not ours"
        );
        fs::write(others.dir.join(LOCK), "").unwrap();
        fs::write(others.dir.join("precious"), "").unwrap();
        others.tidy();
        assert!(others.dir.join("precious").exists());
    }

    #[test]
    fn links_are_not_followed() {
        let runtime = tempfile::tempdir().unwrap();
        let target = runtime.path().join("target");
        fs::create_dir(&target).unwrap();
        for file in [LOCK, STATUS] {
            fs::write(target.join(file), "precious").unwrap();
        }
        let place = place(runtime.path(), "link");
        symlink(&target, &place.dir).unwrap();
        assert!(!place.is_own() && place.connect().is_err());
        let error = place.claim("link").unwrap_err().to_string();
        assert!(error.contains("is a link or another user's"), "{error}");
        assert_eq!(fs::read_to_string(target.join(LOCK)).unwrap(), "precious");
    }
}
