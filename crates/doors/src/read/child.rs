//! Output of another program, read within a limit and a time.

use super::{discard_rest, too_large};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time in which the streams of a program end after it: a descendant may hold them open.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Between two looks at a program that runs, at first and at most.
const LOOK: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(10));

/// The conditions under which a program is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Time after which it is killed.
    pub time: Duration,
    /// The most bytes that it may say, on each of its two streams.
    pub most_bytes: u64,
    /// Its standard input.
    pub input: &'a [u8],
    /// Flag that ends it.
    pub interrupted: Option<&'a AtomicBool>,
    /// False where it has a process group of its own, which is killed as a whole. True where Ctrl-C
    /// at the terminal is to end it together with this process.
    pub with_us: bool,
}

impl Asked<'_> {
    /// For work that fetches or builds something: six hours and 64 MiB, and Ctrl-C ends it.
    pub fn of_work() -> Self {
        Asked {
            time: Duration::from_secs(6 * 3600),
            most_bytes: 64 << 20,
            with_us: true,
            ..Asked::default()
        }
    }
}

impl Default for Asked<'_> {
    /// A minute and 16 MiB.
    fn default() -> Self {
        Asked {
            time: Duration::from_secs(60),
            most_bytes: 16 << 20,
            input: &[],
            interrupted: None,
            with_us: false,
        }
    }
}

/// Why there is no output of a program.
#[derive(Debug, thiserror::Error)]
pub enum NoOutput {
    /// It was not started.
    #[error("{0}")]
    NotStarted(io::Error),
    /// It had not ended in time, and was killed.
    #[error("it had not ended after {} s, and was killed", .0.as_secs_f64())]
    Late(Duration),
    /// It said more than is read, and was killed.
    #[error("it said too much, and was killed: {0}")]
    TooMuch(io::Error),
    /// The flag was raised, and it was killed.
    #[error("interrupted")]
    Interrupted,
}

impl From<NoOutput> for io::Error {
    fn from(error: NoOutput) -> Self {
        let kind = match &error {
            NoOutput::NotStarted(_) => return into_source(error),
            NoOutput::Late(_) => io::ErrorKind::TimedOut,
            NoOutput::TooMuch(_) => io::ErrorKind::FileTooLarge,
            NoOutput::Interrupted => io::ErrorKind::Interrupted,
        };
        io::Error::new(kind, error)
    }
}

fn into_source(error: NoOutput) -> io::Error {
    match error {
        NoOutput::NotStarted(source) => source,
        other => io::Error::other(other),
    }
}

/// Runs a command to its end and gives what it said, in a minute and within 16 MiB. It is
/// `Command::output` for a program that may hang or say too much.
pub fn output_of(command: &mut Command) -> io::Result<Output> {
    Ok(output_within(command, Asked::default())?)
}

/// Runs a command that fetches or builds something to its end, in six hours and within 64 MiB.
pub fn output_of_work(command: &mut Command) -> io::Result<Output> {
    Ok(output_within(command, Asked::of_work())?)
}

/// Runs a command to its end under these conditions; one that
/// breaks them is killed.
pub fn output_within(command: &mut Command, asked: Asked) -> Result<Output, NoOutput> {
    let stdin = match asked.input.is_empty() {
        true => Stdio::null(),
        false => Stdio::piped(),
    };
    command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if !asked.with_us {
        command.process_group(0);
    }
    let child = command.spawn().map_err(NoOutput::NotStarted)?;
    to_end(child, asked)
}

/// Output of a program that was started with pipes, as by a confinement, under these conditions. It is
/// killed alone, since its process group may be ours.
pub fn output_of_child(child: Child, asked: Asked) -> Result<Output, NoOutput> {
    let asked = Asked {
        with_us: true,
        ..asked
    };
    to_end(child, asked)
}

fn to_end(mut child: Child, asked: Asked) -> Result<Output, NoOutput> {
    let stdout = start_reading(child.stdout.take(), asked.most_bytes);
    let stderr = start_reading(child.stderr.take(), asked.most_bytes);
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        if let Some(mut stdin) = stdin {
            // One that does not read is judged by its exit status.
            scope.spawn(move || stdin.write_all(asked.input));
        }
        let status = match end_of(&mut child, asked, [&stdout, &stderr]) {
            Ok(status) => status,
            Err(error) => {
                kill(&mut child, asked.with_us);
                return Err(error);
            }
        };
        let until = Instant::now() + LAST_WORDS;
        Ok(Output {
            status,
            stdout: stdout.read_until(until).map_err(NoOutput::TooMuch)?,
            stderr: stderr.read_until(until).map_err(NoOutput::TooMuch)?,
        })
    })
}

