//! Place of builds of somebody's source. Build scripts, make files and procedural macros run during
//! a build: where root builds, they run as another user, in a directory of that user's.

use super::{Agreed, named};
use crate::read::{LARGE_FILE_BYTES, copy_within};
use crate::written::{self, Beside};
use confine::{Confinement, User, View};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Directory of one user's builds, and how programs are started there.
#[derive(Debug, Clone)]
pub struct Workshop {
    /// `None`: builds run as this process, which is not root.
    user: Option<User>,
    dir: PathBuf,
    agreed: Agreed,
}

/// Build that cannot run as another user here.
#[derive(Debug, thiserror::Error)]
#[error("the build cannot run as the user {user}: {why}")]
pub struct NoWorkshop {
    /// Name of the user.
    pub user: String,
    /// The step that failed.
    #[source]
    pub why: io::Error,
}

impl Workshop {
    /// Below a directory that is ours. Without a user, builds run as this process does.
    pub fn open(agreed: Agreed, user: Option<User>, below: &Path) -> io::Result<Self> {
        let dir = match &user {
            Some(user) => below.join(format!("build-{}", user.uid)),
            None => below.to_owned(),
        };
        let workshop = Workshop { user, dir, agreed };
        if workshop.user.is_some() {
            written::make_directory(below)?;
            // It belongs to the user since the first time.
            if !workshop.dir.is_dir() || workshop.dir.is_symlink() {
                written::make_new_directory(&workshop.dir)?;
            }
            workshop.give(&workshop.dir)?;
        }
        Ok(workshop)
    }

    /// Directory of the builds.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The user that builds run as, where it is another one.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Command of a build. As another user it has a home of its own, and nothing of root's
    /// environment that a build does not need.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = named(program, self.agreed);
        if self.user.is_some() {
            command.env_clear();
            command.envs(std::env::vars_os().filter(|(name, _)| is_for_builds(name)));
            command.env("HOME", self.home());
        }
        command
    }

    /// Home of the user in builds.
    pub fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Gives a file or directory, and all below it, to the user of the builds. No link is followed.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        let Some(user) = &self.user else {
            return Ok(());
        };
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            let found = path.symlink_metadata()?;
            if found.uid() != user.uid {
                lchown(&path, Some(user.uid), Some(user.gid))?;
            }
            // What is the user's already is so all the way down.
            if found.is_dir() && found.uid() != user.uid {
                let entries = fs::read_dir(&path)?;
                for entry in entries {
                    waiting.push(entry?.path());
                }
            }
        }
        Ok(())
    }

    /// Takes back what a build was given and what it made there. No link is followed.
    pub fn take_back(&self, path: &Path) -> io::Result<()> {
        let Some(user) = &self.user else {
            return Ok(());
        };
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            let found = path.symlink_metadata()?;
            if found.uid() == user.uid {
                lchown(&path, Some(0), Some(0))?;
            }
            if found.is_dir() {
                for entry in fs::read_dir(&path)? {
                    waiting.push(entry?.path());
                }
            }
        }
        Ok(())
    }

    /// Starts a command that sees `shown`, wherever that lies.
    pub fn spawn(&self, command: Command, shown: &[PathBuf]) -> Result<Child, NoWorkshop> {
        let user = self.user.as_ref().map_or("oneself", |user| &user.name);
        self.confinement(shown)
            .and_then(|confinement| confinement.spawn(command))
            .map_err(|why| NoWorkshop {
                user: user.to_owned(),
                why,
            })
    }

    fn confinement(&self, shown: &[PathBuf]) -> io::Result<Confinement> {
        let Some(user) = &self.user else {
            return Ok(Confinement::default());
        };
        let mut view = View::default();
        let all = std::iter::once(&self.dir).chain(shown);
        all.for_each(|path| view.show_to(user, path));
        let mut confinement = Confinement {
            user: Some(user.clone()),
            mounts: !view.steps().is_empty(),
            view,
            ..Confinement::default()
        };
        if confinement.mounts && confinement.try_out().is_err() {
            // In a container; what the user cannot reach, the build will tell.
            confinement.mounts = false;
        }
        confinement.try_out()?;
        Ok(confinement)
    }

    /// Copies a file that a build made to `to`, where only we can change it. The copy may be run.
    pub fn take(&self, from: &Path, to: &Path) -> io::Result<()> {
        let no_link = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut file = File::from(rustix::fs::open(from, no_link, Mode::empty())?);
        let about = file.metadata()?;
        let owner = self.user.as_ref().map(|user| user.uid);
        if !about.is_file() || owner.is_some_and(|owner| owner != about.uid()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        written::make_directory(to.parent().unwrap_or(Path::new("/")))?;
        let mut beside = Beside::of(to)?;
        copy_within(&mut file, beside.file(), LARGE_FILE_BYTES)?;
        let rights = Permissions::from_mode(0o755);
        beside.file().set_permissions(rights)?;
        beside.put()
    }
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
    ["LANG", "PATH"].contains(&name)
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

    #[test]
    fn a_build_of_root_runs_as_somebody_else_and_writes_only_its_own() {
        let Some(user) = User::in_place_of_root() else {
            return ::tests::skipped("only root has rights to lose");
        };
        let dir = tempfile::tempdir().unwrap();
        let workshop = Workshop::open(Agreed::by_command(), Some(user), dir.path()).unwrap();
        let ours = dir.path().join("ours");
        fs::write(&ours, "").unwrap();
        let mut sh = workshop.command("sh");
        let script = format!(
            "id -u; : > made; : 2> /dev/null > {}",
            ours.with_extension("x").display()
        );
        sh.args(["-c", &script]).current_dir(workshop.dir());
        sh.stdout(std::process::Stdio::piped());
        let child = workshop.spawn(sh, &[]).unwrap();
        let output = child.wait_with_output().unwrap();
        let id = String::from_utf8(output.stdout).unwrap();
        assert_ne!(id.trim(), "0");
        assert!(!ours.with_extension("x").exists());
        let (made, taken) = (workshop.dir().join("made"), dir.path().join("bin/taken"));
        workshop.take(&made, &taken).unwrap();
        assert_eq!(taken.metadata().unwrap().uid(), 0);
        std::os::unix::fs::symlink("/etc/passwd", workshop.dir().join("link")).unwrap();
        assert!(workshop.take(&workshop.dir().join("link"), &taken).is_err());
    }
}
