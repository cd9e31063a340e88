//! A sched_ext scheduler: a program that attaches while it runs.
//!
//! Attached means that `/sys/kernel/sched_ext/root/ops` names a scheduler, the state
//! is enabled, and `enable_seq` has grown; detached, that the state is disabled and
//! the process is gone. A scheduler that the kernel ejects leaves its reason on
//! standard error and in the kernel's log.

use super::ending::Ending;
use super::{find, refusal};
use crate::arm::ingredient::Ground;
use crate::interrupt::Interrupt;
use crate::journal::Undo;
use crate::process::{memory_file, text_of};
use crate::processes::SCHEDULER_MARKER;
use crate::spawn::{SpawnError, spawn};
use crate::stop::Stop;
use collect::kernel_log::{KernelLog, Record};
use collect::{sched_ext, tasks, tools};
use doors::read::{LARGE_FILE_BYTES, copy_within, open_file};
use doors::started::{Agreed, named_command};
use model::printable::{error_lines, write_hexadecimal};
use model::{SchedExt, Scheduler, SchedulerBinary};
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limits of a scheduler's start and end.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until a scheduler must be in force.
    pub attach: Duration,
    /// Until one that was asked to end is killed.
    pub detach: Duration,
    /// Until a killed one must be gone.
    pub kill: Duration,
}

impl Default for Limits {
    /// The verification of a large scheduler takes over half a minute on emulated CPUs.
    fn default() -> Self {
        Limits {
            attach: Duration::from_secs(120),
            detach: Duration::from_secs(10),
            kill: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Limits with that of the arm's scheduler, where it has one.
    pub fn for_scheduler(scheduler: &Scheduler) -> Self {
        let usual = Limits::default();
        let attach = scheduler.attach_limit_ns.map(Duration::from_nanos);
        Limits {
            attach: attach.unwrap_or(usual.attach),
            ..usual
        }
    }

    /// Until it is clear whether a scheduler is in force, and gone if it is not.
    pub fn attach_limit(self) -> Duration {
        self.attach + self.detach_limit()
    }

    /// Until a scheduler is gone, or surely stays.
    pub fn detach_limit(self) -> Duration {
        self.detach + self.kill
    }
}

const POLL_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    #[error("the kernel has no sched_ext")]
    Unsupported,
    #[error("find scheduler {0}: it is neither on PATH nor among the installed ones")]
    NotFound(String),
    #[error("{step} scheduler {program}: {source}")]
    Io {
        step: &'static str,
        program: String,
        source: io::Error,
    },
    #[error("attach {program}: the scheduler {ops} is in force already")]
    Occupied { program: String, ops: String },
    #[error("attach {program}: it ended with {status} before it was attached: {reason}")]
    EndedEarly {
        program: String,
        status: ExitStatus,
        reason: String,
    },
    #[error("{title} {} {release}: {reason}", Scheduler::DOES_NOT_LOAD)]
    NotLoaded {
        title: String,
        release: String,
        reason: String,
    },
    #[error("attach {program}: not in force after {} s (its attach-limit): {reason}", limit.as_secs())]
    NeverAttached {
        program: String,
        limit: Duration,
        reason: String,
    },
    #[error("attach {0}: interrupted")]
    Interrupted(String),
    #[error("{program} ended within the trial with {status}: {reason}")]
    Ended {
        program: String,
        status: ExitStatus,
        reason: String,
    },
    #[error("detach {program}: {what} {} s after SIGKILL", limit.as_secs())]
    NotDetached {
        program: String,
        limit: Duration,
        what: String,
    },
}

impl From<SchedulerError> for Stop {
    fn from(error: SchedulerError) -> Self {
        let stop = Stop::Void(error.to_string());
        match error {
            SchedulerError::EndedEarly { reason, .. } if tells_usage(&reason) => stop.for_good(),
            SchedulerError::EndedEarly { status, .. } => stop.by_exit(status.code()),
            SchedulerError::NotLoaded { .. } => stop.for_good(),
            _ => stop,
        }
    }
}

/// A scheduler in force, and its process.
#[derive(Debug)]
pub struct Attached {
    pub binary: SchedulerBinary,
    /// State when it was first seen in force.
    pub state: SchedExt,
    process: Running,
}

impl Attached {
    /// Start the program and wait until it is in force. On an error nothing is left.
    pub fn attach(
        ground: Ground,
        scheduler: &Scheduler,
        limits: Limits,
    ) -> Result<Self, SchedulerError> {
        let (root, interrupt) = (ground.root, ground.interrupt);
        let program = &scheduler.program;
        let before = sched_ext::read(root).ok_or(SchedulerError::Unsupported)?;
        if before.state != "disabled" {
            return Err(SchedulerError::Occupied {
                program: program.clone(),
                ops: before.ops,
            });
        }
        let path = find(program).ok_or_else(|| SchedulerError::NotFound(program.clone()))?;
        let mut process = Running::start(ground, &path, scheduler, limits)?;
        let attached = process.wait_until_attached(root, &before, interrupt);
        let described = attached.and_then(|state| Ok((state, process.describe(&path, scheduler)?)));
        match described {
            Ok((state, binary)) => Ok(Attached {
                binary,
                state,
                process,
            }),
            Err(error) => {
                let _ = process.stop(root);
                Err(error)
            }
        }
    }

