//! One guest with its agent: messages over the serial port, and the guest's death
//! told apart from the agent's.

use super::boot::{Guest, death, gone};
use super::frame::FrameKind;
use super::host::Watch;
use crate::{Session, TargetError};
use model::{Measurement, Reply, Request};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A guest that takes no bytes for this long is hung.
const WRITE_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct VmSession {
    guest: Guest,
    lines: Receiver<String>,
    watch: Watch,
}

impl VmSession {
    pub fn new(guest: Guest, watch: Watch) -> std::io::Result<Self> {
        guest.agent.set_write_timeout(Some(WRITE_LIMIT))?;
        let lines = read_lines(guest.agent.try_clone()?);
        Ok(VmSession {
            guest,
            lines,
            watch,
        })
    }

    /// Process id of QEMU.
    pub fn pid(&self) -> u32 {
        self.guest.machine.pid()
    }

    pub fn boot_time(&self) -> Duration {
        self.guest.boot_time
    }

    fn gone(&self, why: String) -> TargetError {
        gone(why, &self.guest.machine.console)
    }

    /// The agent's port is closed: by its own end, or by the machine's.
    fn end(&self) -> TargetError {
        let why = death(&self.guest.machine);
        let agent = self
            .guest
            .events
            .try_iter()
            .find(|f| f.kind == FrameKind::AgentEnded);
        match agent {
            Some(frame) => self.gone(format!(
                "the agent in the guest ended with {}",
                frame.text()
            )),
            None => self.gone(why),
        }
    }
}

impl Session for VmSession {
    fn send(&mut self, request: &Request) -> Result<(), TargetError> {
        let mut line = serde_json::to_string(request).map_err(|e| self.gone(e.to_string()))?;
        line.push('\n');
        let written = self.guest.agent.write_all(line.as_bytes());
        written.map_err(|e| match e.kind() {
            std::io::ErrorKind::WouldBlock => {
                self.gone("the guest does not take messages".to_owned())
            }
            _ => self.end(),
        })
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        match self.lines.recv_timeout(wait) {
            Ok(line) => serde_json::from_str(&line)
                .map(Some)
                .map_err(|e| TargetError::Garbled(format!("{e}: {}", beginning(&line)))),
            Err(RecvTimeoutError::Timeout) if self.guest.machine.console.panic().is_some() => {
                Err(self.end())
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.end()),
        }
    }

    fn console(&mut self) -> Option<String> {
        Some(self.guest.machine.console.take())
    }

    fn host_readings(&mut self) -> Vec<Measurement> {
        self.watch.readings()
    }
}

fn beginning(line: &str) -> String {
    line.chars().take(200).collect()
}

/// The receiver ends when the port is closed.
fn read_lines(stream: UnixStream) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            if !line.is_empty() && sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
