//! One run at a time on one machine.
//!
//! A name in the abstract socket namespace (unix(7)): taken by whoever binds it,
//! free again the moment its owner is gone, however it went.

use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;

const NAME: &[u8] = b"schedlab-run";

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _socket: OwnedFd,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another run is under way on this machine{}; wait for it or end it",
        .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Held { pid: Option<i32> },
    #[error("take the machine lock: {0}")]
    Io(#[from] io::Error),
}

/// Take the lock, or say who has it.
pub fn acquire() -> Result<Lock, LockError> {
    acquire_as(NAME)
}

fn acquire_as(name: &[u8]) -> Result<Lock, LockError> {
    let address = SocketAddrUnix::new_abstract_name(name).map_err(io::Error::from)?;
    let socket = socket()?;
    match rustix::net::bind(&socket, &address) {
        Ok(()) => {
            // Listening lets others ask who we are.
            rustix::net::listen(&socket, 8).map_err(io::Error::from)?;
            Ok(Lock { _socket: socket })
        }
        Err(rustix::io::Errno::ADDRINUSE) => Err(LockError::Held {
            pid: holder(&address),
        }),
        Err(error) => Err(LockError::Io(error.into())),
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// The credentials of a connection are those of the process that listens.
fn holder(address: &SocketAddrUnix) -> Option<i32> {
    let socket = socket().ok()?;
    rustix::net::connect(&socket, address).ok()?;
    let peer = socket_peercred(&socket).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_refused_and_told_the_process_of_the_first() {
        let name = format!("schedlab-test-{}", std::process::id());
        let _first = acquire_as(name.as_bytes()).unwrap();
        match acquire_as(name.as_bytes()) {
            Err(LockError::Held { pid }) => assert_eq!(pid, Some(std::process::id() as i32)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_lock_is_free_again_after_its_holder() {
        let name = format!("schedlab-test-free-{}", std::process::id());
        drop(acquire_as(name.as_bytes()).unwrap());
        assert!(acquire_as(name.as_bytes()).is_ok());
    }
}
