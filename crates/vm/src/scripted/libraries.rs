//! The libraries that a program is loaded with, found as ld.so(8) finds them. The linker that a
//! program names is not asked: it may be any program, and would run outside of the guest.

use crate::VmError;
use crate::elf::{self, Dynamic};
use crate::failure::unmet_error;
use doors::read::small_file_text;
use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Directories that the linkers of the distributions look into at last.
const DEFAULTS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// Index of the directories of the configuration, which the linker in the guest reads.
const INDEX: &str = "/etc/ld.so.cache";
/// Files of the configuration that name each other, at most.
const MOST_FILES: usize = 100;
/// Libraries of one program, at most.
const MOST: usize = 1000;
/// Parts of musl's libc, which is its linker.
const OF_MUSL: [&str; 7] = ["c", "pthread", "rt", "m", "dl", "util", "xnet"];

/// Content of a regular file that the guest may read.
pub(super) type Read<'a> = &'a dyn Fn(&Path) -> Option<Vec<u8>>;

/// A program or library whose libraries are looked for.
struct Loaded {
    path: PathBuf,
    dynamic: Dynamic,
    /// Directories that the programs which load it say for it, too (DT_RPATH).
    inherited: Vec<PathBuf>,
}

struct Linker<'a> {
    read: Read<'a>,
    is_musl: bool,
    machine: u16,
    last: Vec<PathBuf>,
}

/// Files that a program needs beside itself: its linker, and all that this loads. None for a
/// program without one.
pub(super) fn of_program(path: &Path, content: &[u8], read: Read) -> Result<Vec<PathBuf>, VmError> {
    let Some(interpreter) = elf::interpreter(content) else {
        return Ok(Vec::new());
    };
    if !interpreter.is_absolute() || read(&interpreter).is_none() {
        let what = format!("its linker {} is no file here", interpreter.display());
        return Err(missing(path, &what));
    }
    let is_musl = interpreter.to_string_lossy().contains("ld-musl-");
    let linker = Linker {
        read,
        is_musl,
        machine: elf::machine(content).unwrap_or_default(),
        last: last_directories(&interpreter, is_musl),
    };
    let mut found = linker.all(path, content)?;
    if found.iter().any(|path| !is_in_defaults(path)) && read(Path::new(INDEX)).is_some() {
        found.insert(INDEX.into());
    }
    found.insert(interpreter);
    Ok(found.into_iter().collect())
}

impl Linker<'_> {
    fn all(&self, path: &Path, content: &[u8]) -> Result<BTreeSet<PathBuf>, VmError> {
        let mut found = BTreeSet::new();
        let mut waiting = VecDeque::from([Loaded {
            path: path.to_owned(),
            dynamic: elf::read_dynamic(content).unwrap_or_default(),
            inherited: Vec::new(),
        }]);
        while let Some(loaded) = waiting.pop_front() {
            for name in &loaded.dynamic.needed {
                if self.is_builtin(name) {
                    continue;
                }
                let Some((at, dynamic)) = self.find(name, &loaded) else {
                    let name = name.to_string_lossy();
                    return Err(missing(path, &format!("its library {name} is not here")));
                };
                if found.insert(at.clone()) {
                    waiting.push_back(Loaded {
                        path: at,
                        dynamic,
                        inherited: loaded.rpath(),
                    });
                }
                if found.len() > MOST {
                    return Err(missing(path, "it has more than 1000 libraries"));
                }
            }
        }
        Ok(found)
    }

    /// The first file of this name for the same machine.
    fn find(&self, name: &OsStr, of: &Loaded) -> Option<(PathBuf, Dynamic)> {
        let library = |path: PathBuf| {
            let content = (self.read)(&path)?;
            let fits = elf::machine(&content) == Some(self.machine);
            fits.then(|| (path, elf::read_dynamic(&content).unwrap_or_default()))
        };
        if name.as_bytes().contains(&b'/') {
            let path = PathBuf::from(expanded(name, &of.path));
            return path.is_absolute().then_some(path).and_then(library);
        }
        let variable = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let own = of.directories(of.dynamic.runpath.as_deref());
        let dirs = of.rpath().into_iter();
        let dirs = dirs.chain(env::split_paths(&variable)).chain(own);
        let mut dirs = dirs
            .chain(self.last.iter().cloned())
            .filter(|dir| dir.is_absolute());
        dirs.find_map(|dir| library(dir.join(name)))
    }

    fn is_builtin(&self, name: &OsStr) -> bool {
        let stem = name.to_str().and_then(|name| name.strip_prefix("lib"));
        let stem = stem.and_then(|name| name.split('.').next());
        self.is_musl && stem.is_some_and(|stem| OF_MUSL.contains(&stem))
    }
}

impl Loaded {
    /// Directories for its own libraries and for those of its libraries.
    fn rpath(&self) -> Vec<PathBuf> {
        // Where there is the newer word, the older one counts for nothing.
        let own = match self.dynamic.runpath {
            Some(_) => Vec::new(),
            None => self.directories(self.dynamic.rpath.as_deref()),
        };
        own.into_iter().chain(self.inherited.clone()).collect()
    }

    fn directories(&self, list: Option<&OsStr>) -> Vec<PathBuf> {
        let list = expanded(list.unwrap_or_default(), &self.path);
        env::split_paths(&list).collect()
    }
}