fn end_of(child: &mut Child, asked: Asked, heard: [&Heard; 2]) -> Result<ExitStatus, NoOutput> {
    let began = Instant::now();
    let mut look = LOOK.0;
    loop {
        if let Some(status) = child.try_wait().map_err(NoOutput::NotStarted)? {
            return Ok(status);
        }
        let is_raised = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if asked.interrupted.is_some_and(is_raised) {
            return Err(NoOutput::Interrupted);
        }
        if heard.iter().any(|heard| heard.is_too_much()) {
            return Err(NoOutput::TooMuch(too_large(asked.most_bytes)));
        }
        if began.elapsed() >= asked.time {
            return Err(NoOutput::Late(asked.time));
        }
        thread::sleep(look);
        look = (look * 2).min(LOOK.1);
    }
}

/// Best effort: one that hangs in the kernel ends when the kernel lets it.
fn kill(child: &mut Child, alone: bool) {
    if !alone {
        // It was not waited for yet, so the number is still that of its group.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    let _ = child.kill();
    for _ in 0..100 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(LOOK.1);
    }
}

/// A stream of another process, which a thread of its own reads up to a limit. What is beyond it
/// is read and dropped, so that who writes it is not held up.
#[derive(Debug, Clone)]
pub struct Heard {
    shared: Arc<(Mutex<Bytes>, Condvar)>,
    most_bytes: u64,
}

#[derive(Debug, Default)]
struct Bytes {
    kept: Vec<u8>,
    is_too_much: bool,
    has_ended: bool,
}

/// Begins to read a stream.
pub fn start_reading(stream: Option<impl Read + Send + 'static>, most_bytes: u64) -> Heard {
    let heard = Heard {
        shared: Arc::default(),
        most_bytes,
    };
    let into = heard.clone();
    match stream {
        Some(stream) => drop(thread::spawn(move || into.read(stream))),
        None => heard.bytes().has_ended = true,
    }
    heard
}

impl Heard {
    fn bytes(&self) -> MutexGuard<'_, Bytes> {
        let (bytes, _) = &*self.shared;
        bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut stream: impl Read) {
        let mut buffer = [0; 16 << 10];
        loop {
            let size = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // What came before an error is all that there is.
                Err(_) => break,
            };
            let mut bytes = self.bytes();
            let room = self.most_bytes.saturating_sub(bytes.kept.len() as u64);
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            bytes.kept.extend_from_slice(&buffer[..size.min(room)]);
            if size > room {
                bytes.is_too_much = true;
                drop(bytes);
                let _ = discard_rest(&mut stream);
                break;
            }
        }
        self.bytes().has_ended = true;
        self.shared.1.notify_all();
    }

    /// True where more came than is read.
    pub fn is_too_much(&self) -> bool {
        self.bytes().is_too_much
    }

    /// Bytes that came by then, or by the end of the stream. An error where it was too much.
    pub fn read_until(&self, end: Instant) -> io::Result<Vec<u8>> {
        let mut bytes = self.bytes();
        while !bytes.has_ended && !bytes.is_too_much {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.1.wait_timeout(bytes, left);
            bytes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match bytes.is_too_much {
            true => Err(too_large(self.most_bytes)),
            false => Ok(std::mem::take(&mut bytes.kept)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, asked: Asked) -> Result<Output, NoOutput> {
        output_within(Command::new("sh").args(["-c", script]), asked)
    }

    #[test]
    fn a_program_is_heard_on_both_streams_and_given_its_input() {
        let asked = Asked {
            input: b"asked",
            ..Asked::default()
        };
        let output = shell("cat; echo said >&2; exit 3", asked).unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.stdout, b"asked");
        assert_eq!(output.stderr, b"said\n");
        let much = shell("seq 100000", Asked::default()).unwrap();
        assert!(much.stdout.ends_with(b"\n100000\n"));
    }

    #[test]
    fn a_program_that_says_too_much_is_killed_and_the_limit_is_said() {
        for script in ["exec cat /dev/zero", "exec cat /dev/zero >&2"] {
            let asked = Asked {
                most_bytes: 1 << 20,
                ..Asked::default()
            };
            let error = shell(script, asked).unwrap_err().to_string();
            assert!(error.contains("larger than 1 MiB"), "{error}");
        }
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_all_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let script = format!("sleep 1000 & echo $! > '{}'; wait", pid.display());
        let asked = Asked {
            time: Duration::from_millis(500),
            ..Asked::default()
        };
        let error = shell(&script, asked).unwrap_err();
        assert!(matches!(error, NoOutput::Late(_)), "{error}");
        let pid = std::fs::read_to_string(pid).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // A process that was killed takes a moment to end; one that was not would stay.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            thread::sleep(LOOK.1);
        }
    }

    #[test]
    fn a_flag_ends_a_program() {
        let asked = Asked {
            interrupted: Some(&AtomicBool::new(true)),
            ..Asked::default()
        };
        let error = shell("exec sleep 1000", asked).unwrap_err();
        assert!(matches!(error, NoOutput::Interrupted), "{error}");
    }

    #[test]
    fn what_was_said_is_kept_where_a_descendant_holds_the_stream() {
        let output = shell("echo said; sleep 30 & exit 0", Asked::default()).unwrap();
        assert_eq!(output.stdout, b"said\n");
    }
}
