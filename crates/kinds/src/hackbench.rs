//! hackbench of rt-tests (Debian package `rt-tests`): groups of senders and receivers
//! over pipes or sockets. Its figure is the `Time:` line, the seconds from the moment
//! when all tasks exist to the end of the last one.
//!
//! A run of a few loops measures the creation of processes, so the loops are chosen
//! once for a cell, by growing runs, and are then the same for all arms.

use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, Output, Params, Parsed, Run, Usual,
    Window, Work, program,
};
use model::check::{check_count, check_size};
use model::{
    Better, Calibration, Invalid, KeyDef, Load, Measurement, MetricDef, Problem, Program, Task,
};
use serde::{Deserialize, Serialize};

const KEYS: &[KeyDef] = &[
    KeyDef::new("message-size", "size", "`100B`", "Size of a message."),
    KeyDef::new(
        "threads",
        "`true` or `false`",
        "`false`",
        "Threads in place of processes.",
    ),
    KeyDef::new(
        "transport",
        "`socket` or `pipe`",
        "`socket`",
        "Way of the messages.",
    ),
    KeyDef::new(
        "fds",
        "number",
        "20",
        "File descriptors of a group, which are half of its tasks.",
    ),
    KeyDef::new(
        "loops",
        "number",
        "calibrated",
        "Messages of each sender to each receiver. Unless it is named, it is chosen once for \
         each cell, so that a trial of the baseline takes at least `duration`, and is then the \
         same for all arms.",
    ),
];

/// The kind `hackbench`.
pub static KIND: KindDef = KindDef {
    name: "hackbench",
    aliases: &["messaging"],
    summary: "hackbench of rt-tests: groups of tasks that send messages over pipes or sockets",
    loads: LoadForms::Counts,
    load_unit: "groups",
    window: Window::Whole,
    usual: Usual {
        load: Load::Count(1),
        duration_ns: SHORTEST_TRIAL_NS,
        warmup_ns: 0,
        time_limit_ns: Some(120_000_000_000),
    },
    keys: KEYS,
    work: Work::for_params::<Hackbench>(),
    client: false,
    metrics: METRICS,
    deciding: DECIDING,
    logs: &[],
    watched: &[],
    tasks: &[Task::Process("hackbench")],
    programs: &[Program {
        name: "hackbench",
        // There is no option for the version alone.
        version: Some("--help"),
        package: Some("rt-tests"),
    }],
    handicap: false,
    turns: false,
};

const HACKBENCH_TIME: MetricDef = MetricDef {
    name: "hackbench_time",
    unit: "s",
    better: Better::Lower,
    text: "Time that hackbench reports for all messages of all groups, creation of tasks left out.",
};
/// Metrics of the load.
pub const METRICS: &[MetricDef] = &[HACKBENCH_TIME];
/// Names of the metrics that decide when a cell stops.
pub const DECIDING: &[&str] = &["hackbench_time"];

/// The calibrated value.
const LOOPS: &str = "loops";
/// hackbench's own default, for a job that was never calibrated.
const DEFAULT_LOOPS: u64 = 100;
const FIRST_LOOPS: u64 = 20;
const SHORTEST_TRIAL_NS: u64 = 1_000_000_000;
/// Aims above the shortest trial, since a scheduler under test may be faster.
const MARGIN: f64 = 1.25;
const MOST_GROWTH: f64 = 10.0;
const MOST_RUNS: u32 = 12;

/// hackbench of rt-tests. The load is the number of groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hackbench {
    /// Threads instead of processes.
    pub threads: bool,
    /// Channel between senders and receivers.
    pub transport: Transport,
    /// Size of each message (`--datasize`).
    pub message_bytes: u32,
    /// File descriptors per group: half the tasks of a group.
    pub fds: u32,
    /// `None`: calibrated once so that a trial lasts at least `duration_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<u64>,
    /// A name on PATH or a path.
    #[serde(skip, default = "usual_program")]
    pub program: String,
}

/// Channel over which the tasks of a group send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Pipes (`--pipe`).
    Pipe,
    /// Pairs of Unix sockets, hackbench's own default.
    Socket,
}

/// An option of hackbench of rt-tests in every version; other programs of the name have none.
const OPTION: &str = "datasize";
const PACKAGE: &str =
    "install the Debian package rt-tests (apt-get install rt-tests), and put it first in PATH";

fn usual_program() -> String {
    "hackbench".to_owned()
}

