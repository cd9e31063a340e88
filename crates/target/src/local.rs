//! This machine: the agent is a child process that talks over its standard streams.

use crate::stream::Stream;
use crate::{Boot, Can, Host, Reset, Session, Target, TargetDef, TargetError};
use model::{Experiment, Problem, Reply, Request, TargetSpec};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Lines of the agent's standard error that are kept for messages.
const TAIL_LINES: usize = 20;
/// How long an agent may take to undo its arm after its stream was closed.
const FAREWELL: Duration = Duration::from_secs(45);

const NAME: &str = "local";

pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "this machine",
    read: |keys| {
        Nothing::deserialize(keys)?;
        Ok(TargetSpec::local())
    },
    can: |_| Ok(CAN),
    expose: None,
    shown: |_| Ok(Vec::new()),
    make: |_, host| Ok(Box::new(LocalTarget::new(host))),
};

const CAN: Can = Can {
    kernels: false,
    cpus: None,
    reset: Reset::None,
};

/// This machine has no keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug)]
pub struct LocalTarget {
    program: PathBuf,
    env: Vec<(String, String)>,
}

impl LocalTarget {
    pub fn new(host: &Host) -> Self {
        // This very file, also after another build took its place.
        let this = || PathBuf::from("/proc/self/exe");
        LocalTarget {
            program: host.program.clone().unwrap_or_else(this),
            env: host.environment.clone(),
        }
    }
}

impl Target for LocalTarget {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn can(&self) -> Can {
        CAN
    }

    fn check(&mut self, _experiment: &Experiment) -> Vec<Problem> {
        Vec::new()
    }

    fn open(&mut self, _boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        let mut child = Command::new(&self.program)
            .arg0("schedlab")
            .arg("agent")
            .envs(self.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C is for the runner, which ends the agent in order.
            .process_group(0)
            .spawn()
            .map_err(|source| TargetError::Io {
                step: "starting the agent",
                object: self.program.display().to_string(),
                source,
            })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three were asked for");
        };
        Ok(Box::new(LocalSession {
            child,
            stream: Some(Stream::new(stdout, stdin)),
            tail: keep_tail(stderr),
        }))
    }
}

#[derive(Debug)]
struct LocalSession {
    child: Child,
    stream: Option<Stream>,
    tail: Arc<Mutex<Vec<String>>>,
}

fn keep_tail(stderr: ChildStderr) -> Arc<Mutex<Vec<String>>> {
    let tail = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tail);
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let Ok(mut kept) = kept.lock() else { break };
            if kept.len() == TAIL_LINES {
                kept.remove(0);
            }
            kept.push(line);
        }
    });
    tail
}

impl LocalSession {
    fn stream(&mut self) -> Result<&mut Stream, TargetError> {
        self.stream.as_mut().ok_or_else(|| TargetError::Gone {
            why: "it was closed".to_owned(),
            tail: String::new(),
        })
    }

    /// What the process itself says about its end, in place of "closed its stream".
    fn explain(&mut self, error: TargetError) -> TargetError {
        let TargetError::Gone { why, .. } = error else {
            return error;
        };
        let tail = self.tail.lock().map(|t| t.join("\n")).unwrap_or_default();
        let why = match self.wait_until(Instant::now() + Duration::from_secs(2)) {
            Some(status) => status.to_string(),
            None => why,
        };
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

impl Session for LocalSession {
    fn send(&mut self, request: &Request) -> Result<(), TargetError> {
        let sent = self.stream()?.send(request);
        sent.map_err(|e| self.explain(e))
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        let received = self.stream()?.receive(wait);
        received.map_err(|e| self.explain(e))
    }
}

impl Drop for LocalSession {
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
