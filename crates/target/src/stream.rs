//! Messages over any byte stream, one JSON object a line.

use crate::TargetError;
use model::{Reply, Request};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The runner's end of a byte stream to an agent.
pub struct Stream {
    writer: Box<dyn Write + Send>,
    lines: Receiver<std::io::Result<String>>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl Stream {
    /// A thread of its own reads, so that waiting can have a limit.
    pub fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines() {
                let failed = line.is_err();
                if sender.send(line).is_err() || failed {
                    break;
                }
            }
        });
        Stream {
            writer: Box::new(writer),
            lines,
        }
    }

    pub fn send(&mut self, request: &Request) -> Result<(), TargetError> {
        let mut line =
            serde_json::to_vec(request).map_err(|e| TargetError::Garbled(e.to_string()))?;
        line.push(b'\n');
        self.writer
            .write_all(&line)
            .and_then(|()| self.writer.flush())
            .map_err(|e| gone(format!("it does not take requests: {e}")))
    }

    /// The next reply; `None` when `wait` passed without one.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        match self.lines.recv_timeout(wait) {
            Ok(Ok(line)) => serde_json::from_str(&line)
                .map(Some)
                .map_err(|e| TargetError::Garbled(format!("{e}: {}", shortened(&line)))),
            Ok(Err(e)) => Err(gone(format!("reading from it: {e}"))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone("it closed its stream".to_owned())),
        }
    }
}

fn gone(why: String) -> TargetError {
    TargetError::Gone {
        why,
        tail: String::new(),
    }
}

fn shortened(line: &str) -> String {
    line.chars().take(200).collect()
}