impl Params for Hackbench {
    fn read(keys: &mut Keys) -> Self {
        let size = keys.size("message-size").unwrap_or(100);
        let message_bytes = u32::try_from(size).unwrap_or_else(|_| {
            let most = "`message-size` is at most 4294967295 bytes";
            keys.refuse(Invalid::new("message-size", most));
            u32::MAX
        });
        Hackbench {
            threads: keys.get("threads").unwrap_or(false),
            transport: keys.get("transport").unwrap_or(Transport::Socket),
            message_bytes,
            fds: keys.get("fds").unwrap_or(20),
            loops: keys.get("loops"),
            program: usual_program(),
        }
    }
}

impl Hackbench {
    fn argv(&self, job: &Job, loops: u64) -> Vec<String> {
        let groups = job.load_count();
        let mut argv = vec![self.program.clone()];
        let options = [
            ("--groups", groups),
            ("--fds", u64::from(self.fds)),
            ("--datasize", u64::from(self.message_bytes)),
            ("--loops", loops),
        ];
        for (name, value) in options {
            argv.extend([name.to_owned(), value.to_string()]);
        }
        let tasks = if self.threads {
            "--threads"
        } else {
            "--process"
        };
        argv.push(tasks.to_owned());
        if self.transport == Transport::Pipe {
            argv.push("--pipe".to_owned());
        }
        argv
    }

    fn find_loops(&self, job: &Job, run: &mut Run) -> Result<u64, String> {
        let wanted = job.workload.duration_ns.max(SHORTEST_TRIAL_NS) as f64 / 1e9;
        let mut loops = FIRST_LOOPS;
        for _ in 0..MOST_RUNS {
            let output = run(&self.argv(job, loops), job.workload.time_limit_ns)?;
            let took = seconds(&output)?;
            if took >= wanted {
                return Ok(loops);
            }
            let factor = (wanted * MARGIN / took).min(MOST_GROWTH);
            loops = model::truncate_to_u64((loops as f64 * factor).ceil());
        }
        Err(format!(
            "runs of up to {loops} loops stay below {wanted} s; set the loops of the workload"
        ))
    }
}

impl Driver for Hackbench {
    fn check(&self) -> Result<(), Invalid> {
        check_count("fds", self.fds.into())?;
        check_size("message-size", self.message_bytes.into())?;
        match self.loops {
            Some(0) => check_count("loops", 0),
            _ => Ok(()),
        }
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |what: String, remedy: &str| {
            problems.push(job.problem(what, remedy));
        };
        if which::which(&self.program).is_err() {
            problem(format!("{} is not installed", self.program), PACKAGE);
        }
        if let Some(other) = program::is_another(&self.program, OPTION) {
            problem(
                format!(
                    "{} is another hackbench: it has no option --{OPTION} (LTP brings one of this name)",
                    other.display()
                ),
                PACKAGE,
            );
        }
        if job.load.resolve_count(job.cpus).is_none() {
            problem(
                format!(
                    "hackbench cannot be paced, so a load of {} has no meaning",
                    job.load
                ),
                "give the load as a number of groups",
            );
        }
        problems
    }

    fn calibrate(&self, job: &Job, run: &mut Run) -> Result<Calibration, String> {
        let mut calibration = Calibration::default();
        if self.loops.is_none() {
            let loops = self
                .find_loops(job, run)
                .map_err(|e| format!("calibrate hackbench: {e}"))?;
            calibration.values.insert(LOOPS.to_owned(), loops);
        }
        Ok(calibration)
    }

    fn launch(&self, job: &Job) -> Launch {
        let calibrated = job.calibration.values.get(LOOPS).copied();
        let loops = self.loops.or(calibrated).unwrap_or(DEFAULT_LOOPS);
        Launch::new(self.argv(job, loops))
    }

    fn parse(&self, _job: &Job, output: &Output) -> Result<Parsed, String> {
        let seconds = seconds(output)?;
        if seconds == 0.0 {
            return Err("hackbench took less than a millisecond; use more loops".to_owned());
        }
        Ok(Parsed {
            metrics: vec![HACKBENCH_TIME.to_measurement(seconds)],
            ..Parsed::default()
        })
    }

    fn read_again(&self, job: &Job, output: &Output) -> Option<Result<Vec<Measurement>, String>> {
        Some(self.parse(job, output).map(|parsed| parsed.metrics))
    }
}

/// The one `Time: SECONDS` line of a successful run; 0 below a millisecond.
fn seconds(output: &Output) -> Result<f64, String> {
    program::check_success("hackbench", output)?;
    let mut times = output
        .stdout
        .lines()
        .filter_map(|l| l.strip_prefix("Time:"));
    let (Some(text), None) = (times.next(), times.next()) else {
        return Err(program::garbage("hackbench", "one `Time:` line", output));
    };
    match text.trim().parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        _ => Err(program::garbage("hackbench", "a time", output)),
    }
}

#[cfg(test)]
mod tests;
