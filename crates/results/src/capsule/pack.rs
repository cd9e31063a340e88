//! Writing a capsule.

use super::contents::{self, Found};
use super::{CAPSULE, Capsule, SIGNATURE, SUMS, header, sha256};
use crate::files::{self, io_error};
use crate::{ResultsError, read};
use doors::written::{Beside, MARK};
use flate2::{Compression, GzBuilder};
use model::printable::write_hexadecimal;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

/// Makes a signature of the list of hashes; `Err` says why it could not.
pub type Sign<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Files that go into a capsule besides the results.
pub struct Packer<'a> {
    /// Head of the capsule, stored as `capsule.json`.
    pub capsule: &'a Capsule,
    /// Texts of the report, each with its path: that of [`super::REPORT`] and those of
    /// [`super::PAGES`].
    pub reports: &'a [(&'static str, String)],
    /// Signer of the list of hashes; `None` leaves the capsule without a signature.
    pub sign: Option<Sign<'a>>,
}

impl std::fmt::Debug for Packer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer")
            .field("capsule", self.capsule)
            .finish_non_exhaustive()
    }
}

/// The capsule that was packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Number of files that the list of hashes names.
    pub files: usize,
    /// Before compression.
    pub bytes: u64,
    /// The size of the largest file.
    pub most_bytes: u64,
    /// SHA-256 of the list of hashes: whoever knows it knows every byte.
    pub fingerprint: String,
    /// Entries of the directory that are no part of the results.
    pub left_out: Vec<String>,
}

impl Packer<'_> {
    /// Packs the results directory `dir` into the file `output`.
    pub fn pack(&self, dir: &Path, output: &Path) -> Result<Packed, ResultsError> {
        read::read_manifest(dir)?;
        let mut beside = Beside::create_for(output).map_err(io_error("creating", output))?;
        let packed = self.write(dir, output, beside.file())?;
        beside
            .put_in_place()
            .map_err(io_error("renaming to", output))?;
        Ok(packed)
    }

    fn write(&self, dir: &Path, output: &Path, to: &mut fs::File) -> Result<Packed, ResultsError> {
        // No name and no time in the header, so that equal directories are equal files.
        let gzip = GzBuilder::new().mtime(0).write(to, Compression::default());
        let (stored, left_out) = stored_files(dir)?;
        let mut archive = Archive {
            tar: tar::Builder::new(gzip),
            top: top_name(dir),
            sums: String::new(),
            packed: Packed {
                files: 0,
                bytes: 0,
                most_bytes: 0,
                fingerprint: String::new(),
                left_out,
            },
            output,
        };
        let made = self.made()?;
        let mut names: Vec<&String> = stored.iter().chain(made.keys()).collect();
        names.sort();
        for name in names {
            match made.get(name) {
                Some(bytes) => archive.add(name, bytes.len() as u64, bytes.as_slice())?,
                None => archive.add_file(name, &dir.join(name))?,
            }
        }
        archive.finish(self.sign)
    }

    fn made(&self) -> Result<BTreeMap<String, Vec<u8>>, ResultsError> {
        let capsule = files::to_json(Path::new(CAPSULE), self.capsule)?;
        let reports = self.reports.iter();
        let reports = reports.map(|(name, text)| ((*name).to_owned(), text.clone().into_bytes()));
        Ok(reports.chain([(CAPSULE.to_owned(), capsule)]).collect())
    }
}

/// Names of the files that results are made of, and of what else is there. Reports are
/// neither: they can be made again.
fn stored_files(dir: &Path) -> Result<(Vec<String>, Vec<String>), ResultsError> {
    let found = Found::read_below(dir)?;
    let (stored, others): (Vec<String>, Vec<String>) = found
        .files
        .into_iter()
        .partition(|name| contents::is_stored(name));
    // Results of each machine, which are merged in what is stored.
    let is_of_machine = |name: &str| name.starts_with("nodes/");
    let is_remade = |name: &String| {
        contents::is_made(name)
            || contents::is_own_report(name)
            || is_of_machine(name)
            || name == MARK
    };
    let mut left_out: Vec<String> = others.into_iter().filter(|name| !is_remade(name)).collect();
    left_out.extend(found.others);
    left_out.sort();
    Ok((stored, left_out))
}

/// The directory's own name, also when it was given as `.`, as a name that readers take.
fn top_name(dir: &Path) -> String {
    let whole = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(|c| c == '\\' || model::printable::is_hidden(c), "-");
    match name.trim_start_matches('.') {
        "" => "results".to_owned(),
        name => name.to_owned(),
    }
}

struct Archive<'a, W: Write> {
    tar: tar::Builder<W>,
    top: String,
    sums: String,
    packed: Packed,
    output: &'a Path,
}

impl<W: Write + Finish> Archive<'_, W> {
    fn add_file(&mut self, name: &str, path: &Path) -> Result<(), ResultsError> {
        let file = files::open(path)?;
        let length = file.metadata().map_err(io_error("looking at", path))?.len();
        self.add(name, length, file)
    }

    /// `length` bytes of `content`, which must have as many.
    fn add(&mut self, name: &str, length: u64, content: impl Read) -> Result<(), ResultsError> {
        let mut hashing = Hashing {
            inner: content.take(length),
            hash: Sha256::new(),
            left: length,
        };
        self.append(name, length, &mut hashing)?;
        let sum = write_hexadecimal(&hashing.hash.finalize());
        self.sums.push_str(&format!("{sum}  {name}\n"));
        self.packed.files += 1;
        self.packed.bytes += length;
        self.packed.most_bytes = self.packed.most_bytes.max(length);
        Ok(())
    }

    fn append(&mut self, name: &str, length: u64, content: impl Read) -> Result<(), ResultsError> {
        let mut header = header::make_header(length);
        let path = format!("{}/{name}", self.top);
        self.tar
            .append_data(&mut header, path, content)
            .map_err(io_error("writing", self.output))
    }

    fn finish(mut self, sign: Option<Sign>) -> Result<Packed, ResultsError> {
        let sums = std::mem::take(&mut self.sums);
        self.append(SUMS, sums.len() as u64, sums.as_bytes())?;
        if let Some(sign) = sign {
            let signature = sign(&sums).map_err(ResultsError::Unsigned)?;
            self.append(SIGNATURE, signature.len() as u64, signature.as_bytes())?;
        }
        let output = self.output;
        self.tar
            .into_inner()
            .and_then(Finish::finish)
            .map_err(io_error("writing", output))?;
        Ok(Packed {
            fingerprint: sha256(sums.as_bytes()),
            ..self.packed
        })
    }
}

/// Hashes what passes, and makes an error of a file that became shorter meanwhile.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
    left: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(std::io::Error::other("it became shorter while it was read"));
        }
        self.hash.update(&buffer[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}

/// Ends a compressed stream and syncs the file below it.
trait Finish {
    fn finish(self) -> std::io::Result<()>;
}

impl Finish for flate2::write::GzEncoder<&mut fs::File> {
    fn finish(self) -> std::io::Result<()> {
        flate2::write::GzEncoder::finish(self)?.sync_all()
    }
}
