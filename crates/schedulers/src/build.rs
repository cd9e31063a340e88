//! Building a scheduler with `cargo install`, from crates.io or, one of our own,
//! from the source tree.
//!
//! cargo resolves, fetches and builds as the user's configuration says; ours is
//! to choose the version, the clang, one build directory for all schedulers (a
//! second one reuses most of the first one's dependencies), and to keep the log. What
//! root builds is built as another user, in a `Workshop`.

use crate::cache::{Cache, Installed};
use crate::catalog::{self, Place, Source};
use crate::error::Error;
use crate::own::{self, Own};
use crate::registry;
use crate::revision::{self, GitName};
use crate::step::{self, Step};
use crate::toolchain::Toolchain;
use crate::version::{self, Version};
use crate::workshop::{self, Workshop};
use confine::User;
use doors::read::Log;
use doors::started::{Agreed, named_command};
use doors::written;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Number of lines of a failed build that an error shows.
const TAIL_LINES: usize = 20;
/// In place of a version: the newest of the registry.
const LATEST: &str = "latest";

/// Builds schedulers into a cache.
#[derive(Debug, Clone)]
pub struct Installer {
    cache: Cache,
    path: OsString,
    /// The source tree is above one of these.
    starts: Vec<PathBuf>,
    /// Whom builds run as, if not as this process.
    user: Option<User>,
    agreed: Agreed,
}

/// The source of all that is built from crates.io.
const CRATES_IO: &str = "crates.io";

/// Program that `cargo install` is told to build.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    name: &'a str,
    /// Version or commit, for messages.
    which: &'a str,
    from: Origin<'a>,
    /// Whose source it is: one build may meet what another of the same source has left.
    source: &'a str,
    /// Directory that it is installed below.
    root: &'a Path,
}

/// Place of a program's source.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    CratesIo,
    /// A directory, and the tree around it with its lock file and what it depends on.
    Directory(&'a Path, &'a Path),
}

