//! One connection of the server: bytes in, answers out, in order.

use super::store::Store;
use super::{Step, answer};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::net::TcpStream;

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// The beginning of a request that is not whole.
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of `output` that are on their way.
    sent: usize,
    /// The last answer is in `output`.
    closing: bool,
}

/// What the connection waits for.
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
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            closing: false,
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
                self.take(&buffer[..n], store);
                self.send()
            }
            Err(Errno::AGAIN | Errno::INTR) => Waits::Requests,
            Err(_) => Waits::Nothing,
        }
    }

    fn take(&mut self, bytes: &[u8], store: &Store) {
        if self.input.is_empty() {
            let used = self.answer_all(bytes, store);
            self.input.extend_from_slice(&bytes[used..]);
            return;
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let used = self.answer_all(&input, store);
        input.drain(..used);
        self.input = input;
    }

    /// Bytes of the requests that were answered.
    fn answer_all(&mut self, input: &[u8], store: &Store) -> usize {
        let mut used = 0;
        loop {
            match answer(&input[used..], store, &mut self.output) {
                Step::More => return used,
                Step::Answered(n) => used += n,
                Step::Last => {
                    self.closing = true;
                    return input.len();
                }
            }
        }
    }

    /// Sends what the kernel takes.
    pub fn send(&mut self) -> Waits {
        while self.sent < self.output.len() {
            match send(&self.stream, &self.output[self.sent..], SendFlags::NOSIGNAL) {
                Ok(n) => self.sent += n,
                Err(Errno::AGAIN) => return Waits::Room,
                Err(Errno::INTR) => {}
                Err(_) => return Waits::Nothing,
            }
        }
        self.output.clear();
        self.sent = 0;
        if self.closing {
            Waits::Nothing
        } else {
            Waits::Requests
        }
    }
}
