//! One run at a time on one machine.
//!
//! Root's runs exclude each other by flock(2) on what only root can open:
//!
//! - `/run/schedlab/lock`, which also keeps the holder's process id for messages. It
//!   is that of one mount namespace, so of one container.
//! - the root directories of debugfs and tracefs. Knobs, sched_ext and CPU time are
//!   the kernel's, whatever the container, and these two file systems have one
//!   superblock for the whole kernel (`get_tree_single` in fs/debugfs/inode.c and
//!   fs/tracefs/inode.c), so one root directory for all mount, network, PID and cgroup
//!   namespaces. sysfs has a superblock for each network namespace, procfs for each PID
//!   namespace, and in a cgroup namespace the root of cgroupfs is another directory.
//!   A mount that is nowhere attached (fsopen(2), Linux 5.2) needs no mount point and
//!   leaves nothing behind. A kernel that is locked down hides the files of both, but
//!   not the directory (tried on 6.18 in confidentiality mode).
//!
//! Who may not mount, a container's root without privileges, can change nothing that
//! the kernel has once for all, and has the first lock only. Where an administrator has
//! opened the directory to others (`mode=755`), it is no lock: they could hold it.
//!
//! A name in the abstract socket namespace (unix(7)), which anybody can take, is the
//! lock of all other users, among themselves. Root takes it too, where it is free, but
//! goes on without: no user can keep root from running. It is one for each network
//! namespace.

use crate::journal::SIGNS;
use doors::written;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, UCred};
use rustix::process::geteuid;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const NAME: &[u8] = b"schedlab-run";
/// Nobody who only asks has the lock for longer.
const MOMENT: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const OF_THE_KERNEL: [&str; 2] = ["debugfs", "tracefs"];

/// Directory of a lock that stands for that of the machine, for tests of schedlab that share the CPUs and
/// judge no time. A program that is built for use does not look at it.
const LOCK_OF_TESTS: &str = "SCHEDLAB_TEST_LOCK";

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _held: Vec<OwnedFd>,
    /// A process of another user that has a run of its own under way.
    pub beside: Option<i32>,
}

/// Error in taking the lock of the machine.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A run on this machine has the lock.
    #[error(
        "another run is under way on this machine{}",
        .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Held {
        /// Process that holds it, where that is known.
        pid: Option<i32>,
    },
    /// A run in another container of this kernel has the lock.
    #[error("another run is under way on this kernel, in another container")]
    HeldElsewhere,
    /// The operating system refused a step.
    #[error("take the machine lock {what}: {source}")]
    Io {
        /// File or name that the lock is.
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Take the lock, or say who has it.
pub fn acquire() -> Result<Lock, LockError> {
    let of_tests = std::env::var_os(LOCK_OF_TESTS).filter(|_| cfg!(debug_assertions));
    within_a_moment(|| match (&of_tests, geteuid().is_root()) {
        (Some(directory), _) => Ok(Lock {
            _held: vec![lock_file(Path::new(directory))?],
            beside: None,
        }),
        (None, true) => acquire_as_root(Path::new(SIGNS), NAME, true),
        (None, false) => acquire_as_user(NAME),
    })
}

/// Tries again for a moment: who only asks whether a run is under way, as `schedlab check` does, has the
/// lock for as long as that takes.
fn within_a_moment(take: impl Fn() -> Result<Lock, LockError>) -> Result<Lock, LockError> {
    let limit = Instant::now() + MOMENT;
    loop {
        match take() {
            Err(LockError::Held { .. } | LockError::HeldElsewhere) if Instant::now() < limit => {
                std::thread::sleep(LOOK_AGAIN);
            }
            taken => return taken,
        }
    }
}

fn acquire_as_user(name: &[u8]) -> Result<Lock, LockError> {
    match take_name(name)? {
        Ok(socket) => Ok(Lock {
            _held: vec![socket],
            beside: None,
        }),
        Err(holder) => Err(LockError::Held {
            pid: holder.map(pid_of),
        }),
    }
}

fn acquire_as_root(directory: &Path, name: &[u8], kernel: bool) -> Result<Lock, LockError> {
    let mut held = vec![lock_file(directory)?];
    for kind in OF_THE_KERNEL.into_iter().filter(|_| kernel) {
        let Some(root) = private_root_of(kind) else {
            continue;
        };
        if flock(&root, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(LockError::HeldElsewhere);
        }
        held.push(root);
    }
    let beside = match take_name(name)? {
        Ok(socket) => {
            held.push(socket);
            None
        }
        // A run of root's in another mount namespace.
        Err(Some(holder)) if holder.uid.is_root() => {
            return Err(LockError::Held {
                pid: Some(pid_of(holder)),
            });
        }
        Err(holder) => holder.map(pid_of),
    };
    Ok(Lock {
        _held: held,
        beside,
    })
}

fn lock_file(directory: &Path) -> Result<OwnedFd, LockError> {
    let path = directory.join("lock");
    let failed = |source| LockError::Io {
        what: path.display().to_string(),
        source,
    };
    written::make_directory(directory).map_err(failed)?;
    let file = written::open_file(&path, 0o600).map_err(failed)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut text = [0u8; 16];
        let length = file.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let pid = text
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        return Err(LockError::Held { pid });
    }
    let _ = file.write_all_at(format!("{:<10}\n", std::process::id()).as_bytes(), 0);
    Ok(file.into())
}

