//! One client of the page: what it has sent so far, and what it is still to be sent.

use super::request::{self, Asked};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes of a request.
const MOST_REQUEST: usize = 8 << 10;
/// Time in which a request must be there, and in which a client must take something of an answer.
const LIMIT: Duration = Duration::from_secs(5);
const SAFE: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\
    Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'\r\n";

/// Everything that is served now.
pub struct Served<'a> {
    pub secret: &'a str,
    pub at: SocketAddr,
    pub page: &'a str,
    /// The last event, and its number; 0 before the first.
    pub event: &'a Arc<Vec<u8>>,
    pub number: u64,
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    /// Bytes to be sent, and how many of them are.
    answer: Arc<Vec<u8>>,
    sent: usize,
    /// Number of the last event that it was given; `None` for one that wants no events.
    seen: Option<u64>,
    has_asked: bool,
    until: Instant,
}

impl Client {
    pub fn new(stream: TcpStream) -> Self {
        Client {
            stream,
            request: Vec::new(),
            answer: Arc::default(),
            sent: 0,
            seen: None,
            has_asked: false,
            until: Instant::now() + LIMIT,
        }
    }

    /// Reads and writes what can be now; `false` where the connection is over.
    pub fn serve(&mut self, served: &Served) -> bool {
        let goes_on = match self.has_asked {
            false => self.hear(served),
            true => self.is_there(),
        };
        goes_on && self.send(served)
    }

    /// True if it has all that there is.
    pub fn has_all(&self, number: u64) -> bool {
        let is_sent = self.has_asked && self.sent == self.answer.len();
        is_sent && self.seen.is_none_or(|seen| seen == number)
    }

    /// The events of its connection that are waited for.
    pub fn awaited(&self) -> PollFd<'_> {
        let flags = match self.sent < self.answer.len() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        PollFd::new(&self.stream, flags)
    }

    /// Time after which it is too late. Who waits for events has time.
    pub fn deadline(&self) -> Option<Instant> {
        let is_idle = self.has_asked && self.sent == self.answer.len();
        (!is_idle).then_some(self.until)
    }

    fn is_late(&self) -> bool {
        self.deadline().is_some_and(|until| Instant::now() >= until)
    }

    fn hear(&mut self, served: &Served) -> bool {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(size) => self.request.extend_from_slice(&bytes[..size]),
                Err(error) if is_not_ready(&error) => return !self.is_late(),
                Err(_) => return false,
            }
            let asked = match request::parse(&self.request, served.secret, served.at) {
                None if self.request.len() < MOST_REQUEST => continue,
                None => Err(("431 Request Header Fields Too Large", "too long")),
                Some(asked) => asked,
            };
            self.answer(asked, served.page);
            return self.is_there();
        }
    }

    fn answer(&mut self, asked: Result<Asked, request::Refused>, page: &str) {
        let whole = |status: &str, kind: &str, body: &str| {
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n{SAFE}\r\n{body}",
                body.len()
            )
        };
        let answer = match asked {
            Ok(Asked::Page) => whole("200 OK", "text/html", page),
            Ok(Asked::Events) => {
                self.seen = Some(0);
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
                     {SAFE}\r\nretry: 1000\n\n"
                )
            }
            Err((status, why)) => whole(status, "text/plain", &format!("{why}\n")),
        };
        self.put(Arc::new(answer.into_bytes()));
        self.has_asked = true;
    }

    fn put(&mut self, answer: Arc<Vec<u8>>) {
        (self.answer, self.sent) = (answer, 0);
        self.until = Instant::now() + LIMIT;
    }

    /// Words after its request are read and not listened to: a connection that is closed before takes the
    /// answer with it.
    fn is_there(&mut self) -> bool {
        match self.stream.read(&mut [0; MOST_REQUEST]) {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) => is_not_ready(&error),
        }
    }

    fn send(&mut self, served: &Served) -> bool {
        loop {
            while self.sent < self.answer.len() {
                match self.stream.write(&self.answer[self.sent..]) {
                    Ok(0) => return false,
                    Ok(size) => {
                        self.sent += size;
                        self.until = Instant::now() + LIMIT;
                    }
                    Err(error) if is_not_ready(&error) => return !self.is_late(),
                    Err(_) => return false,
                }
            }
            match &mut self.seen {
                // A slow client misses events, and gets the last one.
                Some(seen) if *seen < served.number => {
                    *seen = served.number;
                    self.put(Arc::clone(served.event));
                }
                Some(_) => return true,
                None => return !self.has_asked,
            }
        }
    }
}

fn is_not_ready(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
