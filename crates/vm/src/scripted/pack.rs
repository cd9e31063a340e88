//! Files of this machine for a guest that has no others: programs with the libraries that they
//! need.

use crate::failure::{io, unmet};
use crate::frame::PACKED_ROOT;
use crate::initramfs::{DIRECTORY, FILE, PROGRAM, add};
use crate::{Options, VmError, elf};
use model::Experiment;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files by path, each with its content.
#[derive(Debug, Default)]
pub struct Packed {
    files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
    bytes: u64,
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
/// bytes of them.
pub fn pack<'a>(paths: impl Iterator<Item = &'a PathBuf>, most: u64) -> Result<Packed, VmError> {
    let mut packed = Packed::default();
    for path in paths {
        packed.add(path, most)?;
    }
    Ok(packed)
}

impl Packed {
    /// Number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    fn add(&mut self, path: &Path, most: u64) -> Result<(), VmError> {
        let found = fs::metadata(path).map_err(io("read", path))?;
        if found.is_dir() {
            return self.add_directory(path, most);
        }
        if !found.is_file() || self.files.contains_key(path) {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(found.len());
        if self.bytes > most {
            return Err(too_much(path, most));
        }
        let content = fs::read(path).map_err(io("read", path))?;
        let libraries = match elf::interpreter(&content) {
            Some(interpreter) => libraries(&interpreter, path)?,
            None => of_script(&content).into_iter().collect(),
        };
        self.files.insert(path.to_owned(), (mode(&found), content));
        libraries.iter().try_for_each(|path| self.add(path, most))
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
        let content = fs::read(path).map_err(io("read", path))?;
        let mode = mode(&found);
        self.files.insert(path.to_owned(), (mode, content));
        Ok(())
    }

    fn add_directory(&mut self, path: &Path, most: u64) -> Result<(), VmError> {
        let entries = fs::read_dir(path).map_err(io("read", path))?;
        for entry in entries {
            let entry = entry.map_err(io("read", path))?.path();
            // A link inside may lead anywhere, and in circles.
            if !entry.is_symlink() {
                self.add(&entry, most)?;
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
            add(out, &name(directory), DIRECTORY, b"")?;
        }
        for directory in ["proc", "sys", "dev", "tmp", "run"] {
            add(out, &name(Path::new(directory)), DIRECTORY, b"")?;
        }
        for (path, (mode, content)) in &self.files {
            add(out, &name(path), *mode, content)?;
        }
        Ok(())
    }
}

fn mode(found: &fs::Metadata) -> u32 {
    match found.permissions().mode() & 0o111 {
        0 => FILE,
        _ => PROGRAM,
    }
}

fn too_much(path: &Path, most: u64) -> VmError {
    unmet(
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

/// The dynamic linker and what it would load for a program, which it does not run (ld.so(8)).
fn libraries(interpreter: &Path, program: &Path) -> Result<Vec<PathBuf>, VmError> {
    let mut linker = Command::new(interpreter);
    linker.arg("--list").arg(program);
    let output = linker.output().map_err(io("start", interpreter))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || listed.contains("=> not found") {
        return Err(unmet(
            &program.display().to_string(),
            "libraries that it needs are missing here",
            &format!("{} --list {}", interpreter.display(), program.display()),
        ));
    }
    let words = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    let found = words.map(PathBuf::from).filter(|path| path != program);
    Ok(found.chain([interpreter.to_owned()]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_with_its_libraries_and_its_linker() {
        let shell = PathBuf::from("/bin/sh");
        let packed = pack([&shell].into_iter(), 64 << 20).unwrap();
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
        assert_eq!(packed.files[&shell].0, PROGRAM);
    }

    #[test]
    fn more_than_the_memory_holds_is_refused() {
        let error = pack([&PathBuf::from("/bin/sh")].into_iter(), 1).unwrap_err();
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
}
