//! Drives `examples/agent.rs` as a runner would.

#![allow(dead_code)] // Each test file uses its part.

use model::{Arm, Kind, Load, Reply, Request, TrialFile, TrialResult, TrialSpec, Workload};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The knob that these tests turn, and put back.
pub const KNOB: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";

/// Tests that turn the knob do so one after the other.
pub fn knob_to_myself() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn root_or_skip() -> bool {
    if !is_root() {
        ::tests::skipped("turning a knob needs root");
    }
    is_root()
}

pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

pub fn knob() -> String {
    fs::read_to_string(KNOB).unwrap().trim().to_owned()
}

/// The example that cargo built beside this test.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    profile.join("examples/agent")
}

pub struct Agent {
    pub child: Child,
    pub state: TempDir,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub files: Vec<TrialFile>,
}

impl Agent {
    pub fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    pub fn start_in(state: TempDir) -> Self {
        Self::start_with(state, &[])
    }

    pub fn start_with(state: TempDir, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program())
            .arg("agent")
            .env("SCHEDLAB_STATE_DIR", state.path())
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Agent {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            state,
            files: Vec::new(),
        }
    }

    pub fn send_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn send(&mut self, request: &Request) {
        self.send_line(&serde_json::to_string(request).unwrap());
    }

    /// The next reply; `None` at the end of the stream.
    pub fn receive(&mut self) -> Option<Reply> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The final reply to a request; files are kept.
    pub fn answer(&mut self) -> Option<Reply> {
        loop {
            match self.receive()? {
                Reply::File { file } => self.files.push(file),
                on_the_way if on_the_way.precedes_answer() => {}
                reply => return Some(reply),
            }
        }
    }

    pub fn ask(&mut self, request: &Request) -> Reply {
        self.send(request);
        self.answer().unwrap()
    }

    pub fn trial(&mut self, arm: Arm, workload: Workload) -> TrialResult {
        self.result(&trial(arm, workload))
    }

    /// The one result of a trial.
    pub fn result(&mut self, request: &Request) -> TrialResult {
        match self.ask(request) {
            Reply::Trial { mut results } if results.len() == 1 => results.remove(0),
            other => panic!("{other:?}"),
        }
    }

    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// The guard is the only child while no trial runs.
    pub fn children(&self) -> Vec<i32> {
        collect::tasks::process_tree(Path::new("/"), self.child.id() as i32)[1..].to_vec()
    }

    /// The process of its guard, where there is one.
    pub fn guard(&self) -> Option<i32> {
        let line = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut children = self.children().into_iter();
        children.find(|pid| line(pid) == b"schedlab\0guard\0")
    }

    /// Kills the guard alone, and waits until its parent can know it: a process that ends has no
    /// command line any more some time before.
    pub fn kill_guard(&self) -> i32 {
        eventually("there is a guard", || self.guard().is_some());
        let guard = self.guard().unwrap();
        signal(guard, Signal::KILL);
        eventually("the guard has ended", || {
            let stat = fs::read_to_string(format!("/proc/{guard}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        });
        guard
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn file(&self, name: &str) -> Option<&str> {
        let file = self.files.iter().find(|file| file.name == name)?;
        Some(&file.text)
    }
}

impl Drop for Agent {
    /// Without its journal, a guard would have nothing to do.
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
        let journal = self.state.path().join("journal.jsonl");
        let limit = Instant::now() + Duration::from_secs(20);
        while journal.metadata().is_ok_and(|m| m.len() > 0) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

pub fn trial(arm: Arm, workload: Workload) -> Request {
    Request::Trial {
        spec: Box::new(TrialSpec::new(arm, workload, Load::One)),
    }
}

pub fn command(script: &str) -> Workload {
    workload(Kind::new("command").with_param("argv", vec!["sh", "-c", script]))
}

pub fn workload(kind: Kind) -> Workload {
    let json = serde_json::json!({
        "name": kind.name(),
        "kind": serde_json::to_value(&kind).unwrap(),
        "loads": [{"unit": "one"}],
        "duration_ns": 200_000_000u64,
        "warmup_ns": 10_000_000u64,
        "time_limit_ns": 60_000_000_000u64,
    });
    serde_json::from_value(json).unwrap()
}

pub fn arm_with_tunable(value: &str) -> Arm {
    let mut arm = Arm::unchanged("test");
    arm.tunables
        .insert("rr_timeslice".to_owned(), value.to_owned());
    arm
}

/// Wait for something that another process brings about.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "never came about: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes whose command line holds `text`.
pub fn running(text: &str) -> Vec<i32> {
    let line = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut pids = collect::tasks::list_processes(Path::new("/"));
    pids.retain(|pid| line(pid).contains(text));
    pids
}
