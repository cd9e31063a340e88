//! One connection of the server: its socket, and what was sent of the answers.

use super::session::Session;
use super::store::Store;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::net::TcpStream;

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    session: Session,
    /// Bytes of the answers that are on their way.
    sent: usize,
}

/// The event that the connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    Requests,
    /// The client does not take its answers: it must, before it is heard again.
    Room,
    /// Nothing any more.
    Nothing,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        Connection {
            stream,
            session: Session::default(),
            sent: 0,
        }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Takes what has come, and answers what is whole.
    pub fn receive(&mut self, buffer: &mut [u8], store: &Store) -> Waits {
        match recv(&self.stream, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => Waits::Nothing,
            Ok((n, _)) => {
                self.session.take_bytes(&buffer[..n], store);
                self.send()
            }
            Err(Errno::AGAIN | Errno::INTR) => Waits::Requests,
            Err(_) => Waits::Nothing,
        }
    }

    /// Sends what the kernel takes.
    pub fn send(&mut self) -> Waits {
        while self.sent < self.session.pending_answers().len() {
            let rest = &self.session.pending_answers()[self.sent..];
            match send(&self.stream, rest, SendFlags::NOSIGNAL) {
                Ok(n) => self.sent += n,
                Err(Errno::AGAIN) => return Waits::Room,
                Err(Errno::INTR) => {}
                Err(_) => return Waits::Nothing,
            }
        }
        self.session.clear_answers();
        self.sent = 0;
        if self.session.is_over() {
            Waits::Nothing
        } else {
            Waits::Requests
        }
    }
}
