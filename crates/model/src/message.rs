//! The messages between runner and agent: one JSON message a line, both ways.

use crate::arm::Arm;
use crate::evidence::Evidence;
use crate::experiment::{Experiment, Observe};
use crate::pace::Pace;
use crate::problem::{Problem, Warning};
use crate::start::Build;
use crate::system::System;
use crate::trial::TrialResult;
use crate::turns::{SoFar, TakingTurns};
use crate::workload::{Calibration, Load, Workload};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};

/// Raised when a message changes its meaning. Agent and runner must agree.
pub const PROTOCOL_VERSION: u32 = 10;

/// From the runner. Every request has exactly one final reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// First of all. Reply: `Hello`.
    Hello {
        /// Protocol version of the runner, [`PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// Reply: `System`.
    Probe {
        /// Only programs of this experiment are asked for their versions. A program that is asked
        /// is started, which takes seconds on emulated CPUs.
        #[serde(default)]
        experiment: Option<Box<Experiment>>,
    },
    /// Question for what this machine lacks for its part of the experiment. Reply: `Checked`.
    Check {
        /// Experiment as it is understood.
        experiment: Box<Experiment>,
        /// Part of the experiment that this machine has to do.
        #[serde(default)]
        side: Side,
    },
    /// Find what all trials of a cell share. Reply: any number of `Progress`, then
    /// `Calibrated`, `Refused` or `Unrestored`.
    Calibrate {
        /// Workload of the cell.
        workload: Box<Workload>,
        /// Load of the cell.
        load: Load,
        /// Values that were found for another workload of the kind: those that are the machine's
        /// are not found again.
        #[serde(default)]
        known: Calibration,
    },
    /// Reply: any number of `File`, `Progress` and `Pace`, then `Trial`, `Refused` or `Unrestored`.
    Trial {
        /// All that the trial needs.
        spec: Box<TrialSpec>,
    },
    /// Within a trial of [`Part::Beside`]: the window of the load opened or closed.
    /// Reply: none of its own.
    Window {
        /// Opening or closing.
        edge: Edge,
    },
    /// Within a trial of [`Part::Beside`]: the load has ended, whether its window closed or
    /// not. Reply: none of its own.
    LoadEnded,
    /// Within a trial whose arms take turns: the pairs so far are enough. Reply: none of its own.
    Enough,
    /// Listen at this address, for a try whether it is reached, until the next request.
    /// Reply: `Listens` or `Refused`.
    Listen {
        /// Address of this machine.
        address: IpAddr,
        /// Port; 0: one that the kernel chooses, as for servers without a port of their own.
        port: u16,
    },
    /// Undo everything that is still in force and end. Reply: `Bye`.
    Bye,
}

/// From the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The agent is there.
    Hello {
        /// Protocol version of the agent.
        protocol: u32,
        /// Build of the agent.
        build: Build,
    },
    /// The machine as it was found.
    System {
        /// Kernel, CPU, memory, and settings that move figures.
        system: Box<System>,
    },
    /// The machine was compared with what the experiment needs.
    Checked {
        /// Requirements that are not met; empty where all are.
        problems: Vec<Problem>,
        /// Warnings that trials on this machine will give.
        foreseen: Vec<Warning>,
    },
    /// The values of a cell were found.
    Calibrated {
        /// Values that all trials of the cell have in common.
        calibration: Calibration,
    },
    /// The request cannot be done; nothing of it is in force.
    Refused {
        /// Reason, in words for the user.
        why: String,
    },
    /// The step that the agent is doing now: `attaching scx_rusty`, `measuring`. It takes
    /// no longer than its limit; an agent that is silent for much longer hangs.
    Progress {
        /// Name of the step.
        step: String,
        /// Longest time that the step may take.
        limit_ns: u64,
    },
    /// Figures of the trial under way, for those who watch.
    Pace {
        /// Counts since the last ones.
        pace: Pace,
    },
    /// Windows that are known while arms take turns. The runner may answer [`Request::Enough`].
    SoFar {
        /// All of them until now, for each arm.
        arms: Vec<SoFar>,
    },
    /// Something of an earlier trial is still in force and could not be undone: nothing
    /// may be measured before it is.
    Unrestored {
        /// Description of each thing that could not be undone, and why.
        failed: Vec<String>,
    },
    /// A file of the trial under way.
    File {
        /// Name and text of the file.
        file: TrialFile,
    },
    /// A piece of a file that the trial keeps. Pieces of a file come in their order.
    Kept {
        /// Path of the file and the bytes of the piece.
        piece: KeptPiece,
    },
    /// In a trial of [`Part::Beside`]: all that the load needs runs, and listens here.
    Serving {
        /// Ports of the services.
        services: Vec<Listening>,
    },
    /// In a trial of [`Part::Load`]: the window opened or closed.
    Window {
        /// Opening or closing.
        edge: Edge,
    },
    /// Where deaths of guests are counted: the window has opened, or has closed. Of a guest that dies meanwhile
    /// nothing more is heard.
    InWindow {
        /// What is known when it opens.
        opened: Option<Box<Opened>>,
    },
    /// The trial has ended, whatever came of it.
    Trial {
        /// A result with evidence, metrics and warnings for each arm that took turns, in their order; one
        /// where an arm had the trial for itself, or where it does not count.
        results: Vec<TrialResult>,
    },
    /// Connections are taken, until the next request.
    Listens {
        /// Number of the port.
        port: u16,
    },
    /// All is undone, and the agent ends.
    Bye,
}

