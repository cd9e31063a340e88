//! Kernels in packages that are at hand: `.deb` of Debian and Ubuntu, `.rpm` of Fedora and its like,
//! `.pkg.tar.zst` of Arch and CachyOS.
//!
//! A package is read here and not by its distribution's tools, which the host rarely has. Regular
//! files below the folders of kernels are taken; scripts, links and all else are left.

use super::{Kernel, list, unpacked};
use crate::VmError;
use crate::failure::{io, unmet_error};
use doors::read::{copy_within, discard_rest, open_file, stream_bytes};
use doors::started::tool_command;
use doors::written::{self, Part};
use model::printable::write_hexadecimal;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Error, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use tar::EntryType;

/// The most that a package unpacks to. Debian's largest kernel has half a gigabyte.
const MOST_BYTES: u64 = 4 << 30;
/// The most of a header in front of what is packed.
const MOST_HEADER: u64 = 64 << 20;
/// The most of the name of a member, and of what is said about it.
const MOST_NAME: u64 = 64 << 10;
/// The most files that are taken of a package.
const MOST_FILES: usize = 200_000;
/// Length of the fixed head of a member of cpio's new format.
const CPIO_HEAD: usize = 110;
/// Folders of a kernel in packages of every distribution.
const FOLDERS: [&str; 3] = ["boot", "lib/modules", "usr/lib/modules"];
const REMEDY: &str = "name the packages of a kernel with commas between them: \
                      file:linux-image-….deb,linux-modules-….deb";

/// True for a file that is a package by its name.
pub(crate) fn is_package(path: &str) -> bool {
    Form::of(path).is_some()
}

/// The kernel in these packages, which are unpacked in the cache.
pub(crate) fn resolve(name: &str, paths: &str, cache: &Path) -> Result<Kernel, VmError> {
    let wrong =
        |path: &str, what: &str| unmet_error(&format!("kernel package {path}"), what, REMEDY);
    let mut packages = Vec::new();
    for path in paths.split(',') {
        let form = Form::of(path).ok_or_else(|| {
            wrong(
                path,
                "its name does not end with .deb, .rpm or .pkg.tar.zst",
            )
        })?;
        let absolute = fs::canonicalize(path).map_err(|e| wrong(path, &e.to_string()))?;
        packages.push((absolute, form));
    }
    let dir = list::kernels_directory(cache).join(directory_name(&packages)?);
    if !dir.exists() {
        unpack(&packages, &dir)?;
    }
    let mut kernel = unpacked(name, &dir)?;
    let files = packages.iter().map(|(path, _)| super::dir_name(path));
    kernel.origin = files.collect::<Vec<_>>().join(", ");
    Ok(kernel)
}

/// Another one for other packages, and for others of the same names.
fn directory_name(packages: &[(PathBuf, Form)]) -> Result<String, VmError> {
    let mut hash = Sha256::new();
    for (path, _) in packages {
        let metadata = fs::metadata(path).map_err(io("read", path))?;
        hash.update(path.as_os_str().as_encoded_bytes());
        let stamp = [metadata.mtime(), metadata.mtime_nsec()];
        hash.update(format!("{} {stamp:?}\n", metadata.len()));
    }
    let hash = hash.finalize();
    let hex = write_hexadecimal(&hash[..8]);
    Ok(format!("file_{hex}"))
}

fn unpack(packages: &[(PathBuf, Form)], dir: &Path) -> Result<(), VmError> {
    let parent = dir.parent().unwrap_or(dir);
    written::make_directory(parent).map_err(io("create", parent))?;
    let part = Part::create_in(parent).map_err(io("create", parent))?;
    written::make_new_directory(&part.path()).map_err(io("create", &part.path()))?;
    for (path, form) in packages {
        tracing::info!("unpacking {}", path.display());
        form.unpack(path, &part.path()).map_err(|error| {
            unmet_error(
                &format!("kernel package {}", path.display()),
                &format!("it cannot be unpacked: {error}"),
                "fetch it again, and see that zstd and xz are installed and the cache has room",
            )
        })?;
    }
    match part.put_at(dir) {
        // Another process was faster.
        Err(_) if dir.exists() => Ok(()),
        result => result.map_err(io("put in place", dir)),
    }
}

