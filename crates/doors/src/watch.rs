//! Directories that somebody watches: a lock that needs no right to write there, and ends with its holder.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;

/// A directory that this process watches, until it is dropped.
#[derive(Debug)]
pub struct Watch(#[expect(dead_code, reason = "the lock is that of the open file")] File);

impl Watch {
    /// Watches a directory; `None` where it cannot be opened or its file system has no locks, so that nobody is
    /// told.
    pub fn hold_directory(dir: &Path) -> Option<Watch> {
        let opened = File::open(dir).ok()?;
        flock(&opened, FlockOperation::NonBlockingLockShared).ok()?;
        Some(Watch(opened))
    }
}

/// True while somebody watches a directory.
pub fn is_watched(dir: &Path) -> bool {
    let Ok(opened) = File::open(dir) else {
        return false;
    };
    // Let go at once, as the file is closed.
    let free = flock(&opened, FlockOperation::NonBlockingLockExclusive);
    free == Err(rustix::io::Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_watched_until_the_last_who_does_has_gone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_watched(dir.path()));
        let first = Watch::hold_directory(dir.path());
        let second = Watch::hold_directory(dir.path());
        assert!(first.is_some() && second.is_some());
        drop(first);
        assert!(is_watched(dir.path()));
        drop(second);
        assert!(!is_watched(dir.path()));
        assert!(Watch::hold_directory(&dir.path().join("none")).is_none());
        assert!(!is_watched(&dir.path().join("none")));
    }
}
