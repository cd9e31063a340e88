//! Place of builds of somebody's source. Build scripts, make files and procedural macros run during
//! a build: where root builds, they run as a user who is nobody else, in a directory of that user's.
//! Files that a build leaves are seen by later builds of the same source only, and no process of it is left.

use super::{Agreed, named_command};
use crate::read::{LARGE_FILE_BYTES, copy_within, open_file_here};
use crate::written::{self, Beside};
use confine::{Confinement, User, View, holds_a_home};
use model::printable::write_hexadecimal;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmodat, chownat, openat, statat,
};
use rustix::process::{Gid, Uid};
use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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
    /// Below a directory that is ours. Without a user, builds run as this process does. `source` is whose
    /// builds these are: the address of a repository, a path.
    pub fn open(
        agreed: Agreed,
        user: Option<User>,
        below: &Path,
        source: &str,
    ) -> io::Result<Self> {
        let dir = match &user {
            Some(user) => below
                .join(format!("build-{}", user.uid))
                .join(name_for(source)),
            None => below.to_owned(),
        };
        let workshop = Workshop { user, dir, agreed };
        if workshop.user.is_some() {
            written::make_directory(workshop.dir.parent().unwrap_or(below))?;
            // It belongs to the user since the first time.
            if !workshop.dir.is_dir() || workshop.dir.is_symlink() {
                written::make_new_directory(&workshop.dir)?;
            }
            workshop.give_to_user(&workshop.dir)?;
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
    pub fn build_command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = named_command(program, self.agreed);
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

    /// Gives a file or directory, and all below it, to the user of the builds. No link is followed, and
    /// a directory is given after all that is in it: until then nobody can put anything there.
    pub fn give_to_user(&self, path: &Path) -> io::Result<()> {
        match &self.user {
            Some(user) => give_below(&directory_of(path)?, &name_of(path)?, user),
            None => Ok(()),
        }
    }

    /// Takes back what a build was given and what it made there. No link is followed, and a directory is
    /// taken before all that is in it: from then on nobody can put anything there.
    pub fn take_back(&self, path: &Path) -> io::Result<()> {
        match &self.user {
            Some(user) => take_below(&directory_of(path)?, &name_of(path)?, user),
            None => Ok(()),
        }
    }

    /// An error where the user that builds may not read a file of a source, though `shown` is shown.
    pub fn check_readable(&self, file: &Path, shown: &[PathBuf]) -> Result<(), NoWorkshop> {
        let Some(user) = &self.user else {
            return Ok(());
        };
        let readable = self.confinement(shown).and_then(|confinement| {
            match confinement.may_read(&file.canonicalize()?) {
                true => Ok(()),
                false => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!(
                        "it may not read {}; let all read the source: chmod -R a+rX DIRECTORY",
                        file.display()
                    ),
                )),
            }
        });
        readable.map_err(|why| NoWorkshop {
            user: user.name.clone(),
            why,
        })
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
        let mut homes = User::home_directories();
        homes.extend(user.home.clone());
        let mut view = View::default();
        // Some let everybody read them.
        homes.iter().for_each(|home| view.hide_path(home));
        // Builds of other sources run as the same user.
        self.dir
            .parent()
            .into_iter()
            .for_each(|all| view.hide_path(all));
        let programs = std::env::var_os("PATH").unwrap_or_default();
        let programs = std::env::split_paths(&programs)
            .filter(|dir| dir.is_absolute() && !holds_a_home(dir, &homes));
        programs.for_each(|dir| view.show_to(user, dir));
        let all = std::iter::once(&self.dir).chain(shown);
        all.for_each(|path| view.show_to(user, path));
        let mut confinement = Confinement {
            user: Some(user.clone()),
            mounts: !view.steps().is_empty(),
            view,
            own_processes: true,
            ..Confinement::default()
        };
        if confinement.mounts && confinement.try_out().is_err() {
            // In a container; what the user cannot reach, the build will tell.
            confinement.mounts = false;
        }
        confinement.try_out()?;
        Ok(confinement)
    }

    /// Copies a program that a build made to `to`, where only we can change it. It may be run.
    pub fn take_program(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.take_with(from, to, 0o755)
    }

    /// Copies a file that a build made to `to`, where only we can change it and all may read it.
    pub fn take_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.take_with(from, to, 0o644)
    }

    /// A link at the place is not followed, and a file of somebody else's, which a link on the way may
    /// lead to, is not taken.
    fn take_with(&self, from: &Path, to: &Path, mode: u32) -> io::Result<()> {
        let mut file = open_file_here(from)?;
        let owner = self.user.as_ref().map(|user| user.uid);
        if owner.is_some_and(|owner| file.metadata().map_or(true, |it| it.uid() != owner)) {
            let what = format!("{} is not of the user that builds", from.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        written::make_directory(to.parent().unwrap_or(Path::new("/")))?;
        let mut beside = Beside::create_for(to)?;
        copy_within(&mut file, beside.file(), LARGE_FILE_BYTES)?;
        let rights = Permissions::from_mode(mode);
        beside.file().set_permissions(rights)?;
        beside.put_in_place()
    }
}

/// Name of the directory of a source's builds.
fn name_for(source: &str) -> String {
    const SHOWN: usize = 40;
    let digest = Sha256::digest(source.as_bytes());
    let digest = write_hexadecimal(&digest[..16]);
    let last = source.trim_end_matches('/').rsplit('/').next();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let shown: String = last
        .unwrap_or_default()
        .chars()
        .filter(is_plain)
        .take(SHOWN)
        .collect();
    format!("{shown}-{digest}")
}

/// The directory that holds the path, which is ours.
fn directory_of(path: &Path) -> io::Result<OwnedFd> {
    let above = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(
        CWD,
        above.unwrap_or(Path::new(".")),
        how,
        Mode::empty(),
    )?)
}

