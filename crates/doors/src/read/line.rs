//! Lines, which are bytes and of any length.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// The most that is kept of a line which is only shown.
pub const LONGEST_SHOWN_LINE: usize = 8 << 10;

/// The lines of a stream, as text for a person: bytes that are no UTF-8 are replaced, and the rest
/// of a line that is longer than the limit is left out, which its end says. It goes on to the end of
/// the stream, so that who writes it is never held up.
#[derive(Debug)]
pub struct Lines<R> {
    stream: R,
    longest: usize,
}

impl<R: Read> Lines<BufReader<R>> {
    /// The lines of a stream without a buffer, at most [`LONGEST_SHOWN_LINE`] long.
    pub fn from_stream(stream: R) -> Self {
        Lines::with_limit(BufReader::new(stream), LONGEST_SHOWN_LINE)
    }
}

impl<R: BufRead> Lines<R> {
    /// The lines of a stream, at most `longest` bytes long.
    pub fn with_limit(stream: R, longest: usize) -> Self {
        Lines { stream, longest }
    }

    /// The bytes of the next line that are kept, without its end, and the number of the others.
    fn next_bytes(&mut self) -> io::Result<Option<(Vec<u8>, u64)>> {
        let (mut kept, mut cut, mut has_begun) = (Vec::new(), 0_u64, false);
        loop {
            let buffer = match self.stream.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                return Ok(has_begun.then_some((kept, cut)));
            }
            has_begun = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = part.len().min(self.longest - kept.len());
            kept.extend_from_slice(&part[..room]);
            cut += (part.len() - room) as u64;
            let used = part.len() + usize::from(end.is_some());
            self.stream.consume(used);
            if end.is_some() {
                return Ok(Some((kept, cut)));
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = String;

    /// What came before an error is all that there is.
    fn next(&mut self) -> Option<String> {
        let (mut bytes, cut) = self.next_bytes().ok()??;
        if cut == 0 && bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let text = String::from_utf8_lossy(&bytes);
        Some(match cut {
            0 => text.into_owned(),
            cut => format!("{text} … ({cut} more bytes)"),
        })
    }
}

/// The next line with its end, of a protocol whose lines have at most `longest` bytes with it;
/// `None` at the end of the stream, and an error of [`ErrorKind::FileTooLarge`] for a longer one.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the door: the stream is limited"
)]
pub fn line_within(stream: &mut impl BufRead, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let size = stream.take(longest).read_until(b'\n', &mut line)? as u64;
    if size == longest && !line.ends_with(b"\n") {
        return Err(super::too_large(longest));
    }
    Ok((size > 0).then_some(line))
}

/// The lines of a protocol, each with at most `longest` bytes, without their ends. It ends at the
/// end of the stream, and after an error.
pub fn lines_within(
    mut stream: impl BufRead,
    longest: u64,
) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut has_failed = false;
    std::iter::from_fn(move || {
        if has_failed {
            return None;
        }
        let line = line_within(&mut stream, longest).transpose()?;
        has_failed = line.is_err();
        Some(line.map(without_end))
    })
}

fn without_end(mut line: Vec<u8>) -> Vec<u8> {
    for end in *b"\n\r" {
        if line.last() == Some(&end) {
            line.pop();
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], longest: usize) -> Vec<String> {
        // A buffer that is smaller than the lines.
        Lines::with_limit(BufReader::with_capacity(3, text), longest).collect()
    }

    #[test]
    fn a_byte_that_is_no_text_ends_nothing() {
        assert_eq!(lines(b"a\xffb\r\n\nlast", 80), ["a\u{fffd}b", "", "last"]);
    }

    #[test]
    fn the_rest_of_a_long_line_is_left_out_which_is_said() {
        assert_eq!(
            lines(b"12345678\nshort\n", 5),
            ["12345 … (3 more bytes)", "short"]
        );
        let endless = io::repeat(b'x').take(64 << 20);
        let line = Lines::from_stream(endless).next().unwrap();
        assert!(line.len() < LONGEST_SHOWN_LINE + 40, "{}", line.len());
    }

    #[test]
    fn a_line_of_a_protocol_may_be_as_long_as_the_limit_with_its_end() {
        let mut reader = &b"123\n1234"[..];
        assert_eq!(line_within(&mut reader, 4).unwrap().unwrap(), b"123\n");
        assert!(line_within(&mut reader, 4).is_err());
        let lines: Vec<_> = lines_within(&b"1\r\n2\n123456"[..], 4).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].as_ref().unwrap(), b"1");
        assert!(lines[2].is_err());
    }
}
