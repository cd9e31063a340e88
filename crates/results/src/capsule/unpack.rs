//! Unpacking a capsule that anyone may have made.
//!
//! The archive is read entry by entry as it was written, without what the tar crate adds
//! to it (PAX headers, sparse files): regular files and GNU long names, as `pack` writes
//! them, and nothing else. Their headers are those that `pack` writes, byte by byte: the mode of
//! a plain file, no owner, no time. So what is unpacked here is what tar(1) unpacks.

use super::contents::is_plain;
use super::header::unlike_packed;
use super::{CAPSULE, CAPSULE_FORMAT, Capsule};
use crate::ResultsError;
use crate::files::{self, io_error as wrong};
use doors::read::{copy_within, open_file, stream_bytes};
use doors::written;
use flate2::read::MultiGzDecoder;
use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tar::{Entry, EntryType};

/// More entries than a full plan has files is no honest capsule.
const MOST_ENTRIES: usize = 200_000;
/// PATH_MAX of Linux.
const MOST_NAME_BYTES: u64 = 4096;
/// Memory that a value of JSON takes besides its text, a short one in a list.
const OF_A_VALUE: u64 = 24;
/// tar(1) fills its last record with zeros, 10 KiB unless it is told otherwise.
const MOST_PADDING_BYTES: u64 = 1 << 20;

/// Limits of what a capsule may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of all files together; one of them may have a sixteenth.
    pub bytes: u64,
}

impl Limits {
    fn of_one(self) -> u64 {
        self.bytes / 16
    }

    /// Memory for all JSON together, of which half a million trials would take gigabytes.
    fn json_bytes(self) -> u64 {
        self.bytes / 8
    }
}

/// 1 GiB, and 64 MiB a file.
impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 1 << 30 }
    }
}

/// Unpacks the capsule `file` below `into`; gives the results directory. Nothing more is written once
/// `interrupted` is set.
pub fn unpack_capsule(
    file: &Path,
    into: &Path,
    limits: Limits,
    interrupted: &AtomicBool,
) -> Result<PathBuf, ResultsError> {
    let reader = open_file(file).map_err(wrong("opening", file))?;
    let top = unpack_from(reader, into, limits, interrupted).map_err(|fault| match fault {
        Fault::Capsule(why) => ResultsError::Capsule {
            path: file.to_owned(),
            why,
        },
        Fault::Here(error) => error,
    })?;
    let top = top.ok_or_else(|| ResultsError::NotResults(file.to_owned()))?;
    read_head(&top, file)?;
    Ok(top)
}

/// Reasons that end the unpacking.
enum Fault {
    /// The capsule is not one.
    Capsule(String),
    /// This machine, such as a full disk.
    Here(ResultsError),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Fault::Capsule(error.to_string())
    }
}

impl From<ResultsError> for Fault {
    fn from(error: ResultsError) -> Self {
        Fault::Here(error)
    }
}

fn fault<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Capsule(why.into()))
}

fn unpack_from(
    reader: impl Read,
    into: &Path,
    limits: Limits,
    interrupted: &AtomicBool,
) -> Result<Option<PathBuf>, Fault> {
    // All members: tar(1) reads them as one stream too.
    let mut archive = tar::Archive::new(MultiGzDecoder::new(reader));
    let mut unpacking = Unpacking {
        into,
        limits,
        top: None,
        names: HashSet::new(),
        bytes: 0,
        json_bytes: 0,
        long_name: None,
    };
    for (count, entry) in archive.entries()?.raw(true).enumerate() {
        if count >= MOST_ENTRIES {
            return fault(format!("it has more than {MOST_ENTRIES} entries"));
        }
        if interrupted.load(Ordering::SeqCst) {
            return fault("it was interrupted");
        }
        unpacking.entry(entry?)?;
    }
    only_zeros(archive.into_inner())?;
    Ok(unpacking.top.map(|top| into.join(top)))
}

/// After the end of the archive.
fn only_zeros(rest: impl Read) -> Result<(), Fault> {
    let is_zero = |padding: Vec<u8>| padding.iter().all(|byte| *byte == 0);
    let padding = match stream_bytes(rest, MOST_PADDING_BYTES) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => None,
        padding => Some(padding?),
    };
    match padding.is_some_and(is_zero) {
        true => Ok(()),
        false => fault("something follows its end"),
    }
}

struct Unpacking<'a> {
    into: &'a Path,
    limits: Limits,
    /// The one directory that all is in.
    top: Option<String>,
    /// Names of the entries so far, as they are written.
    names: HashSet<String>,
    bytes: u64,
    /// Memory that the JSON so far may take, once it is read.
    json_bytes: u64,
    /// Name of the next entry, where it is too long for its header.
    long_name: Option<Vec<u8>>,
}

