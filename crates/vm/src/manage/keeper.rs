//! The process in the background: it boots the guest, hands commands to it, and
//! ends with it.

use super::place::{Claim, Place};
use super::{Answer, StartRequest, Status};
use crate::boot::Guest;
use crate::check;
use crate::failure::{io, unmet_error};
use crate::frame::{Exec, Frame, FrameKind, Ready};
use crate::link::{Link, Output};
use crate::machine::Machine;
use crate::saved_state;
use crate::{Vm, VmError};
use doors::written;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Time between two looks at whether the guest is still there.
const LOOK: Duration = Duration::from_millis(250);

/// The body of the hidden subcommand: a `StartRequest` on standard input, an `Answer` in
/// one line on standard output, then nothing more is said.
pub fn main() -> ExitCode {
    match prepare() {
        Ok((keeper, stopped)) => {
            let _ = set_parent_process_death_signal(None);
            answer(&Answer::Ready(keeper.status.clone()));
            let _ = detach();
            keeper.keep(&stopped);
            ExitCode::SUCCESS
        }
        Err(error) => {
            answer(&Answer::Failed(check::as_problem("guest", error)));
            ExitCode::FAILURE
        }
    }
}

struct Keeper {
    /// The name is free again when this is dropped.
    claim: Claim,
    status: Status,
    listener: UnixListener,
    desk: Desk,
}

/// State that every client's thread works with.
#[derive(Clone)]
struct Desk {
    request: StartRequest,
    vm: Arc<Mutex<Vm>>,
    ready: Ready,
    machine: Arc<Machine>,
    link: Link,
    /// Stream of the agent of a guest that a run saved. The guest would end with it.
    _agent: Arc<UnixStream>,
    stop: Sender<()>,
}

fn prepare() -> Result<(Keeper, Receiver<()>), VmError> {
    // A terminal that is closed must not take the guest with it. While the guest boots,
    // who waits for it may give up (Ctrl-C).
    let _ = rustix::process::setsid();
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let text = doors::read::stream_text(std::io::stdin(), doors::read::SMALL_FILE_BYTES)
        .map_err(io("read", "standard input".as_ref()))?;
    let request: StartRequest =
        serde_json::from_str(&text).map_err(|e| VmError::Garbled(e.to_string()))?;
    let vm = Vm::new(request.spec.clone(), request.options.clone());
    if let Some(problem) = vm.check_host().into_iter().next() {
        return Err(VmError::Unmet(problem));
    }
    let claim = Place::for_guest(&request.name)?.claim(&request.name)?;
    let (guest, vm) = start(&request, vm)?;
    let (stop, stopped) = channel();
    let desk = Desk {
        request,
        vm: Arc::new(Mutex::new(vm)),
        ready: guest.ready,
        machine: Arc::new(guest.machine),
        link: guest.link,
        _agent: Arc::new(guest.agent),
        stop,
    };
    Ok((open(claim, desk)?, stopped))
}

/// Boot the guest, or continue the snapshot that is asked for.
fn start(request: &StartRequest, mut vm: Vm) -> Result<(Guest, Vm), VmError> {
    let guest = match vm.go_on_from_name(false)? {
        Some(guest) => guest,
        None if request.spec.snapshot.is_some() => {
            let what = "its snapshot was removed just now";
            return Err(unmet_error(
                "the guest",
                what,
                "see `schedlab vm snapshot list`",
            ));
        }
        None => vm.boot(None, false)?,
    };
    warn(&vm);
    Ok((guest, vm))
}

fn warn(vm: &Vm) {
    for warning in vm.lacks_of_confinement() {
        tracing::warn!("{}: {}", warning.what, warning.remedy);
    }
}

fn open(claim: Claim, desk: Desk) -> Result<Keeper, VmError> {
    let place = &claim.place;
    let listener = UnixListener::bind(place.socket()).map_err(io("bind", &place.socket()))?;
    let status = Status {
        name: desk.request.name.clone(),
        pid: std::process::id(),
        started_unix_s: SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |time| time.as_secs()),
        facts: desk.vm().facts(),
    };
    let json = serde_json::to_vec(&status).map_err(|e| VmError::Garbled(e.to_string()))?;
    written::write_file(&place.status_file(), json).map_err(io("write", &place.status_file()))?;
    Ok(Keeper {
        claim,
        status,
        listener,
        desk,
    })
}

