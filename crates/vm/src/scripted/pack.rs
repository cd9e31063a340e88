//! Files of this machine for a guest that has no others: programs with the libraries that they
//! need. It gets what a guest that reads them over 9p would get, with the same modes and owners.

use super::libraries;
use crate::failure::{io, unmet_error};
use crate::frame::PACKED_ROOT;
use crate::initramfs::{DIRECTORY, add_entry};
use crate::{Options, VmError};
use confine::Confinement;
use cpio::NewcBuilder;
use model::Experiment;
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The most that is read of a program to see what it needs.
const MOST_OF_PROGRAM: u64 = 256 << 20;

/// The files by path, each with its content.
#[derive(Debug)]
pub struct Packed {
    files: BTreeMap<PathBuf, Entry>,
    bytes: u64,
    /// The most that all files have.
    most: u64,
    /// Confinement in which QEMU would read them.
    reader: Confinement,
}

/// A file as its reader finds it.
#[derive(Debug)]
struct Entry {
    mode: u32,
    uid: u32,
    gid: u32,
    content: Vec<u8>,
}

/// Programs that a word of the experiment names, where agents find them: on PATH, then among the
/// installed schedulers.
pub fn programs(experiment: &Experiment, options: &Options) -> Vec<PathBuf> {
    let mut words = BTreeSet::new();
    if let Ok(value) = serde_json::to_value(experiment) {
        collect_words(&value, &mut words);
    }
    let variables = options.environment.iter();
    let paths = variables.filter(|(name, _)| name.starts_with("SCHEDLAB_") || *name == "PATH");
    let mut paths: Vec<_> = paths.collect();
    paths.sort_by_key(|(name, _)| *name != "PATH");
    let dirs = paths.iter().flat_map(|(_, dirs)| env::split_paths(dirs));
    let dirs: Vec<PathBuf> = dirs.filter(|dir| dir.is_absolute()).collect();
    let found = words.iter().filter_map(|word| {
        let candidates = dirs.iter().map(|dir| dir.join(word));
        candidates.into_iter().find(|path| is_program(path))
    });
    found.collect()
}

fn is_program(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Words that can be the name of a program.
fn collect_words(value: &serde_json::Value, words: &mut BTreeSet<String>) {
    use serde_json::Value::{Array, Object, String};
    match value {
        String(text) => {
            let of_text = text.split_whitespace().filter(|word| !word.contains('/'));
            words.extend(of_text.map(str::to_owned));
        }
        Array(values) => values.iter().for_each(|v| collect_words(v, words)),
        Object(fields) => fields.values().for_each(|v| collect_words(v, words)),
        _ => {}
    }
}

/// Packs files, what is below directories, and the libraries of programs; no more than `most`
/// bytes of them, and only what a program with this confinement may read. What is below a directory
/// and is not for it is left out.
pub fn pack<'a>(
    paths: impl Iterator<Item = &'a PathBuf>,
    most: u64,
    reader: &Confinement,
) -> Result<Packed, VmError> {
    let mut packed = Packed {
        files: BTreeMap::new(),
        bytes: 0,
        most,
        reader: reader.clone(),
    };
    for path in paths {
        packed.add(path)?;
    }
    Ok(packed)
}

impl Packed {
    /// Number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Adds what the experiment names, and what that needs.
    fn add(&mut self, path: &Path) -> Result<(), VmError> {
        if self.files.contains_key(path) {
            return Ok(());
        }
        let Some(file) = self.open(path).map_err(io("read", path))? else {
            return Err(hidden(path));
        };
        let found = file.metadata().map_err(io("read", path))?;
        if found.is_dir() {
            return self.add_directory(path);
        }
        self.add_opened(path, file, &found)
    }

    fn add_opened(&mut self, path: &Path, file: File, found: &fs::Metadata) -> Result<(), VmError> {
        if !found.is_file() || self.files.contains_key(path) {
            return Ok(());
        }
        let content = self.content(file, path)?;
        let read = |path: &Path| self.read(path);
        let needed = match content.strip_prefix(b"#!") {
            None => libraries::of_program(path, &content, &read)?,
            Some(_) => of_script(&content).into_iter().collect(),
        };
        self.insert(path, found, content);
        needed.iter().try_for_each(|path| self.add(path))
    }

