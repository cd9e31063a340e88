//! Messages over any byte stream, one JSON object a line.

use crate::TargetError;
use doors::read::line_within;
use model::{Reply, Request};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// The largest message is a trial's file, and no file of a trial comes near to this.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// The most that an agent may send in answer to one request: all files of one trial.
const MAX_ANSWER_BYTES: u64 = 512 << 20;
/// Lines that wait for the runner. An agent that sends more has to wait as well.
const WAITING_LINES: usize = 4;

/// The runner's end of a byte stream to an agent.
pub struct Stream {
    writer: Box<dyn Write + Send>,
    lines: Receiver<std::io::Result<Vec<u8>>>,
    /// Bytes received since the last request.
    answered: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl Stream {
    /// A thread of its own reads, so that waiting can have a limit.
    pub fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        let (sender, lines) = sync_channel(WAITING_LINES);
        std::thread::spawn(move || read_lines(reader, MAX_LINE_BYTES, &sender));
        Stream {
            writer: Box::new(writer),
            lines,
            answered: 0,
        }
    }

    /// Sends a request and begins to count the bytes of its answer.
    pub fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        let mut line =
            serde_json::to_vec(request).map_err(|e| TargetError::Garbled(e.to_string()))?;
        line.push(b'\n');
        self.answered = 0;
        self.writer
            .write_all(&line)
            .and_then(|()| self.writer.flush())
            .map_err(|e| gone(format!("it does not take requests: {e}")))
    }

    /// Sends an empty line, which is no message.
    pub fn send_empty_line(&mut self) -> Result<(), TargetError> {
        let sent = self.writer.write_all(b"\n");
        sent.and_then(|()| self.writer.flush())
            .map_err(|e| gone(format!("it does not take requests: {e}")))
    }

    /// The next reply; `None` when `wait` passed without one.
    pub fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        match self.lines.recv_timeout(wait) {
            Ok(Ok(line)) => self.parse(&line).map(Some),
            Ok(Err(e)) if e.kind() == ErrorKind::FileTooLarge => {
                Err(too_long("a line", MAX_LINE_BYTES))
            }
            Ok(Err(e)) => Err(gone(format!("reading from it: {e}"))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone("it closed its stream".to_owned())),
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<Reply, TargetError> {
        self.answered = self.answered.saturating_add(line.len() as u64);
        if self.answered > MAX_ANSWER_BYTES {
            return Err(too_long("an answer", MAX_ANSWER_BYTES));
        }
        serde_json::from_slice(line)
            .map_err(|e| TargetError::Garbled(format!("{e}: {}", shortened(line))))
    }
}

/// Until the stream ends, fails, or a line is longer than `limit`.
fn read_lines(reader: impl Read, limit: u64, lines: &SyncSender<std::io::Result<Vec<u8>>>) {
    let mut reader = BufReader::new(reader);
    loop {
        let line = line_within(&mut reader, limit).transpose();
        let Some(line) = line else { return };
        let failed = line.is_err();
        if lines.send(line).is_err() || failed {
            return;
        }
    }
}

fn too_long(what: &str, limit: u64) -> TargetError {
    TargetError::Garbled(format!(
        "{what} of more than {} MiB, which no message has",
        limit >> 20
    ))
}

fn gone(why: String) -> TargetError {
    TargetError::Gone {
        why,
        tail: String::new(),
    }
}

fn shortened(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .trim_end()
        .chars()
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Duration = Duration::from_secs(60);

    fn hears(bytes: impl Read + Send + 'static) -> Stream {
        Stream::new(bytes, std::io::sink())
    }

    #[test]
    fn replies_come_in_order_and_then_the_end() {
        let mut stream = hears(&b"{\"reply\":\"bye\"}\n{\"reply\":\"refused\",\"why\":\"x\"}"[..]);
        assert_eq!(stream.receive_reply(ANSWER).unwrap(), Some(Reply::Bye));
        let refused = stream.receive_reply(ANSWER).unwrap();
        assert!(matches!(refused, Some(Reply::Refused { why }) if why == "x"));
        let end = stream.receive_reply(ANSWER).unwrap_err().to_string();
        assert!(end.contains("closed its stream"), "{end}");
    }

    #[test]
    fn a_line_without_end_is_an_error_that_names_the_limit() {
        let mut stream = hears(std::io::repeat(b'x'));
        let error = stream.receive_reply(ANSWER).unwrap_err().to_string();
        assert!(error.contains("a line of more than 64 MiB"), "{error}");
        assert!(
            stream.receive_reply(ANSWER).is_err(),
            "nothing more is read"
        );
    }

    #[test]
    fn an_answer_without_end_is_an_error_that_names_the_limit() {
        let line = format!(
            "{{\"reply\":\"progress\",\"limit_ns\":1,\"step\":\"{}\"}}\n",
            "x".repeat(1 << 20)
        );
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::thread::spawn(move || while writer.write_all(line.as_bytes()).is_ok() {});
        let mut stream = hears(reader);
        let error = loop {
            match stream.receive_reply(ANSWER) {
                Ok(reply) => assert!(reply.is_some(), "it answers all the time"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("an answer of more than 512 MiB"), "{error}");
    }
}
