//! hackbench of rt-tests (Debian package `rt-tests`): groups of senders and receivers
//! over pipes or sockets. Its figure is the `Time:` line, the seconds from the moment
//! when all tasks exist to the end of the last one.
//!
//! A run of a few loops measures the creation of processes, so the loops are chosen
//! once for a cell, by growing runs, and are then the same for all arms.

use crate::{Driver, Job, KindDef, Launch, LoadForms, Output, Parsed, Run, Window, program};
use model::{
    Better, Calibration, HackbenchParams, HackbenchTransport, MetricDef, Problem, Program, Task,
};

/// The kind `hackbench`.
pub static KIND: KindDef = KindDef {
    name: "hackbench",
    aliases: &["messaging"],
    summary: "hackbench of rt-tests: groups of tasks that send messages over pipes or sockets",
    loads: LoadForms::Counts,
    load_unit: "groups",
    window: Window::Whole,
    client: false,
    metrics: METRICS,
    deciding: DECIDING,
    logs: &[],
    tasks: &[Task::Process("hackbench")],
    programs: &[Program {
        name: "hackbench",
        // There is no option for the version alone.
        version: Some("--help"),
        package: Some("rt-tests"),
    }],
    handicap: false,
};

const HACKBENCH_TIME: MetricDef = MetricDef {
    name: "hackbench_time",
    unit: "s",
    better: Better::Lower,
    text: "Time that hackbench reports for all messages of all groups, creation of tasks left out.",
};
pub const METRICS: &[MetricDef] = &[HACKBENCH_TIME];
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

#[derive(Debug, Clone)]
pub struct Hackbench {
    params: HackbenchParams,
    program: String,
}

impl Hackbench {
    pub fn new(params: HackbenchParams) -> Self {
        Self::with_program(params, "hackbench")
    }

    /// `program`: a name on PATH or a path.
    pub fn with_program(params: HackbenchParams, program: &str) -> Self {
        Hackbench {
            params,
            program: program.to_owned(),
        }
    }

    fn argv(&self, job: &Job, loops: u64) -> Vec<String> {
        let groups = job.load.count(job.cpus).unwrap_or(1);
        let mut argv = vec![self.program.clone()];
        let options = [
            ("--groups", groups),
            ("--fds", u64::from(self.params.fds)),
            ("--datasize", u64::from(self.params.message_bytes)),
            ("--loops", loops),
        ];
        for (name, value) in options {
            argv.extend([name.to_owned(), value.to_string()]);
        }
        let tasks = if self.params.threads {
            "--threads"
        } else {
            "--process"
        };
        argv.push(tasks.to_owned());
        if self.params.transport == HackbenchTransport::Pipe {
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
            loops = (loops as f64 * factor).ceil() as u64;
        }
        Err(format!(
            "runs of up to {loops} loops stay below {wanted} s; set the loops of the workload"
        ))
    }
}

impl Driver for Hackbench {
    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |what: String, remedy: &str| {
            problems.push(Problem {
                object: format!("workload {}", job.workload.name),
                what,
                remedy: remedy.to_owned(),
            });
        };
        if program::find(&self.program).is_none() {
            problem(
                format!("{} is not installed", self.program),
                "install the Debian package rt-tests (apt-get install rt-tests)",
            );
        }
        if job.load.count(job.cpus).is_none() {
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
        if self.params.loops.is_none() {
            let loops = self
                .find_loops(job, run)
                .map_err(|e| format!("calibrate hackbench: {e}"))?;
            calibration.values.insert(LOOPS.to_owned(), loops);
        }
        Ok(calibration)
    }

    fn launch(&self, job: &Job) -> Launch {
        let calibrated = job.calibration.values.get(LOOPS).copied();
        let loops = self.params.loops.or(calibrated).unwrap_or(DEFAULT_LOOPS);
        Launch {
            argv: self.argv(job, loops),
            directory: None,
            stdin: String::new(),
            phased: false,
            prepare: Vec::new(),
        }
    }

    fn parse(&self, _job: &Job, output: &Output) -> Result<Parsed, String> {
        let seconds = seconds(output)?;
        if seconds == 0.0 {
            return Err("hackbench took less than a millisecond; use more loops".to_owned());
        }
        Ok(Parsed {
            metrics: vec![HACKBENCH_TIME.measured(seconds)],
            ..Parsed::default()
        })
    }
}

/// The one `Time: SECONDS` line of a successful run; 0 below a millisecond.
fn seconds(output: &Output) -> Result<f64, String> {
    program::succeeded("hackbench", output)?;
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