impl Reply {
    /// True for what an agent says on the way to the answer of a request.
    pub fn precedes_answer(&self) -> bool {
        match self {
            Reply::Progress { .. }
            | Reply::Pace { .. }
            | Reply::SoFar { .. }
            | Reply::File { .. }
            | Reply::Kept { .. }
            | Reply::Serving { .. }
            | Reply::Window { .. }
            | Reply::InWindow { .. } => true,
            Reply::Hello { .. }
            | Reply::System { .. }
            | Reply::Checked { .. }
            | Reply::Calibrated { .. }
            | Reply::Listens { .. }
            | Reply::Refused { .. }
            | Reply::Unrestored { .. }
            | Reply::Trial { .. }
            | Reply::Bye => false,
        }
    }
}

/// All that the agent needs for one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// For logs only.
    pub label: String,
    /// Arm that is in force while the trial is measured.
    pub arm: Arm,
    /// Workload with all its loads; `load` is the one to run.
    pub workload: Workload,
    /// Load of this trial.
    pub load: Load,
    /// Values that were found once for all trials of the cell.
    pub calibration: Calibration,
    /// The part of the trial that this agent does.
    #[serde(default)]
    pub part: Part,
    /// Where the trial succeeds, its services and all else beside its load stay, warm, and the
    /// next trial is measured on them.
    #[serde(default)]
    pub stays: bool,
    /// Differs in every trial, the same when a run is repeated.
    pub seed: u64,
    /// Observations as in [`crate::Experiment`].
    #[serde(flatten)]
    pub observe: Observe,
    /// Arms that take turns in this trial, the one above among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TakingTurns>,
    /// Time from the start of the trial before which nothing starts that the arm is in force for, so
    /// that an arm that takes no time to be put in force rests as long as one that does.
    #[serde(default, skip_serializing_if = "crate::evidence::is_no_time")]
    pub rest_ns: u64,
    /// Somebody watches the run, so that the agent says how the trial goes ([`Reply::Pace`]).
    #[serde(default)]
    pub is_watched: bool,
}

impl TrialSpec {
    /// A whole trial of this load that observes what is usual, in a process of its own.
    pub fn new(arm: Arm, workload: Workload, load: Load) -> Self {
        TrialSpec {
            label: format!("{} {}", workload.name, arm.name),
            arm,
            workload,
            load,
            calibration: Calibration::default(),
            part: Part::Whole,
            stays: false,
            seed: 1,
            observe: Observe::default(),
            turns: None,
            rest_ns: 0,
            is_watched: false,
        }
    }
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
    Load {
        /// Address at which the services are reached.
        address: IpAddr,
        /// Ports at which the services of the load listen.
        services: Vec<Listening>,
    },
    /// All but the load: the arm, the services and the collectors.
    Beside {
        /// Address at which the services listen for the load.
        address: IpAddr,
    },
}

impl Part {
    /// Address at which the load reaches the services.
    pub fn address(&self) -> IpAddr {
        match self {
            Part::Whole => Ipv4Addr::LOCALHOST.into(),
            Part::Load { address, .. } | Part::Beside { address } => *address,
        }
    }
}

/// A port of a service that takes connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// `server` for the one of `[workload.server]`.
    pub service: String,
    /// The name of the port; empty for that of `[workload.server]`.
    pub port: String,
    /// Number of the port.
    pub number: u16,
    /// Do the load's requests go there?
    pub is_asked: bool,
}

/// A window that has opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Moment from the start of the trial.
    pub at_ns: u64,
    /// Proof until then that the arm is in force.
    pub evidence: Evidence,
}

/// One end of the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    /// The window has begun: figures count from now on.
    Opened,
    /// The window has ended: figures count no more.
    Closed,
}

/// A file of a trial, as text (histograms and logs are text).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialFile {
    /// Name of the file in the directory of the trial, such as `requests.hlog`.
    pub name: String,
    /// Whole text of the file.
    pub text: String,
}

/// A piece of a file that a service or the load made and that its trial keeps, whatever is in
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPiece {
    /// The service or [`crate::stack::LOAD`], and the path in its folder: `load/report/a.html`.
    pub path: String,
    /// Bytes of the piece, as base64 with padding.
    pub base64: String,
}