impl Installer {
    /// Installs into `cache` with the tools on this process's PATH.
    pub fn new(cache: Cache, agreed: Agreed) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Installer {
            cache,
            path,
            starts: own::start_directories(),
            user: None,
            agreed,
        }
    }

    /// Build as another user, which only root can.
    pub fn with_user(mut self, user: Option<User>) -> Self {
        self.user = user;
        self
    }

    /// Look for tools on another search path.
    pub fn with_path(mut self, path: impl Into<OsString>) -> Self {
        self.path = path.into();
        self
    }

    /// Look for the source tree above another directory.
    pub fn with_tree(mut self, start: impl Into<PathBuf>) -> Self {
        self.starts = vec![start.into()];
        self
    }

    /// Build `name` (which may carry its version: `scx_rusty@1.1.4`), or find
    /// it installed. Without a version: the one of the catalog. `latest` is the newest
    /// on crates.io or, where that cannot be reached, the newest installed. One of our
    /// own is built from the source tree each time, since its version does not tell of
    /// changes there.
    pub fn install(
        &self,
        name: &str,
        version: Option<&str>,
        progress: &mut dyn FnMut(Step),
    ) -> Result<Installed, Error> {
        let (name, named) = crate::split_name(name);
        check_name(name)?;
        let known = catalog::find_known(name);
        let usual = known.and_then(|k| k.version);
        let version = match version.or(named).or(usual) {
            Some(LATEST) => self.newest(name).map(Some)?,
            Some(version) => Some(parse_version(name, version)?),
            None => None,
        };
        let version = match known.map(|k| k.source) {
            Some(Source::Tree) => self.install_own(name, version, progress)?,
            Some(Source::CratesIo) | None => self.install_published(name, version, progress)?,
        };
        self.cache.refresh_links()?;
        progress(Step::Installed);
        self.found_after_build(name, version)
    }

    fn install_published(
        &self,
        name: &str,
        version: Option<Version>,
        progress: &mut dyn FnMut(Step),
    ) -> Result<Version, Error> {
        let version = version.ok_or_else(|| Error::NoVersion {
            name: name.to_owned(),
        })?;
        progress(chosen(name, &version));
        if self.cache.find_installed(name, Some(&version))?.is_none() {
            let wanted = Wanted {
                name,
                which: &version.to_string(),
                from: Origin::CratesIo,
                source: CRATES_IO,
                root: &self.cache.install_root(name, &version),
            };
            self.build(wanted, progress)?;
        }
        Ok(version)
    }

    fn install_own(
        &self,
        name: &str,
        asked: Option<Version>,
        progress: &mut dyn FnMut(Step),
    ) -> Result<Version, Error> {
        let Own { version, directory } = own::find_crate(&self.tools()?.cargo, name, &self.starts)?;
        if let Some(wanted) = asked.filter(|v| *v != version) {
            return Err(Error::OtherVersion {
                name: name.to_owned(),
                found: version,
                wanted,
            });
        }
        progress(chosen(name, &version));
        let around = directory.parent().unwrap_or(&directory);
        let wanted = Wanted {
            name,
            which: &version.to_string(),
            from: Origin::Directory(&directory, around),
            source: &around.to_string_lossy(),
            root: &self.cache.install_root(name, &version),
        };
        self.build(wanted, progress)?;
        Ok(version)
    }

    /// Builds a scheduler of a repository, unless its commit was built before. Gives the program
    /// and the commit.
    pub fn install_git(
        &self,
        of: GitName,
        progress: &mut dyn FnMut(Step),
    ) -> Result<(PathBuf, String), Error> {
        check_name(of.name)?;
        let commit = git::commit_of(of.repository, of.revision)?;
        let root = self.cache.commit_root(&commit);
        let program = root.join("bin").join(of.name);
        if program.is_file() {
            return Ok((program, commit));
        }
        progress(Step::Commit {
            name: of.name.to_owned(),
            commit: commit.clone(),
        });
        let tree = git::fetch_tree(of.repository, &commit, &self.cache.trees_dir())?;
        let directory = revision::crate_of(of.name, &tree)?;
        let wanted = Wanted {
            name: of.name,
            which: commit.get(..git::SHORT).unwrap_or(&commit),
            from: Origin::Directory(&directory, &tree),
            source: of.repository,
            root: &root,
        };
        self.build(wanted, progress)?;
        // The program is what is kept.
        written::remove_recorded(&tree).map_err(Error::io("remove", &tree))?;
        progress(Step::Installed);
        Ok((program, commit))
    }

    /// On crates.io or, as the best that is known offline, of those installed.
    fn newest(&self, name: &str) -> Result<Version, Error> {
        let asked = match Toolchain::find_cargo(&self.path) {
            Some(cargo) => registry::ask_newest(&cargo, name, Path::new("/")),
            None => Err("cargo is not on PATH".to_owned()),
        };
        asked.or_else(|why| {
            let installed = self.cache.find_installed(name, None)?;
            installed
                .map(|i| i.version)
                .ok_or(newest_unknown(name, why))
        })
    }

    fn tools(&self) -> Result<Toolchain, Error> {
        Toolchain::find(&self.path).map_err(Error::MissingTools)
    }

    fn build(&self, wanted: Wanted, progress: &mut dyn FnMut(Step)) -> Result<(), Error> {
        let Wanted { name, which, .. } = wanted;
        let tools = self.tools()?;
        let log_file = self.cache.log_file(name, which);
        let mut log = create_log(&log_file)?;
        let workshop = self.user.as_ref();
        let all = self.cache.schedulers_dir();
        let workshop = workshop.map(|user| Workshop::open(self.agreed, user, &all, wanted.source));
        let workshop = workshop.transpose()?;
        let mut child = self.start(&tools, wanted, workshop.as_ref())?;
        let output = child.stderr.take().map(BufReader::new);
        let tail = output.map(|o| follow(o, &mut log, progress));
        let tail = tail.transpose().map_err(Error::io("write", &log_file))?;
        let status = child.wait().map_err(Error::io("wait for", &tools.cargo))?;
        if status.success() {
            return workshop.map_or(Ok(()), |workshop| workshop.take_program(name, wanted.root));
        }
        Err(Error::BuildFailed {
            name: name.to_owned(),
            version: which.to_owned(),
            user: self.user.as_ref().map(|user| user.name.clone()),
            log: log_file,
            tail: tail.unwrap_or_default().into(),
        })
    }

    fn start(
        &self,
        tools: &Toolchain,
        wanted: Wanted,
        workshop: Option<&Workshop>,
    ) -> Result<Child, Error> {
        let Some(workshop) = workshop else {
            let cargo = named_command(&tools.cargo, self.agreed);
            let mut command = cargo_install(cargo, wanted, wanted.root);
            set_environment(&mut command, tools, &self.path, &self.cache.build_dir());
            return command.spawn().map_err(Error::io("start", &tools.cargo));
        };
        let toolchain = workshop::find_toolchain(&self.path);
        let (cargo, path) = match &toolchain {
            Some(sysroot) => (
                sysroot.join("bin/cargo"),
                before(sysroot.join("bin"), &self.path),
            ),
            None => (tools.cargo.clone(), self.path.clone()),
        };
        let cargo = workshop.cargo_command(&cargo, &path);
        let mut command = cargo_install(cargo, wanted, &workshop.install_root(wanted.name));
        set_environment(&mut command, tools, &path, &workshop.build_dir());
        let mut shown: Vec<PathBuf> = std::env::split_paths(&self.path).collect();
        let tree = match wanted.from {
            Origin::CratesIo => None,
            Origin::Directory(_, tree) => Some(tree.to_owned()),
        };
        shown.extend(toolchain.into_iter().chain(tree));
        if let Origin::Directory(directory, _) = wanted.from {
            workshop.check_readable(&directory.join("Cargo.toml"), &shown)?;
        }
        workshop.start_program(command, &shown)
    }

    fn found_after_build(&self, name: &str, version: Version) -> Result<Installed, Error> {
        let found = self.cache.find_installed(name, Some(&version))?;
        found.ok_or_else(|| {
            let program = self
                .cache
                .install_root(name, &version)
                .join("bin")
                .join(name);
            Error::io("find the program that was built", program)(io::ErrorKind::NotFound.into())
        })
    }
}