/// Kind of a package, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Deb,
    Rpm,
    /// Package of pacman.
    Tar,
}

impl Form {
    fn of(path: &str) -> Option<Form> {
        match () {
            () if path.ends_with(".deb") => Some(Form::Deb),
            () if path.ends_with(".rpm") => Some(Form::Rpm),
            () if path.contains(".pkg.tar.") => Some(Form::Tar),
            () => None,
        }
    }

    fn unpack(self, path: &Path, into: &Path) -> io::Result<()> {
        let mut file = open_file(path)?;
        let length = match self {
            Form::Deb => find_data_of_deb(&mut file)?,
            Form::Rpm => find_payload_of_rpm(&mut file)?,
            Form::Tar => file.metadata()?.len(),
        };
        let begin = file.stream_position()?;
        let mut magic = [0; 6];
        file.read_exact(&mut magic)?;
        file.seek(SeekFrom::Start(begin))?;
        let packed = file.take(length);
        through(program_for(&magic)?, packed, |unpacked| match self {
            Form::Rpm => files_of_cpio(unpacked, into),
            Form::Deb | Form::Tar => files_of_tar(unpacked, into),
        })
    }
}

fn program_for(magic: &[u8]) -> io::Result<&'static str> {
    let known: [(&[u8], &str); 3] = [
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x1f\x8b", "gzip"),
    ];
    let found = known.iter().find(|(begin, _)| magic.starts_with(begin));
    found
        .map(|(_, program)| *program)
        .ok_or_else(|| invalid("what is in it is packed with neither zstd, xz nor gzip"))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// Reads what `program -dc` makes of the packed bytes.
fn through(
    program: &'static str,
    mut packed: impl Read + Send,
    read: impl FnOnce(io::Take<BufReader<ChildStdout>>) -> io::Result<()>,
) -> io::Result<()> {
    let mut child = tool_command(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| Error::new(e.kind(), format!("start {program}: {e}")))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(invalid("the program has no streams"));
    };
    let result = std::thread::scope(|scope| {
        // It ends where the reader has all that it wants.
        scope.spawn(move || copy_within(&mut packed, &mut input, u64::MAX));
        read(BufReader::new(output).take(MOST_BYTES))
    });
    let status = child.wait()?;
    match result {
        // A reader that stopped early leaves the program with a closed pipe.
        Ok(()) if status.code().is_some_and(|code| code != 0) => {
            Err(invalid(&format!("{program} says that it is damaged")))
        }
        result => result,
    }
}

/// Goes to `data.tar.*` of an archive of ar(5), and gives its length.
fn find_data_of_deb(file: &mut File) -> io::Result<u64> {
    let mut magic = [0; 8];
    file.read_exact(&mut magic)?;
    if &magic != b"!<arch>\n" {
        return Err(invalid("it is no archive of ar(5)"));
    }
    loop {
        let mut header = [0; 60];
        file.read_exact(&mut header)
            .map_err(|_| invalid("there is no data.tar in it"))?;
        let field = |range: std::ops::Range<usize>| {
            let text = String::from_utf8_lossy(&header[range]);
            text.trim().to_owned()
        };
        let length: u64 = field(48..58)
            .parse()
            .map_err(|_| invalid("a member has no length"))?;
        if field(0..16).starts_with("data.tar") {
            return Ok(length);
        }
        let next =
            i64::try_from(length + length % 2).map_err(|_| invalid("a member is too long"))?;
        file.seek(SeekFrom::Current(next))?;
    }
}

