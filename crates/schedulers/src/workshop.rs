//! Place of root's builds. Build scripts and procedural macros of all dependencies run during a
//! build, so cargo runs as another user, in a directory of that user's, and root takes nothing
//! out of it but the program.

use crate::error::Error;
use confine::User;
use doors::started::{self, Agreed, NoWorkshop, tool_command};
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
    pub fn open(
        agreed: Agreed,
        user: &User,
        schedulers: &Path,
        source: &str,
    ) -> Result<Self, Error> {
        let inner = started::Workshop::open(agreed, Some(user.clone()), schedulers, source);
        let inner = inner.map_err(Error::io("make a directory for builds in", schedulers))?;
        Ok(Workshop {
            config: cargo_config(&inner, schedulers)?,
            inner,
        })
    }

    pub fn build_dir(&self) -> PathBuf {
        self.inner.dir().join("target")
    }

    /// The directory that `cargo install` is told to install into.
    pub fn install_root(&self, name: &str) -> PathBuf {
        self.inner.dir().join("installed").join(name)
    }

    /// cargo with settings of the user's own.
    pub fn cargo_command(&self, cargo: &Path, path: &OsStr) -> Command {
        let mut command = self.inner.build_command(cargo);
        command
            .env("PATH", path)
            .env("CARGO_HOME", self.inner.home().join(".cargo"));
        command
    }

    /// An error where the user may not read a file of the source.
    pub fn check_readable(&self, file: &Path, shown: &[PathBuf]) -> Result<(), Error> {
        self.inner
            .check_readable(file, shown)
            .map_err(no_other_user)
    }

    /// Start a program that reads `shown`, wherever that lies.
    pub fn start_program(&self, mut command: Command, shown: &[PathBuf]) -> Result<Child, Error> {
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        let shown: Vec<PathBuf> = shown.iter().chain(&self.config).cloned().collect();
        self.inner.spawn(command, &shown).map_err(no_other_user)
    }

    /// Copy the program that came out to `into/bin`, where only root can change it.
    pub fn take_program(&self, name: &str, into: &Path) -> Result<(), Error> {
        let from = self.install_root(name).join("bin").join(name);
        let taken = self.inner.take_program(&from, &into.join("bin").join(name));
        taken.map_err(Error::io("take the program that was built", from))
    }
}

fn no_other_user(error: NoWorkshop) -> Error {
    Error::NoOtherUser {
        user: error.user,
        why: error.why.to_string(),
    }
}

/// The directory of the real cargo and rustc, where those on `path` are rustup's, which
/// needs its own settings; `None` where there is no telling.
pub(crate) fn find_toolchain(path: &OsStr) -> Option<PathBuf> {
    let mut rustc = tool_command("rustc");
    rustc.args(["--print", "sysroot"]).env("PATH", path);
    let output = doors::read::output_of(rustc.current_dir("/")).ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let sysroot = PathBuf::from(sysroot.trim_end());
    sysroot.join("bin/cargo").is_file().then_some(sysroot)
}

/// A copy of root's settings that the user of the builds alone may read; not of its credentials.
fn cargo_config(workshop: &started::Workshop, schedulers: &Path) -> Result<Option<PathBuf>, Error> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let text = home.and_then(|h| doors::read::small_file_text(h.join("config.toml")).ok());
    // What cargo could not read either is left out: the build says what is missing.
    let Some(settings) = text.and_then(|text| without_credentials(&text)) else {
        return Ok(None);
    };
    let copy = schedulers.join("cargo-config.toml");
    written::write_file_with_rights(&copy, 0o600, settings)
        .and_then(|()| workshop.give_to_user(&copy))
        .map_err(Error::io("write", &copy))?;
    Ok(Some(copy))
}

/// Settings of cargo without tokens of registries, which publish and which no build needs.
fn without_credentials(text: &str) -> Option<String> {
    let mut settings: toml::Table = text.parse().ok()?;
    let tables = settings
        .iter_mut()
        .filter_map(|(name, value)| match name.as_str() {
            "registry" => Some(vec![value.as_table_mut()?]),
            "registries" => {
                let each = value.as_table_mut()?.iter_mut();
                Some(each.filter_map(|(_, value)| value.as_table_mut()).collect())
            }
            _ => None,
        });
    for table in tables.flatten() {
        table.remove("token");
        table.remove("secret-key");
    }
    toml::to_string(&settings).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_get_mirrors_and_no_tokens() {
        let text = "[registry]\ntoken = \"SECRET\"\ndefault = \"near\"\n\
                    [registries.near]\nindex = \"sparse+https://x\"\ntoken = \"SECRET\"\n\
                    secret-key = \"SECRET\"\n[registries.far]\ntoken = \"SECRET\"\n\
                    [http]\ncainfo = \"/ca\"\n";
        let kept = without_credentials(text).unwrap();
        assert!(!kept.contains("SECRET"), "{kept}");
        for setting in [
            "cainfo = \"/ca\"",
            "default = \"near\"",
            "index = \"sparse+https://x\"",
        ] {
            assert!(kept.contains(setting), "{kept}");
        }
        assert_eq!(without_credentials("[registry"), None);
    }
}