fn cargo_install(mut command: Command, wanted: Wanted, root: &Path) -> Command {
    command
        .args(["install", "--locked", "--color", "never", "--root"])
        .arg(root)
        .args(profile(wanted.name))
        // What an earlier build has left there is never taken for this one.
        .arg("--force")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    match wanted.from {
        Origin::Directory(directory, _) => command.arg("--path").arg(directory),
        Origin::CratesIo => command.args(["--version", wanted.which, wanted.name]),
    };
    command
}

fn set_environment(command: &mut Command, tools: &Toolchain, path: &OsStr, build_dir: &Path) {
    // Flags for schedlab's own static build would reach the scheduler's
    // build and its procedural macros.
    for inherited in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        command.env_remove(inherited);
    }
    command
        .env("PATH", path)
        .env("BPF_CLANG", &tools.clang)
        .env("CARGO_TARGET_DIR", build_dir)
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", "100");
}

/// A search path with one more directory in front; one that cannot be added is left out.
fn before(directory: PathBuf, path: &OsStr) -> OsString {
    let all = std::iter::once(directory).chain(std::env::split_paths(path));
    std::env::join_paths(all).unwrap_or_else(|_| path.to_owned())
}

fn chosen(name: &str, version: &Version) -> Step {
    Step::Chosen {
        name: name.to_owned(),
        version: version.clone(),
    }
}

/// Leaves the libraries of the user-space half unoptimised, which halves the
/// time that a build takes. The BPF half is clang's and the scheduler's own code
/// stays as its authors build it; only a scheduler that decides in user space
/// needs its libraries fast, and of an unknown one nobody can say.
fn profile(name: &str) -> &'static [&'static str] {
    match catalog::find_known(name).map(|k| k.decides_in) {
        Some(Place::Kernel) => &["--config", r#"profile.release.package."*".opt-level=0"#],
        Some(Place::UserSpace) | None => &[],
    }
}

/// Names outside the catalog may be installed too, but must be able to be one:
/// what comes from crates.io is built and later run as root.
fn check_name(name: &str) -> Result<(), Error> {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    match name.strip_prefix("scx_") {
        _ if catalog::find_known(name).is_some() => Ok(()),
        Some(rest) if !rest.is_empty() && rest.bytes().all(word) => Ok(()),
        _ => Err(Error::UnknownName {
            name: name.to_owned(),
            nearest: catalog::find_nearest(name),
        }),
    }
}

fn parse_version(name: &str, text: &str) -> Result<Version, Error> {
    version::parse(text).ok_or_else(|| Error::BadVersion {
        name: name.to_owned(),
        version: text.to_owned(),
    })
}

/// cargo answers `could not find` for a crate that does not exist.
fn newest_unknown(name: &str, why: String) -> Error {
    let name = name.to_owned();
    match why.contains("could not find") {
        true => Error::UnknownName {
            nearest: catalog::find_nearest(&name),
            name,
        },
        false => Error::NewestUnknown { name, why },
    }
}

fn create_log(file: &PathBuf) -> Result<Log, Error> {
    if let Some(dir) = file.parent() {
        written::make_directory(dir).map_err(Error::io("create", dir))?;
    }
    let created = written::create_file(file).and_then(Log::append_to);
    created.map_err(Error::io("create", file))
}

/// Pass on progress and keep the rest in the log, until cargo closes its end.
/// Gives the last lines.
fn follow(
    mut output: impl Read,
    log: &mut impl Write,
    progress: &mut dyn FnMut(Step),
) -> io::Result<VecDeque<String>> {
    let mut tail = VecDeque::new();
    let mut line = Vec::new();
    let mut byte = [0];
    while output.read(&mut byte)? > 0 {
        match byte[0] {
            b'\n' | b'\r' => {
                take_line(&String::from_utf8_lossy(&line), &mut tail, log, progress)?;
                line.clear();
            }
            // A line without an end is cut, and no memory grows with it.
            other if line.len() < doors::read::LONGEST_SHOWN_LINE => line.push(other),
            _ => {}
        }
    }
    take_line(&String::from_utf8_lossy(&line), &mut tail, log, progress)?;
    Ok(tail)
}

fn take_line(
    line: &str,
    tail: &mut VecDeque<String>,
    log: &mut impl Write,
    progress: &mut dyn FnMut(Step),
) -> io::Result<()> {
    if let Some(step) = step::read_line(line) {
        progress(step);
    }
    if line.trim().is_empty() || step::is_bar(line) {
        return Ok(());
    }
    writeln!(log, "{line}")?;
    tail.push_back(line.to_owned());
    if tail.len() > TAIL_LINES {
        tail.pop_front();
    }
    Ok(())
}
