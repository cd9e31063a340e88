//! A guest that is told nothing after it has booted: setup, requests and root are in its initramfs.
//! Answers of the agent stay in memory until it has ended, so that nothing outside has a part
//! in when anything happens.

use super::super::frame::{AGENT_PORT, Head, PACKED_REQUESTS, PACKED_SETUP, Setup};
use super::children::base_command;
use super::serve::{console, describe};
use super::{Failure, at, port, prepare, ready, start_xen};
use doors::read::{line_within, stream_bytes, too_large};
use model::Reply;
use rustix::process::{WaitOptions, WaitStatus, wait};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The most that an agent answers in a trial, which the host reads, too.
const MOST_REPLIES: u64 = 512 << 20;

fn place(name: &str) -> PathBuf {
    Path::new("/").join(name)
}

/// Is this guest one of those?
pub fn is_there() -> bool {
    place(PACKED_SETUP).exists()
}

/// The agent's life, and then its replies to the host.
pub fn run() -> Result<(), Failure> {
    let text = doors::read::large_file_bytes(place(PACKED_SETUP)).map_err(at("read the setup"))?;
    let mut setup: Setup =
        serde_json::from_slice(&text).map_err(|e| at("read the setup")(e.into()))?;
    let requests =
        doors::read::large_file_bytes(place(PACKED_REQUESTS)).map_err(at("read the requests"))?;
    prepare(&setup)?;
    start_xen(&mut setup)?;
    let mut agent = start(&setup).map_err(at("start the agent"))?;
    let replies = converse(&mut agent, &requests).map_err(at("talk to the agent"))?;
    let head = Head {
        ready: ready(),
        agent: describe(end(&agent)?),
    };
    answer(&head, &replies).map_err(at("answer the host"))
}

fn start(setup: &Setup) -> io::Result<Child> {
    let mut command = base_command(super::root::PROGRAM, setup);
    command
        .args(setup.agent.iter().flatten())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(console());
    command.spawn()
}

/// Everything that the agent says until all requests are answered. Then its input ends, and it
/// does: an end that it sees earlier would end its trial.
fn converse(agent: &mut Child, requests: &[u8]) -> io::Result<Vec<u8>> {
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let mut input = agent.stdin.take().ok_or_else(gone)?;
    let mut output = BufReader::new(agent.stdout.take().ok_or_else(gone)?);
    input.write_all(requests)?;
    let mut open = requests.iter().filter(|b| **b == b'\n').count();
    let mut replies = Vec::new();
    while open > 0 {
        let Some(reply) = line_within(&mut output, MOST_REPLIES)? else {
            return Ok(replies);
        };
        if is_final(&reply) {
            open -= 1;
        }
        replies.extend(reply);
        if replies.len() as u64 > MOST_REPLIES {
            return Err(too_large(MOST_REPLIES));
        }
    }
    drop(input);
    replies.extend(stream_bytes(output, MOST_REPLIES)?);
    Ok(replies)
}

/// Is the request answered by this line?
fn is_final(line: &[u8]) -> bool {
    let reply: Result<Reply, _> = serde_json::from_slice(line);
    !reply.is_ok_and(|reply| reply.precedes_answer())
}

/// The agent's end. What it leaves as orphans is reaped on the way.
fn end(agent: &Child) -> Result<WaitStatus, Failure> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == agent.id() => {
                return Ok(status);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(at("wait for the agent")(e.into())),
        }
    }
}

fn answer(head: &Head, replies: &[u8]) -> io::Result<()> {
    let mut host = port::open(AGENT_PORT).map_err(|Failure(why)| io::Error::other(why))?;
    let mut line = serde_json::to_vec(head)?;
    line.push(b'\n');
    host.write_all(&line)?;
    host.write_all(replies)?;
    host.flush()
}
