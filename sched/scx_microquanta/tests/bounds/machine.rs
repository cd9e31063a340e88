//! The machine under test and the scheduler on it. Needs root and a kernel with
//! sched_ext on which no other scheduler is attached: a guest, mostly.

use crate::load::cpu_time_in;
use rustix::process::{Pid, Signal, kill_process};
use scx_stats::prelude::StatsClient;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const SCHEDULER: &str = env!("CARGO_BIN_EXE_scx_microquanta");
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Whose tasks are micro-quanta tasks.
pub const CGROUP: &str = "/sys/fs/cgroup/microquanta-test";

/// Loading is verified by the kernel, which takes its time where CPUs are emulated.
const ATTACH_LIMIT: Duration = Duration::from_secs(180);
const DETACH_LIMIT: Duration = Duration::from_secs(30);

/// Why the tests cannot run here.
pub fn obstacle() -> Option<String> {
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

/// Others may take CPUs away from this machine: judge less strictly.
pub fn is_shared() -> bool {
    std::env::var_os("MICROQUANTA_SHARED_CPUS").is_some()
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The last CPU, which has least to do for the rest of the machine.
pub fn last_cpu() -> usize {
    cpus() - 1
}

/// The CPUs of each core.
pub fn cores() -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for cpu in 0..cpus() {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = fs::read_to_string(file).expect("read the CPU's topology");
        cores.entry(siblings).or_default().push(cpu);
    }
    cores.into_values().collect()
}

/// Content of a file of `/sys/kernel/sched_ext`.
pub fn sched_ext(file: &str) -> String {
    let text = fs::read_to_string(Path::new(SCHED_EXT).join(file));
    text.unwrap_or_default().trim().to_owned()
}

/// Runs the program to its end: whether it succeeded, and all that it said.
pub fn command(args: &[&str]) -> (bool, String) {
    let output = Command::new(SCHEDULER)
        .args(args)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("start scx_microquanta");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// The scheduler, attached.
pub struct Scheduler {
    child: RefCell<Child>,
    enable_seq: String,
}

impl Scheduler {
    /// Micro-quanta tasks are the threads whose names begin with `quanta`, the
    /// processes whose names begin with `chosen-proc`, and those in [`CGROUP`].
    pub fn start(period: &str, runtime: &str) -> Self {
        let _ = fs::create_dir(CGROUP);
        let mut command = Command::new(SCHEDULER);
        command
            .args(["--thread", "quanta*", "--process", "chosen-proc*"])
            .args(["--cgroup", CGROUP])
            .args(["--period", period, "--runtime", runtime])
            // The symbols of a refusal take an emulated CPU half a minute.
            .env("RUST_BACKTRACE", "0")
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("start scx_microquanta");
        let start = Instant::now();
        while !is_attached() {
            let ended = child.try_wait().expect("ask for its state");
            let late = start.elapsed() > ATTACH_LIMIT;
            if late {
                child.kill().expect("stop it");
            }
            assert!(
                ended.is_none() && !late,
                "{ended:?}\n{}",
                stderr(&mut child)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        // It answers, so it has begun its work, and the kernel has counted it: its name
        // is there before.
        Statistics::open();
        Scheduler {
            child: RefCell::new(child),
            enable_seq: sched_ext("enable_seq"),
        }
    }

    /// CPU time of its main thread so far.
    pub fn cpu_time(&self) -> Duration {
        cpu_time_in(&format!("/proc/{}/schedstat", self.child.borrow().id()))
    }

    /// Where its own threads may run.
    pub fn allow_cpus(&self, cpus: RangeInclusive<usize>) {
        let status = Command::new("taskset")
            .args(["--all-tasks", "--cpu-list", "--pid"])
            .arg(format!("{}-{}", cpus.start(), cpus.end()))
            .arg(self.child.borrow().id().to_string())
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("start taskset").success());
    }

    /// Change the parameters while it runs.
    pub fn update(&self, period: &str, runtime: &str) {
        let (good, text) = command(&["--update", "--period", period, "--runtime", runtime]);
        assert!(good, "{text}");
    }

    /// Still the same attachment as at the start.
    pub fn assert_attached(&self) {
        let mut child = self.child.borrow_mut();
        let ended = child.try_wait().expect("ask for its state");
        let text = ended.map(|_| stderr(&mut child));
        assert_eq!(text, None, "it ended");
        assert!(is_attached(), "{}", sched_ext("state"));
        assert_eq!(sched_ext("enable_seq"), self.enable_seq, "attached again");
    }

    /// Detach as a user does.
    pub fn stop(self) {
        self.assert_attached();
        let status = self.end(Signal::INT);
        let text = stderr(&mut self.child.borrow_mut());
        assert!(status.success(), "{status}\n{text}");
        assert!(
            text.contains("EXIT: unregistered from user space"),
            "{text}"
        );
        assert_eq!(sched_ext("state"), "disabled");
    }

    /// The kernel detaches it then.
    pub fn kill(self) {
        self.end(Signal::KILL);
        wait_until("detached", || sched_ext("state") == "disabled");
    }

    fn end(&self, signal: Signal) -> ExitStatus {
        let mut child = self.child.borrow_mut();
        kill_process(Pid::from_child(&child), signal).expect("send the signal");
        let mut status = None;
        wait_until("ended", || {
            status = child.try_wait().expect("ask for its state");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

fn is_attached() -> bool {
    sched_ext("state") == "enabled" && sched_ext("root/ops").starts_with("microquanta")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DETACH_LIMIT, "it is not {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let _ = child.kill();
        let _ = child.wait();
        let _ = fs::remove_dir(CGROUP);
    }
}

/// Everything that it printed, after it ended.
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
        let mut client = None;
        wait_until("listening", || {
            client = StatsClient::new().connect(Some(5_000)).ok();
            client.is_some()
        });
        let mut statistics = Statistics {
            client: client.expect("connected"),
        };
        statistics.read();
        statistics
    }

    /// Since the last call.
    fn read(&mut self) -> serde_json::Value {
        let answer = self.client.request("stats", Vec::new());
        answer.expect("ask for statistics")
    }

    pub fn number_of_tasks(&mut self) -> u64 {
        self.read()["nr_tasks"].as_u64().expect("a number")
    }

    pub fn all(&mut self) -> BTreeMap<usize, Cpu> {
        serde_json::from_value(self.read()["cpus"].take()).expect("the CPUs")
    }

    pub fn cpu(&mut self, cpu: usize) -> Cpu {
        self.all().remove(&cpu).expect("the CPU")
    }
}

/// Report on a CPU.
#[derive(Debug, serde::Deserialize)]
pub struct Cpu {
    pub quanta_ns: u64,
    pub rest_ns: u64,
    pub throttled_ns: u64,
    pub nr_throttled: u64,
    pub nr_wakeups: u64,
    pub worst_wait_ns: u64,
}
