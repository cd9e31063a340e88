//! The machine under test and the scheduler on it. Needs root and a kernel with
//! sched_ext on which no other scheduler is attached: a guest, mostly.

use rustix::process::{Pid, Signal, kill_process};
use scx_stats::prelude::StatsClient;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const SCHEDULER: &str = env!("CARGO_BIN_EXE_scx_microquanta");
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Loading is verified by the kernel, which takes its time where CPUs are emulated.
const ATTACH_LIMIT: Duration = Duration::from_secs(180);
const DETACH_LIMIT: Duration = Duration::from_secs(30);

/// One scheduler at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// Why the tests cannot run here.
fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    match fs::read_to_string(Path::new(SCHED_EXT).join("state")) {
        Err(_) => Some("this kernel has no sched_ext".to_owned()),
        Ok(state) if state.trim() != "disabled" => {
            Some("another sched_ext scheduler is attached".to_owned())
        }
        Ok(_) => None,
    }
}

/// The machine for one test, or nothing where it is not fit for it.
pub fn machine() -> Option<MutexGuard<'static, ()>> {
    let guard = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    match obstacle() {
        Some(why) => {
            println!("skipped: {why}");
            None
        }
        None => Some(guard),
    }
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The last CPU, which has least to do for the rest of the machine.
pub fn last_cpu() -> usize {
    cpus() - 1
}

/// What a file of `/sys/kernel/sched_ext` says.
pub fn sched_ext(file: &str) -> String {
    let text = fs::read_to_string(Path::new(SCHED_EXT).join(file));
    text.unwrap_or_default().trim().to_owned()
}

/// Runs the program to its end: whether it succeeded, and all that it said.
pub fn command(args: &[&str]) -> (bool, String) {
    let output = Command::new(SCHEDULER)
        .args(args)
        .output()
        .expect("start scx_microquanta");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// The scheduler, attached.
pub struct Scheduler {
    child: Child,
    enable_seq: String,
}

impl Scheduler {
    /// Micro-quanta tasks are the threads whose names begin with `quanta`, and
    /// whatever `more` arguments say.
    pub fn start(period: &str, runtime: &str, more: &[&str]) -> Self {
        let mut child = Command::new(SCHEDULER)
            .args([
                "--thread",
                "quanta*",
                "--period",
                period,
                "--runtime",
                runtime,
            ])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .expect("start scx_microquanta");
        let start = Instant::now();
        while !sched_ext("root/ops").starts_with("microquanta") {
            let ended = child.try_wait().expect("ask for its state");
            let late = start.elapsed() > ATTACH_LIMIT;
            assert!(
                ended.is_none() && !late,
                "not attached: {ended:?}\n{}",
                stderr(&mut child)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Scheduler {
            child,
            enable_seq: sched_ext("enable_seq"),
        }
    }

    /// Change the parameters while it runs.
    pub fn update(&self, period: &str, runtime: &str) {
        let (good, text) = command(&["--update", "--period", period, "--runtime", runtime]);
        assert!(good, "{text}");
    }

    /// Still the same attachment as at the start.
    pub fn assert_attached(&mut self) {
        let ended = self.child.try_wait().expect("ask for its state");
        let text = ended.map(|_| stderr(&mut self.child));
        assert_eq!(text, None, "it ended");
        assert_eq!(sched_ext("enable_seq"), self.enable_seq, "attached again");
        assert!(sched_ext("root/ops").starts_with("microquanta"));
    }

    /// Detach as a user does; what it said at the end.
    pub fn stop(mut self) -> String {
        self.assert_attached();
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("send SIGINT");
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("ask for its state") {
                break status;
            }
            assert!(start.elapsed() < DETACH_LIMIT, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        let text = stderr(&mut self.child);
        assert!(status.success(), "{status}\n{text}");
        assert_eq!(sched_ext("state"), "disabled");
        text
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it printed, after it ended.
fn stderr(child: &mut Child) -> String {
    let Some(pipe) = child.stderr.take() else {
        return String::new();
    };
    let lines: Vec<String> = BufReader::new(pipe).lines().map_while(Result::ok).collect();
    lines.join("\n")
}

/// A client of the scheduler's statistics.
pub struct Statistics {
    client: StatsClient,
}

impl Statistics {
    /// Its first interval begins now.
    pub fn open() -> Self {
        let client = StatsClient::new().connect(Some(20_000));
        let mut statistics = Statistics {
            client: client.expect("connect to the stats socket"),
        };
        statistics.read();
        statistics
    }

    /// Since the last call.
    pub fn read(&mut self) -> serde_json::Value {
        let answer = self.client.request("stats", Vec::new());
        answer.expect("ask for statistics")
    }
}