    /// Opens a file or directory as its reader may; `None`: it is hidden from the reader, or not
    /// theirs to read. It is looked at once it is open, so that nobody puts another in its place.
    fn open(&self, path: &Path) -> std::io::Result<Option<File>> {
        let kind = fs::metadata(path).map(|found| found.file_type());
        if kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device()) {
            return Ok(None);
        }
        let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, how, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(e) if std::io::Error::from(e).kind() == ErrorKind::PermissionDenied => {
                return Ok(None);
            }
            Err(e) => return Err(e.into()),
        };
        let is = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(self.reader.may_read(&is).then_some(file))
    }

    /// Content of a regular file, where its reader may have it.
    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let file = self.open(path).ok()??;
        let is_file = file.metadata().ok()?.is_file();
        is_file.then(|| self.content(file, path).ok()).flatten()
    }

    /// Content of a file that may grow while it is read.
    fn content(&self, file: File, path: &Path) -> Result<Vec<u8>, VmError> {
        let room = self.most.saturating_sub(self.bytes);
        doors::read::stream_bytes(file, room).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => too_much(path, self.most),
            _ => io("read", path)(error),
        })
    }

    fn insert(&mut self, path: &Path, found: &fs::Metadata, content: Vec<u8>) {
        self.bytes = self.bytes.saturating_add(content.len() as u64);
        let entry = Entry {
            mode: found.mode(),
            uid: found.uid(),
            gid: found.gid(),
            content,
        };
        self.files.insert(path.to_owned(), entry);
    }

    /// Adds everything below the root of another system as it is: its programs have their libraries
    /// there. A link is packed as the file that it leads to within that root.
    pub(crate) fn add_root(&mut self, root: &Path) -> Result<(), VmError> {
        let within = fs::canonicalize(root).map_err(io("read", root))?;
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            let entries = fs::read_dir(&directory).map_err(io("read", &directory))?;
            for entry in entries {
                let path = entry.map_err(io("read", &directory))?.path();
                let leads_to = fs::canonicalize(&path).unwrap_or_default();
                if path.is_dir() && !path.is_symlink() {
                    directories.push(path);
                } else if leads_to.is_file() && leads_to.starts_with(&within) {
                    self.add_file(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a file as it is, without what it needs.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<(), VmError> {
        let found = fs::metadata(path).map_err(io("read", path))?;
        let content = doors::read::large_file_bytes(path).map_err(io("read", path))?;
        self.insert(path, &found, content);
        Ok(())
    }

    fn add_directory(&mut self, path: &Path) -> Result<(), VmError> {
        let entries = fs::read_dir(path).map_err(io("read", path))?;
        for entry in entries {
            let entry = entry.map_err(io("read", path))?.path();
            // A link inside may lead anywhere, and in circles.
            if entry.is_symlink() {
                continue;
            }
            let opened = match self.open(&entry) {
                Ok(opened) => opened,
                // It went meanwhile, or is a socket or a device of nothing.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                    continue;
                }
                Err(e) => return Err(io("read", &entry)(e)),
            };
            let Some(file) = opened else {
                continue;
            };
            let found = file.metadata().map_err(io("read", &entry))?;
            match found.is_dir() {
                true => self.add_directory(&entry)?,
                false => self.add_opened(&entry, file, &found)?,
            }
        }
        Ok(())
    }

    /// Entries of an archive, directories before what is in them.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let name = |path: &Path| {
            let inside = path.strip_prefix("/").unwrap_or(path);
            Path::new(PACKED_ROOT).join(inside).display().to_string()
        };
        let parents = self.files.keys().flat_map(|path| path.ancestors().skip(1));
        let parents: BTreeSet<&Path> = parents.filter(|dir| dir.parent().is_some()).collect();
        for directory in parents {
            add_entry(out, &name(directory), DIRECTORY, b"")?;
        }
        for directory in ["proc", "sys", "dev", "tmp", "run"] {
            add_entry(out, &name(Path::new(directory)), DIRECTORY, b"")?;
        }
        for (path, entry) in &self.files {
            entry.write(&name(path), out)?;
        }
        Ok(())
    }
}

impl Entry {
    fn write(&self, name: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
        let size = u32::try_from(self.content.len()).map_err(std::io::Error::other)?;
        let entry = NewcBuilder::new(name).mode(self.mode).nlink(1);
        let mut writer = entry.uid(self.uid).gid(self.gid).write(out, size);
        writer.write_all(&self.content)?;
        writer.finish()?;
        Ok(())
    }
}

/// Files that a program needs beside itself: its interpreter, its libraries. None where they cannot be
/// found, or the file is too large for a program.
pub fn needs_of(program: &Path) -> Vec<PathBuf> {
    let read = |path: &Path| doors::read::file_bytes(path, MOST_OF_PROGRAM).ok();
    let Some(content) = is_program(program).then(|| read(program)).flatten() else {
        return Vec::new();
    };
    match content.starts_with(b"#!") {
        true => of_script(&content).into_iter().collect(),
        false => libraries::of_program(program, &content, &read).unwrap_or_default(),
    }
}

