//! Directory of the journal, and the users who may touch it.
//!
//! A replay writes what the journal says, as root if root replays it. So nobody else
//! may write it, nor so much as hold its lock: the directory and its files belong to
//! one user (modes 0700 and 0600), and are repaired where others have rights to them.

use crate::error::AgentError;
use doors::written;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Overrides the directory.
pub const STATE_VARIABLE: &str = "SCHEDLAB_STATE_DIR";
/// The directory of root's journal.
pub const OF_ROOT: &str = "/var/lib/schedlab";

const PRIVATE_DIRECTORY: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
const OTHERS: u32 = 0o077;
/// A wait for the lock that is longer than this is told.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// `$SCHEDLAB_STATE_DIR`, `/var/lib/schedlab` for root, else below the user's own
/// state directory (`$XDG_STATE_HOME`, `$HOME/.local/state`) or `/run/user/UID`.
pub fn state_dir() -> Result<PathBuf, AgentError> {
    let uid = geteuid().as_raw();
    choose(env::var_os, uid, Path::new("/run/user")).ok_or(AgentError::NoStateDirectory)
}

/// Directory whose `results/` has the runs that nobody sits before: those of services, and those that
/// go on after a restart. It lies beside the state directory, `/var/lib/schedlab-runs` for root: who
/// cleans up old results is not to find the journal among them.
pub fn runs_dir() -> Result<PathBuf, AgentError> {
    let state = state_dir()?;
    let mut name = state.file_name().unwrap_or_default().to_owned();
    name.push("-runs");
    Ok(state.with_file_name(name))
}

/// Never a directory that another user could have made first, such as one in /tmp.
fn choose(
    variable: impl Fn(&'static str) -> Option<OsString>,
    uid: u32,
    runtime: &Path,
) -> Option<PathBuf> {
    let path = |name| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(directory) = path(STATE_VARIABLE) {
        return Some(directory);
    }
    if uid == 0 {
        return Some(OF_ROOT.into());
    }
    let runtime = runtime.join(uid.to_string());
    let of_user = path("XDG_STATE_HOME")
        .or_else(|| Some(path("HOME")?.join(".local/state")))
        .or_else(|| Some(runtime).filter(|path| path.metadata().is_ok_and(|m| m.uid() == uid)));
    Some(of_user?.join("schedlab"))
}

/// The right to change the journal, until dropped or dead. The file keeps the
/// process id of the holder for messages.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

impl StateLock {
    /// Waits, at most `limit`: a guard that undoes what its agent left needs a while.
    pub fn acquire(directory: &Path, limit: Duration) -> Result<Self, AgentError> {
        make_private(directory)?;
        let file = open_private(&directory.join("lock"))?;
        let start = Instant::now();
        let mut told = false;
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if start.elapsed() >= limit {
                return Err(AgentError::Busy {
                    directory: directory.to_owned(),
                    pid: holder(&file),
                });
            }
            if start.elapsed() >= SHORT_WAIT && !told {
                told = true;
                let (directory, pid) = (directory.display(), holder(&file));
                tracing::warn!("waiting for the lock of {directory}, which process {pid:?} has");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // In place and at its best: on a full disk a block that is given up is gone.
        let _ = file.write_all_at(format!("{:<10}\n", std::process::id()).as_bytes(), 0);
        Ok(StateLock { _file: file })
    }
}

fn holder(file: &File) -> Option<u32> {
    let mut text = [0u8; 16];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// A directory that only its owner, who must be this user, can look into.
pub fn make_private(directory: &Path) -> Result<(), AgentError> {
    // The rights of one that is there are mended below.
    let made = match directory.symlink_metadata().is_ok() {
        // A link of somebody else's at its own name would lead to another directory.
        true if directory.is_symlink() => written::real_directory(directory).map(drop),
        true => written::real_place(directory).map(drop),
        false => written::make_private_directory(directory).map(drop),
    };
    made.map_err(|e| AgentError::io("create", directory, e))?;
    let found = fs::metadata(directory).map_err(|e| AgentError::io("look at", directory, e))?;
    check_owner(directory, &found)?;
    if found.mode() & OTHERS != 0 {
        File::open(directory)
            .and_then(|found| found.set_permissions(Permissions::from_mode(PRIVATE_DIRECTORY)))
            .map_err(|e| AgentError::io("make private", directory, e))?;
    }
    Ok(())
}

/// Open for reading and for appending a file that only its owner, who must be this
/// user, can open.
pub fn open_private(path: &Path) -> Result<File, AgentError> {
    let failed = |e| AgentError::io("open", path, e);
    let file = written::open_file(path, PRIVATE_FILE).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    check_owner(path, &found)?;
    if found.mode() & OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(PRIVATE_FILE))
            .map_err(|e| AgentError::io("make private", path, e))?;
    }
    Ok(file)
}

fn check_owner(path: &Path, found: &Metadata) -> Result<(), AgentError> {
    if found.uid() == geteuid().as_raw() {
        return Ok(());
    }
    Err(AgentError::Foreign {
        path: path.to_owned(),
        owner: found.uid(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn a_second_holder_is_refused_and_told_who_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let _first = StateLock::acquire(directory.path(), Duration::ZERO).unwrap();
        match StateLock::acquire(directory.path(), Duration::ZERO) {
            Err(AgentError::Busy { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_is_free_again_after_its_holder() {
        let directory = tempfile::tempdir().unwrap();
        drop(StateLock::acquire(directory.path(), Duration::ZERO).unwrap());
        // A process that another test is just starting has a copy of the file until it
        // runs its program.
        let again = StateLock::acquire(directory.path(), Duration::from_secs(10));
        assert!(again.is_ok());
    }

    #[test]
    fn other_users_can_neither_open_the_lock_nor_pass_its_directory() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("new/state");
        let _lock = StateLock::acquire(&directory, Duration::ZERO).unwrap();
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join("lock")), 0o600);
    }

    #[test]
    fn rights_that_others_have_to_it_are_taken_away() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("lock");
        fs::write(&lock, "4711").unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let _lock = StateLock::acquire(directory.path(), Duration::ZERO).unwrap();
        assert_eq!((mode(directory.path()), mode(&lock)), (0o700, 0o600));
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        if !geteuid().is_root() {
            ::tests::skipped("making a directory of another user needs root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(directory.path(), Some(65534), None).unwrap();
        let refused = StateLock::acquire(directory.path(), Duration::ZERO).unwrap_err();
        assert!(
            refused.to_string().contains("belongs to user 65534"),
            "{refused}"
        );
    }

    #[test]
    fn a_user_without_a_home_has_a_state_only_where_nobody_else_could_make_it() {
        let runtime = tempfile::tempdir().unwrap();
        let own = runtime.path().metadata().unwrap().uid();
        let user = own + 1000;
        let none = |_: &'static str| None;
        assert_eq!(choose(none, user, runtime.path()), None);
        let directory = runtime.path().join(user.to_string());
        fs::create_dir(&directory).unwrap();
        // It belongs to somebody else.
        assert_eq!(choose(none, user, runtime.path()), None);
        if geteuid().is_root() {
            std::os::unix::fs::chown(&directory, Some(user), None).unwrap();
            let chosen = choose(none, user, runtime.path());
            assert_eq!(chosen, Some(directory.join("schedlab")));
        }
        let home = |name: &'static str| (name == "HOME").then(|| OsString::from("/home/x"));
        let chosen = choose(home, user, runtime.path());
        assert_eq!(chosen, Some("/home/x/.local/state/schedlab".into()));
        assert_eq!(choose(home, 0, runtime.path()), Some(OF_ROOT.into()));
    }
}
