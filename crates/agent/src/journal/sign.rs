//! The one thing that users other than root can see of root's journal: that it holds something.
//!
//! They cannot look into its directory. A file in /run, which a reboot clears as it
//! clears all that a journal undoes, tells them. Nothing but a message depends on it.

use crate::state::OF_ROOT;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the signs, and of the lock of runs.
pub const SIGNS: &str = "/run/schedlab";
const ENDING: &str = "-in-force";

#[derive(Debug)]
pub struct Sign(Option<PathBuf>);

impl Sign {
    /// Sign of a journal's directory. Only root's own directories have one; who names a
    /// directory knows where it is.
    pub fn of(directory: &Path) -> Self {
        let below = directory.strip_prefix(OF_ROOT).ok().and_then(Path::to_str);
        let name = below.map(|below| if below.is_empty() { "trial" } else { below });
        Sign(name.map(|name| Path::new(SIGNS).join(format!("{name}{ENDING}"))))
    }

    pub fn show(&self) {
        if let Some(path) = self.0.as_ref().filter(|path| !path.exists()) {
            let _ = fs::create_dir_all(SIGNS);
            let _ = fs::write(path, "");
        }
    }

    pub fn hide(&self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// Is this user not root, and root's journal holds something, of a run or of
/// `doctor --fix`?
pub fn another_journal_holds_something() -> bool {
    if rustix::process::geteuid().is_root() {
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
    fn only_the_directories_of_root_have_a_sign() {
        let name = |directory: &str| Sign::of(Path::new(directory)).0;
        let sign = |name: &str| Some(Path::new(SIGNS).join(name));
        assert_eq!(name("/var/lib/schedlab"), sign("trial-in-force"));
        assert_eq!(name("/var/lib/schedlab/fixes"), sign("fixes-in-force"));
        assert_eq!(name("/tmp/state"), None);
    }
}
