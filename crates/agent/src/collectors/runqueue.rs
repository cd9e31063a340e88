//! Time that the tasks of each role waited in run queues within the window, as a distribution
//! for each CPU: counted by BPF, in a program of its own (`sched/schedlab_runqueue`, whose
//! main.rs has the lines that are spoken here).

use super::def::{At, Collected, Collecting, CollectorDef, Lack, Start};
use super::prefix;
use crate::arm::scheduler;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::process::{Event, Origin, Process};
use collect::tasks::{self, Pid};
use hdrhistogram::Histogram;
use load::Launch;
use load::recording::{self, Interval};
use model::{Measurement, MetricDef, Role, Severity, TrialFile, Warning};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

const PROGRAM: &str = "schedlab_runqueue";

const MAX: MetricDef = MetricDef::explaining(
    "runqueue_max",
    "ns",
    "Longest wait of a runnable task until it was given a CPU (BPF).",
);

/// Metrics of quantiles, with the quantile in thousandths.
const QUANTILES: [(MetricDef, u32); 3] = [
    (
        MetricDef::explaining(
            "runqueue_p50",
            "ns",
            "Half of the waits of runnable tasks for a CPU were shorter (BPF).",
        ),
        500,
    ),
    (
        MetricDef::explaining(
            "runqueue_p99",
            "ns",
            "99 % of the waits of runnable tasks for a CPU were shorter (BPF).",
        ),
        990,
    ),
    (
        MetricDef::explaining(
            "runqueue_p999",
            "ns",
            "99.9 % of the waits of runnable tasks for a CPU were shorter (BPF).",
        ),
        999,
    ),
];

pub const DEF: CollectorDef = CollectorDef {
    name: "runqueue",
    text: "run-queue latency of every role, on each CPU (BPF; on demand)",
    usual: false,
    metrics: &[QUANTILES[0].0, QUANTILES[1].0, QUANTILES[2].0, MAX],
    logs: &LOGS,
    limit: LOAD_LIMIT
        .saturating_add(ANSWER_LIMIT)
        .saturating_add(ANSWER_LIMIT),
    missing,
    start: |at| Some(Box::new(RunQueue::start(at))),
};

/// The roles are spoken of by their place here.
const ROLES: [Role; 3] = [Role::Load, Role::Server, Role::Antagonist];

/// The interval log of each role, by the role's place.
const LOGS: [&str; 3] = ["runqueue", "server-runqueue", "antagonist-runqueue"];

/// The kernel's verifier takes seconds on emulated CPUs.
const LOAD_LIMIT: Duration = Duration::from_secs(60);
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// The program, counting since `begin`.
#[derive(Debug)]
struct RunQueue {
    process: Option<Process>,
    begun: (Instant, SystemTime),
    /// Counts, or the reason why there are none.
    counted: Result<Counted, String>,
}

/// Last answer of the program.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    lost: u64,
    waits: Vec<Waits>,
}

#[derive(Debug, Deserialize)]
struct Waits {
    role: usize,
    cpu: u32,
    /// The lowest wait of a slot and how many.
    counts: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Counted {
    roles: BTreeMap<usize, OfRole>,
    length: Duration,
    lost: u64,
}

#[derive(Debug)]
struct OfRole {
    all: Histogram<u64>,
    cpus: BTreeMap<u32, Histogram<u64>>,
}

impl RunQueue {
    /// Load the BPF programs; they count nothing yet.
    fn start(at: Start) -> Self {
        let mut collector = RunQueue {
            process: None,
            begun: (Instant::now(), SystemTime::now()),
            counted: Err("it never began".to_owned()),
        };
        if let Err(why) = collector.load(at.origin, at.journal, at.interrupt) {
            collector.give_up(why);
        }
        collector
    }

    fn load(
        &mut self,
        origin: Origin,
        journal: &mut Journal,
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        let program = scheduler::find(PROGRAM).ok_or_else(|| format!("{PROGRAM} was not found"))?;
        let launch = Launch {
            phased: true,
            ..Launch::new(vec![program.to_string_lossy().into_owned()])
        };
        let started = Process::start(&launch, origin, journal, |_| Ok(()));
        let process = started.map_err(|e| e.to_string())?;
        self.process = Some(process);
        self.expect("ready", LOAD_LIMIT, interrupt)
    }

    fn ask(&mut self, request: &str, interrupt: &Interrupt) -> Result<(), String> {
        self.send(request)?;
        self.expect("begun", ANSWER_LIMIT, interrupt)
    }

    fn figures(&self) -> Vec<Measurement> {
        let Ok(counted) = &self.counted else {
            return Vec::new();
        };
        let each = counted.roles.iter();
        each.flat_map(|(role, waits)| figures(prefix(&ROLES[*role]), &waits.all))
            .collect()
    }

