//! Files that are whole or absent.

#![expect(clippy::disallowed_methods, reason = "this is the door")]

use super::way::{Trust, real_path, real_place};
use crate::read::{self, copy_within};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};
use tempfile::NamedTempFile;

/// Prefix of what is being written. It is left over only by a crash.
pub const PARTIAL: &str = ".partial-";
/// Characters of a place's name in that of the file beside it.
const SHOWN_NAME: usize = 40;
/// Characters that tempfile adds.
const RANDOM: usize = 6;
/// Rights of a new file, less the umask.
const FOR_ALL: u32 = 0o666;
const RIGHTS: u32 = 0o777;

/// Writes a file of which readers see the old content or the new one. It may be lost when the
/// machine loses power: for what can be made again.
pub fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    put(path, bytes.as_ref(), false)
}

/// Writes a file of which readers see the old content or the new one, also after the machine lost
/// power.
pub fn write_file_durably(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    put(path, bytes.as_ref(), true)
}

/// Writes a file, whole or absent, that has these rights from the beginning.
pub fn write_file_with_rights(path: &Path, rights: u32, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut beside = Beside::create_for(path)?;
    beside.file().write_all(bytes.as_ref())?;
    beside
        .file()
        .set_permissions(Permissions::from_mode(rights))?;
    beside.put_in_place()
}

fn put(path: &Path, bytes: &[u8], durably: bool) -> io::Result<()> {
    // `-o /dev/stdout`: there is nothing to replace.
    if let Some(mut device) = opened_device(path)? {
        return device.write_all(bytes);
    }
    let mut beside = Beside::create_for(path)?;
    beside.file().write_all(bytes)?;
    match durably {
        true => beside.put_durably(),
        false => beside.put_in_place(),
    }
}

/// Directories in `/dev` that every user can write to.
const FOR_ALL_IN_DEV: [&str; 2] = ["/dev/shm", "/dev/mqueue"];

/// A device or a pipe that is there, for writing. What it is called is followed as the caller
/// says: only root can put links into `/dev` and `/proc`, but for what is for all in them.
fn opened_device(path: &Path) -> io::Result<Option<File>> {
    let is_for_all = FOR_ALL_IN_DEV.iter().any(|dir| path.starts_with(dir));
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    let is_below = path.starts_with("/dev") || path.starts_with("/proc");
    let is_system = is_below && !is_for_all && !goes_up;
    let is_device = |kind: fs::FileType| kind.is_char_device() || kind.is_fifo();
    match path.metadata() {
        Ok(found) if is_device(found.file_type()) => {}
        _ => return Ok(None),
    }
    let mut options = OpenOptions::new();
    options.write(true);
    if is_system {
        return options.open(path).map(Some);
    }
    // Without links, and of nobody else, or refused.
    let place = real_path(path)?;
    if !Trust::in_caller().has_user(place.symlink_metadata()?.uid()) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(&place).map(Some)
}

/// Check that a file of root is not given to whoever put one at its name in a directory for all.
fn refuse_file_of_another(place: &Path) -> io::Result<()> {
    let Ok(old) = place.symlink_metadata() else {
        return Ok(());
    };
    let is_of_another = old.is_file() && !Trust::in_caller().has_user(old.uid());
    match rustix::process::geteuid().is_root() && is_of_another {
        true => {
            let what = format!(
                "{} belongs to another user ({})",
                place.display(),
                old.uid()
            );
            Err(io::Error::new(ErrorKind::PermissionDenied, what))
        }
        false => Ok(()),
    }
}

/// A file that is written beside its place, and put there when it is whole. It is removed when it
/// is dropped before.
#[derive(Debug)]
pub struct Beside {
    file: NamedTempFile,
    place: PathBuf,
}

impl Beside {
    /// An empty file beside the place of another one. A link at the place leads to what is
    /// replaced, where [`real_place`] lets it.
    pub fn create_for(path: &Path) -> io::Result<Beside> {
        let mut place = real_place(path)?;
        if place.is_symlink() && place.exists() {
            place = real_path(&place)?;
        }
        if place.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        refuse_file_of_another(&place)?;
        let directory = place.parent().unwrap_or(Path::new("/"));
        let file = tempfile::Builder::new()
            .prefix(&prefix_beside(&place))
            .permissions(Permissions::from_mode(FOR_ALL))
            .tempfile_in(directory)?;
        let beside = Beside { file, place };
        beside.keep_rights()?;
        Ok(beside)
    }

