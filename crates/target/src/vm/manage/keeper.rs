//! The process in the background: it boots the guest, hands commands to it, and
//! ends with it.

use super::{Answer, Place, Request, Status};
use crate::vm::VmTarget;
use crate::vm::boot::Guest;
use crate::vm::check;
use crate::vm::failure::io;
use crate::vm::frame::{Exec, Frame, FrameKind};
use crate::vm::link::Link;
use crate::{Boot, Target, TargetError};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

/// How often it looks whether the guest is still there.
const LOOK: Duration = Duration::from_millis(250);

/// The body of the hidden subcommand: a `Request` on standard input, an `Answer` in
/// one line on standard output, then nothing more is said.
pub fn main() -> ExitCode {
    match prepare() {
        Ok(keeper) => {
            answer(&Answer::Ready(keeper.status.clone()));
            let _ = detach();
            keeper.keep();
            ExitCode::SUCCESS
        }
        Err(error) => {
            answer(&Answer::Failed(check::as_problem("guest", error)));
            ExitCode::FAILURE
        }
    }
}

struct Keeper {
    place: Place,
    status: Status,
    guest: Guest,
    listener: UnixListener,
}

fn prepare() -> Result<Keeper, TargetError> {
    // A terminal that is closed must not take the guest with it.
    let _ = rustix::process::setsid();
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(io("read", "standard input".as_ref()))?;
    let request: Request =
        serde_json::from_str(&text).map_err(|e| TargetError::Garbled(e.to_string()))?;
    let place = Place::of(&request.name)?;
    let mut target = VmTarget::new(request.spec.clone(), request.options.clone());
    if let Some(problem) = check::host(&request.spec).into_iter().next() {
        return Err(TargetError::Unmet(problem));
    }
    let guest = target.boot(&Boot::default(), false)?;
    place.create()?;
    let listener = UnixListener::bind(place.socket()).map_err(io("bind", &place.socket()))?;
    let status = Status {
        name: request.name,
        pid: std::process::id(),
        started_unix_s: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_secs()),
        facts: target.facts(),
    };
    let json = serde_json::to_vec(&status).map_err(|e| TargetError::Garbled(e.to_string()))?;
    fs::write(place.status_file(), json).map_err(io("write", &place.status_file()))?;
    Ok(Keeper {
        place,
        status,
        guest,
        listener,
    })
}

fn answer(answer: &Answer) {
    if let Ok(line) = serde_json::to_string(answer) {
        println!("{line}");
        let _ = std::io::stdout().flush();
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
    fn keep(self) {
        let (stop, stopped) = channel();
        let link = self.guest.link.clone();
        let listener = self.listener;
        std::thread::spawn(move || serve(&listener, &link, &stop));
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
            if self.guest.machine.ended().is_some() {
                break;
            }
        }
        drop(self.guest);
        self.place.remove();
    }
}

fn serve(listener: &UnixListener, link: &Link, stop: &Sender<()>) {
    for client in listener.incoming().flatten() {
        let (link, stop) = (link.clone(), stop.clone());
        std::thread::spawn(move || {
            // A client that breaks off ends its own command, nothing else.
            let _ = serve_client(client, &link, &stop);
        });
    }
}

fn serve_client(mut client: UnixStream, link: &Link, stop: &Sender<()>) -> std::io::Result<()> {
    let Some(frame) = Frame::read(&mut client)? else {
        return Ok(());
    };
    match frame.kind {
        FrameKind::PowerOff => {
            let _ = stop.send(());
            Ok(())
        }
        FrameKind::Exec => run(client, &frame.parse()?, link),
        _ => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

/// Frames pass through with the channel that the guest knows.
fn run(mut client: UnixStream, exec: &Exec, link: &Link) -> std::io::Result<()> {
    let (channel, frames) = link.exec(exec)?;
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
    pass_to(&mut client, &frames)?;
    client.shutdown(std::net::Shutdown::Both)
}

fn pass_to(client: &mut UnixStream, frames: &Receiver<Frame>) -> std::io::Result<()> {
    for frame in frames {
        let last = frame.kind == FrameKind::Exit;
        frame.write(client)?;
        if last {
            return Ok(());
        }
    }
    Frame::new(FrameKind::Failed, 0, "the guest is gone").write(client)
}
