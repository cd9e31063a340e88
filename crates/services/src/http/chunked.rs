//! The chunked transfer coding (RFC 9112, section 7.1): what is data, and where it ends.

use crate::openloop::Fault;

/// More digits would not fit; nobody sends such a chunk.
const MOST_DIGITS: u8 = 15;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chunked {
    state: State,
    /// Digits of the size under way.
    digits: u8,
    size: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Data,
    DataEnd,
    DataEndLine,
    /// At the start of a line after the last chunk.
    Trailer,
    TrailerLine,
    TrailerLineEnd,
    LastEnd,
    Done,
}

impl Chunked {
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes bytes up to the end of the body, and passes on those that are data; gives how many
    /// are left behind it.
    pub fn take_bytes(
        &mut self,
        bytes: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<usize, Fault> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if self.state == State::Data {
                let left = usize::try_from(self.size).unwrap_or(usize::MAX);
                let step = left.min(bytes.len() - at);
                self.size -= step as u64;
                data(&bytes[at..at + step]);
                at += step;
                if self.size == 0 {
                    self.state = State::DataEnd;
                }
            } else {
                self.state = self.step(bytes[at])?;
                at += 1;
            }
        }
        Ok(bytes.len() - at)
    }

    fn step(&mut self, byte: u8) -> Result<State, Fault> {
        match (self.state, byte) {
            (State::Size, _) if byte.is_ascii_hexdigit() => self.digit(byte),
            (State::Size, b'\r') if self.digits > 0 => Ok(State::SizeEnd),
            (State::Size, b';' | b' ' | b'\t') if self.digits > 0 => Ok(State::Extension),
            (State::Extension, b'\r') => Ok(State::SizeEnd),
            (State::Extension, b'\n') => Err(Fault::Garbage),
            (State::Extension, _) => Ok(State::Extension),
            (State::SizeEnd, b'\n') => Ok(self.begin_chunk()),
            (State::DataEnd, b'\r') => Ok(State::DataEndLine),
            (State::DataEndLine, b'\n') => Ok(State::Size),
            (State::Trailer, b'\r') => Ok(State::LastEnd),
            (State::Trailer | State::TrailerLine, b'\n') => Err(Fault::Garbage),
            (State::TrailerLine, b'\r') => Ok(State::TrailerLineEnd),
            (State::Trailer | State::TrailerLine, _) => Ok(State::TrailerLine),
            (State::TrailerLineEnd, b'\n') => Ok(State::Trailer),
            (State::LastEnd, b'\n') => Ok(State::Done),
            _ => Err(Fault::Garbage),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<State, Fault> {
        if self.digits == MOST_DIGITS {
            return Err(Fault::Garbage);
        }
        let digit = char::from(byte).to_digit(16).ok_or(Fault::Garbage)?;
        self.size = self.size * 16 + u64::from(digit);
        self.digits += 1;
        Ok(State::Size)
    }

    /// A chunk of size 0 is the last one.
    fn begin_chunk(&mut self) -> State {
        self.digits = 0;
        if self.size == 0 {
            State::Trailer
        } else {
            State::Data
        }
    }
}
