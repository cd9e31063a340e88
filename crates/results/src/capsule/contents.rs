//! Which files are part of some results, by name.

use super::{CAPSULE, PAGES, REPORT, SIGNATURE, SUMS};
use crate::ResultsError;
use crate::files::{self, io_error};
use model::printable::is_hidden;
use std::fs;
use std::path::Path;

/// How deep kept files may lie.
const MOST_FOLDERS: usize = 32;
/// At the top of a results directory.
const TOP: [&str; 8] = [
    files::MANIFEST,
    files::EXPERIMENT,
    files::EXPERIMENT_SOURCE,
    files::PLAN,
    files::CALIBRATION,
    files::SYSTEM,
    files::STARTS,
    files::CERTIFICATE,
];
/// Everything below it is made from the rest.
const REPORTS: &str = "report";
/// Files that `run` and `certify` write there, to be looked at on this machine only.
const OWN_REPORTS: [&str; 6] = [
    "now.json",
    "report.txt",
    "report.json",
    "trials.csv",
    "comparisons.csv",
    "report.html",
];

/// A file that was measured or planned: what a capsule is made of.
pub fn is_stored(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [top] => TOP.contains(&top),
        [files::SEARCHES, table] => is_plain(table),
        [files::TRIALS, trial, file] => [trial, file].iter().all(|part| is_plain(part)),
        [files::TRIALS, trial, files::KEPT, ref path @ ..] => {
            is_plain(trial) && path.len() <= MOST_FOLDERS && path.iter().all(|part| is_plain(part))
        }
        _ => false,
    }
}

/// A file that a capsule has besides.
pub fn is_made(name: &str) -> bool {
    [REPORT, CAPSULE, SUMS, SIGNATURE].contains(&name) || PAGES.contains(&name)
}

/// A report as it is written beside the results; it may be made and deleted at any time.
pub fn is_own_report(name: &str) -> bool {
    name.strip_prefix(REPORTS)
        .and_then(|rest| rest.strip_prefix('/'))
        .is_some_and(|file| OWN_REPORTS.contains(&file))
}

/// A component of a path that anyone who unpacks it sees, as what it is.
pub fn is_plain(component: &str) -> bool {
    !component.is_empty()
        && !component.starts_with('.')
        && !component.contains(['/', '\\'])
        && !component.contains(is_hidden)
}

/// Files below a directory, by relative names with `/`, sorted. No link is followed.
#[derive(Debug, Default)]
pub struct Found {
    pub files: Vec<String>,
    /// Links, pipes, sockets, devices.
    pub others: Vec<String>,
}

impl Found {
    pub fn read_below(dir: &Path) -> Result<Found, ResultsError> {
        let mut found = Found::default();
        found.add(dir, "")?;
        found.files.sort();
        found.others.sort();
        Ok(found)
    }

    fn add(&mut self, dir: &Path, prefix: &str) -> Result<(), ResultsError> {
        for entry in fs::read_dir(dir).map_err(io_error("listing", dir))? {
            let entry = entry.map_err(io_error("listing", dir))?;
            let kind = entry
                .file_type()
                .map_err(io_error("looking at", &entry.path()))?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if kind.is_dir() {
                self.add(&entry.path(), &format!("{name}/"))?;
            } else if kind.is_file() {
                self.files.push(name);
            } else {
                self.others.push(name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_a_few_files_and_what_lies_in_trials() {
        for name in [
            "manifest.json",
            "searches/bank.csv",
            "trials/00000-make-b1-a/trial.json",
            "trials/x/stdout.log",
            "trials/x/kept/load/report/index.html",
        ] {
            assert!(is_stored(name), "{name}");
        }
        for name in [
            "notes.txt",
            "report/report.html",
            "trials/notes.txt",
            "searches/bank/x.csv",
            "trials/x/y/z",
            "trials/x/kept/load/../a",
            "trials/.partial-x/trial.json",
            "trials/x/.hidden",
            "trials/x/a\u{1b}b",
            "trials//trial.json",
        ] {
            assert!(!is_stored(name), "{name}");
        }
    }
}
