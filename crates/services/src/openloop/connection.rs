//! One connection: at most one request at a time, sent and received without waiting.

use super::inbox::{self, Inbox};
use super::poller::Poller;
use super::protocol::{Answer, Done, Fault, Protocol, Taken, Wrong};
use super::tally::Times;
use load::sys::now_ns;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, connect, send, socket_with, sockopt,
};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

const ANSWERS: EventFlags = EventFlags::IN;
const ANSWERS_AND_ROOM: EventFlags = EventFlags::IN.union(EventFlags::OUT);
const FIRST_CONNECT_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Takes a request.
    Free,
    Busy,
    Connecting,
    /// Connecting; then it sends its request for the second time.
    Resending,
    /// Lost; tried again at this time.
    Down {
        retry_ns: u64,
    },
}

/// Result of reading from a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    Nothing,
    Answer {
        progress: Taken,
        /// Time of arrival, where the kernel tells it.
        arrived_ns: Option<u64>,
    },
    Fault(Fault),
}

/// A limit of this side that kept a connection from being made, which is no failure of the
/// server, with the remedy.
pub fn own_limit(address: SocketAddr, error: &io::Error) -> Option<String> {
    let (who, raise) = match Errno::from_io_error(error)? {
        Errno::MFILE => ("the generator has", "raise the limit (ulimit -n)"),
        Errno::NFILE => ("this machine has", "raise the limit (sysctl fs.file-max)"),
        _ => return None,
    };
    Some(format!(
        "{who} too many open files, so it cannot connect to {address}; {raise}, or take fewer \
         connections"
    ))
}

#[derive(Debug)]
pub struct Connection<P: Protocol> {
    /// Its place among the connections of the thread.
    index: usize,
    socket: Option<OwnedFd>,
    answer: P::Answer,
    request: Option<P::Request>,
    /// Bytes of the request that are on their way.
    sent_bytes: usize,
    /// Was a request answered on this socket? A server may close it while it is idle.
    used: bool,
    pub state: State,
    pub times: Times,
    /// Since when it could have taken a request.
    pub free_since_ns: u64,
    /// When its last connecting began.
    pub connecting_since_ns: u64,
}

impl<P: Protocol> Connection<P> {
    /// Connects for the first time, and waits for it.
    pub fn open(
        index: usize,
        address: SocketAddr,
        answer: P::Answer,
        poller: &Poller,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, FIRST_CONNECT_LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        inbox::stamp(&stream);
        poller.add_socket(&stream, index, ANSWERS)?;
        Ok(Connection {
            index,
            socket: Some(stream.into()),
            answer,
            request: None,
            sent_bytes: 0,
            used: false,
            state: State::Free,
            times: Times {
                intended_ns: 0,
                sent_ns: 0,
                kind: 0,
            },
            free_since_ns: 0,
            connecting_since_ns: 0,
        })
    }

    /// Starts a request on a free connection. Was it sent as a whole?
    pub fn start(
        &mut self,
        protocol: &mut P,
        request: P::Request,
        poller: &Poller,
    ) -> io::Result<bool> {
        self.answer.expect(request);
        self.request = Some(request);
        self.sent_bytes = 0;
        self.state = State::Busy;
        self.send_rest(protocol, poller)
    }

    /// Takes the next request once its answer is whole.
    pub fn set_free(&mut self, since_ns: u64) {
        self.used = true;
        self.state = State::Free;
        self.free_since_ns = since_ns;
    }

