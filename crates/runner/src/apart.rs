//! A trial whose load runs on the controller, and all else of it on the target: one agent on
//! each side. What one says about its window the other is told.

use crate::RunError;
use crate::connection::{Connection, LOOK, Patience, TrialEnd, keep, of_lost_agent, out_of_turn};
use model::{
    Arm, Listening, Measurement, Part, Reply, Request, TrialResult, TrialSpec, TrialState, Warning,
};
use results::TrialFiles;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use target::TargetError;

/// The two agents of a trial, and what they have sent so far.
pub(crate) struct Apart<'a> {
    pub target: &'a mut Connection,
    pub controller: &'a mut Connection,
    pub interrupted: &'a AtomicBool,
    pub on_step: &'a mut dyn FnMut(&str),
    pub files: TrialFiles,
}

/// Why the part of one agent ended without its result.
enum Cut {
    Interrupted,
    /// Its connection is of no more use.
    Lost(String),
    Error(RunError),
}

impl From<RunError> for Cut {
    fn from(error: RunError) -> Self {
        Cut::Error(error)
    }
}

type Ended = Result<Box<TrialResult>, Cut>;

impl Apart<'_> {
    /// The result of both parts as one; whether the controller's agent must be started anew.
    pub fn trial(mut self, spec: TrialSpec) -> (Result<TrialEnd, RunError>, bool) {
        let mut used_up = false;
        let ended = self.both(spec, &mut used_up);
        let files = std::mem::take(&mut self.files);
        let end = match ended {
            Ok(result) => Ok(TrialEnd::Result { result, files }),
            Err(Cut::Interrupted) => Ok(TrialEnd::Interrupted),
            Err(Cut::Lost(why)) => Ok(TrialEnd::Lost { why, files }),
            Err(Cut::Error(error)) => Err(error),
        };
        (end, used_up)
    }

    fn both(&mut self, spec: TrialSpec, used_up: &mut bool) -> Ended {
        let beside = TrialSpec {
            part: Part::Beside,
            ..spec.clone()
        };
        send(self.target, &request(beside))?;
        let services = match self.until_serving()? {
            Ok(services) => services,
            // It ended before there was anything to ask.
            Err(result) => return Ok(result),
        };
        let services = self.forwarded(services)?;
        send(self.controller, &request(of_load(spec, services)))?;
        // Whatever ends this leaves the load running, unless it is the load itself.
        *used_up = true;
        let load = match self.until_load_ended()? {
            Ok(load) => load,
            Err(result) => return Ok(result),
        };
        *used_up = false;
        send(self.target, &Request::LoadEnded)?;
        let beside = self.until_trial_ended()?;
        Ok(Box::new(joined(*beside, *load)))
    }

    /// Where the services listen, or the result of a trial that ended before.
    fn until_serving(&mut self) -> Result<Result<Vec<Listening>, Box<TrialResult>>, Cut> {
        let mut patience = Patience::from(Instant::now());
        loop {
            match self.heard(true, LOOK, &mut patience)? {
                Some(Reply::Serving { services }) => return Ok(Ok(services)),
                Some(Reply::Trial { result }) => return Ok(Err(result)),
                Some(other) => return Err(out_of_turn(&other).into()),
                None => {}
            }
        }
    }

    fn forwarded(&mut self, mut services: Vec<Listening>) -> Result<Vec<Listening>, Cut> {
        let ports: Vec<u16> = services.iter().map(|s| s.number).collect();
        let here = self.target.forward(&ports)?;
        for (service, number) in services.iter_mut().zip(here) {
            service.number = number;
        }
        Ok(services)
    }

    /// The result of the load, or that of the target where it ended first. The load is
    /// listened to, so that the target learns of its window at once.
    fn until_load_ended(&mut self) -> Result<Result<Box<TrialResult>, Box<TrialResult>>, Cut> {
        let now = Instant::now();
        let (mut of_load, mut of_target) = (Patience::from(now), Patience::from(now));
        loop {
            match self.heard(false, LOOK, &mut of_load)? {
                Some(Reply::Window { edge }) => send(self.target, &Request::Window { edge })?,
                Some(Reply::Trial { result }) => return Ok(Ok(result)),
                Some(other) => return Err(out_of_turn(&other).into()),
                None => {}
            }
            match self.heard(true, Duration::ZERO, &mut of_target)? {
                Some(Reply::Trial { result }) => return Ok(Err(result)),
                Some(other) => return Err(out_of_turn(&other).into()),
                None => {}
            }
        }
    }

    fn until_trial_ended(&mut self) -> Ended {
        let mut patience = Patience::from(Instant::now());
        loop {
            match self.heard(true, LOOK, &mut patience)? {
                Some(Reply::Trial { result }) => return Ok(result),
                Some(other) => return Err(out_of_turn(&other).into()),
                None => {}
            }
        }
    }

    /// A reply that is not the same in every part of a trial.
    fn heard(
        &mut self,
        from_target: bool,
        wait: Duration,
        patience: &mut Patience,
    ) -> Result<Option<Reply>, Cut> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Cut::Interrupted);
        }
        let connection = match from_target {
            true => &mut *self.target,
            false => &mut *self.controller,
        };
        match connection.receive(wait) {
            Ok(Some(Reply::File { file })) => self.files.texts.push(file),
            Ok(Some(Reply::Kept { piece })) => keep(&mut self.files, piece)?,
            Ok(Some(Reply::Progress { step, limit_ns })) => {
                patience.extend(Instant::now(), &step, limit_ns);
                (self.on_step)(&step);
            }
            Ok(Some(Reply::Refused { why })) => return Err(Cut::Lost(why)),
            Ok(Some(Reply::Unrestored { failed })) => {
                return Err(RunError::Unrestored(failed).into());
            }
            Ok(None) if patience.is_over(Instant::now()) => {
                return Err(Cut::Lost(patience.in_words()));
            }
            Ok(reply) => return Ok(reply),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }
}

