//! Finds the end of an HTTP/1.1 response (RFC 9112) in whatever pieces it comes.

use super::chunked::Chunked;
use crate::openloop::{Answer, Done, Fault, Taken};

/// Longer heads are garbage.
const MOST_HEAD_BYTES: usize = 64 * 1024;
const MOST_HEADERS: usize = 96;
/// A head that comes in pieces is put together here; most are shorter.
const USUAL_HEAD_BYTES: usize = 2048;

/// Properties of a request that the parser of its answer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// `HEAD`: the answer has no body whatever its head says.
    pub head_only: bool,
    /// Bytes of the body that are kept, from its beginning.
    pub keep_bytes: usize,
}

/// Parser of the answers on one connection.
#[derive(Debug)]
pub struct HttpAnswer {
    asked: Asked,
    state: State,
    /// The pieces of a head that is not whole yet.
    head: Vec<u8>,
    status: u16,
    /// The beginning of the body.
    body: Vec<u8>,
    keep: bool,
    /// Has the answer begun?
    begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length { left: u64 },
    Chunked(Chunked),
    UntilClose,
}

/// The way in which the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

struct Head {
    bytes: usize,
    status: u16,
    framing: Framing,
    keep: bool,
}

impl Default for HttpAnswer {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpAnswer {
    /// Parser with memory for a usual head.
    pub fn new() -> Self {
        HttpAnswer {
            asked: Asked {
                head_only: false,
                keep_bytes: 0,
            },
            state: State::Head,
            head: Vec::with_capacity(USUAL_HEAD_BYTES),
            status: 0,
            body: Vec::new(),
            keep: true,
            begun: false,
        }
    }

    /// Status of the answer, once its head is whole.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The beginning of the body, as much of it as is kept.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The bytes after the head, once it is whole.
    fn take_head<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Fault> {
        let before = self.head.len();
        let head = if before == 0 {
            parse_head(bytes)?
        } else {
            self.head.extend_from_slice(bytes);
            parse_head(&self.head)?
        };
        let Some(head) = head else {
            if before == 0 {
                self.head.extend_from_slice(bytes);
            }
            return Ok(None);
        };
        self.head.clear();
        self.begin_body(&head);
        // The head was not whole before these bytes came.
        Ok(Some(&bytes[head.bytes - before..]))
    }

    fn begin_body(&mut self, head: &Head) {
        self.status = head.status;
        self.keep = head.keep;
        let no_body = self.asked.head_only || matches!(head.status, 204 | 304);
        self.state = match head.framing {
            // The answer proper comes after an interim one.
            _ if is_interim(head.status) => State::Head,
            _ if no_body => State::Length { left: 0 },
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => State::Chunked(Chunked::default()),
            Framing::UntilClose => State::UntilClose,
        };
    }

    fn take_length(&mut self, bytes: &[u8], left: u64) -> Result<Taken, Fault> {
        keep(&mut self.body, self.asked.keep_bytes, bytes);
        match (bytes.len() as u64).cmp(&left) {
            std::cmp::Ordering::Less => {
                let left = left - bytes.len() as u64;
                self.state = State::Length { left };
                Ok(Taken::More)
            }
            std::cmp::Ordering::Equal => Ok(self.done()),
            // More than was asked for.
            std::cmp::Ordering::Greater => Err(Fault::Garbage),
        }
    }

    fn take_chunked(&mut self, bytes: &[u8], mut chunked: Chunked) -> Result<Taken, Fault> {
        let (body, most) = (&mut self.body, self.asked.keep_bytes);
        let rest = chunked.take_bytes(bytes, |data| keep(body, most, data))?;
        self.state = State::Chunked(chunked);
        match (chunked.is_done(), rest) {
            (false, _) => Ok(Taken::More),
            (true, 0) => Ok(self.done()),
            (true, _) => Err(Fault::Garbage),
        }
    }

    fn done(&mut self) -> Taken {
        Taken::Done(Done {
            ok: self.status < 400,
            hit: None,
            keep: self.keep,
        })
    }
}

impl HttpAnswer {
    /// A request was sent: its answer begins with the next byte.
    pub fn expect(&mut self, asked: Asked) {
        self.asked = asked;
        self.state = State::Head;
        self.head.clear();
        self.body.clear();
        self.begun = false;
    }

