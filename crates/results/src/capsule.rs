//! A capsule: a whole results directory in one file, with the hash of every part.
//!
//! ```text
//! NAME.tar.gz
//!   NAME/capsule.json         format, and which schedlab packed it
//!   NAME/…                    the results directory, without what can be made again
//!   NAME/report/report.json   what the packing schedlab makes of it
//!   NAME/SHA256SUMS           of all of the above, as sha256sum(1) writes and checks it
//! ```
//! Packing the same directory twice gives the same bytes: entries are sorted and
//! carry no time, owner or mode of this machine.

use crate::files::{self, io};
use crate::{Format, ResultsError, read};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

/// The format that this version packs. A reader takes any minor of its major.
pub const CAPSULE_FORMAT: Format = Format { major: 1, minor: 0 };
pub const SUMS: &str = "SHA256SUMS";
pub const REPORT: &str = "report/report.json";
const CAPSULE: &str = "capsule.json";
/// Everything below it is made from the rest.
const REPORTS: &str = "report";
/// A capsule that unpacks to more is no honest one.
const MOST_BYTES: u64 = 32 << 30;

/// `capsule.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capsule {
    pub format: Format,
    /// Of the schedlab that packed it and made its report; the one that measured is
    /// in the manifest.
    pub packed_by_version: String,
    pub packed_by_commit: String,
}

/// What was packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub files: usize,
    /// Before compression.
    pub bytes: u64,
    /// SHA-256 of the list of hashes: whoever knows it knows every byte.
    pub fingerprint: String,
}

/// A file whose bytes are not those of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tampering {
    Changed(String),
    Missing(String),
    /// There, but not in the list.
    Added(String),
}

impl std::fmt::Display for Tampering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tampering::Changed(path) => {
                write!(f, "{path}: its bytes are not those that were packed")
            }
            Tampering::Missing(path) => write!(f, "{path}: was packed, but is missing"),
            Tampering::Added(path) => write!(f, "{path}: is there, but was not packed"),
        }
    }
}

/// Packs the results directory `dir` into the file `output`.
pub fn pack(
    dir: &Path,
    report_json: &str,
    capsule: &Capsule,
    output: &Path,
) -> Result<Packed, ResultsError> {
    read::read_manifest(dir)?;
    let mut made = BTreeMap::new();
    made.insert(REPORT.to_owned(), report_json.as_bytes().to_vec());
    made.insert(
        CAPSULE.to_owned(),
        files::json(Path::new(CAPSULE), capsule)?,
    );
    let partial = beside(output);
    let packed = write_archive(dir, &made, &partial).and_then(|packed| {
        fs::rename(&partial, output)
            .map_err(io("renaming to", output))
            .map(|()| packed)
    });
    if packed.is_err() {
        // Best effort: half a capsule is of no use.
        let _ = fs::remove_file(&partial);
    }
    packed
}

fn beside(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{}{name}", files::PARTIAL))
}

fn write_archive(
    dir: &Path,
    made: &BTreeMap<String, Vec<u8>>,
    output: &Path,
) -> Result<Packed, ResultsError> {
    let file = fs::File::create(output).map_err(io("creating", output))?;
    // No name and no time in the header, so that equal directories are equal files.
    let gzip = GzBuilder::new()
        .mtime(0)
        .write(file, Compression::default());
    let mut archive = Archive {
        tar: tar::Builder::new(gzip),
        top: top_name(dir),
        sums: String::new(),
        packed: Packed {
            files: 0,
            bytes: 0,
            fingerprint: String::new(),
        },
    };
    let mut names = stored_files(dir)?;
    names.extend(made.keys().cloned());
    names.sort();
    for name in names {
        let path = dir.join(&name);
        let bytes = match made.get(&name) {
            Some(bytes) => bytes.clone(),
            None => fs::read(&path).map_err(io("reading", &path))?,
        };
        archive.add(&name, &bytes).map_err(io("writing", output))?;
    }
    archive.finish().map_err(io("writing", output))
}

/// The directory's own name, also when it was given as `.`.
fn top_name(dir: &Path) -> String {
    let whole = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    match name.as_ref() {
        "" => "results".to_owned(),
        name => name.to_owned(),
    }
}

struct Archive<W: Write> {
    tar: tar::Builder<W>,
    top: String,
    sums: String,
    packed: Packed,
}

impl<W: Write> Archive<W> {
    fn add(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.sums.push_str(&format!("{}  {name}\n", sha256(bytes)));
        self.packed.files += 1;
        self.packed.bytes += bytes.len() as u64;
        self.append(name, bytes)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        let path = format!("{}/{name}", self.top);
        self.tar.append_data(&mut header, path, bytes)
    }

