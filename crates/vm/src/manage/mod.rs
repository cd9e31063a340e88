//! Guests for looking around in (`schedlab vm start|exec|shell|stop|status`): the
//! same guest that experiments use, kept by a process in the background.
//!
//! The state of a guest is a directory with a lock and a socket; there is nothing else
//! to repair when its keeper is killed. QEMU ends with the keeper.

mod client;
pub mod keeper;
mod place;
pub mod snapshot;
mod terminal;

pub use client::{exec, shell};

use super::failure::{io, unmet_error};
use super::frame::{Frame, FrameKind};
use super::{Options, VmSpec};
use crate::VmError;
use doors::started::own_command;
use place::Place;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The hidden subcommand whose body is `keeper::main`.
pub const KEEPER_COMMAND: &str = "vm-keeper";
/// The guest that is meant when none is named.
pub const DEFAULT_GUEST: &str = "default";
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Request that a keeper is started with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartRequest {
    /// Name of the guest, unique among those of the user: letters, digits, `-` and `_`.
    pub name: String,
    /// Description of the machine, with the snapshot that it goes on from.
    pub spec: VmSpec,
    /// Program, directories and environment of the guest.
    pub options: Options,
}

/// A guest that runs in the background.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the guest.
    pub name: String,
    /// The keeper's.
    pub pid: u32,
    /// Time at which it was ready, in seconds since the epoch.
    pub started_unix_s: u64,
    /// Facts of the machine (`vm.accel`, `vm.kernel`, …).
    pub facts: BTreeMap<String, String>,
}

/// Answer of a keeper when its guest is ready, or is not.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Ready(Status),
    Failed(model::Problem),
}

/// Start a guest in the background; returns when it is ready.
pub fn start(request: &StartRequest) -> Result<Status, VmError> {
    let place = Place::for_guest(&request.name)?;
    if place.connect().is_ok() {
        return Err(unmet_error(
            &format!("guest {}", request.name),
            "it is running already",
            &format!(
                "use it, or end it with `{}`",
                command("stop", &request.name)
            ),
        ));
    }
    let program = env::current_exe().map_err(io("find this program", Path::new("/proc/self")))?;
    let mut child = own_command(&program)
        .arg(KEEPER_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(io("start", &program))?;
    let request = serde_json::to_string(request).map_err(|e| VmError::Garbled(e.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(request.as_bytes())
            .map_err(io("tell", &program))?;
    }
    let mut line = None;
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        line = doors::read::line_within(&mut stdout, doors::read::SMALL_FILE_BYTES)
            .map_err(io("hear from", &program))?;
    }
    match serde_json::from_slice(&line.unwrap_or_default()) {
        Ok(Answer::Ready(status)) => Ok(status),
        Ok(Answer::Failed(problem)) => Err(VmError::Unmet(problem)),
        Err(_) => Err(unmet_error(
            "the process that keeps the guest",
            "it ended without an answer",
            "run it again with SCHEDLAB_LOG=debug",
        )),
    }
}

/// The guests that run, and tidy up after those whose keeper is gone.
pub fn status() -> Result<Vec<Status>, VmError> {
    let mut found = Vec::new();
    for place in Place::list_all()? {
        match (place.connect(), place.status()) {
            (Ok(_), Some(status)) => found.push(status),
            // One that is starting has neither socket nor status yet.
            _ => place.tidy(),
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// End a guest; returns when it is gone.
pub fn stop(name: &str) -> Result<(), VmError> {
    let place = Place::for_guest(name)?;
    match place.keeper().filter(|_| !place.socket().exists()) {
        Some(pid) => end_start(pid).map_err(io("end", &place.socket()))?,
        None => Frame::new(FrameKind::PowerOff, 0, "")
            .write(&mut connect(name)?)
            .map_err(io("write", &place.socket()))?,
    }
    let start = Instant::now();
    while place.keeper().is_some() {
        if start.elapsed() > STOP_LIMIT {
            return Err(unmet_error(
                &format!("guest {name}"),
                "its keeper does not end",
                "see its process id in `schedlab vm status`, and kill that",
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    place.tidy();
    Ok(())
}

/// A keeper that still boots its guest listens to nobody; QEMU ends with it.
fn end_start(pid: u32) -> std::io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(kill_process(pid, Signal::TERM)?)
}

/// A connection to the keeper of a guest.
fn connect(name: &str) -> Result<UnixStream, VmError> {
    Place::for_guest(name)?.connect().map_err(|_| {
        let running = status().unwrap_or_default();
        let names: Vec<&str> = running.iter().map(|s| s.name.as_str()).collect();
        let remedy = match names[..] {
            [] => "start one with `schedlab vm start`".to_owned(),
            _ => format!("these run: {}", names.join(", ")),
        };
        unmet_error(&format!("guest {name}"), "no such guest runs", &remedy)
    })
}

/// Command to type for a guest: the default one needs no name.
fn command(verb: &str, guest: &str) -> String {
    match guest {
        DEFAULT_GUEST => format!("schedlab vm {verb}"),
        _ => format!("schedlab vm {verb} --name {guest}"),
    }
}

/// Names become directories.
pub(crate) fn check_name(kind: &str, name: &str) -> Result<(), VmError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && !name.starts_with('.') && name.chars().all(plain) {
        return Ok(());
    }
    Err(unmet_error(
        &format!("{kind} {name:?}"),
        "this is not a name",
        "use letters, digits, - and _",
    ))
}
