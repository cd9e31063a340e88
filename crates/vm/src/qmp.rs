//! QEMU's monitor protocol (docs/interop/qmp-spec of QEMU): one JSON object a line,
//! a command at a time.

use super::qemu::NETWORK;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use std::io::{self, BufReader, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// No answer comes near to it; a longer line is cut, and then no JSON.
const MAX_LINE: u64 = 1 << 20;

#[derive(Debug)]
pub struct Monitor {
    stream: BufReader<UnixStream>,
    /// Past the greeting and the negotiation.
    connected: bool,
}

impl Monitor {
    /// Nothing is said yet: QEMU may still be starting.
    pub fn new(stream: UnixStream) -> Self {
        Monitor {
            stream: BufReader::new(stream),
            connected: false,
        }
    }

    /// Wait for the greeting and leave the negotiation mode.
    pub fn connect(&mut self) -> io::Result<()> {
        if self.connected {
            return Ok(());
        }
        self.stream.get_ref().set_read_timeout(Some(ANSWER_LIMIT))?;
        self.message()?;
        self.run("qmp_capabilities", json!({}))?;
        self.connected = true;
        Ok(())
    }

    pub fn run(&mut self, command: &str, arguments: Value) -> io::Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        let stream = self.stream.get_mut();
        stream.write_all(format!("{request}\n").as_bytes())?;
        self.answer(command)
    }

    /// Give QEMU an open file, under this name.
    pub fn give_file(&mut self, name: &str, file: OwnedFd) -> io::Result<()> {
        let request = json!({ "execute": "getfd", "arguments": { "fdname": name } });
        let line = format!("{request}\n");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        beside.push(SendAncillaryMessage::ScmRights(&files));
        let bytes = [IoSlice::new(line.as_bytes())];
        // A line this short is never sent in parts.
        sendmsg(
            self.stream.get_ref(),
            &bytes,
            &mut beside,
            SendFlags::empty(),
        )?;
        self.answer("getfd").map(drop)
    }

    fn answer(&mut self, command: &str) -> io::Result<Value> {
        loop {
            let mut answer = self.message()?;
            if let Some(error) = answer.get("error") {
                let text = error["desc"].as_str().unwrap_or("no reason given");
                return Err(io::Error::other(format!("{command}: {text}")));
            }
            // Everything else is an event.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    /// Lets connections to a port of the host's loopback address reach the one of the guest.
    pub fn forward(&mut self, host: u16, guest: u16) -> io::Result<()> {
        let places = format!("tcp:127.0.0.1:{host}-127.0.0.1:{guest}");
        self.of_network("hostfwd_add", &places, "")
    }

    pub fn forward_no_more(&mut self, host: u16) -> io::Result<()> {
        let removed = format!("host forwarding rule for tcp:127.0.0.1:{host} removed");
        self.of_network("hostfwd_remove", &format!("tcp:127.0.0.1:{host}"), &removed)
    }

    /// The human monitor alone has these commands; what it says is not `expected` where
    /// they failed.
    fn of_network(&mut self, command: &str, places: &str, expected: &str) -> io::Result<()> {
        let line = format!("{command} {NETWORK} {places}");
        let said = self.run("human-monitor-command", json!({ "command-line": line }))?;
        match said.as_str().unwrap_or_default().trim() {
            said if said == expected => Ok(()),
            said => Err(io::Error::other(format!("{line}: {said}"))),
        }
    }

    /// Host thread ids of the vCPUs, by CPU index.
    pub fn vcpu_threads(&mut self) -> io::Result<Vec<i32>> {
        Ok(thread_ids(&self.run("query-cpus-fast", json!({}))?))
    }

    /// State of the guest, and of each CPU the instruction that it is at and whether it halts there.
    pub fn state(&mut self) -> io::Result<String> {
        let state = self.run("query-status", json!({}))?;
        let command = json!({ "command-line": "info registers -a" });
        let registers = self.run("human-monitor-command", command)?;
        let status = state["status"].as_str().unwrap_or("unknown");
        let registers = registers.as_str().unwrap_or_default();
        Ok(format!("QEMU says: {status}\n{}", places_of(registers)))
    }

    fn message(&mut self) -> io::Result<Value> {
        let line = doors::read::line_within(&mut self.stream, MAX_LINE)?;
        let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(serde_json::from_slice(&line)?)
    }
}

/// The headline of each CPU and its line with the instruction pointer.
fn places_of(registers: &str) -> String {
    let lines = registers.lines().map(str::trim);
    let kept = lines.filter(|line| line.starts_with("CPU#") || line.starts_with("RIP="));
    kept.collect::<Vec<_>>().join("\n")
}

fn thread_ids(cpus: &Value) -> Vec<i32> {
    let mut found: Vec<(i64, i32)> = cpus
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|cpu| {
            let thread = i32::try_from(cpu["thread-id"].as_i64()?).ok()?;
            Some((cpu["cpu-index"].as_i64()?, thread))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, thread)| thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A monitor that says `lines` whatever it is asked.
    fn monitor_that_says(lines: &'static [&'static str]) -> io::Result<Monitor> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        for line in lines {
            theirs.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        std::thread::spawn(move || io::copy(&mut theirs, &mut io::sink()));
        let mut monitor = Monitor::new(ours);
        monitor.connect()?;
        Ok(monitor)
    }

    #[test]
    fn events_between_command_and_answer_are_passed_over() {
        let mut monitor = monitor_that_says(&[
            r#"{"QMP": {"version": {}}}"#,
            r#"{"return": {}}"#,
            r#"{"event": "RESUME"}"#,
            r#"{"return": [{"cpu-index": 1, "thread-id": 12}, {"cpu-index": 0, "thread-id": 11}]}"#,
        ])
        .unwrap();
        assert_eq!(monitor.vcpu_threads().unwrap(), [11, 12]);
    }

    #[test]
    fn the_state_of_a_guest_says_where_each_cpu_is() {
        let mut monitor = monitor_that_says(&[
            r#"{"QMP": {}}"#,
            r#"{"return": {}}"#,
            r#"{"return": {"status": "running"}}"#,
            r#"{"return": "\r\nCPU#0\r\nRAX=1\r\nRIP=ffffffff81 RFL=2 HLT=1\r\nCPU#1\r\nRIP=12 HLT=0\r\n"}"#,
        ])
        .unwrap();
        let expected = "QEMU says: running\nCPU#0\nRIP=ffffffff81 RFL=2 HLT=1\nCPU#1\nRIP=12 HLT=0";
        assert_eq!(monitor.state().unwrap(), expected);
    }

    #[test]
    fn an_error_names_the_command_and_the_reason() {
        let mut monitor = monitor_that_says(&[
            r#"{"QMP": {}}"#,
            r#"{"return": {}}"#,
            r#"{"error": {"class": "GenericError", "desc": "no such node"}}"#,
        ])
        .unwrap();
        let error = monitor.run("savevm", json!({})).unwrap_err().to_string();
        assert_eq!(error, "savevm: no such node");
    }

    #[test]
    fn a_monitor_that_is_gone_is_an_error() {
        assert!(monitor_that_says(&[]).is_err());
    }
}