/// The root directory of a file system of the kernel's, if only root can open it.
fn private_root_of(kind: &str) -> Option<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    rustix::mount::fsconfig_create(&context).ok()?;
    let (flags, attributes) = (FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty());
    let mount = rustix::mount::fsmount(&context, flags, attributes).ok()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(&mount, ".", flags, Mode::empty()).ok()?;
    let found = rustix::fs::fstat(&root).ok()?;
    (found.st_uid == 0 && found.st_mode & 0o077 == 0).then_some(root)
}

/// The name, or who has it.
fn take_name(name: &[u8]) -> Result<Result<OwnedFd, Option<UCred>>, LockError> {
    let failed = |error: rustix::io::Errno| LockError::Io {
        what: format!("@{}", String::from_utf8_lossy(name)),
        source: error.into(),
    };
    let address = SocketAddrUnix::new_abstract_name(name).map_err(failed)?;
    let socket = socket().map_err(failed)?;
    match rustix::net::bind(&socket, &address) {
        Ok(()) => {
            // Listening lets others ask who we are.
            rustix::net::listen(&socket, 8).map_err(failed)?;
            Ok(Ok(socket))
        }
        Err(rustix::io::Errno::ADDRINUSE) => Ok(Err(holder(&address))),
        Err(error) => Err(failed(error)),
    }
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// The credentials of a connection are those of the process that listens.
fn holder(address: &SocketAddrUnix) -> Option<UCred> {
    let socket = socket().ok()?;
    rustix::net::connect(&socket, address).ok()?;
    socket_peercred(&socket).ok()
}

fn pid_of(holder: UCred) -> i32 {
    holder.pid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn name(test: &str) -> Vec<u8> {
        format!("schedlab-test-{test}-{}", std::process::id()).into_bytes()
    }

    fn is_root() -> bool {
        if !geteuid().is_root() {
            ::tests::skipped("the locks of root need root");
        }
        geteuid().is_root()
    }

    #[test]
    fn a_second_run_is_refused_and_told_the_process_of_the_first() {
        let name = name("user");
        let _first = acquire_as_user(&name).unwrap();
        match acquire_as_user(&name) {
            Err(LockError::Held { pid }) => assert_eq!(pid, Some(std::process::id() as i32)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_second_run_of_root_is_refused_where_it_cannot_see_the_name_of_the_first() {
        if !is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let _first = acquire_as_root(directory.path(), &name("a"), false).unwrap();
        match acquire_as_root(directory.path(), &name("b"), false) {
            Err(LockError::Held { pid }) => assert_eq!(pid, Some(std::process::id() as i32)),
            other => panic!("{other:?}"),
        }
        let lock = directory.path().join("lock").metadata().unwrap();
        assert_eq!(lock.mode() & 0o777, 0o600);
    }

    #[test]
    fn a_lock_that_is_held_for_a_moment_is_waited_for() {
        let name = name("moment");
        let held = std::cell::RefCell::new(Some(acquire_as_user(&name).unwrap()));
        let tries = std::cell::Cell::new(0);
        let taken = within_a_moment(|| {
            tries.set(tries.get() + 1);
            if tries.get() == 2 {
                held.take();
            }
            acquire_as_user(&name)
        });
        assert!(taken.is_ok(), "{taken:?}");
        // Another test may fork in this moment: its child has all files until it is a program.
        assert!(tries.get() >= 2);
        let _first = taken;
        let second = within_a_moment(|| acquire_as_user(&name));
        assert!(matches!(second, Err(LockError::Held { .. })), "{second:?}");
    }

    #[test]
    fn the_lock_is_free_again_after_its_holder() {
        let name = name("free");
        drop(acquire_as_user(&name).unwrap());
        assert!(acquire_as_user(&name).is_ok());
    }

    #[test]
    fn a_lock_of_the_kernel_is_one_directory_that_only_root_can_open() {
        if !is_root() {
            return;
        }
        let roots: Vec<OwnedFd> = OF_THE_KERNEL
            .into_iter()
            .filter_map(private_root_of)
            .collect();
        if roots.is_empty() {
            ::tests::skipped("neither debugfs nor tracefs can be mounted here");
        }
        let again = OF_THE_KERNEL.into_iter().filter_map(private_root_of);
        for (root, again) in roots.iter().zip(again) {
            let id = |fd: &OwnedFd| {
                let found = rustix::fs::fstat(fd).unwrap();
                (found.st_dev, found.st_ino)
            };
            assert_eq!(id(root), id(&again));
        }
    }
}