    fn finish(mut self) -> std::io::Result<Packed>
    where
        W: Finish,
    {
        let sums = std::mem::take(&mut self.sums);
        self.append(SUMS, sums.as_bytes())?;
        self.tar.into_inner()?.finish()?;
        Ok(Packed {
            fingerprint: sha256(sums.as_bytes()),
            ..self.packed
        })
    }
}

/// Ends a compressed stream and syncs the file below it.
trait Finish {
    fn finish(self) -> std::io::Result<()>;
}

impl Finish for flate2::write::GzEncoder<fs::File> {
    fn finish(self) -> std::io::Result<()> {
        flate2::write::GzEncoder::finish(self)?.sync_all()
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names, relative and with `/`, of the files that a directory is made of: not what
/// is being written, not the reports, and not what only capsules have.
fn stored_files(dir: &Path) -> Result<Vec<String>, ResultsError> {
    let mut names = Vec::new();
    collect(dir, "", &mut names)?;
    names.retain(|name| name != SUMS && name != CAPSULE && !is_report(name));
    Ok(names)
}

fn is_report(name: &str) -> bool {
    name.split('/').next() == Some(REPORTS)
}

fn collect(dir: &Path, prefix: &str, names: &mut Vec<String>) -> Result<(), ResultsError> {
    for entry in fs::read_dir(dir).map_err(io("listing", dir))? {
        let entry = entry.map_err(io("listing", dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(files::PARTIAL) {
            continue;
        }
        let kind = entry.file_type().map_err(io("looking at", &entry.path()))?;
        let relative = format!("{prefix}{name}");
        if kind.is_dir() {
            collect(&entry.path(), &format!("{relative}/"), names)?;
        } else if kind.is_file() {
            names.push(relative);
        }
    }
    Ok(())
}

/// Unpacks the capsule `file` below `into`; gives the results directory.
pub fn unpack(file: &Path, into: &Path) -> Result<PathBuf, ResultsError> {
    let reader = fs::File::open(file).map_err(io("opening", file))?;
    let mut archive = tar::Archive::new(GzDecoder::new(reader).take(MOST_BYTES));
    let damaged = |e: std::io::Error| ResultsError::Capsule {
        path: file.to_owned(),
        why: e.to_string(),
    };
    let mut top = None;
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?.into_owned();
        if !entry.header().entry_type().is_file() || !is_below_one_name(&path) {
            return Err(ResultsError::Capsule {
                path: file.to_owned(),
                why: format!("it holds {}, which no capsule has", path.display()),
            });
        }
        top = path.components().next().map(|first| into.join(first));
        let place = into.join(&path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(io("creating", parent))?;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        fs::write(&place, bytes).map_err(io("writing", &place))?;
    }
    let top = top.ok_or_else(|| ResultsError::NotResults(file.to_owned()))?;
    read_capsule(&top, file)?;
    Ok(top)
}

/// `NAME/part/part`, with nothing that leads elsewhere.
fn is_below_one_name(path: &Path) -> bool {
    let mut parts = path.components();
    parts.clone().count() > 1 && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn read_capsule(dir: &Path, file: &Path) -> Result<Capsule, ResultsError> {
    let path = dir.join(CAPSULE);
    if !path.exists() {
        return Err(ResultsError::NotResults(file.to_owned()));
    }
    let capsule: Capsule = files::read_json(&path)?;
    if capsule.format.major > CAPSULE_FORMAT.major {
        return Err(ResultsError::TooNew {
            path: file.to_owned(),
            found: capsule.format.major,
            known: CAPSULE_FORMAT.major,
        });
    }
    Ok(capsule)
}

/// What differs between a directory and its list of hashes, and the fingerprint of
/// that list; `None` where there is no list.
pub fn check_sums(dir: &Path) -> Result<Option<(Vec<Tampering>, String)>, ResultsError> {
    let path = dir.join(SUMS);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(io("reading", &path))?;
    let mut listed: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(sum, name)| (name, sum))
        .collect();
    let mut names = Vec::new();
    collect(dir, "", &mut names)?;
    names.sort();
    let mut found = Vec::new();
    for name in names.iter().filter(|name| *name != SUMS) {
        let path = dir.join(name);
        match listed.remove(name.as_str()) {
            Some(sum) if sum == sha256(&fs::read(&path).map_err(io("reading", &path))?) => {}
            Some(_) => found.push(Tampering::Changed(name.clone())),
            // Reports may be made, and deleted, at any time.
            None if is_report(name) => {}
            None => found.push(Tampering::Added(name.clone())),
        }
    }
    found.extend(
        listed
            .keys()
            .map(|name| Tampering::Missing((*name).to_owned())),
    );
    Ok(Some((found, sha256(text.as_bytes()))))
}
