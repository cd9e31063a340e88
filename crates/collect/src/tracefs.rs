//! tracefs, for the numbers of tracepoints (Documentation/trace/events.rst) and for ring
//! buffers. Where it is not mounted it is opened detached: no mount point, nothing to take away
//! again.

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io::{self};
use std::os::fd::OwnedFd;
use std::path::Path;

const PLACES: &[&str] = &["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// The number of a tracepoint (`sched/sched_migrate_task`) for perf_event_open(2).
pub fn event_id(root: &Path, event: &str) -> io::Result<u64> {
    let file = format!("events/{event}/id");
    for place in PLACES {
        let path = root.join(place).join(&file);
        if path.exists() {
            return parse(&doors::read::kernel_text(path)?);
        }
    }
    let opened = openat(detached()?, &file, OFlags::RDONLY, Mode::empty())?;
    parse(&doors::read::stream_text(
        File::from(opened),
        doors::read::KERNEL_BYTES,
    )?)
}

/// The tracepoints of a subsystem (`sched`), sorted.
pub fn list_events(root: &Path, subsystem: &str) -> io::Result<Vec<String>> {
    let folder = format!("events/{subsystem}");
    for place in PLACES {
        let path = root.join(place).join(&folder);
        if path.exists() {
            let entries = std::fs::read_dir(&path)?.flatten();
            let folders = entries.filter(|entry| entry.path().is_dir());
            let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
            return Ok(sorted(names));
        }
    }
    let opened = openat(
        detached()?,
        &folder,
        OFlags::RDONLY | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    let entries = Dir::read_from(opened)?.flatten();
    let folders = entries.filter(|entry| entry.file_type() == FileType::Directory);
    let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(sorted(names.filter(|name| !name.starts_with('.'))))
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn parse(text: &str) -> io::Result<u64> {
    text.trim()
        .parse()
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The directory of tracefs.
pub fn open(root: &Path) -> io::Result<OwnedFd> {
    let here = PLACES.iter().map(|place| root.join(place));
    let mounted = here
        .into_iter()
        .find(|path| path.join("instances").exists());
    match mounted {
        Some(path) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(rustix::fs::open(path, flags, Mode::empty())?)
        }
        // A tree of files is all that there is of its machine.
        None if root != Path::new("/") => Err(io::ErrorKind::NotFound.into()),
        None => detached(),
    }
}

/// Needs CAP_SYS_ADMIN and Linux 5.2.
fn detached() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    Ok(mount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    #[test]
    fn a_mounted_tracefs_is_read() {
        let root = tree(&[("sys/kernel/tracing/events/sched/sched_switch/id", "314\n")]);
        assert_eq!(event_id(root.path(), "sched/sched_switch").unwrap(), 314);
    }

    #[test]
    fn a_tracepoint_that_is_not_there_is_an_error() {
        let root = tree(&[("sys/kernel/tracing/events/sched/sched_switch/id", "x\n")]);
        assert!(event_id(root.path(), "sched/sched_switch").is_err());
        assert!(event_id(Path::new("/"), "sched/there_is_none").is_err());
    }

    #[test]
    fn tracepoints_are_listed_by_subsystem() {
        match list_events(Path::new("/"), "sched") {
            Ok(names) => assert!(names.iter().any(|n| n == "sched_switch"), "{names:?}"),
            Err(error) => ::tests::skipped(format!("no tracefs: {error}")),
        }
    }
}
