//! Place of root's builds. Build scripts and procedural macros of all dependencies run during a
//! build, so cargo runs as another user, in a directory of that user's, and root takes nothing
//! out of it but the program.

use crate::error::Error;
use confine::{Confinement, User, View};
use doors::written::{self, Beside};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The directory of one user's builds, and how programs are started there.
#[derive(Debug)]
pub(crate) struct Workshop {
    user: User,
    dir: PathBuf,
    /// Root's settings of cargo: mirrors, proxies.
    config: Option<PathBuf>,
}

impl Workshop {
    /// Below `schedulers`, which is root's.
    pub fn open(user: &User, schedulers: &Path) -> Result<Self, Error> {
        let dir = schedulers.join(format!("build-{}", user.uid));
        written::make_directory(schedulers).map_err(Error::io("create", schedulers))?;
        // It belongs to the user since the first time.
        if !dir.is_dir() || dir.is_symlink() {
            written::make_new_directory(&dir).map_err(Error::io("create", &dir))?;
        }
        lchown(&dir, Some(user.uid), Some(user.gid)).map_err(Error::io("give away", &dir))?;
        Ok(Workshop {
            user: user.clone(),
            config: cargo_config(schedulers)?,
            dir,
        })
    }

    pub fn build_dir(&self) -> PathBuf {
        self.dir.join("target")
    }

    /// The directory that `cargo install` is told to install into.
    pub fn root(&self, name: &str) -> PathBuf {
        self.dir.join("installed").join(name)
    }

    /// Settings of the user's own, and nothing of root's environment that a build does
    /// not need.
    pub fn set_up(&self, command: &mut Command, path: &OsStr) {
        let home = self.dir.join("home");
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| is_for_builds(name)));
        command
            .env("PATH", path)
            .env("CARGO_HOME", home.join(".cargo"))
            .env("HOME", home);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
    }

    /// Start a program that reads `shown`, wherever that lies.
    pub fn start(&self, command: Command, shown: &[PathBuf]) -> Result<Child, Error> {
        let mut view = View::default();
        let own = [Some(&self.dir), self.config.as_ref()]
            .into_iter()
            .flatten();
        for path in own.chain(shown) {
            view.show_to(&self.user, path);
        }
        let mut confinement = Confinement {
            user: Some(self.user.clone()),
            mounts: !view.steps().is_empty(),
            view,
            ..Confinement::default()
        };
        if confinement.mounts && confinement.try_out().is_err() {
            // In a container; what the user cannot reach, cargo will tell.
            confinement.mounts = false;
        }
        confinement.try_out().map_err(|e| self.barred(&e))?;
        confinement.spawn(command).map_err(|e| self.barred(&e))
    }

    fn barred(&self, error: &io::Error) -> Error {
        Error::NoOtherUser {
            user: self.user.name.clone(),
            why: error.to_string(),
        }
    }

    /// Copy the program that came out to `into/bin`, where only root can change it.
    pub fn take(&self, name: &str, into: &Path) -> Result<(), Error> {
        let from = self.root(name).join("bin").join(name);
        let found = Error::io("find the program that was built", &from);
        let no_link = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let program = rustix::fs::open(&from, no_link, Mode::empty());
        let mut program = match program {
            Ok(file) => File::from(file),
            Err(e) => return Err(found(e.into())),
        };
        let about = program.metadata().map_err(Error::io("look at", &from))?;
        if !about.is_file() || about.uid() != self.user.uid {
            return Err(found(io::ErrorKind::InvalidData.into()));
        }
        let dir = into.join("bin");
        written::make_directory(&dir).map_err(Error::io("create", &dir))?;
        let to = dir.join(name);
        let copied = Beside::of(&to).and_then(|mut beside| {
            doors::read::copy_within(&mut program, beside.file(), doors::read::LARGE_FILE_BYTES)?;
            let rights = Permissions::from_mode(0o755);
            beside.file().set_permissions(rights)?;
            beside.put()
        });
        copied.map_err(Error::io("write", &to))
    }
}

/// The directory of the real cargo and rustc, where those on `path` are rustup's, which
/// needs its own settings; `None` where there is no telling.
pub(crate) fn toolchain(path: &OsStr) -> Option<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .env("PATH", path)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .ok()?;
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
    written::write_file(&copy, text)
        .and_then(|()| fs::set_permissions(&copy, Permissions::from_mode(0o644)))
        .map_err(Error::io("write", &copy))?;
    Ok(Some(copy))
}

fn is_for_builds(name: &OsString) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let begins = [
        "LC_",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_SOURCE_",
        "SSL_CERT_",
    ];
    name == "LANG"
        || name.to_ascii_lowercase().ends_with("_proxy")
        || begins.iter().any(|b| name.starts_with(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_get_proxies_and_no_secrets() {
        let kept = |name: &str| is_for_builds(&OsString::from(name));
        assert!(kept("https_proxy") && kept("NO_PROXY") && kept("CARGO_HTTP_CAINFO"));
        for name in [
            "CARGO_REGISTRY_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "RUSTFLAGS",
            "HOME",
        ] {
            assert!(!kept(name), "{name}");
        }
    }
}
