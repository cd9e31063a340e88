//! Progress of an installation, read from what cargo prints on its standard error: status lines
//! (`   Compiling libc v0.2.1`) and, because `CARGO_TERM_PROGRESS_WHEN=always` is set, its
//! progress bar (`    Building [==>   ] 45/230: libc`), which ends in a carriage return.

use crate::version::Version;

/// One step of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// This version was chosen; nothing is built when it is there already.
    Chosen {
        /// Name of the scheduler.
        name: String,
        /// Version that is built or found.
        version: Version,
    },
    /// This commit of a repository is built.
    Commit {
        /// Name of the scheduler.
        name: String,
        /// Commit with its 40 digits.
        commit: String,
    },
    /// Sources of dependencies are being fetched.
    Downloading,
    /// Crates are being compiled.
    Compiling {
        /// Number of crates that are compiled.
        done: u32,
        /// Number of all crates.
        total: u32,
        /// Names of the crates at work, separated by commas.
        now: String,
    },
    /// The program is in its place.
    Installed,
}

/// Meaning of one line of cargo's standard error for a user.
pub(crate) fn read_line(line: &str) -> Option<Step> {
    let (word, rest) = line.trim().split_once(' ')?;
    match word {
        "Downloading" | "Downloaded" => Some(Step::Downloading),
        "Building" => read_bar(rest),
        _ => None,
    }
}

/// A progress bar says nothing that a log needs.
pub(crate) fn is_bar(line: &str) -> bool {
    let bar = line.trim_start();
    bar.starts_with("Building [") || bar.starts_with("Downloading [")
}

/// `[==>   ] 45/230: libc, syn`
fn read_bar(rest: &str) -> Option<Step> {
    let (_, counts) = rest.split_once(']')?;
    let (counts, now) = counts.split_once(':').unwrap_or((counts, ""));
    let (done, total) = counts.trim().split_once('/')?;
    Some(Step::Compiling {
        done: done.parse().ok()?,
        total: total.parse().ok()?,
        now: now.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_gives_crates_done_and_in_all() {
        let line = "    Building [=======>                 ] 45/230: libc, syn(build)";
        let expected = Step::Compiling {
            done: 45,
            total: 230,
            now: "libc, syn(build)".to_owned(),
        };
        assert_eq!(read_line(line), Some(expected));
        assert!(is_bar(line));
    }

    #[test]
    fn a_bar_without_names_is_read_too() {
        let step = read_line("Building [=> ] 0/230");
        assert!(matches!(step, Some(Step::Compiling { total: 230, .. })));
    }

    #[test]
    fn status_lines_are_kept_for_the_log() {
        assert_eq!(read_line("   Compiling libc v0.2.1"), None);
        assert!(!is_bar("   Compiling libc v0.2.1"));
        assert_eq!(
            read_line("  Downloaded libc v0.2.1"),
            Some(Step::Downloading)
        );
    }

    #[test]
    fn what_is_no_cargo_output_means_nothing() {
        for line in [
            "",
            "Building",
            "Building [=>",
            "Building [] x/y",
            "error: no",
        ] {
            assert_eq!(read_line(line), None, "{line}");
        }
    }
}
