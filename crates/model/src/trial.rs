//! A trial: one measured execution of one arm in one cell, and what came of it.

use crate::event::Happened;
use crate::evidence::Evidence;
use crate::metric::Measurement;
use crate::problem::Warning;
use crate::rail::RailHit;
use crate::schedule::PlannedTrial;
use crate::trace::WorstTrace;
use crate::turns::Windows;
use serde::{Deserialize, Serialize};

/// End of a trial: it counts, or why it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum TrialState {
    /// Measured under its arm, and counted.
    Ok,
    /// The evidence does not agree with the arm: not counted, repeated.
    Void {
        /// Fact that is not what the arm needs.
        why: String,
    },
    /// The workload failed: not counted, repeated.
    Failed {
        /// Error of the workload, perhaps with the last lines of its output.
        why: String,
    },
}

/// The first line.
pub fn first_line(why: &str) -> &str {
    why.trim_start().lines().next().unwrap_or_default()
}

impl TrialState {
    /// Reason for which the trial does not count; `None` for one that does.
    pub fn why(&self) -> Option<&str> {
        match self {
            TrialState::Ok => None,
            TrialState::Void { why } | TrialState::Failed { why } => Some(why),
        }
    }

    /// The line of `why` that tells most: what follows is what a program or a console
    /// said last.
    pub fn headline(&self) -> Option<&str> {
        self.why().map(first_line)
    }

    /// Word for the state, as in reports.
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
    /// State of the trial, by which it counts or not.
    #[serde(rename = "outcome")]
    pub state: TrialState,
    /// Start of the trial, nanoseconds since the epoch.
    pub started_unix_ns: u64,
    /// From the start of the trial (arm applied included) to its end (arm undone).
    pub elapsed_ns: u64,
    /// The measured window, from the start of the trial.
    pub window_start_ns: u64,
    /// End of the measured window, from the start of the trial.
    pub window_end_ns: u64,
    /// Proof that the arm was in force.
    pub evidence: Evidence,
    /// Numbers that were measured, each with its unit.
    pub metrics: Vec<Measurement>,
    /// Warnings about this trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// True if it did not count, and another attempt would end in the same way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_good: bool,
    /// Trace of the worst latency, where one was wanted and the trial counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<WorstTrace>,
    /// Windows of the arm, where it took turns with others in one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// Rare events that the experiment counts, each once, with their exposure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Happened>,
    /// The rail that ended the trial and the run, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail: Option<RailHit>,
}

/// `trial.json`: a trial with its place in the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Place of the trial in the plan.
    pub place: PlannedTrial,
    /// Names, so that the file can be read alone.
    pub cell: String,
    /// Name of the arm.
    pub arm: String,
    /// Counts from 1.
    pub attempt: u32,
    /// Which start of the run measured it; counts from 1.
    #[serde(default = "first")]
    pub start: u32,
    /// Report of the agent, with metrics and evidence.
    pub result: TrialResult,
}

/// The start of a run that was stored before runs kept their starts.
fn first() -> u32 {
    1
}

impl Trial {
    /// True if the trial counts: neither void nor failed.
    pub fn is_ok(&self) -> bool {
        self.result.state == TrialState::Ok
    }

    /// Place in the order of measuring. It is not the time of day, because a clock may be set
    /// back while a run goes on.
    pub fn order_key(&self) -> (u32, u32, u32) {
        (self.start, self.place.index, self.attempt)
    }

    /// True where an event ended the window, so that the arm was in force until then only.
    pub fn has_ended_early(&self) -> bool {
        self.result.events.iter().any(|event| event.ended_window)
    }

    /// Events of this name; `None` where they were not counted.
    pub fn find_event(&self, name: &str) -> Option<&Happened> {
        self.result.events.iter().find(|e| e.name == name)
    }

    /// Value of the metric of this name; `None` where it was not measured.
    pub fn metric(&self, name: &str) -> Option<&Measurement> {
        self.result.metrics.iter().find(|m| m.metric == name)
    }
}