fn name_of(path: &Path) -> io::Result<CString> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    Ok(CString::new(name.as_bytes())?)
}

/// Each name is looked up in a directory that is open, so that none on the way can be replaced.
fn give_below(directory: &OwnedFd, name: &CStr, user: &User) -> io::Result<()> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    // What is the user's already is so all the way down.
    if found.st_uid == user.uid {
        return Ok(());
    }
    if is_directory(&found) {
        each_in(directory, name, |inside, name| {
            give_below(inside, name, user)
        })?;
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    Ok(chownat(
        directory,
        name,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn take_below(directory: &OwnedFd, name: &CStr, user: &User) -> io::Result<()> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if found.st_uid == user.uid {
        let (uid, gid) = (Some(Uid::ROOT), Some(Gid::ROOT));
        chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        // A build may have let everybody write to it.
        if !FileType::from_raw_mode(found.st_mode).is_symlink() {
            let rights = Mode::from_raw_mode(found.st_mode & 0o755);
            chmodat(directory, name, rights, AtFlags::empty())?;
        }
    }
    match is_directory(&found) {
        true => each_in(directory, name, |inside, name| {
            take_below(inside, name, user)
        }),
        false => Ok(()),
    }
}

fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode).is_dir()
}

/// Does something with each entry of the directory of this name, which is no link.
fn each_in(
    directory: &OwnedFd,
    name: &CStr,
    mut done: impl FnMut(&OwnedFd, &CStr) -> io::Result<()>,
) -> io::Result<()> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inside = openat(directory, name, how, Mode::empty())?;
    for entry in Dir::read_from(&inside)? {
        let entry = entry?;
        let name = entry.file_name();
        if ![c".", c".."].contains(&name) {
            done(&inside, name)?;
        }
    }
    Ok(())
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
    use rustix::fs::mkdirat;
    use std::fs;

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
        let Some(user) = User::for_builds() else {
            return ::tests::skipped("only root has rights to lose");
        };
        let dir = tempfile::tempdir().unwrap();
        let workshop =
            Workshop::open(Agreed::by_command(), Some(user), dir.path(), "tests").unwrap();
        let ours = dir.path().join("ours");
        fs::write(&ours, "").unwrap();
        let mut sh = workshop.build_command("sh");
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
        workshop.take_program(&made, &taken).unwrap();
        assert_eq!(taken.metadata().unwrap().uid(), 0);
        std::os::unix::fs::symlink("/etc/passwd", workshop.dir().join("link")).unwrap();
        assert!(
            workshop
                .take_program(&workshop.dir().join("link"), &taken)
                .is_err()
        );
        // A link on the way leads to files that are not the user's.
        std::os::unix::fs::symlink("/etc", workshop.dir().join("way")).unwrap();
        let through = workshop.dir().join("way/shadow");
        let error = workshop.take_file(&through, &taken).unwrap_err();
        assert!(error.to_string().contains("not of the user"), "{error}");
        workshop.take_file(&made, &taken).unwrap();
        assert_eq!(taken.metadata().unwrap().mode() & 0o777, 0o644);
    }

    #[test]
    fn a_build_sees_nothing_of_its_users_home_but_what_it_is_shown() {
        let Some(user) = User::for_builds() else {
            return ::tests::skipped("only root hides something from others");
        };
        let home = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let source = home.path().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("main.c"), "text\n").unwrap();
        fs::write(home.path().join("key"), "secret\n").unwrap();
        for path in [home.path(), &home.path().join("key")] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        let user = User {
            home: Some(home.path().to_owned()),
            ..user
        };
        let workshop =
            Workshop::open(Agreed::by_command(), Some(user), dir.path(), "tests").unwrap();
        let mut sh = workshop.build_command("sh");
        let script = format!("cat {0}/source/main.c {0}/key", home.path().display());
        sh.args(["-c", &script]).current_dir(workshop.dir());
        sh.stdout(std::process::Stdio::piped());
        sh.stderr(std::process::Stdio::null());
        let child = workshop.spawn(sh, &[source]).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "text\n");
    }

    #[test]
    fn what_a_build_leaves_meets_no_build_of_another_source() {
        let Some(user) = User::for_builds() else {
            return ::tests::skipped("only root has rights to lose");
        };
        let dir = tempfile::tempdir().unwrap();
        let built = |source: &str, script: &str| {
            let (agreed, user) = (Agreed::by_command(), Some(user.clone()));
            let workshop = Workshop::open(agreed, user, dir.path(), source).unwrap();
            let mut sh = workshop.build_command("sh");
            sh.args(["-c", script]).current_dir(workshop.dir());
            sh.stdout(std::process::Stdio::piped());
            let child = workshop.spawn(sh, &[]).unwrap();
            let output = child.wait_with_output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let place = built(
            "https://one.example/scx",
            "mkdir -p $HOME; echo left > $HOME/file; pwd",
        );
        let look = |source: &str| {
            let place = place.trim();
            let look =
                "cat $HOME/file PLACE/home/file; ls -A ..; touch PLACE/new".replace("PLACE", place);
            built(source, &format!("{{ {look}; }} 2> /dev/null"))
        };
        let other = look("https://two.example/scx");
        assert_eq!(other.lines().count(), 1, "its own directory alone: {other}");
        assert!(!other.contains("left"), "{other}");
        assert!(!Path::new(place.trim()).join("new").exists());
        assert!(look("https://one.example/scx").starts_with("left\nleft\n"));
    }

    #[test]
    fn a_source_that_the_builds_may_not_read_is_said_with_the_remedy() {
        let Some(user) = User::for_builds() else {
            return ::tests::skipped("only root has rights to lose");
        };
        let dir = tempfile::tempdir().unwrap();
        let workshop =
            Workshop::open(Agreed::by_command(), Some(user), dir.path(), "tests").unwrap();
        let source = dir.path().join("source");
        fs::create_dir(&source).unwrap();
        let file = source.join("Makefile");
        fs::write(&file, "").unwrap();
        let check = || workshop.check_readable(&file, std::slice::from_ref(&source));
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let error = check().unwrap_err().why.to_string();
        assert!(
            error.contains("Makefile") && error.contains("chmod"),
            "{error}"
        );
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        check().unwrap();
    }

    /// By path, the last of them could not even be named. A tree that is given from the top is the
    /// user's while root still goes through it, who then follows what the user puts there.
    #[test]
    fn a_tree_is_given_and_taken_back_as_a_whole_and_through_no_link() {
        let Some(user) = User::for_builds() else {
            return ::tests::skipped("only root has something to give");
        };
        let dir = tempfile::tempdir().unwrap();
        let uid = user.uid;
        let workshop =
            Workshop::open(Agreed::by_command(), Some(user), dir.path(), "tests").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let ours = dir.path().join("ours");
        fs::create_dir(&ours).unwrap();
        fs::write(ours.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&ours, tree.join("link")).unwrap();
        let name = "d".repeat(200);
        let mut way = vec![directory_of(&tree.join("x")).unwrap()];
        for _ in 0..30 {
            let last = way.last().unwrap();
            mkdirat(last, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
            let how = OFlags::RDONLY | OFlags::DIRECTORY;
            way.push(openat(last, name.as_str(), how, Mode::empty()).unwrap());
        }
        let owners = || {
            let all = way.iter().map(|dir| rustix::fs::fstat(dir).unwrap().st_uid);
            all.collect::<std::collections::BTreeSet<u32>>()
        };
        workshop.give_to_user(&tree).unwrap();
        assert_eq!(owners(), [uid].into());
        let link = tree.join("link").symlink_metadata().unwrap();
        assert_eq!(link.uid(), uid, "the link itself");
        workshop.take_back(&tree).unwrap();
        assert_eq!(owners(), [0].into());
        for path in [ours.join("file"), ours] {
            assert_eq!(path.metadata().unwrap().uid(), 0, "{path:?}");
        }
    }
}
