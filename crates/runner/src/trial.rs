//! One trial: what its agents send until it ends, and how it ends.

use crate::RunError;
use crate::connection::{Connection, LOOK, Patience, of_lost_agent, out_of_turn};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::{KeptPiece, Reply, Request, TrialResult, TrialSpec};
use results::TrialFiles;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use target::TargetError;

/// End of a trial, seen from here.
pub(crate) enum TrialEnd {
    Result {
        result: Box<TrialResult>,
        /// Results of all arms, where they took turns and the trial counts; `result` is the first.
        arms: Vec<TrialResult>,
        files: TrialFiles,
    },
    /// The agent is silent or gone; the connection is of no more use.
    Lost {
        why: String,
        files: TrialFiles,
    },
    Interrupted,
}

/// Reason why an agent's part of a trial ended without its result.
pub(crate) enum Cut {
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

impl From<TargetError> for Cut {
    /// An agent or a machine that died voids the trial and is no error of the run.
    fn from(error: TargetError) -> Self {
        match of_lost_agent(error) {
            Ok(why) => Cut::Lost(why),
            Err(error) => Cut::Error(error),
        }
    }
}

pub(crate) type Ended = Result<Box<TrialResult>, Cut>;

/// A trial under way, and what its agents have sent so far.
pub(crate) struct UnderWay<'a> {
    interrupted: &'a AtomicBool,
    on_step: &'a mut dyn FnMut(&str),
    files: TrialFiles,
    /// Results of arms that took turns.
    arms: Vec<TrialResult>,
}

impl<'a> UnderWay<'a> {
    pub fn new(interrupted: &'a AtomicBool, on_step: &'a mut dyn FnMut(&str)) -> Self {
        UnderWay {
            interrupted,
            on_step,
            files: TrialFiles::default(),
            arms: Vec::new(),
        }
    }

    /// The trial as one agent does it alone.
    pub fn whole(&mut self, agent: &mut Connection, spec: TrialSpec) -> Ended {
        agent.send(&request(spec))?;
        self.result(agent)
    }

    /// The end of the trial with the files that have arrived.
    pub fn end(self, ended: Ended) -> Result<TrialEnd, RunError> {
        let files = self.files;
        match ended {
            Ok(result) => Ok(TrialEnd::Result {
                result,
                arms: self.arms,
                files,
            }),
            Err(Cut::Interrupted) => Ok(TrialEnd::Interrupted),
            Err(Cut::Lost(why)) => Ok(TrialEnd::Lost { why, files }),
            Err(Cut::Error(error)) => Err(error),
        }
    }

    /// The result that an agent sends next.
    pub fn result(&mut self, from: &mut Connection) -> Ended {
        match self.reply(from)? {
            Reply::Trial { result } => Ok(result),
            Reply::Turns { results } if !results.is_empty() => {
                let first = Box::new(results[0].clone());
                self.arms = results;
                Ok(first)
            }
            other => Err(out_of_turn(&other).into()),
        }
    }

    /// The next reply that is not the same in every part of a trial.
    pub fn reply(&mut self, from: &mut Connection) -> Result<Reply, Cut> {
        let mut patience = Patience::from(Instant::now());
        loop {
            if let Some(reply) = self.heard(from, LOOK, &mut patience)? {
                return Ok(reply);
            }
        }
    }

    /// That reply, if it comes in time. An agent that is silent for too long loses the trial.
    pub fn heard(
        &mut self,
        from: &mut Connection,
        wait: Duration,
        patience: &mut Patience,
    ) -> Result<Option<Reply>, Cut> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Cut::Interrupted);
        }
        match from.receive(wait)? {
            Some(Reply::File { file }) => self.files.texts.push(file),
            Some(Reply::Kept { piece }) => self.keep(piece)?,
            Some(Reply::Progress { step, limit_ns }) => {
                patience.extend(Instant::now(), &step, limit_ns);
                (self.on_step)(&step);
            }
            Some(Reply::Refused { why }) => return Err(Cut::Lost(why)),
            Some(Reply::Unrestored { failed }) => return Err(RunError::Unrestored(failed).into()),
            None if patience.is_over(Instant::now()) => {
                return Err(Cut::Lost(patience.in_words()));
            }
            reply => return Ok(reply),
        }
        Ok(None)
    }

    /// Adds a piece to its file.
    fn keep(&mut self, piece: KeptPiece) -> Result<(), RunError> {
        let bytes = BASE64_STANDARD.decode(&piece.base64);
        let bytes = bytes.map_err(|_| RunError::OutOfTurn(format!("{}, no base64", piece.path)))?;
        let kept = &mut self.files.kept;
        kept.entry(piece.path).or_default().extend(bytes);
        Ok(())
    }
}

pub(crate) fn request(spec: TrialSpec) -> Request {
    Request::Trial {
        spec: Box::new(spec),
    }
}
