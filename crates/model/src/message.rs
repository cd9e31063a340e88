//! The messages between runner and agent: one JSON message a line, both ways.

use crate::arm::Arm;
use crate::experiment::Experiment;
use crate::problem::Problem;
use crate::start::Build;
use crate::system::System;
use crate::trial::TrialResult;
use crate::workload::{Calibration, Load, Workload};
use serde::{Deserialize, Serialize};

/// Raised when a message changes its meaning. Agent and runner must agree.
pub const PROTOCOL_VERSION: u32 = 3;

/// From the runner. Every request has exactly one final reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// First of all. Reply: `Hello`.
    Hello { protocol: u32 },
    /// Reply: `System`.
    Probe,
    /// Question for what the target lacks for this experiment. Reply: `Checked`.
    Check { experiment: Box<Experiment> },
    /// Find what all trials of a cell share. Reply: any number of `Progress`, then
    /// `Calibrated`, `Refused` or `Unrestored`.
    Calibrate { workload: Box<Workload>, load: Load },
    /// Reply: any number of `File` and `Progress`, then `Trial`, `Refused` or `Unrestored`.
    Trial { spec: Box<TrialSpec> },
    /// Undo everything that is still in force and end. Reply: `Bye`.
    Bye,
}

/// From the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    Hello {
        protocol: u32,
        build: Build,
    },
    System {
        system: Box<System>,
    },
    Checked {
        problems: Vec<Problem>,
    },
    Calibrated {
        calibration: Calibration,
    },
    Refused {
        why: String,
    },
    /// The step that the agent is doing now: `attaching scx_rusty`, `measuring`. It takes
    /// no longer than its limit; an agent that is silent for much longer hangs.
    Progress {
        step: String,
        limit_ns: u64,
    },
    /// Something of an earlier trial is still in force and could not be undone: nothing
    /// may be measured before it is.
    Unrestored {
        failed: Vec<String>,
    },
    /// A file of the trial under way.
    File {
        file: TrialFile,
    },
    Trial {
        result: Box<TrialResult>,
    },
    Bye,
}

/// All that the agent needs for one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// For logs only.
    pub label: String,
    pub arm: Arm,
    /// Workload with all its loads; `load` is the one to run.
    pub workload: Workload,
    pub load: Load,
    pub calibration: Calibration,
    /// Differs in every trial, the same when a run is repeated.
    pub seed: u64,
    /// Collectors as in [`crate::Experiment`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collect: Option<Vec<String>>,
}

/// A file of a trial, as text (histograms and logs are text).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialFile {
    pub name: String,
    pub text: String,
}
