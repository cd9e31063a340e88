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
pub const PROTOCOL_VERSION: u32 = 4;

/// From the runner. Every request has exactly one final reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// First of all. Reply: `Hello`.
    Hello { protocol: u32 },
    /// Reply: `System`.
    Probe,
    /// Question for what this machine lacks for its part of the experiment. Reply: `Checked`.
    Check {
        experiment: Box<Experiment>,
        #[serde(default)]
        side: Side,
    },
    /// Find what all trials of a cell share. Reply: any number of `Progress`, then
    /// `Calibrated`, `Refused` or `Unrestored`.
    Calibrate { workload: Box<Workload>, load: Load },
    /// Reply: any number of `File` and `Progress`, then `Trial`, `Refused` or `Unrestored`.
    Trial { spec: Box<TrialSpec> },
    /// Within a trial of [`Part::Beside`]: the window of the load opened or closed.
    /// Reply: none of its own.
    Window { edge: Edge },
    /// Within a trial of [`Part::Beside`]: the load has ended, whether its window closed or
    /// not. Reply: none of its own.
    LoadEnded,
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
    /// A piece of a file that the trial keeps. Pieces of a file come in their order.
    Kept {
        piece: KeptPiece,
    },
    /// In a trial of [`Part::Beside`]: all that the load needs runs, and listens here.
    Serving {
        services: Vec<Listening>,
    },
    /// In a trial of [`Part::Load`]: the window opened or closed.
    Window {
        edge: Edge,
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
    /// The part of the trial that this agent does.
    #[serde(default)]
    pub part: Part,
    /// Differs in every trial, the same when a run is repeated.
    pub seed: u64,
    /// Collectors as in [`crate::Experiment`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collect: Option<Vec<String>>,
}

/// The machine whose part of an experiment is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The one that does all of it.
    #[default]
    Both,
    /// The target of loads that run on the controller.
    Target,
    /// The controller, which runs those loads and nothing else.
    Controller,
}

/// The part of a trial that an agent does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// The load, on the controller. The services run elsewhere and are reached here.
    Load { services: Vec<Listening> },
    /// All but the load: the arm, the services and the collectors.
    Beside,
}

/// A port of a service that takes connections on the loopback address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// `server` for the one of `[workload.server]`.
    pub service: String,
    /// The name of the port; empty for that of `[workload.server]`.
    pub port: String,
    pub number: u16,
    /// Do the load's requests go there?
    pub is_asked: bool,
}

/// One end of the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    Opened,
    Closed,
}

/// A file of a trial, as text (histograms and logs are text).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialFile {
    pub name: String,
    pub text: String,
}

/// A piece of a file that a service or the load made and that its trial keeps, whatever is in
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPiece {
    /// The service or [`crate::stack::LOAD`], and the path in its folder: `load/report/a.html`.
    pub path: String,
    pub base64: String,
}