    /// An HdrHistogram interval log for each role, with an interval for each CPU.
    fn files(&self) -> Vec<TrialFile> {
        let Ok(counted) = &self.counted else {
            return Vec::new();
        };
        let file = |(role, waits): (&usize, &OfRole)| {
            let name = format!("{}.hlog", LOGS[*role]);
            let intervals = waits.cpus.iter().map(|(cpu, histogram)| Interval {
                tag: Some(format!("cpu{cpu}")),
                start: Duration::ZERO,
                length: counted.length,
                histogram,
            });
            let what = "run-queue latency of each CPU";
            let text = recording::interval_log(what, self.begun.1, intervals).ok()?;
            Some(TrialFile { name, text })
        };
        counted.roles.iter().filter_map(file).collect()
    }

    /// Reason why the figures are incomplete.
    fn problem(&self) -> Option<String> {
        match &self.counted {
            Err(why) => Some(format!("run-queue latency was not collected: {why}")),
            Ok(counted) if counted.lost > 0 => Some(format!(
                "run-queue latency: {} tasks or processes were not counted, the BPF maps were full",
                counted.lost
            )),
            Ok(counted) if counted.roles.is_empty() => {
                Some("run-queue latency: no wait of the roles was counted".to_owned())
            }
            Ok(_) => None,
        }
    }

    fn send(&mut self, line: &str) -> Result<(), String> {
        let process = self.process.as_mut().ok_or("it had ended")?;
        process
            .send(&format!("{line}\n"))
            .map_err(|e| format!("{PROGRAM} does not listen: {e}"))
    }

    fn expect(&mut self, wanted: &str, limit: Duration, by: &Interrupt) -> Result<(), String> {
        match self.line(limit, by)? {
            line if line == wanted => Ok(()),
            line => Err(format!("{PROGRAM} said {line:?}, not {wanted}")),
        }
    }

    fn line(&mut self, limit: Duration, interrupt: &Interrupt) -> Result<String, String> {
        let process = self.process.as_mut().ok_or("it had ended")?;
        match process.wait(interrupt, Instant::now() + limit) {
            Event::Line(line) => Ok(line),
            Event::Exited => Err(format!("{PROGRAM} ended: {}", process.last_errors())),
            Event::Interrupted => Err("interrupted".to_owned()),
            Event::Timeout => Err(format!("{PROGRAM} was silent for {} s", limit.as_secs())),
        }
    }

    fn give_up(&mut self, why: String) {
        self.counted = Err(why);
        self.stop_process();
    }

    fn stop_process(&mut self) {
        if let Some(process) = self.process.take() {
            let _ = process.kill_session();
            let _ = process.reap();
        }
    }
}

impl Collecting for RunQueue {
    /// The window opens for these processes and all that they start. Where the load
    /// is not among them, it is what this process starts from now on.
    fn begin_window(&mut self, at: &At) {
        if self.process.is_none() {
            return;
        }
        let mut request = "begin".to_owned();
        for (role, leader) in at.leaders {
            let number = ROLES.iter().position(|r| r == role).unwrap_or_default();
            for process in tasks::process_tree(at.root, *leader) {
                request += &format!(" {number}:{process}");
            }
        }
        if at.leaders.iter().all(|(role, _)| *role != Role::Load) {
            request += &format!(" 0:{}+", std::process::id());
        }
        self.begun = (Instant::now(), SystemTime::now());
        if let Err(why) = self.ask(&request, at.interrupt) {
            self.give_up(why);
        }
    }

    fn end_window(&mut self, at: &At) {
        if self.process.is_none() {
            return;
        }
        let length = self.begun.0.elapsed();
        let answer = self
            .send("end")
            .and_then(|()| self.line(ANSWER_LIMIT, at.interrupt));
        match answer.and_then(|line| counted(&line, length)) {
            Ok(counted) => self.counted = Ok(counted),
            Err(why) => self.give_up(why),
        }
        self.stop_process();
    }

    fn collected_results(&self) -> Collected {
        let warning = |what| Warning {
            severity: Severity::Caution,
            what,
            remedy: "leave \"runqueue\" out of `collect`, or see what the kernel lacks: \
                     BTF, BPF and its tracepoints"
                .to_owned(),
        };
        Collected {
            metrics: self.figures(),
            files: self.files(),
            warnings: self.problem().map(warning).into_iter().collect(),
        }
    }

    fn process(&self) -> Option<Pid> {
        self.process.as_ref().map(|process| process.pid)
    }

