//! The standard streams as lines of a bounded length. The SDK drops a line that is too long, and its
//! client would wait for ever: here it gets an answer.

use doors::shown::raw_output;
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use tokio::sync::mpsc::{Receiver, Sender};

/// Longest line of a client.
const MOST_BYTES: usize = 1 << 20;
/// Bytes of the beginning and of the end of a longer one in which its number is looked for.
const KEPT: usize = 4 << 10;

/// A line of the client.
#[derive(Debug)]
pub enum Incoming {
    /// One that may be read, with its end.
    Line(Vec<u8>),
    /// One that was not kept.
    TooLong { bytes: usize, id: Value },
}

/// Reads the standard input to its end.
pub fn read_input(to: &Sender<Incoming>) {
    let mut input = io::stdin().lock();
    while let Some(incoming) = next_line(&mut input) {
        if to.blocking_send(incoming).is_err() {
            return;
        }
    }
}

/// Writes lines to the standard output until nobody sends any more.
pub fn write_output(mut lines: Receiver<Vec<u8>>) {
    let mut output = raw_output("messages of a protocol for another program");
    while let Some(line) = lines.blocking_recv() {
        if output
            .write_all(&line)
            .and_then(|()| output.flush())
            .is_err()
        {
            return;
        }
    }
}

/// The next line; none at the end of the stream.
fn next_line(stream: &mut impl BufRead) -> Option<Incoming> {
    let (mut kept, mut bytes, mut end) = (Vec::new(), 0, Vec::new());
    loop {
        let buffer = match stream.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        if buffer.is_empty() {
            return None;
        }
        let line_end = buffer.iter().position(|b| *b == b'\n');
        let part = &buffer[..line_end.map_or(buffer.len(), |at| at + 1)];
        bytes += part.len();
        let room = MOST_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&part[..part.len().min(room)]);
        end.extend_from_slice(&part[part.len().saturating_sub(KEPT)..]);
        end.drain(..end.len().saturating_sub(KEPT));
        let used = part.len();
        stream.consume(used);
        if line_end.is_some() {
            return Some(match bytes > MOST_BYTES {
                true => Incoming::TooLong {
                    bytes,
                    id: find_id(&kept[..KEPT], &end),
                },
                false => Incoming::Line(kept),
            });
        }
    }
}

/// Number of a request in what is left of it.
fn find_id(start: &[u8], end: &[u8]) -> Value {
    const KEY: &str = "\"id\":";
    let (start, end) = (String::from_utf8_lossy(start), String::from_utf8_lossy(end));
    let after = |text: &str, at: Option<usize>| {
        let rest = text.get(at? + KEY.len()..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let id = values.next()?.ok()?;
        (id.is_number() || id.is_string()).then_some(id)
    };
    let found = after(&start, start.find(KEY)).or_else(|| after(&end, end.rfind(KEY)));
    found.unwrap_or(Value::Null)
}

/// Answer to a line that was not read.
pub fn refuse_long_line(bytes: usize, id: &Value) -> Vec<u8> {
    let message = format!("refused: a message of {bytes} bytes, and at most {MOST_BYTES} are read");
    let answer = json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": { "code": -32600, "message": message },
    });
    format!("{answer}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_known_by_its_number_and_the_next_one_is_read() {
        let long = "x".repeat(3 * MOST_BYTES);
        for text in [
            format!("{{\"id\":7,\"params\":\"{long}\"}}\nnext\n"),
            format!("{{\"params\":\"{long}\",\"id\":7}}\nnext\n"),
        ] {
            let mut stream = io::BufReader::new(text.as_bytes());
            let Some(Incoming::TooLong { bytes, id }) = next_line(&mut stream) else {
                panic!("it was kept");
            };
            assert_eq!((bytes, &id), (text.len() - 5, &json!(7)));
            let answer = String::from_utf8(refuse_long_line(bytes, &id)).unwrap();
            assert!(
                answer.contains("\"id\":7") && answer.contains("refused"),
                "{answer}"
            );
            let Some(Incoming::Line(next)) = next_line(&mut stream) else {
                panic!("the next line is lost");
            };
            assert_eq!(next, b"next\n");
        }
    }
}
