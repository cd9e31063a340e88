//! The list of hashes, and what differs from it.

use super::contents::{self, Found, is_plain};
use super::{SIGNATURE, SUMS, sha256, sha256_of};
use crate::ResultsError;
use crate::files::{self, io_error};
use doors::written::MARK;
use model::printable::one_line;
use std::collections::BTreeMap;
use std::path::Path;

/// A file that is not what the list says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tampering {
    /// A file whose bytes do not have the hash of the list.
    Changed(String),
    /// A file of the list that is not there.
    Missing(String),
    /// There, but not in the list.
    Added(String),
    /// A link, or what else is no file.
    NoFile(String),
    /// In the list, but nothing that `pack` packs, and nobody looks at it.
    Foreign(String),
}

impl std::fmt::Display for Tampering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, what) = match self {
            Tampering::Changed(path) => (path, "its bytes are not those that were packed"),
            Tampering::Missing(path) => (path, "was packed, but is missing"),
            Tampering::Added(path) => (path, "is there, but was not packed"),
            Tampering::NoFile(path) => (path, "is a link or no file; results have files only"),
            Tampering::Foreign(path) => (path, "is no part of any results, and nothing checks it"),
        };
        write!(f, "{}: {what}", one_line(path))
    }
}

/// Differences between a directory and its list of hashes, and the fingerprint of that list;
/// `None` where there is no list. `packed`: the directory is a capsule's, to which nobody added
/// a report since.
pub fn check_sums(
    dir: &Path,
    packed: bool,
) -> Result<Option<(Vec<Tampering>, String)>, ResultsError> {
    let path = dir.join(SUMS);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = files::read(&path)?;
    let mut listed = listed(&path, &text)?;
    let there = Found::read_below(dir)?;
    let mut found: Vec<Tampering> = there.others.into_iter().map(Tampering::NoFile).collect();
    for name in there.files {
        if [SUMS, SIGNATURE, MARK].contains(&name.as_str()) {
            continue;
        }
        match listed.remove(&name) {
            Some(_) if !contents::is_stored(&name) && !contents::is_made(&name) => {
                found.push(Tampering::Foreign(name));
            }
            Some(sum) if sum == sum_of(&dir.join(&name))? => {}
            Some(_) => found.push(Tampering::Changed(name)),
            None if !packed && contents::is_own_report(&name) => {}
            None => found.push(Tampering::Added(name)),
        }
    }
    found.extend(listed.into_keys().map(Tampering::Missing));
    Ok(Some((found, sha256(&text))))
}

fn sum_of(path: &Path) -> Result<String, ResultsError> {
    sha256_of(files::open(path)?).map_err(io_error("reading", path))
}

/// Hashes by name. A line that is none, or a name that is there twice, would be read
/// differently by others, so that either is an error.
fn listed(path: &Path, text: &[u8]) -> Result<BTreeMap<String, String>, ResultsError> {
    let wrong = |line: usize, why: &str| ResultsError::Capsule {
        path: path.to_owned(),
        why: format!("line {line} {why}"),
    };
    let mut listed = BTreeMap::new();
    let text = String::from_utf8_lossy(text);
    let whole = text.strip_suffix('\n').unwrap_or(&text);
    for (at, line) in whole.split('\n').enumerate() {
        let (sum, name) = line
            .split_once("  ")
            .filter(|(sum, _)| is_sum(sum))
            .ok_or_else(|| wrong(at + 1, "is not a hash, two spaces and a name"))?;
        if !name.split('/').all(is_plain) {
            return Err(wrong(at + 1, "names what no capsule has"));
        }
        if listed.insert(name.to_owned(), sum.to_owned()).is_some() {
            return Err(wrong(at + 1, "names a file for the second time"));
        }
    }
    Ok(listed)
}

fn is_sum(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
