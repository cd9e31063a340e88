//! Streams, which may be longer than anybody has memory for.

use super::too_large;
use std::io::{self, Error, ErrorKind, Read, Write};

/// All bytes of a stream that has at most `most_bytes`.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the door: the stream is limited"
)]
pub fn stream_bytes(stream: impl Read, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = stream.take(most_bytes.saturating_add(1));
    limited.read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most_bytes {
        true => Err(too_large(most_bytes)),
        false => Ok(bytes),
    }
}

/// The text of a stream that has at most `most_bytes`. An error where it is no UTF-8.
pub fn stream_text(stream: impl Read, most_bytes: u64) -> io::Result<String> {
    text_of(stream_bytes(stream, most_bytes)?)
}

pub(super) fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("byte {} of it is no text (UTF-8)", at + 1);
        Error::new(ErrorKind::InvalidData, what)
    })
}

/// The first bytes of a stream, at most `most_bytes`, and what came before an error.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the door: the stream is limited"
)]
pub fn start_of(stream: impl Read, most_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before an error is all that there is.
    let _ = stream.take(most_bytes).read_to_end(&mut bytes);
    bytes
}

/// Copies a stream that has at most `most_bytes`; gives their number.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the door: the stream is limited"
)]
pub fn copy_within(
    stream: impl Read,
    to: &mut (impl Write + ?Sized),
    most_bytes: u64,
) -> io::Result<u64> {
    let mut limited = stream.take(most_bytes.saturating_add(1));
    let copied = io::copy(&mut limited, to)?;
    match copied > most_bytes {
        true => Err(too_large(most_bytes)),
        false => Ok(copied),
    }
}

/// Reads a stream to its end and keeps nothing of it.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the door: nothing is kept"
)]
pub fn discard_rest(mut stream: impl Read) -> io::Result<u64> {
    io::copy(&mut stream, &mut io::sink())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_end_is_an_error_that_says_the_limit() {
        let error = stream_bytes(io::repeat(b'x'), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("larger than 1 MiB"), "{error}");
        let copied = copy_within(io::repeat(b'x'), &mut io::sink(), 8 << 10);
        assert!(copied.unwrap_err().to_string().contains("8 KiB"));
        assert_eq!(start_of(io::repeat(b'x'), 3), b"xxx");
    }

    #[test]
    fn a_byte_that_is_no_text_is_named_by_its_place() {
        let error = stream_text(&b"ab\xff"[..], 9).unwrap_err().to_string();
        assert!(error.contains("byte 3"), "{error}");
    }
}