    /// The rights and the owner of the file that it will replace.
    fn keep_rights(&self) -> io::Result<()> {
        let Ok(old) = self.place.symlink_metadata() else {
            return Ok(());
        };
        if !old.is_file() {
            return Ok(());
        }
        let new = self.file.as_file().metadata()?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            // Only root can give a file away; for all others it is theirs now.
            let _ = fchown(self.file.as_file(), Some(old.uid()), Some(old.gid()));
        }
        let rights = Permissions::from_mode(old.mode() & RIGHTS);
        self.file.as_file().set_permissions(rights)
    }

    /// The file, for writing.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Name of the file until it is put in its place.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Puts it in its place.
    pub fn put_in_place(self) -> io::Result<()> {
        self.file.persist(&self.place).map_err(|e| e.error)?;
        Ok(())
    }

    /// Puts it in its place, where nothing may be.
    pub fn put_new(self) -> io::Result<()> {
        let put = self.file.persist_noclobber(&self.place);
        put.map(drop).map_err(|e| e.error)
    }

    /// Puts it in its place, and returns when that is on the disk.
    pub fn put_durably(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        let place = self.place.clone();
        self.put_in_place()?;
        sync_parent(&place)
    }
}

/// Beginning of the name of a file that is written beside its place. Names have at most 255 bytes.
fn prefix_beside(place: &Path) -> String {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let shown: String = name.chars().take(SHOWN_NAME).collect();
    format!("{PARTIAL}{shown}-")
}

/// Removes what a process left beside a place that was killed while it wrote there ([`Beside`]).
pub fn remove_partials_of(place: &Path) -> io::Result<()> {
    let place = match real_place(place) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        place => place?,
    };
    let prefix = prefix_beside(&place);
    for entry in fs::read_dir(place.parent().unwrap_or(Path::new("/")))? {
        let entry = entry?;
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let random = found.strip_prefix(&prefix);
        if random.is_some_and(|random| random.len() == RANDOM && !random.contains('-')) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A rename is on disk only when its directory is.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Moves what schedlab made to its place, and returns when that is on the disk.
pub fn move_durably(from: &Path, to: &Path) -> io::Result<()> {
    let to = real_place(to)?;
    fs::rename(real_place(from)?, &to)?;
    sync_parent(&to)
}

/// Copies a file with its rights, whole or not at all.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = read::open_file(from)?;
    let mut beside = Beside::create_for(to)?;
    copy_within(&mut source, beside.file(), u64::MAX)?;
    beside
        .file()
        .set_permissions(source.metadata()?.permissions())?;
    beside.put_in_place()
}

/// A new file in the place of whatever has its name: a link there is removed, never followed. For
/// what grows for a while, such as the log of a build.
pub fn create_file(path: &Path) -> io::Result<File> {
    let place = real_place(path)?;
    match fs::remove_file(&place) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => File::create_new(place),
    }
}

/// A file that was not there.
pub fn create_new_file(path: &Path) -> io::Result<File> {
    File::create_new(real_place(path)?)
}

/// A file for reading and writing, which is made where it is missing and opened through no link. Others may
/// neither read nor write it with mode 0600.
pub fn open_file(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(mode)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(real_place(path)?)
}

/// A file for appending, which is made where it is missing: the log of several programs.
pub fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(real_place(path)?)
}

/// Writes a file of the kernel (`/proc`, `/sys`, cgroups), which is never made.
pub fn write_kernel_file(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // Stand-ins of such files, in tests, are as long as what was written last.
    let mut file = options.write(true).truncate(true).open(path)?;
    file.write_all(text.as_ref())
}

