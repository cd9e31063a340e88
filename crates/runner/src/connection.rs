//! A conversation with one agent: question, answer, and the end of patience.

use crate::RunError;
use model::{
    Calibration, Experiment, Load, Measurement, PROTOCOL_VERSION, Problem, Reply, Request, System,
    TrialFile, TrialResult, TrialSpec, Workload,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use target::{Boot, Session, Target, TargetError};

/// How often a wait looks whether it was interrupted. Inside a trial every
/// wake-up disturbs what is measured, so not more often than twice a second.
const LOOK: Duration = Duration::from_millis(500);
/// For requests that only read.
const SHORT: Duration = Duration::from_secs(60);
/// For calibrations, which run the workload several times.
const LONG: Duration = Duration::from_secs(600);

pub(crate) struct Connection {
    session: Box<dyn Session>,
}

/// How a trial ended, seen from here.
pub(crate) enum TrialEnd {
    Result {
        result: Box<TrialResult>,
        files: Vec<TrialFile>,
    },
    /// The agent is silent or gone; the connection is of no more use.
    Lost {
        why: String,
        files: Vec<TrialFile>,
    },
    Interrupted,
}

impl Connection {
    /// Start an agent and see that it speaks our protocol.
    pub fn open(target: &mut dyn Target, boot: &Boot) -> Result<Self, RunError> {
        let mut connection = Connection {
            session: target.open(boot)?,
        };
        connection.hello()?;
        Ok(connection)
    }

    fn hello(&mut self) -> Result<(), RunError> {
        let protocol = PROTOCOL_VERSION;
        match self.ask(&Request::Hello { protocol }, SHORT)? {
            Reply::Hello {
                protocol: found, ..
            } if found == protocol => Ok(()),
            Reply::Hello {
                protocol: found, ..
            } => Err(RunError::Protocol {
                found,
                expected: protocol,
            }),
            other => Err(out_of_turn(&other)),
        }
    }

    pub fn probe(&mut self) -> Result<System, RunError> {
        match self.ask(&Request::Probe, SHORT)? {
            Reply::System { system } => Ok(*system),
            other => Err(out_of_turn(&other)),
        }
    }

    pub fn check(&mut self, experiment: &Experiment) -> Result<Vec<Problem>, RunError> {
        let experiment = Box::new(experiment.clone());
        match self.ask(&Request::Check { experiment }, SHORT)? {
            Reply::Checked { problems } => Ok(problems),
            other => Err(out_of_turn(&other)),
        }
    }

    pub fn calibrate(
        &mut self,
        cell: &str,
        workload: &Workload,
        load: Load,
    ) -> Result<Calibration, RunError> {
        let workload = Box::new(workload.clone());
        match self.ask(&Request::Calibrate { workload, load }, LONG)? {
            Reply::Calibrated { calibration } => Ok(calibration),
            Reply::Refused { why } => Err(RunError::Calibration {
                cell: cell.to_owned(),
                why,
            }),
            other => Err(out_of_turn(&other)),
        }
    }

    /// One trial; `patience` ends it if the agent does not.
    pub fn trial(
        &mut self,
        spec: TrialSpec,
        patience: Duration,
        interrupted: &AtomicBool,
        mut step: impl FnMut(&str),
    ) -> Result<TrialEnd, RunError> {
        let mut files = Vec::new();
        let spec = Box::new(spec);
        if let Err(error) = self.session.send(&Request::Trial { spec }) {
            return lost(error, files);
        }
        let limit = Instant::now() + patience;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(TrialEnd::Interrupted);
            }
            match self.session.receive(LOOK) {
                Ok(Some(Reply::Trial { result })) => {
                    return Ok(TrialEnd::Result { result, files });
                }
                Ok(Some(Reply::File { file })) => files.push(file),
                Ok(Some(Reply::Progress { step: now })) => step(&now),
                Ok(Some(Reply::Refused { why })) => return Ok(TrialEnd::Lost { why, files }),
                Ok(Some(other)) => return Err(out_of_turn(&other)),
                Ok(None) if Instant::now() >= limit => {
                    let why = format!("the agent did not answer within {} s", patience.as_secs());
                    return Ok(TrialEnd::Lost { why, files });
                }
                Ok(None) => {}
                Err(error) => return lost(error, files),
            }
        }
    }

    pub fn console(&mut self) -> Option<String> {
        self.session.console()
    }

    pub fn host_readings(&mut self) -> Vec<Measurement> {
        self.session.host_readings()
    }

    fn ask(&mut self, request: &Request, patience: Duration) -> Result<Reply, RunError> {
        self.session.send(request)?;
        let limit = Instant::now() + patience;
        loop {
            match self.session.receive(LOOK)? {
                Some(Reply::Progress { .. }) => {}
                Some(reply) => return Ok(reply),
                None if Instant::now() >= limit => {
                    let why = format!("no answer within {} s", patience.as_secs());
                    let tail = self.console().unwrap_or_default();
                    return Err(TargetError::Gone { why, tail }.into());
                }
                None => {}
            }
        }
    }
}

/// A machine that died voids the trial and is no error of the run.
fn lost(error: TargetError, files: Vec<TrialFile>) -> Result<TrialEnd, RunError> {
    match error {
        TargetError::Gone { why, tail } => {
            let why = with_last_lines(format!("the agent is gone: {why}"), &tail);
            Ok(TrialEnd::Lost { why, files })
        }
        TargetError::Garbled(what) => Ok(TrialEnd::Lost {
            why: format!("the agent's answer is no message: {what}"),
            files,
        }),
        other => Err(other.into()),
    }
}

/// What the machine said last, below the line that says what happened. No fewer lines
/// than a target keeps of a kernel's panic (`TAIL_LINES` of target's console.rs), of which
/// the first ones tell most.
pub(crate) fn with_last_lines(why: String, text: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = text.trim().lines().collect();
    match lines[..] {
        [] => why,
        _ => format!(
            "{why}\n{}",
            lines[lines.len().saturating_sub(LINES)..].join("\n")
        ),
    }
}

fn out_of_turn(reply: &Reply) -> RunError {
    let text = format!("{reply:?}");
    RunError::OutOfTurn(text.chars().take(80).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_target_keeps_of_a_panic_is_kept() {
        let tail: Vec<String> = (0..40).map(|n| format!("line {n}")).collect();
        let why = with_last_lines("gone".to_owned(), &tail.join("\n"));
        assert!(why.starts_with("gone\nline 0\nline 1\n") && why.ends_with("line 39"));
        assert_eq!(with_last_lines("gone".to_owned(), " \n"), "gone");
    }
}
