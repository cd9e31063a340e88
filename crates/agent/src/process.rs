//! A process of a trial, with all that it starts: its streams, its counters, and its end.
//!
//! Output goes to memory files, which cost the agent no wake-up inside the window;
//! only a phased process talks through a pipe, a few lines in all.

use crate::fence::Fence;
use crate::interrupt::{Interrupt, wait_for};
use crate::journal::Journal;
use crate::memory;
use crate::processes::{self, MARKER};
use crate::spawn::{Look, SpawnError, spawn_and_look};
use collect::perf::Counters;
use collect::rusage::Usage;
use collect::sys::wait4;
use collect::tasks::{self, Pid};
use doors::started::{Agreed, named_command, own_command};
use load::{Launch, Output};
use model::printable::last_lines;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A process that prints more than this is stopped: it would fill the memory.
const OUTPUT_LIMIT_BYTES: u64 = 64 << 20;

/// Until a process that was killed must have ended.
const END_LIMIT: Duration = Duration::from_secs(2);
/// Time after which a thread that waits for an end waits again.
const WATCH_LIMIT: Duration = Duration::from_secs(3600);
/// Time in which the kernel has the environment of a program that it starts.
const ENVIRONMENT_LIMIT: Duration = Duration::from_millis(50);

/// Program that a trial's processes come from, and the fence that keeps them together.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Path that [`load::SELF`] stands for.
    pub executable: &'a Path,
    pub fence: &'a Fence,
}

/// End of a wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A line of a phased process.
    Line(String),
    /// The process has ended; it is a zombie until [`Process::reap`].
    Exited,
    Interrupted,
    /// The time given has passed.
    Timeout,
}

/// A running process with all that it starts.
#[derive(Debug)]
pub struct Process {
    pub pid: Pid,
    start_ticks: u64,
    /// When the program began to run.
    pub started: Instant,
    /// Resident memory that it had from this process before it ran its program.
    inherited_bytes: u64,
    /// `None` without the right to count.
    pub counters: Option<Counters>,
    ended: Option<Instant>,
    process: OwnedFd,
    stdin: Option<ChildStdin>,
    lines: Option<Lines>,
    stdout: File,
    stderr: File,
    /// Environment that it was started with, where the launch names variables. A program may write
    /// over it later.
    pub environment: Vec<u8>,
}

impl Process {
    /// `prepare` is called with the process id before the program runs; by then the
    /// journal says how the process is ended.
    pub fn start(
        launch: &Launch,
        origin: Origin,
        journal: &mut Journal,
        prepare: impl FnOnce(Pid) -> Result<(), String> + Send,
    ) -> Result<Self, SpawnError> {
        let io_error = |source| SpawnError::Start {
            program: launch.argv.first().cloned().unwrap_or_default(),
            source,
        };
        let stdout = memory_file("stdout").map_err(io_error)?;
        let stderr = memory_file("stderr").map_err(io_error)?;
        let mut command = command(launch, origin);
        connect(&mut command, launch, &stdout, &stderr).map_err(io_error)?;
        let mut environment = Vec::new();
        let mut read = |pid| environment = tasks::read_environment(Path::new("/"), pid);
        let look: Option<Look> = match launch.environment.is_empty() {
            true => None,
            false => Some(&mut read),
        };
        let prepare = |pid| {
            let process = open_pidfd(pid).map_err(|e| format!("watch process {pid}: {e}"))?;
            let counters = Counters::on_exec(pid).ok();
            let stat = tasks::read_stat(Path::new("/"), pid);
            let start_ticks = stat.map_or(0, |stat| stat.start_ticks);
            let inherited = tasks::peak_memory_bytes(Path::new("/"), pid);
            origin.fence.admit(pid, start_ticks, journal)?;
            prepare(pid)?;
            Ok((process, counters, start_ticks, inherited, Instant::now()))
        };
        let (mut child, prepared) = spawn_and_look(command, prepare, look)?;
        let (process, counters, start_ticks, inherited, started) = prepared;
        let lines = child.stdout.take().map(Lines::new).transpose();
        let mut process = Process {
            pid: child.id() as Pid,
            start_ticks,
            started,
            inherited_bytes: inherited.unwrap_or(u64::MAX),
            counters,
            ended: None,
            process,
            stdin: child.stdin.take(),
            lines: lines.map_err(io_error)?,
            stdout,
            stderr,
            environment,
        };
        if process.environment.is_empty() && !launch.environment.is_empty() {
            process.environment = process.environment_at_start();
        }
        if launch.phased {
            // A process that does not listen is noticed by its end, or by its silence.
            let _ = process.send(&launch.stdin);
        }
        Ok(process)
    }

