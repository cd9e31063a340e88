//! Where the journal lives, and who may touch it.

use crate::AgentError;
use rustix::fs::{FlockOperation, flock};
use std::env;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Overrides the directory.
pub const STATE_VARIABLE: &str = "SCHEDLAB_STATE_DIR";

/// `$SCHEDLAB_STATE_DIR`, `/var/lib/schedlab` for root, else below the user's own
/// state directory.
pub fn state_dir() -> PathBuf {
    let variable = |name| {
        env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(directory) = variable(STATE_VARIABLE) {
        return directory;
    }
    if rustix::process::geteuid().is_root() {
        return "/var/lib/schedlab".into();
    }
    variable("XDG_STATE_HOME")
        .or_else(|| Some(variable("HOME")?.join(".local/state")))
        .unwrap_or_else(env::temp_dir)
        .join("schedlab")
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
        let path = directory.join("lock");
        fs::create_dir_all(directory).map_err(|e| AgentError::io("create", directory, e))?;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| AgentError::io("open", &path, e))?;
        let start = Instant::now();
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if start.elapsed() >= limit {
                return Err(AgentError::Busy {
                    directory: directory.to_owned(),
                    pid: holder(&mut file),
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let pid = std::process::id().to_string();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(pid.as_bytes()))
            .map_err(|e| AgentError::io("write", &path, e))?;
        Ok(StateLock { _file: file })
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