    /// Takes the next bytes of the connection.
    pub fn take_bytes(&mut self, bytes: &[u8]) -> Result<Taken, Fault> {
        self.begun |= !bytes.is_empty();
        let mut bytes = bytes;
        while self.state == State::Head {
            if bytes.is_empty() {
                return Ok(Taken::More);
            }
            match self.take_head(bytes)? {
                Some(rest) => bytes = rest,
                None => return Ok(Taken::More),
            }
        }
        match self.state {
            State::Head => Ok(Taken::More),
            State::UntilClose => {
                keep(&mut self.body, self.asked.keep_bytes, bytes);
                Ok(Taken::More)
            }
            State::Length { left } => self.take_length(bytes, left),
            State::Chunked(chunked) => self.take_chunked(bytes, chunked),
        }
    }

    /// The server has closed the connection. An answer may end that way.
    pub fn end_of_stream(&mut self) -> Result<Done, Fault> {
        match self.state {
            State::UntilClose => Ok(Done {
                ok: self.status < 400,
                hit: None,
                keep: false,
            }),
            _ if self.begun => Err(Fault::HalfAnswer),
            _ => Err(Fault::HangUp),
        }
    }
}

/// For all requests that say what their answers are like.
impl<R: Into<Asked>> Answer<R> for HttpAnswer {
    fn expect(&mut self, request: R) {
        HttpAnswer::expect(self, request.into());
    }

    fn take_bytes(&mut self, bytes: &[u8]) -> Result<Taken, Fault> {
        HttpAnswer::take_bytes(self, bytes)
    }

    fn end_of_stream(&mut self) -> Result<Done, Fault> {
        HttpAnswer::end_of_stream(self)
    }

    fn answer_text(&self) -> &[u8] {
        &self.body
    }
}

/// Adds bytes to those that are kept, up to so many in all.
fn keep(kept: &mut Vec<u8>, most: usize, bytes: &[u8]) {
    let room = most.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// `100 Continue` and the like; `101` ends HTTP on this connection.
fn is_interim(status: u16) -> bool {
    (100..200).contains(&status) && status != 101
}

/// `None` if the head is not whole.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let status = response.parse(bytes).map_err(|_| Fault::Garbage)?;
    let length = match status {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => bytes.len(),
    };
    // Also one that came as a whole: the pieces must not matter.
    if length > MOST_HEAD_BYTES {
        return Err(Fault::Garbage);
    }
    if status.is_partial() {
        return Ok(None);
    }
    let status = response.code.ok_or(Fault::Garbage)?;
    let framing = framing(response.headers)?;
    let close = has_word(response.headers, "connection", "close");
    let old = response.version == Some(0);
    let asks_to_keep = has_word(response.headers, "connection", "keep-alive");
    Ok(Some(Head {
        bytes: length,
        status,
        framing,
        keep: !close && (!old || asks_to_keep) && status != 101,
    }))
}

/// RFC 9112, section 6.3.
fn framing(headers: &[httparse::Header]) -> Result<Framing, Fault> {
    let mut framing = Framing::UntilClose;
    for header in headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            let last = header.value.rsplit(|byte| *byte == b',').next();
            return match last.map(|word| word.trim_ascii().eq_ignore_ascii_case(b"chunked")) {
                Some(true) => Ok(Framing::Chunked),
                _ => Ok(Framing::UntilClose),
            };
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = Framing::Length(decimal(header.value.trim_ascii())?);
            // Two lengths that differ leave the end of the body open to opinion.
            if !matches!(framing, Framing::UntilClose) && framing != length {
                return Err(Fault::Garbage);
            }
            framing = length;
        }
    }
    Ok(framing)
}

fn decimal(digits: &[u8]) -> Result<u64, Fault> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Garbage);
    }
    Ok(digits
        .iter()
        .fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
}

fn has_word(headers: &[httparse::Header], name: &str, word: &str) -> bool {
    let of_name = headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
    let mut words = of_name.flat_map(|h| h.value.split(|byte| *byte == b','));
    words.any(|w| w.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}
