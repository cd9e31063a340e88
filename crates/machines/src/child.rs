//! An agent that a command starts: a child process which talks over its standard streams.
//! The command may start it here, over ssh(1), or by a batch system.

use crate::stream::Stream;
use crate::{Session, TargetError};
use doors::read::Lines;
use model::{Reply, Request};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lines of the agent's standard error that are kept for messages.
const TAIL_LINES: usize = 20;
/// Time in which an agent must undo its arm after its stream was closed.
const FAREWELL: Duration = Duration::from_secs(45);
/// Time in which a process must end after its stream did.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Time between two signs of life, for an agent that waits for them. An agent takes us for gone
/// after a multiple of it (`agent::SILENCE`).
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// A session with the agent that a command is or leads to.
#[derive(Debug)]
pub struct ChildSession {
    child: Child,
    stream: Option<Stream>,
    tail: Tail,
}

impl ChildSession {
    /// Starts the command with pipes for its standard streams. An error where it cannot be started;
    /// what it answers is not waited for.
    pub fn spawn(command: Command) -> Result<Self, TargetError> {
        Self::spawn_with(command, |_| {})
    }

    /// The same, with an empty line now and then, which is no message: an agent that is told to
    /// wait for them notices that the way to it is cut, although nobody says so.
    pub fn spawn_with_signs_of_life(command: Command) -> Result<Self, TargetError> {
        Self::spawn_with(command, |stdin| {
            let stdin = Arc::downgrade(&stdin.0);
            std::thread::spawn(move || give_signs_of_life(&stdin));
        })
    }

    fn spawn_with(
        mut command: Command,
        prepare: impl FnOnce(&SharedStdin),
    ) -> Result<Self, TargetError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C is for the runner, which ends the agent in order.
            .process_group(0)
            .spawn()
            .map_err(|source| TargetError::Io {
                step: "starting the agent",
                object: command.get_program().to_string_lossy().into_owned(),
                source,
            })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three were asked for");
        };
        let stdin = SharedStdin(Arc::new(Mutex::new(stdin)));
        prepare(&stdin);
        Ok(ChildSession {
            child,
            stream: Some(Stream::new(stdout, stdin)),
            tail: Tail::of(stderr),
        })
    }

    /// Exit status of the command, where it has ended or does so now.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.wait_until(Instant::now() + LAST_WORDS)?.code()
    }

    fn stream(&mut self) -> Result<&mut Stream, TargetError> {
        self.stream.as_mut().ok_or_else(|| TargetError::Gone {
            why: "it was closed".to_owned(),
            tail: String::new(),
        })
    }

    /// The words of the process itself about its end, in place of "closed its stream".
    fn explain(&mut self, error: TargetError) -> TargetError {
        let TargetError::Gone { why, .. } = error else {
            return error;
        };
        let limit = Instant::now() + LAST_WORDS;
        let why = match self.wait_until(limit) {
            Some(status) => status.to_string(),
            None => why,
        };
        let tail = self.tail.text(limit);
        TargetError::Gone { why, tail }
    }

    fn wait_until(&mut self, limit: Instant) -> Option<ExitStatus> {
        while Instant::now() < limit {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
        None
    }
}

impl Session for ChildSession {
    fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        let sent = self.stream()?.send_request(request);
        sent.map_err(|e| self.explain(e))
    }

    fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        let received = self.stream()?.receive_reply(wait);
        received.map_err(|e| self.explain(e))
    }
}

impl Drop for ChildSession {
    /// Closing the stream tells the agent to undo what is in force and to end.
    fn drop(&mut self) {
        self.stream = None;
        if self.wait_until(Instant::now() + FAREWELL).is_none() {
            // Its guard undoes what it leaves.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The standard input of the agent, for requests and signs of life. It is closed with the
/// stream, which alone keeps it.
struct SharedStdin(Arc<Mutex<ChildStdin>>);

impl Write for SharedStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0)?.write(bytes)
    }

    /// In one piece: no sign of life comes into the middle of a line.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        locked(&self.0)?.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        locked(&self.0)?.flush()
    }
}

fn locked(stdin: &Mutex<ChildStdin>) -> io::Result<std::sync::MutexGuard<'_, ChildStdin>> {
    stdin
        .lock()
        .map_err(|_| io::Error::other("a writer of it died"))
}

/// Until the session or its agent has ended.
fn give_signs_of_life(stdin: &Weak<Mutex<ChildStdin>>) {
    loop {
        std::thread::sleep(SIGN_OF_LIFE);
        let Some(stdin) = stdin.upgrade() else { return };
        if locked(&stdin)
            .and_then(|mut stdin| stdin.write_all(b"\n"))
            .is_err()
        {
            return;
        }
    }
}

/// The last lines of a standard error.
#[derive(Debug)]
struct Tail {
    lines: Arc<Mutex<Vec<String>>>,
    reader: JoinHandle<()>,
}

impl Tail {
    fn of(stderr: ChildStderr) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in Lines::from_stream(stderr) {
                let Ok(mut kept) = kept.lock() else { break };
                if kept.len() == TAIL_LINES {
                    kept.remove(0);
                }
                kept.push(line);
            }
        });
        Tail { lines, reader }
    }

    /// All of it, where it ends before the limit: a descendant may hold it open.
    fn text(&self, limit: Instant) -> String {
        while !self.reader.is_finished() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.lines.lock().map(|t| t.join("\n")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ChildSession {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ChildSession::spawn(command).unwrap()
    }

    #[test]
    fn an_early_end_is_told_with_the_status_and_the_last_lines() {
        let script = "for n in $(seq 30); do echo line $n >&2; done; exit 3";
        let error = shell(script)
            .receive_reply(Duration::from_secs(60))
            .unwrap_err();
        let TargetError::Gone { why, tail } = error else {
            panic!("{error}");
        };
        assert_eq!(why, "exit status: 3");
        let lines: Vec<&str> = tail.lines().collect();
        assert_eq!(
            (lines.len(), lines[0], lines[19]),
            (20, "line 11", "line 30")
        );
    }

    #[test]
    fn a_byte_that_is_no_text_and_a_line_without_end_lose_no_last_words() {
        let script = r"printf 'a\377b\n' >&2; head -c 64M /dev/zero >&2; echo >&2; \
            echo the reason >&2; exit 3";
        let error = shell(script)
            .receive_reply(Duration::from_secs(60))
            .unwrap_err();
        let TargetError::Gone { tail, .. } = error else {
            panic!("{error}");
        };
        let lines: Vec<&str> = tail.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "a\u{fffd}b"));
        assert!(lines[1].len() < 10_000, "{}", lines[1].len());
        assert!(lines[1].ends_with("more bytes)"));
        assert_eq!(lines[2], "the reason");
    }

    #[test]
    fn the_end_of_a_session_waits_until_the_agent_has_undone_what_it_did() {
        let dir = tempfile::tempdir().unwrap();
        let undone = dir.path().join("undone");
        let script = format!("cat > /dev/null; sleep 0.3; touch {}", undone.display());
        drop(shell(&script));
        assert!(undone.exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let spawned = ChildSession::spawn(Command::new("/no/such/agent"));
        let error = spawned.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("/no/such/agent"), "{error}");
    }
}