fn request(spec: TrialSpec) -> Request {
    Request::Trial {
        spec: Box::new(spec),
    }
}

fn send(to: &mut Connection, request: &Request) -> Result<(), Cut> {
    Ok(to.send(request)?)
}

impl From<TargetError> for Cut {
    /// An agent or a machine that died voids the trial and is no error of the run.
    fn from(error: TargetError) -> Self {
        match of_lost_agent(error) {
            Ok(why) => Cut::Lost(why),
            Err(error) => Cut::Error(error),
        }
    }
}

/// The part of the controller: its load carries the arm's handicap, and nothing else of the
/// arm is for this machine. The collectors are the target's.
fn of_load(spec: TrialSpec, services: Vec<Listening>) -> TrialSpec {
    TrialSpec {
        part: Part::Load { services },
        arm: Arm {
            handicap_percent: spec.arm.handicap_percent,
            ..Arm::unchanged(&spec.arm.name)
        },
        collect: Some(Vec::new()),
        ..spec
    }
}

/// One result of both parts. The proof and the window are the target's, and so is a figure
/// that both have: it explains the machine that is measured.
fn joined(beside: TrialResult, load: TrialResult) -> TrialResult {
    let here = |what: String| format!("the load, on the controller: {what}");
    let state = match load.state {
        TrialState::Ok => beside.state,
        // What the target says then is only that the load ended.
        TrialState::Failed { why } => TrialState::Failed { why: here(why) },
        TrialState::Void { why } => TrialState::Void { why: here(why) },
    };
    let known = |m: &Measurement| beside.metrics.iter().any(|own| own.metric == m.metric);
    let of_load: Vec<Measurement> = load.metrics.into_iter().filter(|m| !known(m)).collect();
    let counts = state == TrialState::Ok;
    let warnings = load.warnings.into_iter().map(|warning| Warning {
        what: here(warning.what),
        ..warning
    });
    TrialResult {
        state,
        elapsed_ns: beside.elapsed_ns,
        metrics: match counts {
            true => of_load.into_iter().chain(beside.metrics).collect(),
            false => Vec::new(),
        },
        warnings: warnings.chain(beside.warnings).collect(),
        ..beside
    }
}
