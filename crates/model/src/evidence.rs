//! What proves that a trial ran under the arm that it is counted for.

use crate::arm::{Policy, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All evidence of one trial, in time order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub points: Vec<EvidencePoint>,
    /// What the target, which made the machine, knows of it for the whole trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// The scheduler program that was started, where the arm has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_binary: Option<SchedulerBinary>,
}

/// One thing that was so in a trial, and what should have been so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// `kernel`, `kernel build ID`, …
    pub what: String,
    /// The value that the arm needs; `None` where any will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The value that was read where it is in force.
    pub found: String,
}

impl Fact {
    /// Why the trial is void, where another value was found than the wanted one.
    pub fn disagrees(&self) -> Option<String> {
        let wanted = self.wanted.as_ref().filter(|w| **w != self.found)?;
        let Fact { what, found, .. } = self;
        Some(format!("the {what} was {found}, not {wanted}"))
    }
}

impl Evidence {
    /// Why the facts of the target void the trial, if they do.
    pub fn disagrees(&self) -> Option<String> {
        self.facts.iter().find_map(Fact::disagrees)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// After the arm was applied, before the measured window opens.
    Before,
    /// Inside the window, at most once a second.
    During,
    /// After the window closed, before the arm is undone.
    After,
}

/// What was read from the kernel at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidencePoint {
    pub phase: Phase,
    /// Since the start of the trial, CLOCK_MONOTONIC.
    pub at_ns: u64,
    pub kernel_release: String,
    /// `None` where the kernel has no `/sys/kernel/sched_ext`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_ext: Option<SchedExt>,
    /// Logical name to the text read back, for the tunables of the arm.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
    /// Policies found on the threads, by role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<RolePolicy>,
    /// Weight of the cgroup that the server was found in, where it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_weight: Option<u32>,
}

/// `/sys/kernel/sched_ext` (kernel/sched/ext.c).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedExt {
    /// `state`: `enabled`, `disabled`, `enabling`, `disabling`.
    pub state: String,
    /// `root/ops`: the scheduler in force; empty when none is.
    pub ops: String,
    /// `enable_seq`: attaches since boot.
    pub enable_seq: u64,
    /// `nr_rejected`: tasks that a scheduler refused since boot.
    pub nr_rejected: u64,
    /// `switch_all`: does the scheduler run all fair tasks, or only those in
    /// `SCHED_EXT`? `None` where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_all: Option<bool>,
}

/// How many threads of a role were found with one and the same policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolePolicy {
    pub role: Role,
    pub policy: Policy,
    pub threads: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerBinary {
    pub path: String,
    pub args: Vec<String>,
    pub sha256: String,
    /// First line of `PROGRAM --version`, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
