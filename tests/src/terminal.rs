//! A terminal for a program that behaves otherwise without one.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest wait for a text. A guest of a busy machine takes a while, and no test is about it.
const PATIENCE: Duration = Duration::from_secs(180);

/// A program that runs on a terminal of its own, and what that has shown.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: File,
    /// Pieces of what is shown, until the program has ended.
    pieces: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    /// Length of the text that was expected so far, with all before it.
    seen: usize,
}

impl Terminal {
    /// Starts the command with this terminal as all of its streams, by setsid(1): Ctrl-C reaches
    /// it as it does in a shell.
    pub fn start(command: &Command, columns: u16) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it can be opened");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let size = Winsize {
            ws_row: 50,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).expect("it has a size");
        let slave = || {
            let opened = File::options().read(true).write(true).open(path);
            opened.expect("the terminal opens")
        };
        let mut started = Command::new("setsid");
        started.arg("--ctty").arg(command.get_program());
        started.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => started.env(name, value),
                None => started.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            started.current_dir(directory);
        }
        started.env("TERM", "xterm").env_remove("COLUMNS");
        started.stdin(slave()).stdout(slave()).stderr(slave());
        let child = started.spawn().expect("setsid of util-linux");
        // The command holds the terminal open, and it must be gone when the program is.
        drop(started);
        let keys = File::from(master.try_clone().expect("a descriptor"));
        Terminal {
            child,
            keys,
            pieces: read(master),
            bytes: Vec::new(),
            seen: 0,
        }
    }

    /// Waits until this is shown, after what was expected before it.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if let Some(at) = shown[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.pieces.recv_timeout(left) {
                Ok(piece) => self.bytes.extend(piece),
                Err(RecvTimeoutError::Timeout) => panic!("`{text}` was not shown:\n{shown}"),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the program ended without `{text}`:\n{shown}")
                }
            }
        }
    }

    /// Types this; Ctrl-C is `\u{3}`.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it is typed");
    }

    /// Waits for the end of the program; gives its status and all that was shown.
    pub fn end(mut self) -> (ExitStatus, String) {
        while let Ok(piece) = self.pieces.recv() {
            self.bytes.extend(piece);
        }
        let status = self.child.wait().expect("it ends");
        (status, self.shown())
    }

    /// The text without escape sequences; what a line was overwritten with follows it.
    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let mut parts = text.split("\u{1b}[");
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| c.is_ascii_alphabetic());
            shown.push_str(end.map_or("", |end| &part[end + 1..]));
        }
        shown.replace('\r', "")
    }
}

/// Reads all that is shown, until nobody has the terminal open any more.
fn read(master: OwnedFd) -> Receiver<Vec<u8>> {
    let (sender, pieces) = channel();
    std::thread::spawn(move || {
        let mut file = File::from(master);
        let mut piece = [0; 4096];
        // The end is an error (EIO).
        while let Ok(length @ 1..) = file.read(&mut piece) {
            if sender.send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}
