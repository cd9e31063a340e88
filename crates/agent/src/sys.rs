//! Steps of a child between fork and exec, and the network of a thread. This is the only unsafe
//! code here.
//!
//! Between fork and exec only async-signal-safe things are allowed: system calls
//! on what was made ready before, no allocation, no locks.

use rustix::process::{
    Signal, WaitId, WaitIdOptions, getpid, getppid, set_parent_process_death_signal, setsid, waitid,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The answer that lets a gated child run its program.
pub const GO: u8 = b'g';

/// The child leads a session of its own (Ctrl-C does not reach it), and is killed
/// when the thread that starts it ends.
pub fn own_session(command: &mut Command) {
    let parent = getpid();
    // SAFETY: the closure makes system calls only.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                // The parent ended before the line above.
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            setsid()?;
            Ok(())
        });
    }
}

/// The child leads a session of its own and outlives its parent.
pub fn own_session_for_good(command: &mut Command) {
    // SAFETY: the closure makes one system call only.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
}

/// The child tells its process id on `tell`, and runs its program only after
/// [`GO`] on `gate`.
pub fn wait_at_gate(command: &mut Command, tell: OwnedFd, gate: OwnedFd) {
    // SAFETY: the closure makes system calls only.
    unsafe {
        command.pre_exec(move || {
            let pid = getpid().as_raw_nonzero().get();
            rustix::io::write(&tell, &pid.to_ne_bytes())?;
            let mut answer = [0u8];
            rustix::io::retry_on_intr(|| rustix::io::read(&gate, &mut answer))?;
            if answer[0] == GO {
                Ok(())
            } else {
                Err(io::ErrorKind::ConnectionAborted.into())
            }
        });
    }
}

/// The child, which waits at its gate, is to stop as it begins its program. [`at_exec`] is called by
/// the same thread, which traces it from here on (ptrace(2)).
pub fn stop_at_exec(pid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACEEXEC;
    // SAFETY: this request reads and writes no memory of this process.
    let done = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, options) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Calls `look` while the child that [`stop_at_exec`] is for stands at the start of its program, and
/// lets it go on. A child that ends before is left to be reaped, and one that a signal stops gets it
/// without the look.
pub fn at_exec(pid: i32, look: &mut dyn FnMut(i32)) {
    const AT_EXEC: i32 = libc::SIGTRAP | (libc::PTRACE_EVENT_EXEC << 8);
    let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    let Some(child) = rustix::process::Pid::from_raw(pid) else {
        return;
    };
    let event = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(child), options));
    let Some(stop) = event
        .ok()
        .flatten()
        .and_then(|event| event.trapping_signal())
    else {
        return;
    };
    let signal = match stop {
        AT_EXEC => {
            look(pid);
            0
        }
        signal => signal & 0x7f,
    };
    // SAFETY: this request reads and writes no memory of this process.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0, signal) };
}

/// The calling thread gets a network namespace of its own.
pub fn unshare_network() -> io::Result<()> {
    // SAFETY: files and memory stay shared; sockets that are open keep their namespace.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    Ok(())
}

/// The calling thread goes to the network namespace of this file.
pub fn enter_network(namespace: BorrowedFd) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(rustix::thread::move_into_link_name_space(namespace, kind)?)
}

/// Sets the loopback interface of the calling thread's network up.
pub fn raise_loopback() -> io::Result<()> {
    const UP: libc::c_short = 1;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: a C structure of numbers, for which zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the kernel reads the structure that the request is for, whose name ends in a zero.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What this process was given for standard output and standard error, which become /dev/null:
/// nothing that is said by mistake gets there.
#[expect(
    clippy::disallowed_methods,
    reason = "the streams are handed on, and nothing is printed"
)]
pub fn take_output() -> io::Result<[OwnedFd; 2]> {
    let taken = [
        io::stdout().as_fd().try_clone_to_owned()?,
        io::stderr().as_fd().try_clone_to_owned()?,
    ];
    let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    for output in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: both numbers are open files of this process, and stay so.
        if unsafe { libc::dup2(nowhere.as_raw_fd(), output) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(taken)
}