    pub fn detach_limit(&self) -> Duration {
        self.process.limits.detach_limit()
    }

    /// An error if the process has ended.
    pub fn check_alive(&mut self) -> Result<(), SchedulerError> {
        match self.process.ended() {
            None => Ok(()),
            Some(status) => Err(SchedulerError::Ended {
                program: self.binary.path.clone(),
                status,
                reason: self.process.reason(),
            }),
        }
    }

    /// Its end, where its process is gone or another state is in force than the one that it made.
    pub fn find_ending(&mut self, root: &Path) -> Option<Ending> {
        let now = sched_ext::read(root);
        let is_in_force = now.is_some_and(|now| {
            now.state == self.state.state && now.enable_seq == self.state.enable_seq
        });
        let gone = self.process.ended().is_some();
        (gone || !is_in_force).then(|| self.process.ending())
    }

    /// Words of the kernel or the scheduler about its end, if any.
    pub fn reason(&mut self) -> Option<String> {
        self.process.exit_lines().pop()
    }

    /// Give its log, and wait until the class is disabled and the process gone.
    pub fn detach(mut self, root: &Path) -> (String, Result<(), SchedulerError>) {
        let result = self.process.stop(root);
        (self.process.whole_log(), result)
    }

    pub fn pid(&self) -> i32 {
        self.process.child.id() as i32
    }
}

/// The program as it was started.
#[derive(Debug)]
struct Running {
    program: String,
    path: PathBuf,
    limits: Limits,
    child: Child,
    log: File,
    kernel_log: Option<KernelLog>,
    /// Lines of the kernel about sched_ext since the start.
    kernel_lines: Vec<Record>,
}

impl Running {
    fn start(
        ground: Ground,
        path: &Path,
        scheduler: &Scheduler,
        limits: Limits,
    ) -> Result<Self, SchedulerError> {
        let program = scheduler.program.clone();
        let failed = |source| SchedulerError::Io {
            step: "start",
            program: program.clone(),
            source,
        };
        let kernel_log = KernelLog::from_now(ground.root);
        let log = memory_file("scheduler.log").map_err(failed)?;
        let command = command(path, scheduler, &ground.fence.mark, &log).map_err(failed)?;
        let (fence, journal) = (ground.fence, ground.journal);
        let variable = format!("{SCHEDULER_MARKER}={}", fence.mark);
        journal
            .record(Undo::KillMarked { variable })
            .map_err(|e| failed(io::Error::other(e)))?;
        let started = spawn(command, |pid| {
            let stat = tasks::read_stat(Path::new("/"), pid);
            fence.admit(pid, stat.map_or(0, |stat| stat.start_ticks), journal)
        });
        let (child, ()) = started.map_err(|error| match error {
            SpawnError::Start { source, .. } => failed(source),
            SpawnError::Refused(why) => failed(io::Error::other(why)),
        })?;
        Ok(Running {
            program: scheduler.program.clone(),
            path: path.to_owned(),
            limits,
            child,
            log,
            kernel_log,
            kernel_lines: Vec::new(),
        })
    }

