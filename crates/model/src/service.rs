//! Services: who sends requests, who answers them, and who disturbs.

use crate::arm::Policy;
use crate::workload::{Arrivals, Kind};
use serde::{Deserialize, Serialize};

/// The open-loop generator that sends the requests of a workload. Its load is a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopParams {
    /// In all, one request at a time on each.
    pub connections: u32,
    /// Each with an equal part of the rate and of the connections.
    pub threads: u32,
    /// Schedule by which requests are sent.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// A request that has no whole answer this long after it was sent has failed.
    pub timeout_ns: u64,
    /// CPUs of the generator's threads, one each in turn (`0-3,5`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpus: Option<String>,
    /// Ask the kernel for answers without pause instead of sleeping.
    #[serde(default)]
    pub busy_poll: bool,
    /// Permits traffic to other machines.
    #[serde(default)]
    pub allow_remote: bool,
}

/// The role that answers. A fresh one for each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Kind of the program that answers, with its parameters.
    pub program: Kind,
    /// CPUs, weight and policy of the server.
    #[serde(default)]
    pub placement: Placement,
    /// A server that is not ready this long after its start is a failed trial.
    pub ready_limit_ns: u64,
}

/// A program that disturbs through the whole window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Antagonist {
    /// Unique in the workload.
    pub name: String,
    /// Kind of the program that disturbs, with its parameters.
    pub program: Kind,
    /// CPUs, weight and policy of the program.
    #[serde(default)]
    pub placement: Placement,
}

/// CPUs, weight, policy and memory of the processes of a role. A field that is not named
/// changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// `0-3,5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Weight of a cgroup of their own, 1 ..= 10000, 100 is usual (`cpu.weight`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// CPU time of a cgroup of their own, in percent of one CPU (`cpu.max`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_percent: Option<f64>,
    /// -20 ..= 19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Scheduling policy of their threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// NUMA node that memory comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_node: Option<u32>,
}

impl Placement {
    /// Does it ask for a cgroup?
    pub fn wants_cgroup(&self) -> bool {
        self.weight.is_some() || self.quota_percent.is_some()
    }
}
