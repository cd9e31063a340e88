//! The work of a guard: `schedlab guard`.

use super::{AGENT_VARIABLE, replay_in};
use crate::error::AgentError;
use crate::interrupt::wait_for;
use crate::journal::{self, FileId, Journal};
use crate::state::state_dir;
use crate::{fence, processes, sys};
use collect::tasks::{self, Pid};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};
use std::env;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two tries, which grow to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Between two looks at an agent whose runner is gone.
const LOOK: Duration = Duration::from_millis(500);
/// An agent that is stopped at so many looks one after the other does not go on by itself.
const STOPPED_LOOKS: u32 = 3;
/// An agent whose runner has been gone for so long hangs: what it undoes takes less.
const PATIENCE: Duration = Duration::from_secs(180);
/// While there is nothing to look at but ends.
const LONG: Duration = Duration::from_secs(3600);
/// Scores by which the kernel chooses what it kills for want of memory (proc(5)): never, which
/// only root may ask for, and as little as others may.
const SCORES: [i32; 2] = [-1000, 0];

/// `schedlab guard`: wait on standard input for the end of the agent, then undo.
pub fn guard_main() -> Result<(), AgentError> {
    ignore_signals()?;
    be_spared();
    let own = Path::new("guard");
    let [journal, runner] = sys::take_output().map_err(|e| AgentError::io("set up", own, e))?;
    let state = HeldState::new(state_dir()?, journal.into());
    let agent = env::var(AGENT_VARIABLE)
        .ok()
        .filter(|name| !name.is_empty());
    wait_for_the_end(io::stdin(), runner, WatchedAgent::parent(), PATIENCE);
    let mut pause = FIRST_PAUSE;
    loop {
        // Needs no lock: nobody else has processes of this agent.
        if let Some(agent) = &agent {
            processes::kill_all(&processes::marked_by(agent));
            fence::kill_groups_of(agent);
        }
        if state.is_undone() {
            return Ok(());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The guard is the last to be killed for want of memory. What it cannot lower stays as it was.
fn be_spared() {
    let path = Path::new("/proc/self/oom_score_adj");
    for score in SCORES {
        let is_lower = collect::read_number::<i32>(path).is_some_and(|now| score < now);
        if is_lower && doors::written::write_kernel_file(path, score.to_string()).is_ok() {
            return;
        }
    }
}

/// The journal, by its name and by its open file.
struct HeldState {
    directory: PathBuf,
    /// The directory as it was, so that one that is made anew is not taken for it.
    id: Option<(FileId, File)>,
    journal: File,
}

impl HeldState {
    fn new(directory: PathBuf, journal: File) -> Self {
        let opened = File::open(&directory).ok();
        let id =
            opened.and_then(|file| Some((FileId::from_metadata(&file.metadata().ok()?), file)));
        HeldState {
            directory,
            id,
            journal,
        }
    }

    /// Is nothing left to undo? Where the lock is taken, its holder may undo it: an agent
    /// does that before anything else.
    fn is_undone(&self) -> bool {
        if self.is_removed() {
            return self.is_undone_from_the_open_file();
        }
        match fs::metadata(journal::path_in(&self.directory)) {
            Ok(journal) if journal.len() > 0 => {
                let restored = replay_in(&self.directory, Duration::ZERO);
                restored.is_ok_and(|restored| restored.failed.is_empty())
            }
            other => other.is_ok(),
        }
    }

    fn is_removed(&self) -> bool {
        let now = fs::metadata(&self.directory).map(|found| FileId::from_metadata(&found));
        let is_the_same = self
            .id
            .as_ref()
            .is_some_and(|(id, _)| now.is_ok_and(|now| now == *id));
        !is_the_same || !journal::path_in(&self.directory).exists()
    }

    /// Needs no lock either: a file without a name is nobody else's.
    fn is_undone_from_the_open_file(&self) -> bool {
        let undone = self.journal.try_clone().map_err(drop).and_then(|file| {
            let mut journal = Journal::without_name(&self.directory, file);
            match journal.length() {
                Ok(0) => Ok(true),
                Ok(_) => journal.replay().map_err(drop).map(|r| r.failed.is_empty()),
                Err(_) => Err(()),
            }
        });
        undone.unwrap_or(false)
    }
}

/// The agent, which started this process.
struct WatchedAgent {
    pid: Pid,
    process: OwnedFd,
}

impl WatchedAgent {
    /// `None` where it has ended already.
    fn parent() -> Option<Self> {
        let parent = getppid()?;
        let process = pidfd_open(parent, PidfdFlags::empty()).ok()?;
        // Else the number may be that of another process.
        (getppid() == Some(parent)).then(|| WatchedAgent {
            pid: parent.as_raw_nonzero().get(),
            process,
        })
    }

    fn is_stopped(&self) -> bool {
        tasks::read_stat(Path::new("/"), self.pid).is_some_and(|stat| stat.state == 'T')
    }

    /// Kills it with all that it started. A child that is stopped before it becomes a program of its own
    /// has no mark yet, and holds all files of the agent.
    fn kill(&self) {
        let own = std::process::id() as Pid;
        let mut started = tasks::process_tree(Path::new("/"), self.pid);
        started.retain(|pid| ![own, self.pid].contains(pid));
        // It may have ended by itself.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
        processes::kill_all(&started);
    }
}

/// Returns when the agent is gone. One whose runner is gone is killed where it is stopped, or does not
/// end: it would keep its arm in force until somebody lets it go on.
fn wait_for_the_end(
    agent_pipe: impl AsFd,
    runner: OwnedFd,
    agent: Option<WatchedAgent>,
    patience: Duration,
) {
    let mut runner = Some(runner);
    let mut alone_since = None;
    let mut stopped = 0;
    loop {
        let mut fds = vec![PollFd::new(&agent_pipe, PollFlags::IN)];
        // A process that it left may hold the pipe.
        let process = agent.as_ref().map(|agent| &agent.process);
        fds.extend(process.map(|process| PollFd::new(process, PollFlags::IN)));
        let ends = fds.len();
        // Without events there is but the end; its requests are for the agent.
        let runner_end = runner.as_ref();
        fds.extend(runner_end.map(|fd| PollFd::new(fd, PollFlags::empty())));
        wait_for(&mut fds, if runner.is_some() { LONG } else { LOOK });
        // An error reads like an end: the agent cannot be reached any more.
        let has_ended = |fd: &PollFd<'_>| !fd.revents().is_empty();
        if fds[..ends].iter().any(has_ended) {
            return;
        }
        if fds.get(ends).is_some_and(has_ended) {
            runner = None;
        }
        let Some(agent) = agent.as_ref().filter(|_| runner.is_none()) else {
            continue;
        };
        let since = *alone_since.get_or_insert_with(Instant::now);
        stopped = if agent.is_stopped() { stopped + 1 } else { 0 };
        if stopped >= STOPPED_LOOKS || since.elapsed() > patience {
            agent.kill();
        }
    }
}

/// A guard ends when its work is done, not when a terminal closes.
fn ignore_signals() -> Result<(), AgentError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, ignored.clone())
            .map_err(|e| AgentError::io("ignore signals in", Path::new("guard"), e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// As where a child of the agent is stopped before it becomes a program: the agent waits for it, and
    /// it holds the agent's files.
    #[test]
    fn an_agent_that_hangs_when_its_runner_is_gone_is_killed_with_what_it_started() {
        let (agent_pipe, held) = io::pipe().unwrap();
        let (told, tell) = io::pipe().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & echo $!; wait"]);
        let mut agent = shell.stdin(told).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = io::BufReader::new(agent.stdout.take().unwrap());
        io::BufRead::read_line(&mut output, &mut line).unwrap();
        let child: Pid = line.trim().parse().unwrap();
        let pid = rustix::process::Pid::from_child(&agent);
        let watched = WatchedAgent {
            pid: agent.id() as Pid,
            process: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
        };
        let (runner, gone) = io::pipe().unwrap();
        drop(runner);
        wait_for_the_end(agent_pipe, gone.into(), Some(watched), Duration::ZERO);
        agent.wait().unwrap();
        let state = || tasks::read_stat(Path::new("/"), child).map(|stat| stat.state);
        let limit = Instant::now() + Duration::from_secs(20);
        while !matches!(state(), None | Some('Z')) {
            assert!(Instant::now() < limit, "{:?}", state());
            std::thread::sleep(Duration::from_millis(1));
        }
        drop((held, tell));
    }
}
