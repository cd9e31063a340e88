//! A command in a guest that runs in the background, with this process's own
//! standard streams.

use super::connect;
use super::terminal::{self, RawMode};
use crate::VmError;
use crate::failure::{io, unmet_error};
use crate::frame::{Exec, Exit, Frame, FrameKind, MAX_PAYLOAD};
use doors::shown::{print_note, raw_errors, raw_output};
use rustix::termios::isatty;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Reason for streams that are handed on as they are: who starts a program in a guest, on this
/// terminal or in a pipe, wants its bytes.
const GUEST: &str = "the program that was asked for has these streams";

type Sink = Arc<Mutex<UnixStream>>;

/// Run a command in the guest; its exit code, as a shell tells it.
pub fn exec(name: &str, exec: &Exec) -> Result<u8, VmError> {
    let stream = connect(name)?;
    run(stream, exec)
}

/// A shell on this terminal.
pub fn shell(name: &str, argv: Vec<String>) -> Result<u8, VmError> {
    let stream = connect(name)?;
    if !isatty(std::io::stdin()) {
        return Err(unmet_error(
            "standard input",
            "it is not a terminal, which a shell needs",
            &format!("use `{} COMMAND`", super::command("exec", name)),
        ));
    }
    let exec = Exec {
        argv,
        terminal: Some(terminal::window()),
        ..Exec::default()
    };
    let _raw = RawMode::enter().map_err(io("set up", Path::new("the terminal")))?;
    run(stream, &exec)
}

fn run(stream: UnixStream, exec: &Exec) -> Result<u8, VmError> {
    let broken = |e| io("talk to", Path::new("the guest's keeper"))(e);
    let sink: Sink = Arc::new(Mutex::new(stream.try_clone().map_err(broken)?));
    let first = Frame::json(FrameKind::Exec, 0, exec).map_err(broken)?;
    send(&sink, &first).map_err(broken)?;
    let input = sink.clone();
    std::thread::spawn(move || forward_input(&input));
    if exec.terminal.is_some() {
        terminal::follow_window(move |window| {
            let frame = Frame::json(FrameKind::Resize, 0, &window)?;
            send(&sink, &frame)
        });
    }
    receive(stream)
}

fn send(sink: &Sink, frame: &Frame) -> std::io::Result<()> {
    frame.write(&mut *sink.lock().unwrap_or_else(PoisonError::into_inner))
}

fn forward_input(sink: &Sink) {
    let mut buffer = vec![0; MAX_PAYLOAD / 2];
    let mut stdin = std::io::stdin().lock();
    while let Ok(size @ 1..) = stdin.read(&mut buffer) {
        if send(sink, &Frame::new(FrameKind::Input, 0, &buffer[..size])).is_err() {
            return;
        }
    }
    let _ = send(sink, &Frame::new(FrameKind::InputEnd, 0, ""));
}

fn receive(mut stream: UnixStream) -> Result<u8, VmError> {
    let gone = || VmError::Gone {
        why: "the guest is gone".to_owned(),
        tail: String::new(),
    };
    loop {
        let frame = Frame::read(&mut stream).ok().flatten().ok_or_else(gone)?;
        match frame.kind {
            FrameKind::Output => put(&mut raw_output(GUEST), &frame.payload),
            FrameKind::Errors => put(&mut raw_errors(GUEST), &frame.payload),
            FrameKind::Exit => return finish(&frame),
            _ => return Err(gone()),
        }
    }
}

/// A reader of ours that is gone is no error of the command.
fn put(to: &mut impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}

fn finish(frame: &Frame) -> Result<u8, VmError> {
    let exit: Exit = frame.parse().map_err(|e| VmError::Garbled(e.to_string()))?;
    if let Some(error) = exit.error {
        print_note(format_args!("the command was not started: {error}"));
    }
    Ok(exit.code)
}