    /// Write to standard input of a phased process.
    pub fn send(&mut self, text: &str) -> io::Result<()> {
        match &mut self.stdin {
            Some(stdin) => stdin.write_all(text.as_bytes()),
            None => Ok(()),
        }
    }

    /// Says a line to a phased process. One that is gone is noticed while waiting for its next line.
    pub fn say(&mut self, line: &str) {
        let _ = self.send(&format!("{line}\n"));
    }

    /// Tells when the process ended, once it has; whoever waits for that takes no time until then.
    pub fn watch_end(&self) -> io::Result<JoinHandle<Instant>> {
        let process = self.process.try_clone()?;
        thread::Builder::new().spawn(move || {
            let mut fds = [PollFd::new(&process, PollFlags::IN)];
            while fds[0].revents().is_empty() {
                wait_for(&mut fds, WATCH_LIMIT);
            }
            Instant::now()
        })
    }

    /// Wait for the next event, at most until `until`.
    pub fn wait(&mut self, interrupt: &Interrupt, until: Instant) -> Event {
        loop {
            if let Some(line) = self.lines.as_mut().and_then(Lines::next) {
                return Event::Line(line);
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = vec![
                PollFd::new(interrupt, PollFlags::IN),
                PollFd::new(&self.process, PollFlags::IN),
            ];
            if let Some(lines) = self.lines.as_ref().filter(|lines| !lines.closed) {
                fds.push(PollFd::new(&lines.pipe, PollFlags::IN));
            }
            wait_for(&mut fds, left);
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return Event::Interrupted;
            }
            if let Some(lines) = &mut self.lines {
                lines.fill();
                if let Some(line) = lines.next() {
                    return Event::Line(line);
                }
            }
            if ready[1] {
                self.ended = self.ended.or_else(|| Some(Instant::now()));
                return Event::Exited;
            }
            if Instant::now() >= until {
                return Event::Timeout;
            }
        }
    }

    /// Has it printed more than can be kept?
    pub fn prints_too_much(&self) -> bool {
        [&self.stdout, &self.stderr]
            .iter()
            .any(|file| file.metadata().is_ok_and(|m| m.len() > OUTPUT_LIMIT_BYTES))
    }

    /// The last lines on standard error, for messages.
    pub fn last_errors(&mut self) -> String {
        last_lines(&text_of(&mut self.stderr), 5, " | ")
    }

    /// End of the process, in brackets; empty while it runs.
    pub fn end_in_words(&self) -> String {
        let end = self.peek_at_end();
        let words = end.and_then(|e| in_words(e.exit_status(), e.terminating_signal()));
        words.map_or_else(String::new, |words| format!(" ({words})"))
    }

    /// Exit status; `None` while it runs, and where a signal ended it.
    pub fn exit_code(&self) -> Option<i32> {
        self.peek_at_end()?.exit_status()
    }

    /// Its end, which stays to be reaped.
    fn peek_at_end(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = rustix::process::Pid::from_raw(self.pid)?;
        waitid(WaitId::Pid(pid), options).ok()?
    }

