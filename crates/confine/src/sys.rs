//! The system calls that have no safe form: what runs between fork and exec, and
//! mount_setattr(2), landlock_add_rule(2) and landlock_restrict_self(2).

use rustix::thread::UnshareFlags;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `prepare` runs in the child. It must allocate nothing: another thread may have held
/// the allocator's lock when the process was forked.
pub fn before_exec(
    command: &mut Command,
    prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the only caller, `Confinement::apply`, gives a closure that makes system
    // calls with what was prepared before the fork, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Gives this process, which has no other thread, a mount namespace of its own.
pub fn own_mount_namespace() -> io::Result<()> {
    // SAFETY: the descriptors of the process stay shared with nobody and open, which is
    // what unsharing them could break.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?)
}

/// Goes on in a child that is the first process of its own namespace (pid_namespaces(7)). This process
/// stays, with no file open, until the child has ended, and ends like it: it is whom its parent knows.
pub fn become_first_process() -> io::Result<()> {
    let flags = libc::c_long::from(libc::CLONE_NEWPID | libc::SIGCHLD);
    // SAFETY: without a stack the call is fork(2). Nothing is allocated on either side.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match libc::pid_t::try_from(child).unwrap_or(-1) {
        0 => Ok(()),
        child if child > 0 => end_like(child),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Usual limit of the open files of a process.
const MOST_FILES: libc::c_int = 1024;

/// Waits for the end of a child, and ends with its code or by its signal.
fn end_like(child: libc::pid_t) -> ! {
    let mut status = 0;
    // SAFETY: no file of this process is used again; the status lives until the call returns; the last
    // calls end the process.
    unsafe {
        // Whoever reads what the child writes waits until nobody has the other end.
        if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) < 0 {
            // Linux before 5.9.
            for file in 0..MOST_FILES {
                libc::close(file);
            }
        }
        while libc::waitpid(child, &raw mut status, 0) < 0
            && *libc::__errno_location() == libc::EINTR
        {}
        if libc::WIFSIGNALED(status) {
            libc::signal(libc::WTERMSIG(status), libc::SIG_DFL);
            libc::kill(libc::getpid(), libc::WTERMSIG(status));
        }
        libc::_exit(libc::WEXITSTATUS(status))
    }
}

/// Make the mount at `/` and all below it read-only in this mount namespace.
pub fn make_all_read_only() -> io::Result<()> {
    const MOUNT_ATTR_RDONLY: u64 = 1;
    // `struct mount_attr`: what is set, what is cleared, propagation, user namespace.
    let attributes: [u64; 4] = [MOUNT_ATTR_RDONLY, 0, 0, 0];
    // SAFETY: path and attributes live until the call returns, and their sizes are told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            libc::AT_RECURSIVE,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    done(result)
}

/// Adds the right to read, write and control a device to the rules of Landlock.
pub fn allow_device(ruleset: impl AsFd, device: impl AsFd) -> io::Result<()> {
    const PATH_BENEATH: libc::c_int = 1;
    const WRITE_AND_READ: u64 = 1 << 1 | 1 << 2;
    const CONTROL: u64 = 1 << 15;
    let add = |rights: u64| {
        // `struct landlock_path_beneath_attr`, which is packed: 64 bits of rights, a descriptor.
        let mut rule = [0_u8; 12];
        rule[..8].copy_from_slice(&rights.to_ne_bytes());
        rule[8..].copy_from_slice(&device.as_fd().as_raw_fd().to_ne_bytes());
        // SAFETY: both descriptors are open, and the rule lives until the call returns.
        let result = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                ruleset.as_fd().as_raw_fd(),
                PATH_BENEATH,
                rule.as_ptr(),
                0,
            )
        };
        done(result)
    };
    // A kernel before 6.10 knows no right to control, and so keeps nobody from it.
    add(WRITE_AND_READ | CONTROL).or_else(|_| add(WRITE_AND_READ))
}

/// Restrict this thread, which is the only one of its process, for ever.
pub fn restrict_self(ruleset: impl AsFd) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the call takes no pointer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_restrict_self,
            ruleset.as_fd().as_raw_fd(),
            0,
        )
    };
    done(result)
}

fn done(result: libc::c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