/// Goes behind the lead and the two headers, and gives the length of the rest.
fn find_payload_of_rpm(file: &mut File) -> io::Result<u64> {
    let mut lead = [0; 96];
    file.read_exact(&mut lead)?;
    if !lead.starts_with(b"\xed\xab\xee\xdb") {
        return Err(invalid("it is no RPM package"));
    }
    for is_signature in [true, false] {
        let mut intro = [0; 16];
        file.read_exact(&mut intro)?;
        if !intro.starts_with(b"\x8e\xad\xe8\x01") {
            return Err(invalid("a header of it is damaged"));
        }
        let number = |at: usize| {
            let bytes = [intro[at], intro[at + 1], intro[at + 2], intro[at + 3]];
            u64::from(u32::from_be_bytes(bytes))
        };
        let length = number(8) * 16 + number(12);
        if length > MOST_HEADER {
            return Err(invalid("a header of it is too long"));
        }
        // The first one is filled up to eight bytes.
        let padding = if is_signature {
            length.wrapping_neg() % 8
        } else {
            0
        };
        file.seek_relative(i64::try_from(length + padding).unwrap_or(i64::MAX))?;
    }
    let length = file.metadata()?.len();
    Ok(length.saturating_sub(file.stream_position()?))
}

fn files_of_tar(unpacked: impl Read, into: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(unpacked);
    // The name of the next member, where it has one of its own: read here, and not as long as it says.
    let mut long = None;
    let mut count = 0;
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        match entry.header().entry_type() {
            EntryType::GNULongName => {
                let mut name = stream_bytes(&mut entry, MOST_NAME)?;
                name.retain(|byte| *byte != 0);
                long = Some(name);
            }
            EntryType::XHeader => {
                long = name_in_pax(&stream_bytes(&mut entry, MOST_NAME)?).or(long)
            }
            kind => {
                let name = long.take();
                let name = name.unwrap_or_else(|| entry.header().path_bytes().into_owned());
                let path = PathBuf::from(OsString::from_vec(name));
                if let Some(place) = place(&path, into).filter(|_| kind.is_file()) {
                    put(&mut entry, &place, &mut count)?;
                }
            }
        }
    }
    // To the end of the stream, so that the program that unpacks sees no closed pipe.
    discard_rest(archive.into_inner()).map(drop)
}

/// The name that a header of extensions gives the next member.
fn name_in_pax(header: &[u8]) -> Option<Vec<u8>> {
    let mut extensions = tar::PaxExtensions::new(header).flatten();
    let path = extensions.find(|extension| extension.key_bytes() == b"path")?;
    Some(path.value_bytes().to_vec())
}

fn files_of_cpio(unpacked: impl Read, into: &Path) -> io::Result<()> {
    let mut unpacked: Box<dyn Read + '_> = Box::new(unpacked);
    let mut count = 0;
    loop {
        let mut head = [0; CPIO_HEAD];
        unpacked.read_exact(&mut head)?;
        let length = std::str::from_utf8(&head[94..102]).ok();
        let length = length.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if length.is_none_or(|length| length > MOST_NAME) {
            return Err(invalid("a name in it is too long"));
        }
        let whole = Cursor::new(head).chain(unpacked);
        let mut reader = cpio::NewcReader::new(whole)?;
        if reader.entry().is_trailer() {
            return discard_rest(reader.finish()?).map(drop);
        }
        let is_file = reader.entry().mode() & 0o170_000 == 0o100_000;
        let path = PathBuf::from(reader.entry().name());
        if let Some(place) = place(&path, into).filter(|_| is_file) {
            put(&mut reader, &place, &mut count)?;
        }
        let (_, rest) = reader.finish()?.into_inner();
        unpacked = rest;
    }
}

/// Where a file of a kernel goes; `None` for all others, and for paths that lead elsewhere.
fn place(path: &Path, into: &Path) -> Option<PathBuf> {
    let parts: Option<PathBuf> = path
        .components()
        .filter(|part| !matches!(part, Component::CurDir | Component::RootDir))
        .map(|part| match part {
            Component::Normal(part) => Some(part),
            _ => None,
        })
        .collect();
    let path = parts?;
    let is_of_kernel = FOLDERS.iter().any(|folder| path.starts_with(folder));
    is_of_kernel.then(|| into.join(path))
}

fn put(from: &mut impl Read, place: &Path, count: &mut usize) -> io::Result<()> {
    *count += 1;
    if *count > MOST_FILES {
        return Err(invalid("it has too many files"));
    }
    if let Some(parent) = place.parent() {
        written::make_directory(parent)?;
    }
    let mut file = written::create_file(place)?;
    copy_within(from, &mut file, MOST_BYTES).map(drop)
}

#[cfg(test)]
mod tests;
