//! An experiment: arms × workloads × loads, a target, and when to stop.

use crate::arm::Arm;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    pub seed: u64,
    pub target: TargetSpec,
    /// At least one; names are unique. An A/A arm, if asked for, is among them.
    pub arms: Vec<Arm>,
    /// Index of the baseline in `arms`.
    pub baseline: usize,
    /// At least one; names are unique.
    pub workloads: Vec<Workload>,
    pub stop: Stop,
    /// Names of the collectors of every trial; `None`: all that are known to cost little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collect: Option<Vec<String>>,
    /// Name of the arm that repeats the baseline, where the experiment asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aa_arm: Option<String>,
}

impl Experiment {
    /// Is the arm the baseline once more, under another name?
    pub fn repeats_baseline(&self, arm: usize) -> bool {
        let baseline = &self.arms[self.baseline];
        let renamed = Arm {
            name: baseline.name.clone(),
            ..self.arms[arm].clone()
        };
        arm != self.baseline && renamed == *baseline
    }
}

/// Where trials happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetSpec {
    Local,
    Vm(Box<VmSpec>),
}

impl TargetSpec {
    pub fn kind(&self) -> &'static str {
        match self {
            TargetSpec::Local => "local",
            TargetSpec::Vm(_) => "vm",
        }
    }
}

/// A virtual machine with its own kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VmSpec {
    /// `debian:SUITE`, `debian:PACKAGE`, a bzImage, a built tree, or `host`.
    pub kernel: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    /// `host` (read-only, under an overlay) or `image:PATH`.
    pub root: String,
    pub reset: Reset,
    /// `None`: try KVM, fall back to TCG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Host CPUs that the vCPU threads are pinned to, in `taskset -c` form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpus: Option<String>,
    /// Added to the guest's kernel command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<String>,
    /// Files and directories of the host that the guest sees although they are private.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expose: Vec<String>,
    /// Host port on loopback to guest port; user-mode network only if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<Forward>,
}

impl VmSpec {
    /// Over the host's files, and otherwise as nothing else was asked for.
    pub fn new(kernel: &str, cpus: u32, memory_bytes: u64) -> Self {
        VmSpec {
            kernel: kernel.to_owned(),
            cpus,
            memory_bytes,
            root: "host".to_owned(),
            reset: Reset::None,
            accel: None,
            topology: None,
            host_cpus: None,
            append: None,
            expose: Vec::new(),
            forwards: Vec::new(),
        }
    }
}

/// When the guest is booted again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// Only when the kernel changes or the guest died.
    #[default]
    None,
    /// Before every block.
    Block,
    /// Before every trial.
    Trial,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    pub sockets: u32,
    /// Last-level caches of a socket, each shared by `cores` cores.
    #[serde(default = "one")]
    pub llcs: u32,
    pub cores: u32,
    pub threads: u32,
    pub numa_nodes: u32,
}

impl Topology {
    /// `None` where it is more than can be counted.
    pub fn cpus(&self) -> Option<u32> {
        [self.llcs, self.cores, self.threads]
            .into_iter()
            .try_fold(self.sockets, u32::checked_mul)
    }
}

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    pub name: String,
    pub host_port: u16,
    pub guest_port: u16,
}

/// When measuring ends. A cell ends when all its comparisons are decided, at
/// `max_blocks`, or when the budget is used up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Wall time for the trials; `None`: until decided or `max_blocks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// 1 − alpha, for e-values and intervals.
    pub confidence: f64,
    /// Smallest ratio change of interest, as a fraction (0.02 = 2 %).
    pub smallest_effect: f64,
    pub min_blocks: u32,
    pub max_blocks: u32,
    /// Attempts for one place of the plan before it is given up.
    pub max_attempts: u32,
}
