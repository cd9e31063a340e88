//! A running QEMU: its process, its console and its channels. It ends with the
//! object, and with this program however that ends.

use super::console::Console;
use super::failure::{io, unmet};
use super::qemu::{CommandLine, Descriptors, PROGRAM};
use super::qmp::Monitor;
use super::sys;
use crate::TargetError;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

/// A QEMU that was killed has this long to be gone.
const END_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Machine {
    pub console: Console,
    process: OwnedFd,
    pid: u32,
    end: Arc<End>,
    monitor: Mutex<Monitor>,
}

/// The host ends of the guest's channels.
#[derive(Debug)]
pub struct Channels {
    pub control: UnixStream,
    pub agent: UnixStream,
}

/// How QEMU ended, once it has.
#[derive(Debug, Default)]
struct End {
    how: Mutex<Option<String>>,
    changed: Condvar,
}

impl Machine {
    /// Start QEMU; `line.descriptors` are filled in here.
    pub fn start(mut line: CommandLine) -> Result<(Self, Channels), TargetError> {
        let pair = || UnixStream::pair().map_err(io("create", Path::new("a socket pair")));
        let (console, monitor, control, agent) = (pair()?, pair()?, pair()?, pair()?);
        let theirs = [&console.1, &monitor.1, &control.1, &agent.1].map(|s| s.as_raw_fd());
        line.descriptors = Descriptors {
            console: theirs[0],
            monitor: theirs[1],
            control: theirs[2],
            agent: theirs[3],
        };
        let end = Arc::new(End::default());
        let (pid, process) = start_warden(command(&line, theirs.to_vec()), end.clone())?;
        let log = Console::default();
        log.follow(console.0);
        let machine = Machine {
            console: log,
            process,
            pid,
            end,
            monitor: Mutex::new(Monitor::new(monitor.0)),
        };
        let channels = Channels {
            control: control.0,
            agent: agent.0,
        };
        Ok((machine, channels))
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How QEMU ended; `None` while it runs.
    pub fn ended(&self) -> Option<String> {
        self.end.lock().clone()
    }

    pub fn wait_for_end(&self, limit: Duration) -> Option<String> {
        let how = self.end.lock();
        let waited = self
            .end
            .changed
            .wait_timeout_while(how, limit, |how| how.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// The monitor, for one user at a time.
    pub fn monitor(&self) -> std::io::Result<MutexGuard<'_, Monitor>> {
        let mut guard = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        guard.connect()?;
        Ok(guard)
    }

    /// End it; nothing in it is worth a clean shutdown.
    pub fn end(&self) {
        // It may be gone already, which is what is wanted.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
        self.wait_for_end(END_LIMIT);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

impl End {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.how.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, how: String) {
        *self.lock() = Some(how);
        self.changed.notify_all();
    }
}

fn command(line: &CommandLine, inherit: Vec<i32>) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(line.args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    sys::bind_to_parent(&mut command, inherit);
    command
}

/// QEMU is bound to the thread that starts it, so that thread lives as long as QEMU.
fn start_warden(mut command: Command, end: Arc<End>) -> Result<(u32, OwnedFd), TargetError> {
    let (tell, started) = mpsc::channel();
    std::thread::spawn(move || {
        let child = command
            .spawn()
            .and_then(|child| Ok((pidfd(&child)?, child)));
        match child {
            Err(e) => drop(tell.send(Err(e))),
            Ok((fd, child)) => {
                let _ = tell.send(Ok((child.id(), fd)));
                end.set(wait(child));
            }
        }
    });
    let started = started
        .recv()
        .unwrap_or_else(|e| Err(std::io::Error::other(e)));
    started.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => not_installed(),
        _ => io("start", Path::new(PROGRAM))(e),
    })
}

pub fn not_installed() -> TargetError {
    unmet(
        PROGRAM,
        "it is not installed, and the target vm runs in it",
        "install the package qemu-system-x86",
    )
}

fn pidfd(child: &Child) -> std::io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// `exit status: 1: qemu-system-x86_64: …`.
fn wait(child: Child) -> String {
    match child.wait_with_output() {
        Err(e) => format!("QEMU cannot be waited for: {e}"),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let status = format!("QEMU ended with {}", output.status);
            match errors.trim() {
                "" => status,
                errors => format!("{status}: {errors}"),
            }
        }
    }
}