    /// True if this text is in what it has printed so far.
    pub fn has_printed(&self, text: &str) -> io::Result<bool> {
        use std::os::unix::fs::FileExt;
        for stream in [&self.stdout, &self.stderr] {
            let bytes = usize::try_from(stream.metadata()?.len()).map_err(io::Error::other)?;
            let mut printed = vec![0; bytes];
            stream.read_exact_at(&mut printed, 0)?;
            if String::from_utf8_lossy(&printed).contains(text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Environment of a process that could not be looked at before its program ran; empty where it
    /// has ended or overwritten it. The kernel has it a moment after the program was started.
    fn environment_at_start(&self) -> Vec<u8> {
        let until = Instant::now() + ENVIRONMENT_LIMIT;
        let mut process = [PollFd::new(&self.process, PollFlags::IN)];
        loop {
            let environment = tasks::read_environment(Path::new("/"), self.pid);
            let has_ended = !process[0].revents().is_empty();
            if !environment.is_empty() || has_ended || Instant::now() > until {
                let mut entries = environment.split(|byte| *byte == 0);
                let is_given = entries.any(|entry| entry.starts_with(MARKER.as_bytes()));
                return if is_given { environment } else { Vec::new() };
            }
            wait_for(&mut process, Duration::from_millis(1));
        }
    }

    /// Waits until the process has ended, at most so long.
    pub fn wait_for_end(&self, limit: Duration) {
        wait_for(&mut [PollFd::new(&self.process, PollFlags::IN)], limit);
    }

    /// Kill what is left of its session and what carries the mark of `fence`; gives how
    /// many descendants were still running after the process itself had ended.
    pub fn kill_rest(&self, fence: &Fence) -> Result<usize, String> {
        let mut killed = self.kill_session()?;
        killed.extend(fence.kill_marked()?);
        Ok(killed.iter().filter(|pid| **pid != self.pid).count())
    }

    pub fn kill_session(&self) -> Result<Vec<Pid>, String> {
        processes::kill_until_gone(|| processes::session(self.pid, self.start_ticks))
    }

    /// Reap the process, which must have ended or been killed. One that does not end,
    /// in the middle of an access to a device for example, is an error.
    pub fn reap(mut self) -> io::Result<(Output, Usage)> {
        let mut process = [PollFd::new(&self.process, PollFlags::IN)];
        wait_for(&mut process, END_LIMIT);
        if process[0].revents().is_empty() {
            let what = format!("{} does not end", processes::describe(self.pid));
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        let ended = self.ended.unwrap_or_else(Instant::now);
        let wall_ns = model::whole_nanos(ended.duration_since(self.started));
        drop(self.stdin.take());
        let left = wait4(self.pid)?;
        let mut usage = Usage::from(left.usage);
        usage.peak_memory_bytes = memory::known_peak(usage.peak_memory_bytes, self.inherited_bytes);
        let stdout = match self.lines.take() {
            Some(lines) => lines.into_text(),
            None => text_of(&mut self.stdout),
        };
        let output = Output {
            stdout,
            stderr: text_of(&mut self.stderr),
            success: left.status.success(),
            code: left.status.code(),
            status: describe(left.status),
            wall_ns,
            user_ns: usage.user_ns,
            system_ns: usage.system_ns,
            ..Output::default()
        };
        Ok((output, usage))
    }
}

fn open_pidfd(pid: Pid) -> io::Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn command(launch: &Launch, origin: Origin) -> Command {
    let program = launch.argv.first().map_or("", String::as_str);
    let mut command = if program == load::SELF {
        let mut command = own_command(origin.executable);
        command.arg0("schedlab");
        command
    } else {
        named_command(program, Agreed::by_trial())
    };
    command
        .args(launch.argv.iter().skip(1))
        .env(MARKER, &origin.fence.mark);
    command.envs(&launch.environment);
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    command
}

fn connect(command: &mut Command, launch: &Launch, stdout: &File, stderr: &File) -> io::Result<()> {
    command.stderr(stderr.try_clone()?);
    if launch.phased {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        return Ok(());
    }
    let mut stdin = memory_file("stdin")?;
    stdin.write_all(launch.stdin.as_bytes())?;
    stdin.rewind()?;
    command.stdin(stdin).stdout(stdout.try_clone()?);
    Ok(())
}

/// Writes always go to its end, wherever a reader is.
pub fn memory_file(name: &str) -> io::Result<File> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(File::from(file))
}

/// All that a memory file holds.
pub fn text_of(file: &mut File) -> String {
    // Memory files do not fail to read; what is not text is shown as far as it is.
    let _ = file.rewind();
    let bytes = doors::read::start_of(file, OUTPUT_LIMIT_BYTES);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn describe(status: ExitStatus) -> String {
    in_words(status.code(), status.signal()).unwrap_or_else(|| status.to_string())
}

fn in_words(code: Option<i32>, signal: Option<i32>) -> Option<String> {
    let code = code.map(|code| format!("exit status {code}"));
    code.or_else(|| signal.map(|signal| format!("signal {signal}")))
}

/// The lines of a pipe as they come, and all of the text at the end.
#[derive(Debug)]
struct Lines {
    pipe: File,
    text: Vec<u8>,
    /// Up to here, lines were given out.
    given: usize,
    closed: bool,
}

impl Lines {
    fn new(pipe: impl Into<OwnedFd>) -> io::Result<Self> {
        let pipe = pipe.into();
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Lines {
            pipe: File::from(pipe),
            text: Vec::new(),
            given: 0,
            closed: false,
        })
    }

    /// Take what is there.
    fn fill(&mut self) {
        let mut buffer = [0u8; 65536];
        while !self.closed {
            match self.pipe.read(&mut buffer) {
                Ok(0) => self.closed = true,
                Ok(n) => self.text.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
            self.closed |= self.text.len() as u64 > OUTPUT_LIMIT_BYTES;
        }
    }

    fn next(&mut self) -> Option<String> {
        let rest = &self.text[self.given..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        self.given += end + 1;
        Some(line)
    }

    fn into_text(mut self) -> String {
        self.fill();
        String::from_utf8_lossy(&self.text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Ground on which processes are started: a journal and a fence of their own.
    struct Ground {
        _directory: TempDir,
        journal: Journal,
        fence: Fence,
    }

    impl Ground {
        fn new(name: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let mut journal = Journal::open(directory.path()).unwrap();
            let mark = format!("{name}-{}", std::process::id());
            let fence = Fence::set_up(Path::new("/"), mark, &mut journal).unwrap();
            Ground {
                _directory: directory,
                journal,
                fence,
            }
        }

        fn start(&mut self, launch: &Launch) -> Process {
            let origin = Origin {
                executable: Path::new("/proc/self/exe"),
                fence: &self.fence,
            };
            Process::start(launch, origin, &mut self.journal, |_| Ok(())).unwrap()
        }
    }

    impl Drop for Ground {
        fn drop(&mut self) {
            self.fence.remove().unwrap();
        }
    }

    fn launch(script: &str, phased: bool) -> Launch {
        Launch {
            stdin: "job\n".to_owned(),
            phased,
            ..Launch::new(["sh", "-c", script].map(str::to_owned).to_vec())
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[test]
    fn an_external_program_leaves_output_status_and_usage() {
        let mut ground = Ground::new("output-test");
        let mut process = ground.start(&launch("cat; echo oops >&2; exit 3", false));
        let interrupt = Interrupt::new().unwrap();
        assert_eq!(process.wait(&interrupt, soon()), Event::Exited);
        let (output, usage) = process.reap().unwrap();
        assert_eq!(
            (output.stdout.as_str(), output.stderr.as_str()),
            ("job\n", "oops\n")
        );
        assert_eq!(
            (output.success, output.status.as_str()),
            (false, "exit status 3")
        );
        assert!(usage.page_faults > 0);
    }

    #[test]
    fn a_phased_process_is_heard_line_by_line() {
        let script = "read job; echo ready $job; read go; echo $go; printf tail";
        let mut ground = Ground::new("lines-test");
        let mut process = ground.start(&launch(script, true));
        let interrupt = Interrupt::new().unwrap();
        let mut line = || process.wait(&interrupt, soon());
        assert_eq!(line(), Event::Line("ready job".to_owned()));
        process.send("go\n").unwrap();
        let mut line = || process.wait(&interrupt, soon());
        assert_eq!(line(), Event::Line("go".to_owned()));
        assert_eq!(line(), Event::Exited);
        let (output, _) = process.reap().unwrap();
        assert_eq!(output.stdout, "ready job\ngo\ntail");
    }

    #[test]
    fn an_interrupt_ends_the_wait_and_nothing_is_left() {
        let mut ground = Ground::new("interrupt-test");
        let mut process = ground.start(&launch("setsid sleep 600 & sleep 600", false));
        let interrupt = Interrupt::new().unwrap();
        interrupt.raise();
        assert_eq!(process.wait(&interrupt, soon()), Event::Interrupted);
        process.kill_rest(&ground.fence).unwrap();
        let variable = format!("{MARKER}={}", ground.fence.mark);
        assert!(processes::find_marked(&variable).is_empty());
        assert_eq!(process.reap().unwrap().0.status, "signal 9");
    }
}