fn hidden(path: &Path) -> VmError {
    unmet_error(
        &path.display().to_string(),
        "the experiment needs it, and a guest may not read it: its view hides it, or its mode does",
        "show it with `expose` in [target] (--expose PATH), or let the guest's user read it",
    )
}

fn too_much(path: &Path, most: u64) -> VmError {
    unmet_error(
        "target vm",
        &format!(
            "with {} the files that the experiment names are more than {} MiB, a quarter of the \
             guest's memory",
            path.display(),
            most >> 20
        ),
        "give it more `memory`, or name fewer files in `expose`",
    )
}

/// The program that runs a script (execve(2)).
fn of_script(content: &[u8]) -> Option<PathBuf> {
    let line = content.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let program = PathBuf::from(line.split_whitespace().next()?);
    program.is_file().then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_with_its_libraries_and_its_linker() {
        let shell = PathBuf::from("/bin/sh");
        let packed = pack([&shell].into_iter(), 64 << 20, &Confinement::default()).unwrap();
        let names: Vec<String> = packed
            .files
            .keys()
            .map(|p| p.display().to_string())
            .collect();
        assert!(
            names.iter().any(|name| name.contains("libc.so")),
            "{names:?}"
        );
        assert!(
            names.iter().any(|name| name.contains("ld-linux")),
            "{names:?}"
        );
        assert_eq!(packed.files[&shell].mode & 0o777, 0o755);
    }

    #[test]
    fn more_than_the_memory_holds_is_refused() {
        let shell = PathBuf::from("/bin/sh");
        let error = pack([&shell].into_iter(), 1, &Confinement::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("a quarter of the guest's memory"),
            "{error}"
        );
    }

    #[test]
    fn the_words_of_an_experiment_are_looked_up() {
        let value = serde_json::json!({"arms": [{"scheduler": "scx_rusty --slice 5"}]});
        let mut words = BTreeSet::new();
        collect_words(&value, &mut words);
        assert!(words.contains("scx_rusty") && words.contains("5"));
    }

    #[test]
    fn modes_stay_and_what_its_user_may_not_read_or_see_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        let file = |name: &str, mode: u32| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let all = file("open/all", 0o644);
        let setuid = file("open/setuid", 0o4755);
        let private = file("open/private", 0o600);
        let below = file("open/closed/below", 0o644);
        let secret = file("open/secret/key", 0o644);
        fs::set_permissions(root.join("open/closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let mut reader = Confinement {
            user: Some(confine::User {
                name: "other".to_owned(),
                uid: 54_321,
                gid: 54_321,
                groups: Vec::new(),
                home: None,
            }),
            ..Confinement::default()
        };
        reader.view.hide_path(root.join("open/secret"));
        let open = root.join("open");
        let packed = pack([&open].into_iter(), 1 << 20, &reader).unwrap();
        let names: Vec<&PathBuf> = packed.files.keys().collect();
        assert_eq!(names, [&all, &setuid]);
        assert_eq!(packed.files[&setuid].mode, 0o104_755);
        for named in [&private, &below, &secret] {
            let error = pack([named].into_iter(), 1 << 20, &reader).unwrap_err();
            assert!(error.to_string().contains("expose"), "{error}");
        }
        // The owner keeps theirs, as private as it was.
        let packed = pack([&private].into_iter(), 1 << 20, &Confinement::default()).unwrap();
        assert_eq!(packed.files[&private].mode, 0o100_600);
    }

    #[test]
    fn the_linker_that_a_program_names_is_not_started() {
        let dir = tempfile::tempdir().unwrap();
        let (mark, evil) = (dir.path().join("ran"), dir.path().join("evil"));
        let script = format!("#!/bin/sh\ntouch {}\n", mark.display());
        ::tests::write_program(&evil, script);
        let mut program = fs::read("/bin/true").unwrap();
        let usual = b"/lib64/ld-linux-x86-64.so.2\0";
        let at = program
            .windows(usual.len())
            .position(|w| w == usual)
            .unwrap();
        for name in [format!("{}\0", evil.display()), "./evil\0".to_owned()] {
            assert!(name.len() <= usual.len(), "{name}");
            program[at..at + name.len()].copy_from_slice(name.as_bytes());
            let path = dir.path().join("prog");
            ::tests::write_program(&path, &program);
            let _ = pack([&path].into_iter(), 64 << 20, &Confinement::default());
            assert!(!mark.exists(), "{name}");
        }
    }
}
