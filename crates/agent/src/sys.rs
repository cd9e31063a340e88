//! Steps of a child between fork and exec. This is the only unsafe code here.
//!
//! Between the two calls only async-signal-safe things are allowed: system calls
//! on what was made ready before, no allocation, no locks.

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal, setsid};
use std::io;
use std::os::fd::OwnedFd;
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