    /// Description of the program that runs: the file could have been replaced since it was
    /// found.
    fn describe(
        &self,
        path: &Path,
        scheduler: &Scheduler,
    ) -> Result<SchedulerBinary, SchedulerError> {
        let pid = self.child.id();
        describe(&running_file(pid, path), path, scheduler).map_err(|source| SchedulerError::Io {
            step: "read",
            program: self.program.clone(),
            source,
        })
    }

    fn wait_until_attached(
        &mut self,
        root: &Path,
        before: &SchedExt,
        interrupt: &Interrupt,
    ) -> Result<SchedExt, SchedulerError> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Err(self.ended_early(root, status));
            }
            let now = sched_ext::read(root);
            if let Some(now) = now.filter(|now| is_attached(before, now)) {
                return Ok(now);
            }
            if start.elapsed() > self.limits.attach {
                return Err(SchedulerError::NeverAttached {
                    program: self.program.clone(),
                    limit: self.limits.attach,
                    reason: self.reason(),
                });
            }
            if interrupt.wait(POLL_EVERY) {
                return Err(SchedulerError::Interrupted(self.program.clone()));
            }
        }
    }

    /// The error of a scheduler that has ended with this status and was never in force.
    fn ended_early(&mut self, root: &Path, status: ExitStatus) -> SchedulerError {
        if let Some(reason) = refusal::reason(&text_of(&mut self.log)) {
            let release = collect::read_trimmed(&root.join("proc/sys/kernel/osrelease"));
            return SchedulerError::NotLoaded {
                title: refusal::title(&self.program, &self.path),
                release: release.unwrap_or_else(|| "of an unknown release".to_owned()),
                reason,
            };
        }
        SchedulerError::EndedEarly {
            program: self.program.clone(),
            status,
            reason: self.reason(),
        }
    }

    /// Its status once it has ended.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok()?
    }

    /// Ask it to end, kill it if it does not, and wait for the kernel.
    fn stop(&mut self, root: &Path) -> Result<(), SchedulerError> {
        self.signal(Signal::INT);
        if self.is_detached_within(root, self.limits.detach) {
            return Ok(());
        }
        self.signal(Signal::KILL);
        if self.is_detached_within(root, self.limits.kill) {
            return Ok(());
        }
        let state = sched_ext::read(root).unwrap_or_default();
        Err(SchedulerError::NotDetached {
            program: self.program.clone(),
            limit: self.limits.kill,
            what: format!("the state is {} ({})", state.state, state.ops),
        })
    }

    fn is_detached_within(&mut self, root: &Path, limit: Duration) -> bool {
        let start = Instant::now();
        loop {
            let gone = self.ended().is_some();
            let disabled = sched_ext::read(root).is_none_or(|now| now.state == "disabled");
            if gone && disabled {
                return true;
            }
            if start.elapsed() > limit {
                return false;
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// Sends a signal, but not to a process that was reaped: its id may be another's.
    fn signal(&mut self, signal: Signal) {
        if self.ended().is_none()
            && let Some(pid) = Pid::from_raw(self.child.id() as i32)
        {
            let _ = kill_process(pid, signal);
        }
    }

    fn whole_log(&mut self) -> String {
        let mut text = text_of(&mut self.log);
        self.read_kernel_log();
        for line in &self.kernel_lines {
            text.push_str("kernel: ");
            text.push_str(&line.message);
            text.push('\n');
        }
        text
    }

    fn read_kernel_log(&mut self) {
        let is_own = |message: &str| message.contains("sched_ext:");
        let found = self.kernel_log.as_mut().map(|log| log.records_that(is_own));
        self.kernel_lines.extend(found.unwrap_or_default().records);
    }

    /// Lines that say why a scheduler ended, the most telling last: what it prints
    /// itself has the details that the kernel's line lacks.
    fn exit_lines(&mut self) -> Vec<String> {
        let own = self.own_exit_lines();
        self.read_kernel_log();
        let kernel = self.kernel_lines.iter().map(|record| &record.message);
        let kernel = kernel.filter(|line| line.contains("disabled"));
        kernel.cloned().chain(own).collect()
    }

    /// Lines of the scheduler about its end.
    fn own_exit_lines(&mut self) -> Vec<String> {
        let log = text_of(&mut self.log);
        let lines = log.lines().filter(|line| tells_exit(line));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    fn ending(&mut self) -> Ending {
        let own = self.own_exit_lines();
        self.read_kernel_log();
        Ending::new(&self.kernel_lines, own)
    }

    fn reason(&mut self) -> String {
        match self.exit_lines().pop() {
            Some(line) => line,
            None => match error_lines(&without_chatter(&text_of(&mut self.log)), 3, " | ") {
                lines if lines.is_empty() => "it printed no error".to_owned(),
                lines => lines,
            },
        }
    }
}

/// Without the lines that a scheduler logs when all is well (tracing's levels).
fn without_chatter(log: &str) -> String {
    let chatter = |line: &&str| {
        let mut words = line.split_whitespace().take(3);
        !words.any(|word| ["INFO", "DEBUG", "TRACE", "[INFO]"].contains(&word))
    };
    log.lines().filter(chatter).collect::<Vec<_>>().join("\n")
}

/// The words of scx's `UEI_REPORT` and of scx_utils.
fn tells_exit(line: &str) -> bool {
    line.contains("EXIT:") || line.contains("unregistered from")
}

/// True for the words of clap about wrong arguments, after which some schedulers end with another
/// status than 2.
fn tells_usage(reason: &str) -> bool {
    reason.starts_with("error: ") && reason.contains("Usage: ")
}

fn is_attached(before: &SchedExt, now: &SchedExt) -> bool {
    now.state == "enabled" && !now.ops.is_empty() && now.enable_seq > before.enable_seq
}

fn command(path: &Path, scheduler: &Scheduler, mark: &str, log: &File) -> io::Result<Command> {
    let mut command = named_command(path, Agreed::by_trial());
    command
        .args(&scheduler.args)
        .env(SCHEDULER_MARKER, mark)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?);
    Ok(command)
}

/// The file of the program that a process runs; of a script, which its interpreter
/// reads, its own file.
fn running_file(pid: u32, started: &Path) -> PathBuf {
    let mut start = [0u8; 2];
    let read = open_file(started).and_then(|mut file| file.read_exact(&mut start));
    match read {
        Ok(()) if start == *b"#!" => started.to_owned(),
        _ => PathBuf::from(format!("/proc/{pid}/exe")),
    }
}

/// Properties that a file must have kept to be the same program still.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileState {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        Ok(FileState {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// Hash and version of the programs that were described: reading one takes seconds on
/// an emulated CPU, and each trial of an arm has the same.
static DESCRIBED: Mutex<BTreeMap<FileState, (String, Option<String>)>> =
    Mutex::new(BTreeMap::new());

/// `file` holds the program that was found at `path`.
fn describe(file: &Path, path: &Path, scheduler: &Scheduler) -> io::Result<SchedulerBinary> {
    let name = path.file_name().and_then(|name| name.to_str());
    // Others might take the question for an order to attach.
    let tells_version = name.is_some_and(|name| name.starts_with("scx_"));
    let (sha256, version) = hash_and_version(file, tells_version)?;
    Ok(SchedulerBinary {
        path: path.display().to_string(),
        args: scheduler.args.clone(),
        sha256,
        version,
    })
}

fn hash_and_version(file: &Path, tells_version: bool) -> io::Result<(String, Option<String>)> {
    let state = FileState::of(file)?;
    let mut described = DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = described.get(&state) {
        return Ok(known.clone());
    }
    let version = tells_version.then(|| tools::read_version(file, "--version"));
    let found = (sha256(file)?, version.flatten());
    described.insert(state, found.clone());
    Ok(found)
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    copy_within(open_file(path)?, &mut hasher, LARGE_FILE_BYTES)?;
    Ok(write_hexadecimal(&hasher.finalize()))
}

#[cfg(test)]
#[path = "attached_tests.rs"]
mod tests;
