//! Finds the end of an answer of the memcached text protocol (doc/protocol.txt of
//! memcached) in whatever pieces it comes.

use super::request::{Operation, Request};
use crate::openloop::{Answer, Done, Fault, Taken};

/// A key has at most 250 bytes, and the numbers beside it are short.
const MOST_LINE_BYTES: usize = 512;

/// Parser of the answers on one connection.
#[derive(Debug)]
pub struct MemcachedAnswer {
    operation: Operation,
    state: State,
    line: [u8; MOST_LINE_BYTES],
    /// Bytes of the line under way.
    length: usize,
    hit: bool,
    begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Line,
    Data { left: u64 },
    Done { ok: bool },
}

impl Default for MemcachedAnswer {
    fn default() -> Self {
        Self::new()
    }
}

impl MemcachedAnswer {
    /// Parser with memory for the longest line that an answer can have.
    pub fn new() -> Self {
        MemcachedAnswer {
            operation: Operation::Get,
            state: State::Line,
            line: [0; MOST_LINE_BYTES],
            length: 0,
            hit: false,
            begun: false,
        }
    }

    /// Takes bytes up to the end of a line; gives the rest.
    fn take_line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Fault> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        let to = self.length + piece.len();
        let room = self.line.get_mut(self.length..to).ok_or(Fault::Garbage)?;
        room.copy_from_slice(piece);
        self.length = to;
        if end.is_some() {
            self.length = 0;
            self.state = self.judge(to)?;
        }
        Ok(&bytes[piece.len()..])
    }

    /// State that follows from the first `length` bytes of the line.
    fn judge(&mut self, length: usize) -> Result<State, Fault> {
        let line = self.line[..length]
            .strip_suffix(b"\r\n")
            .ok_or(Fault::Garbage)?;
        let mut words = line.split(|byte| *byte == b' ');
        let state = match (self.operation, words.next().unwrap_or_default()) {
            (Operation::Get, b"END") if line == b"END" => State::Done { ok: true },
            (Operation::Get, b"VALUE") if !self.hit => State::Data {
                left: value_bytes(words)?.saturating_add(b"\r\n".len() as u64),
            },
            (Operation::Set, b"STORED") if line == b"STORED" => State::Done { ok: true },
            (Operation::Set, b"NOT_STORED") => State::Done { ok: false },
            (_, b"ERROR" | b"SERVER_ERROR" | b"CLIENT_ERROR") => State::Done { ok: false },
            _ => return Err(Fault::Garbage),
        };
        self.hit |= matches!(state, State::Data { .. });
        Ok(state)
    }

    /// The last two bytes of a value are the end of its line.
    fn take_data<'a>(&mut self, bytes: &'a [u8], left: u64) -> Result<&'a [u8], Fault> {
        let step = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (piece, rest) = bytes.split_at(step);
        // The byte that has `behind` bytes behind it, where it is in this piece.
        let byte = |behind: u64| {
            let at = left.checked_sub(behind + 1)?;
            piece.get(usize::try_from(at).ok()?)
        };
        let is = |byte: Option<&u8>, expected: u8| byte.is_none_or(|found| *found == expected);
        if !(is(byte(1), b'\r') && is(byte(0), b'\n')) {
            return Err(Fault::Garbage);
        }
        self.state = match left - step as u64 {
            0 => State::Line,
            left => State::Data { left },
        };
        Ok(rest)
    }
}

/// The third word of `VALUE key flags bytes [cas]`.
fn value_bytes<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<u64, Fault> {
    let number = |word: Option<&[u8]>| {
        let digits = word.and_then(|w| std::str::from_utf8(w).ok())?;
        digits.parse::<u32>().ok().map(u64::from)
    };
    let key = words.next().filter(|key| !key.is_empty());
    let flags = number(words.next());
    match (key, flags, number(words.next())) {
        (Some(_), Some(_), Some(bytes)) => Ok(bytes),
        _ => Err(Fault::Garbage),
    }
}

impl Answer<Request> for MemcachedAnswer {
    fn expect(&mut self, request: Request) {
        self.operation = request.operation;
        self.state = State::Line;
        self.length = 0;
        self.hit = false;
        self.begun = false;
    }

    fn take_bytes(&mut self, mut bytes: &[u8]) -> Result<Taken, Fault> {
        self.begun |= !bytes.is_empty();
        while !bytes.is_empty() {
            bytes = match self.state {
                State::Line => self.take_line(bytes)?,
                State::Data { left } => self.take_data(bytes, left)?,
                // More than one answer.
                State::Done { .. } => return Err(Fault::Garbage),
            };
        }
        let State::Done { ok } = self.state else {
            return Ok(Taken::More);
        };
        Ok(Taken::Done(Done {
            ok,
            hit: (self.operation == Operation::Get && ok).then_some(self.hit),
            keep: true,
        }))
    }

    fn end_of_stream(&mut self) -> Result<Done, Fault> {
        Err(if self.begun {
            Fault::HalfAnswer
        } else {
            Fault::HangUp
        })
    }
}
