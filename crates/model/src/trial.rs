//! A trial: one measured execution of one arm in one cell, and what came of it.

use crate::evidence::Evidence;
use crate::metric::Measurement;
use crate::problem::Warning;
use crate::schedule::PlannedTrial;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum TrialState {
    Ok,
    /// The evidence does not agree with the arm: not counted, repeated.
    Void {
        why: String,
    },
    /// The workload failed: not counted, repeated.
    Failed {
        why: String,
    },
}

/// The first line.
pub fn headline(why: &str) -> &str {
    why.trim_start().lines().next().unwrap_or_default()
}

impl TrialState {
    pub fn why(&self) -> Option<&str> {
        match self {
            TrialState::Ok => None,
            TrialState::Void { why } | TrialState::Failed { why } => Some(why),
        }
    }

    /// The line of `why` that tells most: what follows is what a program or a console
    /// said last.
    pub fn headline(&self) -> Option<&str> {
        self.why().map(headline)
    }

    pub fn name(&self) -> &'static str {
        match self {
            TrialState::Ok => "ok",
            TrialState::Void { .. } => "void",
            TrialState::Failed { .. } => "failed",
        }
    }
}

/// Report of the agent on a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    #[serde(rename = "outcome")]
    pub state: TrialState,
    /// Start of the trial, nanoseconds since the epoch.
    pub started_unix_ns: u64,
    /// From the start of the trial (arm applied included) to its end (arm undone).
    pub elapsed_ns: u64,
    /// The measured window, from the start of the trial.
    pub window_start_ns: u64,
    pub window_end_ns: u64,
    pub evidence: Evidence,
    pub metrics: Vec<Measurement>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// `trial.json`: a trial with its place in the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub place: PlannedTrial,
    /// Names, so that the file can be read alone.
    pub cell: String,
    pub arm: String,
    /// Counts from 1.
    pub attempt: u32,
    /// Which start of the run measured it; counts from 1.
    #[serde(default = "first")]
    pub start: u32,
    pub result: TrialResult,
}

/// The start of a run that was stored before runs kept their starts.
fn first() -> u32 {
    1
}

impl Trial {
    pub fn is_ok(&self) -> bool {
        self.result.state == TrialState::Ok
    }

    /// Place in the order of measuring. It is not the time of day, because a clock may be set
    /// back while a run goes on.
    pub fn order(&self) -> (u32, u32, u32) {
        (self.start, self.place.index, self.attempt)
    }

    pub fn metric(&self, name: &str) -> Option<&Measurement> {
        self.result.metrics.iter().find(|m| m.metric == name)
    }
}
