//! Services: who sends requests, who answers them, and who disturbs.

use crate::arm::Policy;
use crate::workload::Arrivals;
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
    /// Program that answers.
    pub program: ServerProgram,
    /// CPUs, weight and policy of the server.
    #[serde(default)]
    pub placement: Placement,
    /// A server that is not ready this long after its start is a failed trial.
    pub ready_limit_ns: u64,
}

/// Program that answers requests, and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ServerProgram {
    /// schedlab's own: HTTP and memcached on one port.
    Echo {
        /// Number of threads that answer.
        threads: u32,
    },
    /// memcached from PATH.
    Memcached {
        /// Number of worker threads (`-t`).
        threads: u32,
        /// Further arguments of the command line.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
    },
    /// nginx from PATH, with a configuration of schedlab's own.
    Nginx {
        /// Number of worker processes (`worker_processes`).
        workers: u32,
    },
    /// hashicorp/http-echo from PATH.
    HttpEcho,
    /// Any program; `{port}` in its arguments is replaced by a free port.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// `None`: a free one is chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// Check by which the server counts as ready.
        ready: Readiness,
    },
}

impl ServerProgram {
    /// Name of the kind; that of the program for a command.
    pub fn name(&self) -> &str {
        match self {
            ServerProgram::Echo { .. } => "echo",
            ServerProgram::Memcached { .. } => "memcached",
            ServerProgram::Nginx { .. } => "nginx",
            ServerProgram::HttpEcho => "http-echo",
            ServerProgram::Command { argv, .. } => argv.first().map_or("command", String::as_str),
        }
    }
}

/// When a server counts as ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "check", rename_all = "kebab-case")]
pub enum Readiness {
    /// Its port takes a connection.
    #[default]
    Tcp,
    /// A `GET` of the path is answered with this status.
    Http {
        /// Path of the request, with its slash.
        path: String,
        /// Status code of the answer that counts as ready.
        status: u16,
    },
}

/// A program that disturbs through the whole window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Antagonist {
    /// Unique in the workload.
    pub name: String,
    /// Program that disturbs.
    pub program: AntagonistProgram,
    /// CPUs, weight and policy of the program.
    #[serde(default)]
    pub placement: Placement,
}

/// Program that disturbs, and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AntagonistProgram {
    /// Threads that only count; `None`: one for each CPU of the placement.
    Spinner {
        /// Number of threads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threads: Option<u32>,
    },
    /// stress-ng from PATH with these arguments.
    StressNg {
        /// Arguments of stress-ng, without the program itself.
        args: Vec<String>,
    },
    /// Any program that does not end by itself.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
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