/// The text with the directory of the file for `$ORIGIN`.
fn expanded(text: &OsStr, of: &Path) -> OsString {
    let origin = of.parent().unwrap_or(Path::new("/")).as_os_str().as_bytes();
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some(byte) = rest.first() {
        let names = [&b"${ORIGIN}"[..], b"$ORIGIN"];
        match names.iter().find_map(|name| rest.strip_prefix(*name)) {
            Some(behind) => {
                out.extend(origin);
                rest = behind;
            }
            None => {
                out.push(*byte);
                rest = &rest[1..];
            }
        }
    }
    OsString::from_vec(out)
}

/// Directories of this machine's configuration, then those that each linker knows.
fn last_directories(interpreter: &Path, is_musl: bool) -> Vec<PathBuf> {
    if is_musl {
        let name = interpreter.file_stem().unwrap_or_default();
        let file = Path::new("/etc").join(name).with_extension("path");
        let text = small_file_text(file).unwrap_or("/lib:/usr/local/lib:/usr/lib".to_owned());
        return text.split([':', '\n']).map(PathBuf::from).collect();
    }
    let defaults = DEFAULTS.iter().map(PathBuf::from);
    configured(Path::new(CONFIGURATION))
        .into_iter()
        .chain(defaults)
        .collect()
}

fn is_in_defaults(path: &Path) -> bool {
    let directory = path.parent().unwrap_or(path);
    DEFAULTS
        .iter()
        .any(|default| directory == Path::new(default))
}

/// Directories of a file of ldconfig(8), and of those that it includes.
fn configured(file: &Path) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    let mut files = VecDeque::from([file.to_owned()]);
    let mut left = MOST_FILES;
    while let Some(file) = files.pop_front().filter(|_| left > 0) {
        left -= 1;
        let text = small_file_text(&file).unwrap_or_default();
        let lines = text
            .lines()
            .map(|l| l.split('#').next().unwrap_or(l).trim());
        for line in lines.filter(|line| !line.is_empty()) {
            match line.strip_prefix("include ") {
                Some(pattern) => files.extend(included(Path::new(pattern.trim()))),
                None => directories.push(PathBuf::from(line)),
            }
        }
    }
    directories
}

/// Files of a pattern such as `/etc/ld.so.conf.d/*.conf`, in order.
fn included(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    let Some((begin, end)) = name.split_once('*') else {
        return vec![pattern.to_owned()];
    };
    let entries = fs::read_dir(pattern.parent().unwrap_or(pattern));
    let fits = |name: &str| name.starts_with(begin) && name.ends_with(end);
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(fits))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

fn missing(program: &Path, what: &str) -> VmError {
    unmet_error(
        &program.display().to_string(),
        what,
        "install what it needs, or show it to the guest: `expose` in [target], or --expose PATH",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Option<Vec<u8>> {
        path.is_file().then(|| fs::read(path).unwrap())
    }

    #[test]
    fn libraries_are_those_that_the_linker_itself_lists() {
        // Programs of the system: their linker is known, so a test may ask it.
        let programs = [
            "/bin/sh",
            "/usr/bin/git",
            "/usr/bin/qemu-system-x86_64",
            "/usr/bin/perl",
        ];
        for program in programs.map(Path::new).iter().filter(|path| path.exists()) {
            let listed = std::process::Command::new("/lib64/ld-linux-x86-64.so.2")
                .arg("--list")
                .arg(program)
                .output()
                .unwrap();
            let listed = String::from_utf8(listed.stdout).unwrap();
            let listed = listed.split_whitespace().filter(|w| w.starts_with('/'));
            let same = |path: &Path| fs::canonicalize(path).unwrap();
            let listed: BTreeSet<PathBuf> = listed.map(|p| same(Path::new(p))).collect();
            let found = of_program(program, &fs::read(program).unwrap(), &read).unwrap();
            let found = found.iter().filter(|path| *path != Path::new(INDEX));
            let found: BTreeSet<PathBuf> = found.map(|path| same(path)).collect();
            assert!(
                listed.is_subset(&found),
                "{program:?}: {:?}",
                listed.difference(&found)
            );
            let more: Vec<_> = found.difference(&listed).collect();
            assert!(more.len() <= 1, "{program:?}: {more:?}");
        }
    }

    #[test]
    fn the_origin_is_the_directory_of_the_file() {
        let at = Path::new("/opt/x/bin/program");
        for (text, is) in [
            ("$ORIGIN/../lib", "/opt/x/bin/../lib"),
            ("/a:${ORIGIN}", "/a:/opt/x/bin"),
            ("/a", "/a"),
        ] {
            assert_eq!(expanded(OsStr::new(text), at), is);
        }
    }

    #[test]
    fn directories_of_the_configuration_and_of_what_it_includes_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("ld.so.conf");
        fs::write(dir.path().join("b.conf"), "# local\n/b # two\n").unwrap();
        fs::write(dir.path().join("a.conf"), "/a\n").unwrap();
        // One that includes itself ends, too.
        let text = format!(
            "include {}/*.conf\ninclude {}\n/last\n",
            dir.path().display(),
            main.display()
        );
        fs::write(&main, text).unwrap();
        let found = configured(&main);
        for wanted in ["/a", "/b", "/last"] {
            assert!(found.contains(&PathBuf::from(wanted)), "{found:?}");
        }
    }
}