/// Makes a cgroup, which is a directory of the kernel's.
pub fn make_cgroup(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Removes a cgroup. The kernel refuses one that holds something.
pub fn remove_cgroup(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

/// Replaces a link, or makes it: readers see the old one or the new one.
pub fn write_link(target: &Path, link: &Path) -> io::Result<()> {
    let place = real_place(link)?;
    let directory = place.parent().unwrap_or(Path::new("/"));
    let make = |path: &Path| std::os::unix::fs::symlink(target, path);
    let made = tempfile::Builder::new()
        .prefix(PARTIAL)
        .make_in(directory, make)?;
    let made = made.into_temp_path();
    made.persist(place).map_err(|e| e.error)
}

/// Removes a file or a link that schedlab made, as a record or a value says, not its name alone.
/// `false` where it is gone already.
pub fn remove_file(path: &Path) -> io::Result<bool> {
    let place = match real_place(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        place => place?,
    };
    match fs::remove_file(place) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Removes a directory with all that is in it, of which a record says that schedlab made it: the
/// journal, or a description in it. Links are removed and not followed. What is gone is fine.
pub fn remove_recorded(dir: &Path) -> io::Result<()> {
    let removed = real_place(dir).and_then(fs::remove_dir_all);
    match removed {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Removes a directory that schedlab made, if nothing is left in it.
pub fn remove_empty_directory(dir: &Path) -> io::Result<()> {
    fs::remove_dir(real_place(dir)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_has_its_rights_from_the_beginning_whatever_had_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        for rights in [0o644, 0o755] {
            write_file_with_rights(&path, rights, "text").unwrap();
            assert_eq!(path.metadata().unwrap().mode() & RIGHTS, rights);
            assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_whole_leaves_the_old_one_and_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.txt");
        fs::write(&path, "old").unwrap();
        let mut beside = Beside::create_for(&path).unwrap();
        beside.file().write_all(b"half").unwrap();
        drop(beside);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(dir.path()), ["report.txt"]);
        write_file_durably(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_replaced_file_keeps_its_rights() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        write_file(&path, "new").unwrap();
        assert_eq!(path.metadata().unwrap().mode() & RIGHTS, 0o600);
    }

    #[test]
    fn a_link_of_our_own_stays_and_what_it_leads_to_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        write_file(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_link_of_somebody_else_is_neither_followed_nor_replaced() {
        if !rustix::process::geteuid().is_root() {
            ::tests::skipped("to give files to another user takes root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let victim = elsewhere.path().join("victim");
        fs::write(&victim, "keep").unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
        let link = dir.path().join("report.txt");
        symlink(&victim, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(12_345), None).unwrap();
        assert!(write_file(&link, "new").is_err());
        assert!(open_file(&link, 0o600).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "keep");
    }

    /// Its owner could read it, and change it before it is signed.
    #[test]
    fn root_gives_no_file_to_whoever_put_one_at_its_name() {
        if !rustix::process::geteuid().is_root() {
            return ::tests::skipped("to give files to another user takes root");
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
        let file = dir.path().join("night.tar.gz");
        fs::write(&file, "bait").unwrap();
        std::os::unix::fs::chown(&file, Some(12_345), None).unwrap();
        let error = write_file(&file, "new").unwrap_err().to_string();
        assert!(error.contains("belongs to another user (12345)"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "bait");
    }

    /// `/dev/shm` is for all, so what is in it is not taken for a device of the system.
    #[test]
    fn a_pipe_of_somebody_else_in_dev_shm_is_not_written_to() {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/shm").is_dir() {
            return ::tests::skipped("to give files to another user takes root, and /dev/shm");
        }
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let pipe = dir.path().join("report.html");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, 0o666.into(), 0).unwrap();
        std::os::unix::fs::chown(&pipe, Some(12_345), None).unwrap();
        let error = write_file(&pipe, "new").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_device_is_written_to_and_stays_one() {
        write_file(Path::new("/dev/null"), "x").unwrap();
        let kind = Path::new("/dev/null").metadata().unwrap().file_type();
        assert!(kind.is_char_device());
    }

    #[test]
    fn a_file_of_the_kernel_is_never_made() {
        let dir = tempfile::tempdir().unwrap();
        let missing = write_kernel_file(&dir.path().join("knob"), "1").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert_eq!(names(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn only_what_was_being_written_to_a_place_is_removed_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a.service");
        let left = Beside::create_for(&place).unwrap().path().to_owned();
        fs::write(&left, "half").unwrap();
        let others = [
            ".partial-a.service-b-XXXXXX",
            ".partial-a.timer-XXXXXX",
            "a.service",
        ];
        for other in others {
            fs::write(dir.path().join(other), "").unwrap();
        }
        remove_partials_of(&place).unwrap();
        assert!(!left.exists());
        assert!(others.iter().all(|other| dir.path().join(other).exists()));
        remove_partials_of(&dir.path().join("none/b.service")).unwrap();
    }

    #[test]
    fn a_link_is_replaced_by_another_one_in_one_step() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("latest");
        for run in ["one", "two"] {
            write_link(Path::new(run), &link).unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(run));
        }
        assert_eq!(names(dir.path()), ["latest"]);
    }
}
