//! The one thing that is known of a journal outside of its directory: that it holds something.
//!
//! Users other than root cannot look into root's directory, and a directory can be removed. A
//! file in /run, which a reboot clears as it clears all that a journal undoes, tells both. The
//! signs of root's own directories are for all to see; who names a directory knows where it is.

use crate::error::AgentError;
use crate::state::OF_ROOT;
use doors::written;
use model::printable::write_hexadecimal;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The directory of the signs, and of the lock of runs.
pub const SIGNS: &str = "/run/schedlab";
const ENDING: &str = "-in-force";
/// Ending for directories that somebody named.
const NAMED: &str = "-journal";
/// A guard that undoes from its open file takes a moment.
const MOMENT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Sign {
    directory: PathBuf,
    path: Option<PathBuf>,
}

impl Sign {
    /// Sign of a journal's directory.
    pub fn for_directory(directory: &Path) -> Self {
        let path = of_root(directory).or_else(|| {
            // Unit tests leave journals that hold something.
            let signs = (!cfg!(test)).then(signs_of_this_user)??;
            Some(signs.join(name_of(directory)))
        });
        let directory = directory.to_owned();
        Sign { directory, path }
    }

    pub fn write_file(&self) {
        if let Some(path) = self.path.as_ref().filter(|path| !path.exists()) {
            let _ = path.parent().map(written::make_directory);
            let _ = written::write_file(path, format!("{}\n", self.directory.display()));
        }
    }

    pub fn hide(&self) {
        if let Some(path) = &self.path {
            let _ = written::remove_file(path);
        }
    }

    fn shown(&self) -> Option<&Path> {
        self.path.as_deref().filter(|path| path.exists())
    }
}

/// An error where there is no journal in this directory, though one held something: a missing
/// journal is not an empty one. A guard that is just undoing it is waited for.
pub fn check_not_missed(directory: &Path) -> Result<(), AgentError> {
    let sign = Sign::for_directory(directory);
    let limit = Instant::now() + MOMENT;
    while let Some(shown) = sign.shown() {
        if Instant::now() > limit {
            return Err(AgentError::JournalMissing {
                directory: directory.to_owned(),
                sign: shown.to_owned(),
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn of_root(directory: &Path) -> Option<PathBuf> {
    let below = directory.strip_prefix(OF_ROOT).ok()?.to_str()?;
    let name = if below.is_empty() { "trial" } else { below };
    Some(Path::new(SIGNS).join(format!("{name}{ENDING}")))
}

/// Where nobody else can put a sign.
fn signs_of_this_user() -> Option<PathBuf> {
    let uid = geteuid();
    if uid.is_root() {
        return Some(SIGNS.into());
    }
    let runtime = PathBuf::from(format!("/run/user/{}", uid.as_raw()));
    runtime.is_dir().then(|| runtime.join("schedlab"))
}

fn name_of(directory: &Path) -> String {
    let whole = std::path::absolute(directory);
    let whole = whole.as_deref().unwrap_or(directory);
    let digest = Sha256::digest(whole.as_os_str().as_bytes());
    let digits = write_hexadecimal(&digest[..8]);
    format!("{digits}{NAMED}")
}

/// Is this user not root, and root's journal holds something, of a run or of
/// `doctor --fix`?
pub fn another_journal_holds_something() -> bool {
    if geteuid().is_root() {
        return false;
    }
    let signs = fs::read_dir(SIGNS).into_iter().flatten().flatten();
    let mut names = signs.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().ends_with(ENDING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_see_the_signs_of_the_directories_of_root_alone() {
        let name = |directory: &str| Sign::for_directory(Path::new(directory)).path;
        let sign = |name: &str| Some(Path::new(SIGNS).join(name));
        assert_eq!(name("/var/lib/schedlab"), sign("trial-in-force"));
        assert_eq!(name("/var/lib/schedlab/fixes"), sign("fixes-in-force"));
        assert_eq!(name("/tmp/state"), None);
        assert!(!name_of(Path::new("/tmp/state")).ends_with(ENDING));
    }
}
