//! The program that runs a simulation, from its start to its end.

use super::Gatling;
use doors::read::Lines;
use doors::started::{Agreed, named_command};
use load::phase::{NativeError, Phases};
use load::{Job, sys};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

/// How Gatling says that the injection begins: `Simulation my.Simulation started...`.
const STARTED: [&str; 2] = ["Simulation ", " started..."];
/// Exit status of Gatling after a whole simulation that did not keep its assertions
/// (`io.gatling.shared.cli.GatlingStatusCodes`).
const ASSERTIONS_FAILED: i32 = 2;

/// The measured part of a run.
#[derive(Debug)]
pub struct Measured {
    /// Wall-clock time at which the window opened.
    pub opened: SystemTime,
    /// CPU time of the program within the window.
    pub cpu_ns: u64,
    /// True if the simulation ran to its end and its own assertions failed.
    pub assertions_failed: bool,
}

/// Runs the program of a job in the phases that the agent gives.
pub fn run(
    gatling: &Gatling,
    job: &Job,
    cpus: &[u32],
    phases: &mut Phases,
) -> Result<Measured, NativeError> {
    phases.report_ready()?;
    // The program inherits them.
    sys::keep_to(cpus).map_err(|e| NativeError::Generator(format!("load-cpus: {e}")))?;
    let mut program = Program::start(gatling, job)?;
    let begin_ns = program.started_ns()? + job.workload.warmup_ns;
    phases.wait_until(begin_ns)?;
    program.check_alive()?;
    let late = Duration::from_nanos(sys::now_ns().saturating_sub(begin_ns));
    let (opened, first) = (SystemTime::now() - late, program.cpu_ns());
    phases.begin_window(begin_ns)?;
    phases.end_window(begin_ns + job.workload.duration_ns)?;
    // One that has ended has no file any more: it had nothing left to do.
    let last = program.cpu_ns();
    phases.wait_until_seen()?;
    let assertions_failed = program.failed_assertions()?;
    Ok(Measured {
        opened,
        assertions_failed,
        cpu_ns: first
            .zip(last)
            .map_or(0, |(first, last)| last.saturating_sub(first)),
    })
}

/// The running program, which is killed if it is dropped before its end.
struct Program {
    name: String,
    child: Child,
    lines: Receiver<u64>,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already unless something went wrong.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    fn start(gatling: &Gatling, job: &Job) -> Result<Self, NativeError> {
        let argv = gatling.argv_of(job);
        let (name, words) = argv.split_first().ok_or_else(|| failed("no command"))?;
        let mut command = named_command(name, Agreed::by_trial());
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some(directory) = &gatling.directory {
            command.current_dir(directory);
        }
        let mut child = command
            .spawn()
            .map_err(|e| failed(&format!("start {name}: {e}")))?;
        let (sender, lines) = channel();
        let program = |child| Program {
            name: name.clone(),
            child,
            lines,
        };
        let Some(stdout) = child.stdout.take() else {
            drop(program(child));
            return Err(failed("its output is not there"));
        };
        std::thread::Builder::new()
            .name("load-output".to_owned())
            .spawn(move || follow(stdout, &sender))?;
        Ok(program(child))
    }

    /// When the injection began; an error if the program ended before.
    fn started_ns(&mut self) -> Result<u64, NativeError> {
        match self.lines.recv() {
            Ok(at_ns) => Ok(at_ns),
            Err(_) => {
                let status = self.child.wait()?;
                Err(failed(&format!(
                    "{} ended with {status} before its injection began",
                    self.name
                )))
            }
        }
    }

    fn check_alive(&mut self) -> Result<(), NativeError> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(failed(&format!(
                "{} ended with {status} before its warm-up was over",
                self.name
            ))),
        }
    }

    /// Whether it ended as one whose assertions failed; any other failure is an error.
    fn failed_assertions(&mut self) -> Result<bool, NativeError> {
        let status = self.child.wait()?;
        match status.code() {
            Some(0) => Ok(false),
            Some(ASSERTIONS_FAILED) => Ok(true),
            _ => Err(failed(&format!("{} failed with {status}", self.name))),
        }
    }

    /// CPU time of the program so far.
    fn cpu_ns(&self) -> Option<u64> {
        sys::process_cpu_ns(self.child.id())
    }
}

fn failed(why: &str) -> NativeError {
    NativeError::Generator(why.to_owned())
}

/// Passes on what the program prints, to standard error since standard output is for the
/// agent, and says when its injection began.
fn follow(stdout: ChildStdout, sender: &Sender<u64>) {
    for line in Lines::from_stream(stdout) {
        doors::shown::print_note(&line);
        let [begin, end] = STARTED;
        if line.starts_with(begin) && line.trim_end().ends_with(end) {
            let _ = sender.send(sys::now_ns());
        }
    }
}