impl Unpacking<'_> {
    fn entry<R: Read>(&mut self, mut entry: Entry<'_, R>) -> Result<(), Fault> {
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::GNULongName | EntryType::Regular)
            && let Some(why) = unlike_packed(entry.header())
        {
            let name = shown(&entry.header().path_bytes());
            return fault(format!(
                "it holds {name}, {why}; no capsule has such an entry"
            ));
        }
        match kind {
            EntryType::GNULongName => {
                self.long_name = Some(long_name(&mut entry)?);
                Ok(())
            }
            EntryType::Regular => {
                let name = match self.long_name.take() {
                    Some(name) => name,
                    None => entry.header().path_bytes().into_owned(),
                };
                let name = self.checked(name)?;
                self.file(&name, entry)
            }
            other => fault(format!(
                "it holds {}, which is no regular file (type {:?}); no capsule has such an entry",
                shown(&entry.header().path_bytes()),
                char::from(other.as_byte())
            )),
        }
    }

    /// `NAME/part/part`, with nothing that leads elsewhere or does not show, and not the
    /// same twice.
    fn checked(&mut self, name: Vec<u8>) -> Result<String, Fault> {
        let refused = |why: &str| {
            let name = shown(&name);
            fault(format!("it holds {name}, {why}"))
        };
        let Ok(text) = std::str::from_utf8(&name) else {
            return refused("whose name is not text");
        };
        let Some((top, rest)) = text.split_once('/') else {
            return refused("which lies in no directory");
        };
        if !is_plain(top) || !rest.split('/').all(is_plain) {
            return refused(
                "which no capsule has: a name is hidden, leads elsewhere or has characters that do not show",
            );
        }
        if self.top.get_or_insert_with(|| top.to_owned()) != top {
            return refused("beside its one directory");
        }
        match self.names.insert(text.to_owned()) {
            true => Ok(text.to_owned()),
            false => refused("twice"),
        }
    }

    fn file<R: Read>(&mut self, name: &str, entry: Entry<'_, R>) -> Result<(), Fault> {
        let (size, most) = (entry.size(), self.limits.of_one());
        let more = "--unpack-limit SIZE takes more, a sixteenth of it for each file";
        if size > most {
            let (size, most) = (mebibytes(size), mebibytes(most));
            return fault(format!(
                "{name} has {size} MiB, more than the {most} MiB that one file may have; {more}"
            ));
        }
        self.bytes += size;
        if self.bytes > self.limits.bytes {
            let most = mebibytes(self.limits.bytes);
            return fault(format!("it unpacks to more than {most} MiB; {more}"));
        }
        let place = self.into.join(name);
        if let Some(parent) = place.parent() {
            written::make_directory(parent).map_err(wrong("creating", parent))?;
        }
        let mut to = written::create_new_file(&place).map_err(wrong("creating", &place))?;
        let mut weighed = Weighed {
            to: &mut to,
            json_bytes: 0,
        };
        let copied = copy_within(entry, &mut weighed, size).map_err(|e| match e {
            // Reading and writing look alike from here; a full disk must not be called a
            // damaged capsule.
            e if e.kind() == ErrorKind::StorageFull => Fault::Here(wrong("writing", &place)(e)),
            e => Fault::from(e),
        })?;
        if name.ends_with(".json") {
            self.json_bytes += weighed.json_bytes;
        }
        if self.json_bytes > self.limits.json_bytes() {
            let most = mebibytes(self.limits.json_bytes());
            return fault(format!(
                "its JSON would take more than {most} MiB of memory; --unpack-limit SIZE takes more, an \
                 eighth of it"
            ));
        }
        match copied == size {
            true => Ok(()),
            false => fault(format!("{name} is cut off")),
        }
    }
}

/// Passes a file on, and adds up the memory that it may take as JSON.
struct Weighed<'a> {
    to: &'a mut fs::File,
    json_bytes: u64,
}

impl Write for Weighed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        let begins = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
        let values = bytes[..written].iter().filter(begins).count() as u64;
        self.json_bytes += written as u64 + values * OF_A_VALUE;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let short: String = text.chars().take(200).collect();
    model::printable::one_line(&short).into_owned()
}

/// Ends with a zero byte.
fn long_name<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Fault> {
    if entry.size() > MOST_NAME_BYTES {
        return fault(format!(
            "a name in it has {} bytes; the most is {MOST_NAME_BYTES}",
            entry.size()
        ));
    }
    let mut name = stream_bytes(entry, MOST_NAME_BYTES)?;
    if name.pop() != Some(0) {
        return fault("a long name in it does not end");
    }
    Ok(name)
}

/// True if the directory is that of a capsule, whoever unpacked it.
pub fn is_capsules(dir: &Path) -> bool {
    dir.join(CAPSULE).symlink_metadata().is_ok()
}

/// The head of the capsule `file`, which was unpacked to `dir`.
pub fn read_head(dir: &Path, file: &Path) -> Result<Capsule, ResultsError> {
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
