//! From a command line to a guest that is ready: boots, and boots again when one
//! dies, because some do (an emulated CPU and code that patches itself).

use super::console::Console;
use super::frame::{Exec, Frame, FrameKind, Ready, Setup};
use super::launch::Launch;
use super::link::Link;
use super::machine::{Channels, Machine};
use super::qemu::{Accel, CommandLine};
use super::qmp::Monitor;
use crate::VmError;
use serde_json::json;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

const ATTEMPTS: u32 = 3;
/// Time between two looks at whether QEMU still runs.
const LOOK: Duration = Duration::from_millis(100);
/// A saved guest is read and answers within this.
const LOAD_LIMIT: Duration = Duration::from_secs(120);

/// A guest that answered.
#[derive(Debug)]
pub struct Guest {
    /// The QEMU process of the guest, with its console. Dropping it ends the guest.
    pub machine: Machine,
    /// The host's end of the control port, for commands in the guest.
    pub link: Link,
    /// Frames about the guest itself, such as the end of its agent.
    pub events: Receiver<Frame>,
    /// Stream of messages to and from the agent; silent in a guest without one.
    pub agent: UnixStream,
    /// Greeting of the guest, with its kernel.
    pub ready: Ready,
    /// Wall time from the start of QEMU.
    pub boot_time: Duration,
    /// 1 when the first boot succeeded.
    pub(crate) attempts: u32,
}

/// A boot that does not get this far is hung.
pub(crate) fn time_limit(accel: Accel) -> Duration {
    Duration::from_secs(match accel {
        Accel::Kvm => 30,
        Accel::Tcg => 180,
    })
}

pub(crate) fn boot(line: &CommandLine, setup: &Setup, launch: &Launch) -> Result<Guest, VmError> {
    let mut attempt = 1;
    loop {
        match boot_once(line, setup, launch) {
            Ok(guest) => {
                return Ok(Guest {
                    attempts: attempt,
                    ..guest
                });
            }
            Err(VmError::Gone { .. }) if launch.is_interrupted() => {
                return Err(VmError::Interrupted);
            }
            Err(VmError::Gone { why, tail }) if attempt < ATTEMPTS => {
                tracing::warn!("boot {attempt} of {ATTEMPTS} failed, trying again: {why}");
                tracing::debug!("console of the failed boot:\n{tail}");
                attempt += 1;
            }
            Err(e) => return Err(e),
        }
    }
}

fn boot_once(line: &CommandLine, setup: &Setup, launch: &Launch) -> Result<Guest, VmError> {
    let start = Instant::now();
    let (machine, Channels { control, agent }) = Machine::start(line.clone(), launch)?;
    let gone = |why| gone_error(why, &machine.console);
    let (link, events) = Link::new(control).map_err(|e| gone(e.to_string()))?;
    let greeting = Frame::json(FrameKind::Setup, 0, setup).map_err(|e| gone(e.to_string()))?;
    link.send(&greeting).map_err(|_| gone(death(&machine)))?;
    let limit = time_limit(line.accel);
    let ready = wait_until_ready(&machine, &events, limit, launch).map_err(gone)?;
    Ok(Guest {
        link,
        events,
        agent,
        ready,
        boot_time: start.elapsed(),
        attempts: 1,
        machine,
    })
}

/// Continue a saved guest. It is ready when a command runs in it.
pub(crate) fn resume(line: &CommandLine, ready: Ready, launch: &Launch) -> Result<Guest, VmError> {
    let start = Instant::now();
    let (machine, Channels { control, agent }) = Machine::start(line.clone(), launch)?;
    let failed = |e: std::io::Error| match machine.end_reason() {
        Some(end) => gone_error(end, &machine.console),
        None => gone_error(
            format!("the snapshot cannot be continued: {e}"),
            &machine.console,
        ),
    };
    machine
        .monitor()
        .and_then(|mut monitor| wait_until_loaded(&mut monitor))
        .map_err(failed)?;
    let (link, events) = Link::new(control).map_err(failed)?;
    answers(&link).map_err(failed)?;
    Ok(Guest {
        link,
        events,
        agent,
        ready,
        boot_time: start.elapsed(),
        attempts: 1,
        machine,
    })
}

fn wait_until_loaded(monitor: &mut Monitor) -> std::io::Result<()> {
    let start = Instant::now();
    loop {
        let state = monitor.run("query-status", json!({}))?;
        if state["status"] != "inmigrate" {
            return monitor.run("cont", json!({})).map(drop);
        }
        if start.elapsed() > LOAD_LIMIT {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(LOOK);
    }
}

/// Any end of the command will do: it comes from the guest.
fn answers(link: &Link) -> std::io::Result<()> {
    let exec = Exec {
        argv: vec!["true".to_owned()],
        ..Exec::default()
    };
    let answer = link.exec(&exec)?.next_within(LOAD_LIMIT);
    answer.map(drop).map_err(std::io::Error::other)
}

fn wait_until_ready(
    machine: &Machine,
    events: &Receiver<Frame>,
    limit: Duration,
    launch: &Launch,
) -> Result<Ready, String> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if launch.is_interrupted() {
            return Err("it was interrupted".to_owned());
        }
        match events.recv_timeout(LOOK) {
            Ok(frame) if frame.kind == FrameKind::Ready => {
                return frame
                    .parse()
                    .map_err(|e| format!("the guest's greeting: {e}"));
            }
            Ok(frame) if frame.kind == FrameKind::Failed => {
                return Err(format!("the guest's init failed: {}", frame.payload_text()));
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(death(machine)),
        }
        // A panic that does not end QEMU is an end too.
        if machine.console.panic().is_some() {
            return Err(death(machine));
        }
    }
    Err(format!(
        "the guest was not ready after {} s",
        limit.as_secs()
    ))
}

/// Why the machine is gone, in one line: the kernel's words before QEMU's.
pub fn death(machine: &Machine) -> String {
    // The last words may still be on their way.
    let end = machine.wait_for_end(Duration::from_secs(2));
    match (machine.console.panic(), end) {
        (Some(panic), _) => format!("the guest's kernel died: {panic}"),
        (None, Some(end)) => end,
        (None, None) => "the guest closed its channel".to_owned(),
    }
}

/// Error for a guest that ended because of `why`, with the last lines of its console.
pub fn gone_error(why: String, console: &Console) -> VmError {
    VmError::Gone {
        why,
        tail: console.tail(),
    }
}
