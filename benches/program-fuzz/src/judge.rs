//! One run of the program, and the promises that it may have broken.

use crate::command::Command as Wanted;
use crate::sys;
use model::printable::is_hidden;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Address space of a run.
pub const MEMORY_BYTES: u64 = 1 << 30;
/// CPU time of a run, of which all that is read here takes a second at most. Time of the clock would
/// say how busy the machine is.
pub const CPU_SECONDS: u64 = 10;
/// Time of a run that waits for something that does not come.
pub const LIMIT: Duration = Duration::from_secs(180);
/// Signal of a run that has used its CPU time.
const SIGXCPU: i32 = 24;
/// Signal of a run that was forked, and that has used its time.
const SIGALRM: i32 = 14;

/// Way in which a run is started.
pub type Start = fn(&[String], &Path) -> Run;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A signal ended it, an abort for want of memory among them.
    Signal(i32),
    /// It panicked.
    Panic,
    /// It had not ended in time.
    Hang,
    /// An exit code that the command does not have.
    Code(i32),
    /// It printed a character that a terminal obeys.
    Obeyed(char),
    /// It printed bytes that are no text.
    NoText,
}

/// A run of the program.
#[derive(Debug)]
pub struct Run {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    signal: Option<i32>,
    is_late: bool,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Variables and directories that a run finds in its environment.
fn environment(dir: &Path) -> [(&'static str, OsString); 3] {
    [
        ("SCHEDLAB_STATE_DIR", dir.join("state").into()),
        ("NO_COLOR", "1".into()),
        ("TMPDIR", dir.into()),
    ]
}

/// Runs the function of the program with these words in a fork of this process, in `dir`. That is
/// some times as fast as to start the program, and is for processes of one thread.
pub fn forked(words: &[String], dir: &Path) -> Run {
    let (out, err) = (dir.join("stdout"), dir.join("stderr"));
    let file = |path: &Path| File::create(path).expect("room for output");
    let program = std::iter::once("schedlab");
    let all = program.chain(words.iter().map(String::as_str));
    let all: Vec<OsString> = all.map(OsString::from).collect();
    let streams = [&file(&out), &file(&err)];
    let (code, signal) = sys::run(&all, dir, &environment(dir), streams);
    Run {
        code,
        signal,
        is_late: signal == Some(SIGALRM),
        stdout: fs::read(out).expect("it was made"),
        stderr: fs::read(err).expect("it was made"),
    }
}

/// Starts the program with these words in `dir`, as a person does.
pub fn started(words: &[String], dir: &Path) -> Run {
    let (out, err) = (dir.join("stdout"), dir.join("stderr"));
    let file = |path: &Path| Stdio::from(File::create(path).expect("room for output"));
    let memory = MEMORY_BYTES >> 10;
    let mut child = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -v {memory} && ulimit -t {CPU_SECONDS} && exec \"$0\" \"$@\""),
        ])
        .arg(tests::schedlab())
        .args(words)
        .current_dir(dir)
        .envs(environment(dir))
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .expect("sh starts");
    let began = Instant::now();
    let (status, is_late) = loop {
        match child.try_wait().expect("it is ours") {
            Some(status) => break (status, false),
            None if began.elapsed() > LIMIT => {
                let _ = child.kill();
                break (child.wait().expect("it is ours"), true);
            }
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    Run {
        code: status.code(),
        signal: status.signal(),
        is_late,
        stdout: fs::read(out).expect("it was made"),
        stderr: fs::read(err).expect("it was made"),
    }
}

/// The first promise that a run broke.
pub fn fault(run: &Run, command: &Wanted) -> Option<Fault> {
    let stderr = String::from_utf8_lossy(&run.stderr);
    let stdout = String::from_utf8_lossy(&run.stdout);
    if run.is_late || run.signal == Some(SIGXCPU) {
        return Some(Fault::Hang);
    }
    if stderr.contains("panicked at") {
        return Some(Fault::Panic);
    }
    if let Some(signal) = run.signal {
        return Some(Fault::Signal(signal));
    }
    if let Some(code) = run.code.filter(|code| !command.codes.contains(code)) {
        return Some(Fault::Code(code));
    }
    let obeyed = |text: &str| {
        let is_obeyed = |c: &char| is_hidden(*c) && !matches!(c, '\n' | '\t');
        text.chars().find(is_obeyed)
    };
    if let Some(found) = obeyed(&stdout).or_else(|| obeyed(&stderr)) {
        return Some(Fault::Obeyed(found));
    }
    let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
    (!is_text(&run.stdout) || !is_text(&run.stderr)).then_some(Fault::NoText)
}

/// Keeps the input of a run with its words and its output.
pub fn keep(run: &Run, words: &[String], dir: &Path, kept: &Path) {
    fs::create_dir_all(kept).expect("a directory");
    let write = |name: &str, bytes: &[u8]| fs::write(kept.join(name), bytes).expect("room");
    write("words", words.join("\n").as_bytes());
    write("stdout", &run.stdout);
    write("stderr", &run.stderr);
    let copied = Command::new("cp")
        .args(["-r", "--"])
        .args(crate::seeds::places(dir))
        .arg(kept)
        .stderr(Stdio::null())
        .status();
    copied.expect("cp starts");
}
