//! Place of root's builds. Build scripts and procedural macros of all dependencies run during a
//! build, so cargo runs as another user, in a directory of that user's, and root takes nothing
//! out of it but the program.

use crate::error::Error;
use confine::User;
use doors::started::{self, Agreed, tool};
use doors::written;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The directory of one user's builds with cargo, and how it is started there.
#[derive(Debug)]
pub(crate) struct Workshop {
    inner: started::Workshop,
    /// Root's settings of cargo: mirrors, proxies.
    config: Option<PathBuf>,
}

impl Workshop {
    /// Below `schedulers`, which is root's.
    pub fn open(agreed: Agreed, user: &User, schedulers: &Path) -> Result<Self, Error> {
        let inner = started::Workshop::open(agreed, Some(user.clone()), schedulers);
        Ok(Workshop {
            inner: inner.map_err(Error::io("make a directory for builds in", schedulers))?,
            config: cargo_config(schedulers)?,
        })
    }

    pub fn build_dir(&self) -> PathBuf {
        self.inner.dir().join("target")
    }

    /// The directory that `cargo install` is told to install into.
    pub fn root(&self, name: &str) -> PathBuf {
        self.inner.dir().join("installed").join(name)
    }

    /// cargo with settings of the user's own.
    pub fn cargo(&self, cargo: &Path, path: &OsStr) -> Command {
        let mut command = self.inner.command(cargo);
        command
            .env("PATH", path)
            .env("CARGO_HOME", self.inner.home().join(".cargo"));
        command
    }

    /// Start a program that reads `shown`, wherever that lies.
    pub fn start(&self, mut command: Command, shown: &[PathBuf]) -> Result<Child, Error> {
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        let shown: Vec<PathBuf> = shown.iter().chain(&self.config).cloned().collect();
        let child = self.inner.spawn(command, &shown);
        child.map_err(|e| Error::NoOtherUser {
            user: e.user,
            why: e.why.to_string(),
        })
    }

    /// Copy the program that came out to `into/bin`, where only root can change it.
    pub fn take(&self, name: &str, into: &Path) -> Result<(), Error> {
        let from = self.root(name).join("bin").join(name);
        let taken = self.inner.take(&from, &into.join("bin").join(name));
        taken.map_err(Error::io("take the program that was built", from))
    }
}

/// The directory of the real cargo and rustc, where those on `path` are rustup's, which
/// needs its own settings; `None` where there is no telling.
pub(crate) fn toolchain(path: &OsStr) -> Option<PathBuf> {
    let mut rustc = tool("rustc");
    rustc.args(["--print", "sysroot"]).env("PATH", path);
    let output = doors::read::output_of(rustc.current_dir("/")).ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let sysroot = PathBuf::from(sysroot.trim_end());
    sysroot.join("bin/cargo").is_file().then_some(sysroot)
}

/// A copy of root's settings that the user may read; not of its credentials.
fn cargo_config(schedulers: &Path) -> Result<Option<PathBuf>, Error> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let Some(text) = home.and_then(|h| doors::read::small_file_bytes(h.join("config.toml")).ok())
    else {
        return Ok(None);
    };
    let copy = schedulers.join("cargo-config.toml");
    written::write_file_with_rights(&copy, 0o644, text).map_err(Error::io("write", &copy))?;
    Ok(Some(copy))
}