    /// Sends what the kernel takes; for the rest, waits for room.
    fn send_rest(&mut self, protocol: &mut P, poller: &Poller) -> io::Result<bool> {
        let (Some(socket), Some(request)) = (&self.socket, self.request) else {
            return Ok(true);
        };
        let bytes = protocol.bytes(request);
        let resumed = self.sent_bytes > 0;
        match send(socket, &bytes[self.sent_bytes..], SendFlags::NOSIGNAL) {
            Ok(n) => self.sent_bytes += n,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let whole = self.sent_bytes == bytes.len();
        match (whole, resumed) {
            (true, false) => {}
            (true, true) => poller.modify(socket, self.index, ANSWERS)?,
            (false, _) => poller.modify(socket, self.index, ANSWERS_AND_ROOM)?,
        }
        Ok(whole)
    }

    /// Goes on with a request that was not sent as a whole.
    pub fn has_room(&mut self, protocol: &mut P, poller: &Poller) -> io::Result<()> {
        match self.state {
            State::Busy => self.send_rest(protocol, poller).map(drop),
            _ => Ok(()),
        }
    }

    /// Takes what has come of the answer.
    pub fn receive(&mut self, inbox: &mut Inbox) -> Received {
        let Some(socket) = &self.socket else {
            return Received::Nothing;
        };
        let piece = match inbox.receive(socket) {
            Ok(piece) => piece,
            Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
            Err(_) => {
                return Received::Fault(match self.answer.end_of_stream() {
                    Err(Fault::HangUp) => Fault::HangUp,
                    _ => Fault::HalfAnswer,
                });
            }
        };
        let taken = match piece.bytes {
            [] => self.answer.end_of_stream().map(Taken::Done),
            bytes => self.answer.take_bytes(bytes),
        };
        match taken {
            Ok(progress) => Received::Answer {
                progress,
                arrived_ns: piece.arrived_ns,
            },
            Err(fault) => Received::Fault(fault),
        }
    }

    /// Judges the whole answer to its request.
    pub fn judge(&self, protocol: &mut P, done: Done) -> Result<(), Wrong> {
        match self.request {
            Some(request) => protocol.judge(request, &self.answer, done),
            None => Ok(()),
        }
    }

    /// The beginning of the answer, for people.
    pub fn answer_text(&self) -> &[u8] {
        self.answer.answer_text()
    }

    /// May its request be sent twice?
    pub fn can_repeat(&self, protocol: &P) -> bool {
        self.request
            .is_some_and(|request| protocol.is_idempotent(request))
    }

    /// Drops the socket and connects anew without waiting. The limit of this side that kept it
    /// from that, if one did.
    pub fn reconnect(
        &mut self,
        address: SocketAddr,
        poller: &Poller,
        retry_ns: u64,
    ) -> Option<String> {
        self.socket = None;
        self.request = None;
        let failed = self.connect(address, poller).err();
        self.state = match failed {
            None => State::Connecting,
            Some(_) => State::Down { retry_ns },
        };
        own_limit(address, &failed?)
    }

    /// Connects anew for the request that met a connection which the server had closed,
    /// as HTTP clients do (RFC 9112, section 9.3.1). `false` on a new connection, whose
    /// end is the server's answer to the request, and when there is no connecting.
    pub fn resend(&mut self, address: SocketAddr, poller: &Poller) -> bool {
        if !self.used {
            return false;
        }
        self.socket = None;
        self.state = State::Resending;
        self.connect(address, poller).is_ok()
    }

    fn connect(&mut self, address: SocketAddr, poller: &Poller) -> io::Result<()> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        inbox::stamp(&socket);
        self.connecting_since_ns = now_ns();
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        poller.add_socket(&socket, self.index, ANSWERS_AND_ROOM)?;
        self.socket = Some(socket);
        self.used = false;
        Ok(())
    }

    /// The request that is to be sent for the second time, on a connection that is there.
    pub fn request_again(&mut self) -> Option<P::Request> {
        self.request.filter(|_| self.state == State::Free)
    }

    /// The socket of a connection under way can be written to, or has an error.
    pub fn finish_connect(&mut self, poller: &Poller, retry_ns: u64) {
        let Some(socket) = &self.socket else {
            return;
        };
        let fine = matches!(sockopt::socket_error(socket), Ok(Ok(())))
            && poller.modify(socket, self.index, ANSWERS).is_ok();
        if fine {
            self.state = State::Free;
        } else {
            self.socket = None;
            self.state = State::Down { retry_ns };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_a_limit_of_this_side_and_a_refusal_is_not() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let said = |error: Errno| own_limit(address, &error.into());
        let own = said(Errno::MFILE).unwrap();
        assert!(
            own.starts_with("the generator has") && own.contains("ulimit -n"),
            "{own}"
        );
        let of_all = said(Errno::NFILE).unwrap();
        assert!(of_all.contains("fs.file-max"), "{of_all}");
        assert_eq!(said(Errno::CONNREFUSED), None);
        assert_eq!(own_limit(address, &io::ErrorKind::TimedOut.into()), None);
    }
}