    fn stop(&mut self) -> Result<(), String> {
        self.stop_process();
        Ok(())
    }
}

/// A trial that ends early never comes to `end`.
impl Drop for RunQueue {
    fn drop(&mut self) {
        self.stop_process();
    }
}

/// PROC_PID_INIT_INO of include/uapi/linux/nsfs.h.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The lack that keeps BPF from counting here.
fn missing(root: &Path, installed: Vec<PathBuf>) -> Lack {
    let install = format!("run: `schedlab scheduler install {}`", PROGRAM);
    let missing = |what: &str, remedy: &str| Some((what.to_owned(), remedy.to_owned()));
    if scheduler::find_with(PROGRAM, installed).is_none() {
        return missing("its program is not installed", &install);
    }
    if !root.join("sys/kernel/btf/vmlinux").exists() {
        return missing(
            "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)",
            "use a kernel that has it, or a VM: `--vm debian:sid`",
        );
    }
    let namespace = std::fs::read_link(root.join("proc/self/ns/pid"));
    if namespace.is_ok_and(|name| name.as_os_str() != FIRST_PID_NAMESPACE) {
        return missing(
            "BPF knows processes by their numbers outside of this PID namespace",
            "run outside of the container, or in a VM: `--vm debian:sid`",
        );
    }
    if !rustix::process::geteuid().is_root() {
        return missing(
            "it needs root",
            "run as root, or in a VM: `--vm debian:sid`",
        );
    }
    None
}

fn counted(line: &str, length: Duration) -> Result<Counted, String> {
    let answer: Answer =
        serde_json::from_str(line).map_err(|e| format!("{PROGRAM} said {line:?}: {e}"))?;
    let mut roles = BTreeMap::new();
    for waits in answer.waits.into_iter().filter(|w| w.role < ROLES.len()) {
        let of_role = roles.entry(waits.role).or_insert_with(|| OfRole {
            all: empty(),
            cpus: BTreeMap::new(),
        });
        let of_cpu = of_role.cpus.entry(waits.cpu).or_insert_with(empty);
        for (wait_ns, count) in waits.counts {
            for histogram in [&mut *of_cpu, &mut of_role.all] {
                histogram
                    .record_n(wait_ns.max(1), count)
                    .map_err(|e| format!("a wait of {wait_ns} ns: {e}"))?;
            }
        }
    }
    Ok(Counted {
        roles,
        length,
        lost: answer.lost,
    })
}

/// Grows as needed; the digits of all our histograms.
fn empty() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits"));
    histogram.auto(true);
    histogram
}

fn figures(prefix: Option<&str>, waits: &Histogram<u64>) -> Vec<Measurement> {
    let quantiles = QUANTILES.iter().filter_map(|(def, permille)| {
        let is_enough = waits.len() >= recording::samples_needed(*permille);
        let value = waits.value_at_quantile(f64::from(*permille) / 1000.0);
        is_enough.then(|| def.to_measurement(value as f64))
    });
    let mut figures: Vec<Measurement> = quantiles.collect();
    figures.push(MAX.to_measurement(waits.max() as f64));
    for figure in &mut figures {
        figure.metric.insert_str(0, prefix.unwrap_or_default());
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"lost": 2, "waits": [
        {"role": 0, "cpu": 0, "counts": [[1000, 990], [5000, 5]]},
        {"role": 0, "cpu": 3, "counts": [[9000, 10]]},
        {"role": 2, "cpu": 0, "counts": [[0, 1]]}
    ]}"#;

    fn answered(line: &str) -> RunQueue {
        RunQueue {
            process: None,
            begun: (Instant::now(), SystemTime::UNIX_EPOCH),
            counted: counted(line, Duration::from_secs(1)),
        }
    }

    #[test]
    fn the_cpus_of_a_role_add_up_and_quantiles_need_enough_waits() {
        let figures = answered(ANSWER).figures();
        let is_near = |name: &str, ns: f64| {
            let found = figures.iter().find(|m| m.metric == name);
            found.is_some_and(|m| (m.value / ns - 1.0).abs() < 0.001)
        };
        assert!(is_near("runqueue_p50", 1000.0), "{figures:?}");
        // 1005 waits: ten are beyond p99, and one beyond p99.9.
        assert!(is_near("runqueue_p99", 5000.0), "{figures:?}");
        assert!(is_near("runqueue_max", 9000.0), "{figures:?}");
        assert!(is_near("antagonist_runqueue_max", 1.0), "{figures:?}");
        assert_eq!(figures.len(), 4);
    }

    #[test]
    fn each_role_has_a_log_with_an_interval_for_each_cpu() {
        let files = answered(ANSWER).files();
        let names: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["runqueue.hlog", "antagonist-runqueue.hlog"]);
        let lines = files[0].text.lines().filter(|l| l.starts_with("Tag="));
        let tags: Vec<&str> = lines.filter_map(|l| l.split(',').next()).collect();
        assert_eq!(tags, ["Tag=cpu0", "Tag=cpu3"]);
    }

    #[test]
    fn what_was_lost_or_could_not_be_read_is_said() {
        let lost = answered(ANSWER).problem();
        assert!(lost.is_some_and(|p| p.contains("2 tasks or processes were not counted")));
        let garbled = answered("begun");
        assert!(garbled.figures().is_empty() && garbled.files().is_empty());
        assert!(garbled.problem().is_some_and(|p| p.contains("\"begun\"")));
    }

    #[test]
    fn a_program_in_the_directory_of_installed_ones_is_not_missing() {
        use std::os::unix::fs::OpenOptionsExt;
        let root = tempfile::tempdir().unwrap();
        let what = |installed: &Path| missing(root.path(), vec![installed.to_owned()]).unwrap().0;
        let mut program = std::fs::OpenOptions::new();
        program.write(true).create(true).mode(0o755);
        program.open(root.path().join(PROGRAM)).unwrap();
        // The root has no /sys, so that is what is said next.
        assert!(what(root.path()).contains("no BTF"));
        if scheduler::find(PROGRAM).is_none() {
            assert!(what(Path::new("/nowhere")).contains("not installed"));
        }
    }
}
