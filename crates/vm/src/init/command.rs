//! A command that the host asked for: on pipes, or on a terminal of its own.

use super::super::frame::{self, Exec, Exit, Frame, FrameKind, MAX_PAYLOAD, WINDOW};
use super::super::sys;
use super::children::{Children, Host, Started, base_command, exit_code, lock};
use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Output that a command's children still hold open is waited for this long.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

pub struct Running {
    pid: i32,
    window: Arc<Window>,
    /// `None` once the command's input is closed.
    input: Option<Sender<Vec<u8>>>,
    terminal: Option<File>,
    ended: Arc<AtomicBool>,
}

impl Running {
    pub fn pass_frame(&self, frame: Frame) {
        match (frame.kind, &self.input, &self.terminal) {
            (FrameKind::Room, _, _) => self.window.make_room(frame.room_bytes()),
            (FrameKind::Input, Some(input), _) => drop(input.send(frame.payload)),
            (FrameKind::Resize, _, Some(terminal)) => {
                if let Ok(window) = frame.parse() {
                    resize(terminal, window);
                }
            }
            _ => {}
        }
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The peer is gone: end the command and all of its session.
    pub fn hang_up(&self) {
        self.window.close();
        if let Some(group) = Pid::from_raw(self.pid) {
            for signal in [Signal::HUP, Signal::TERM] {
                let _ = kill_process_group(group, signal);
            }
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// Room for output that the host has not taken yet.
struct Window {
    state: Mutex<WindowState>,
    changed: Condvar,
}

struct WindowState {
    room: usize,
    waiting: u32,
    closed: bool,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            state: Mutex::new(WindowState {
                room: WINDOW,
                waiting: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }
}

impl Window {
    /// Wait for this much room; `false` when nobody wants the output any more.
    fn take(&self, bytes: usize) -> bool {
        let mut state = lock(&self.state);
        state.waiting += 1;
        let enough = |state: &mut WindowState| state.room < bytes && !state.closed;
        let waited = self.changed.wait_while(state, enough);
        state = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state.room = state.room.saturating_sub(bytes);
        !state.closed
    }

    fn make_room(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.room = state.room.saturating_add(bytes).min(WINDOW);
        self.changed.notify_all();
    }

    fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    fn is_waited_for(&self) -> bool {
        lock(&self.state).waiting > 0
    }
}

/// Streams that a command is started with, and the guest's ends of them.
struct Streams {
    input: File,
    output: File,
    errors: Option<File>,
    terminal: Option<File>,
}

pub fn start(
    exec: &Exec,
    channel_id: u32,
    setup: &super::super::frame::Setup,
    host: &Host,
    children: &Children,
) -> io::Result<Running> {
    let mut command = command(exec, setup)?;
    let (tell, status) = channel();
    let (started, streams) = match exec.terminal {
        Some(window) => on_terminal(&mut command, window, children, tell)?,
        None => on_pipes(&mut command, children, tell)?,
    };
    let ended = Arc::new(AtomicBool::new(false));
    let input = feed(streams.input);
    let window = Arc::new(Window::default());
    let drained = drain(streams.output, streams.errors, channel_id, host, &window);
    let ended_by = ended.clone();
    finish(
        status,
        drained,
        window.clone(),
        channel_id,
        host.clone(),
        ended_by,
    );
    Ok(Running {
        pid: started.pid,
        window,
        input: Some(input),
        terminal: streams.terminal,
        ended,
    })
}

fn command(exec: &Exec, setup: &super::super::frame::Setup) -> io::Result<Command> {
    let (program, args) = exec.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = base_command(program, setup);
    command.args(args).envs(&exec.environment);
    if let Some(directory) = &exec.directory {
        command.current_dir(directory);
    }
    Ok(command)
}

fn on_pipes(
    command: &mut Command,
    children: &Children,
    tell: Sender<WaitStatus>,
) -> io::Result<(Started, Streams)> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    sys::lead_session(command, false);
    let mut started = children.start(command, tell)?;
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let input = started.child.stdin.take().ok_or_else(gone)?;
    let output = started.child.stdout.take().ok_or_else(gone)?;
    let errors = started.child.stderr.take().ok_or_else(gone)?;
    let streams = Streams {
        input: File::from(std::os::fd::OwnedFd::from(input)),
        output: File::from(std::os::fd::OwnedFd::from(output)),
        errors: Some(File::from(std::os::fd::OwnedFd::from(errors))),
        terminal: None,
    };
    Ok((started, streams))
}

fn on_terminal(
    command: &mut Command,
    window: frame::Window,
    children: &Children,
    tell: Sender<WaitStatus>,
) -> io::Result<(Started, Streams)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let theirs = File::options().read(true).write(true).open(path)?;
    let ours = File::from(ours);
    resize(&ours, window);
    command
        .stdin(Stdio::from(theirs.try_clone()?))
        .stdout(Stdio::from(theirs.try_clone()?))
        .stderr(Stdio::from(theirs));
    sys::lead_session(command, true);
    let started = children.start(command, tell)?;
    // The command holds its side of the terminal; ours ends when it closes that.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let streams = Streams {
        input: ours.try_clone()?,
        output: ours.try_clone()?,
        errors: None,
        terminal: Some(ours),
    };
    Ok((started, streams))
}

fn resize(terminal: &File, window: frame::Window) {
    let size = rustix::termios::Winsize {
        ws_row: window.rows,
        ws_col: window.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let _ = rustix::termios::tcsetwinsize(terminal, size);
}

/// A command that does not read must not stop the others, so its input queues here.
fn feed(mut to: File) -> Sender<Vec<u8>> {
    let (sender, inputs) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for input in inputs {
            if to.write_all(&input).is_err() {
                break;
            }
        }
    });
    sender
}

/// The receiver ends when all output is sent.
fn drain(
    output: File,
    errors: Option<File>,
    channel_id: u32,
    host: &Host,
    window: &Arc<Window>,
) -> Receiver<()> {
    let (done, drained) = channel();
    let streams = [
        (Some(output), FrameKind::Output),
        (errors, FrameKind::Errors),
    ];
    for (stream, kind) in streams {
        let Some(stream) = stream else { continue };
        let (host, done, window) = (host.clone(), done.clone(), window.clone());
        std::thread::spawn(move || {
            forward(stream, kind, channel_id, &host, &window);
            drop(done);
        });
    }
    drained
}

fn forward(mut from: File, kind: FrameKind, channel_id: u32, host: &Host, window: &Window) {
    let mut buffer = vec![0; MAX_PAYLOAD / 2];
    // A terminal ends with an error (EIO), a pipe with nothing to read.
    while let Ok(size @ 1..) = from.read(&mut buffer) {
        let frame = Frame::new(kind, channel_id, &buffer[..size]);
        if !window.take(frame.cost()) || frame.write(&mut *lock(host)).is_err() {
            break;
        }
    }
}

/// The exit is the last frame of a channel.
fn finish(
    status: Receiver<WaitStatus>,
    drained: Receiver<()>,
    window: Arc<Window>,
    channel_id: u32,
    host: Host,
    ended: Arc<AtomicBool>,
) {
    std::thread::spawn(move || {
        let code = status.recv().map_or(255, exit_code);
        // Nothing is ever sent: this waits until all senders are gone. A reader that is
        // slow gets all of the output all the same.
        while drained.recv_timeout(OUTPUT_GRACE) == Err(RecvTimeoutError::Timeout) {
            if !window.is_waited_for() {
                break;
            }
        }
        ended.store(true, Ordering::Release);
        let exit = Exit { code, error: None };
        if let Ok(frame) = Frame::json(FrameKind::Exit, channel_id, &exit) {
            let _ = frame.write(&mut *lock(&host));
        }
    });
}