fn answer(answer: &Answer) {
    if let Ok(line) = serde_json::to_string(answer) {
        let mut stdout =
            doors::shown::raw_output("the answer to the process that started it").lock();
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    }
}

/// Whoever waits for the end of our output must not wait for the guest's.
fn detach() -> std::io::Result<()> {
    let null = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

impl Keeper {
    /// Until someone stops it or the guest ends.
    fn keep(self, stopped: &Receiver<()>) {
        let (listener, desk) = (self.listener, self.desk.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let desk = desk.clone();
                // A client that breaks off ends its own command, nothing else.
                std::thread::spawn(move || drop(desk.serve(client)));
            }
        });
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
            if self.desk.machine.end_reason().is_some() {
                break;
            }
        }
        self.desk.machine.kill_qemu();
        drop(self.claim);
    }
}

impl Desk {
    fn serve(&self, mut client: UnixStream) -> std::io::Result<()> {
        let Some(frame) = Frame::read(&mut client)? else {
            return Ok(());
        };
        match frame.kind {
            FrameKind::PowerOff => {
                let _ = self.stop.send(());
                Ok(())
            }
            FrameKind::Exec => run(client, &frame.parse()?, &self.link),
            FrameKind::Snapshot => self.answer_snapshot(&mut client, &frame.payload_text()),
            _ => Err(std::io::ErrorKind::InvalidData.into()),
        }
    }

    fn answer_snapshot(&self, client: &mut UnixStream, name: &str) -> std::io::Result<()> {
        let answer = match self.save(name) {
            Ok(()) => Frame::new(FrameKind::Ready, 0, ""),
            Err(e) => Frame::new(FrameKind::Failed, 0, e.to_string()),
        };
        answer.write(client)
    }

    fn vm(&self) -> MutexGuard<'_, Vm> {
        self.vm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the guest, saves it, and lets it go on. A frame that is half sent would be lost in the
    /// copy, so no command may run.
    fn save(&self, name: &str) -> Result<(), VmError> {
        if self.link.is_busy() {
            let remedy = "end the command first";
            return Err(unmet_error("the guest", "a command runs in it", remedy));
        }
        let mut vm = self.vm();
        // The agent of a run is still in it, with all that it had started.
        let done = vm.recall_snapshot().and_then(|from| from.done.clone());
        let snapshot = vm.describe_guest(name, &self.request.name, &self.ready, done)?;
        let monitor = self.machine.monitor();
        let mut monitor = monitor.map_err(io("talk to", Path::new("QEMU's monitor")))?;
        snapshot.store(&vm.snapshots(), |file| {
            let written = saved_state::write(&mut monitor, file);
            let resumed = monitor.run("cont", json!({}));
            written.and(resumed.map(drop))
        })
    }
}

/// Frames pass through with the channel that the guest knows.
fn run(mut client: UnixStream, exec: &Exec, link: &Link) -> std::io::Result<()> {
    let output = link.exec(exec)?;
    let channel = output.channel;
    let (mut input, to_guest) = (client.try_clone()?, link.clone());
    std::thread::spawn(move || {
        while let Ok(Some(frame)) = Frame::read(&mut input) {
            let frame = Frame { channel, ..frame };
            if to_guest.send(&frame).is_err() {
                return;
            }
        }
        let _ = to_guest.send(&Frame::new(FrameKind::Hangup, channel, ""));
    });
    pass_to(&mut client, output)?;
    client.shutdown(std::net::Shutdown::Both)
}

/// A client that does not read holds up its own command: the guest waits for room.
fn pass_to(client: &mut UnixStream, output: Output) -> std::io::Result<()> {
    for frame in output {
        let last = frame.kind == FrameKind::Exit;
        frame.write(client)?;
        if last {
            return Ok(());
        }
    }
    Frame::new(FrameKind::Failed, 0, "the guest is gone").write(client)
}
