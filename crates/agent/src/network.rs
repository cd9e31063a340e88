//! A network of its own for the processes of a trial: a network namespace with nothing but the
//! loopback interface. For servers that listen everywhere, or at one port only.
//!
//! A namespace is a thread's own. The thread that starts the processes of a trial enters one,
//! they inherit it, and the thread goes back; the namespace ends with the last of them.

use crate::sys;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// The namespace of the calling thread.
const CURRENT: &str = "/proc/thread-self/ns/net";

/// The calling thread is in a network of its own until this is dropped, in the same thread.
#[derive(Debug)]
pub struct OwnNetwork {
    before: File,
}

impl OwnNetwork {
    /// Enters a new network, whose loopback interface is up.
    pub fn enter() -> Result<Self, String> {
        let said = |e: io::Error| format!("make a network namespace: {e}");
        let before = File::open(CURRENT).map_err(said)?;
        sys::unshare_network().map_err(said)?;
        let own = OwnNetwork { before };
        sys::raise_loopback().map_err(|e| format!("raise the loopback interface: {e}"))?;
        Ok(own)
    }

    /// The reason why this process cannot have one.
    pub fn find_obstacle() -> Option<String> {
        let tried = std::thread::spawn(|| OwnNetwork::enter().map(drop));
        let tried = tried.join();
        tried
            .unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            .err()
    }
}

impl Drop for OwnNetwork {
    fn drop(&mut self) {
        if let Err(error) = sys::enter_network(self.before.as_fd()) {
            // The next trial would be in an empty network; nothing outside of this process is
            // touched.
            tracing::error!("go back to the network of the machine: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_port_that_is_taken_is_free_in_a_network_of_its_own() {
        if let Some(why) = OwnNetwork::find_obstacle() {
            return ::tests::skipped(why);
        }
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let name = || std::fs::read_link(CURRENT).unwrap();
        let before = name();
        let own = OwnNetwork::enter().unwrap();
        assert_ne!(name(), before);
        assert!(TcpStream::connect(address).is_err());
        let listener = TcpListener::bind(address).unwrap();
        assert!(TcpStream::connect(address).is_ok());
        drop((listener, own));
        assert_eq!(name(), before);
        assert!(TcpListener::bind(address).is_err());
    }
}
