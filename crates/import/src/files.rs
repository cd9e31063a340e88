//! Files and directories of other tools.

use crate::schbench::with_arm;
use crate::{ImportError, Imported};
use std::fs;
use std::path::{Path, PathBuf};

/// The most that is read of one file. What is made of it takes some times as much memory.
const MOST_BYTES: u64 = 16 << 20;

/// The text of a file, which must be a regular one of at most 16 MiB.
pub fn file_text(path: &Path) -> Result<String, ImportError> {
    let bytes = results::files::read_within(path, MOST_BYTES);
    let bytes = bytes.map_err(|e| ImportError::while_reading(path, &e))?;
    String::from_utf8(bytes).map_err(|error| {
        let before = error.utf8_error().valid_up_to();
        let lines = error.as_bytes()[..before].iter();
        let line = 1 + lines.filter(|byte| **byte == b'\n').count();
        ImportError::in_line(
            path,
            line,
            "this is no text (UTF-8)",
            "give the file as the tool wrote it; unpack it first if it is compressed",
        )
    })
}

/// Entries of a directory, sorted by name with numbers by their size; links are left out.
pub fn list_entries(dir: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let unread = |e: std::io::Error| ImportError::while_reading(dir, &e);
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        if !entry.file_type().map_err(unread)?.is_symlink() {
            paths.push(entry.path());
        }
    }
    paths.sort_by_cached_key(|path| natural_key(&file_name(path)));
    Ok(paths)
}

/// The file itself, or the files of a directory, which may have to end in `.extension`.
pub fn files_of(
    path: &Path,
    extension: Option<&str>,
    remedy: &str,
) -> Result<Vec<PathBuf>, ImportError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_wanted = |file: &Path| {
        extension.is_none_or(|wanted| file.extension().is_some_and(|found| found == wanted))
    };
    let mut files = list_entries(path)?;
    files.retain(|file| file.is_file() && is_wanted(file));
    if !files.is_empty() {
        return Ok(files);
    }
    let kind = extension.map_or_else(String::new, |extension| format!(".{extension} "));
    let what = format!("there is no {kind}file in it");
    Err(ImportError::in_file(path, what, remedy))
}

/// Adds the text of each file that `files` finds behind each path to an arm: the one that `ARM=PATH` names, or
/// that of the directory, or of the file without its extension.
pub fn read_by_arm(
    paths: &[PathBuf],
    files: impl Fn(&Path) -> Result<Vec<PathBuf>, ImportError>,
    add_text: impl Fn(&Path, &str, &str, &mut Imported) -> Result<(), ImportError>,
) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        let (named, path) = with_arm(path);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let arm = named.unwrap_or_else(|| stem.into_owned());
        for file in files(&path)? {
            let read =
                file_text(&file).and_then(|text| add_text(&file, &text, &arm, &mut imported));
            imported.faults.extend(read.err());
        }
    }
    Ok(imported)
}

/// Directories among the entries of `dir`.
pub fn list_directories(dir: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let mut paths = list_entries(dir)?;
    paths.retain(|path| path.is_dir());
    Ok(paths)
}

/// The last component of a path.
pub fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A key by which `group-2` comes before `group-10`.
pub fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after.find(|c: char| !c.is_ascii_digit());
        let (number, after) = after.split_at(end.unwrap_or(after.len()));
        key.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = after;
    }
    key
}

/// The first number in a name.
pub fn first_number(name: &str) -> Option<u64> {
    let from = name.find(|c: char| c.is_ascii_digit())?;
    let rest = &name[from..];
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// The load that a number in a name says.
pub fn load_from_count(count: Option<u64>) -> model::Load {
    match count {
        Some(count @ 1..=model::check::MOST_COUNT) => model::Load::Count(count),
        _ => model::Load::One,
    }
}

/// A number that is finite and not below zero.
pub fn parse_number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    // What `parse` takes besides numbers: "inf", "nan", "infinity".
    (value.is_finite() && value >= 0.0).then_some(value)
}
