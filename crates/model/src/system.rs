//! The machine as the agent found it.

use crate::preflight::Check;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct System {
    pub hostname: String,
    pub kernel_release: String,
    pub kernel_version: String,
    pub kernel_command_line: String,
    pub architecture: String,
    pub cpu_model: String,
    /// Online CPUs that the agent may use.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// `true` where `/sys/kernel/sched_ext` is there.
    pub sched_ext: bool,
    pub root: bool,
    /// `none`, `kvm`, `tcg`, `xen`, …, as far as it can be told.
    pub hypervisor: String,
    /// Everything else, by dotted name: `cpu.governor`, `mitigation.retbleed`,
    /// `tool.hackbench`, `sched.base_slice`.
    pub facts: BTreeMap<String, String>,
    /// Settings that move figures here; empty in results from before these were looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<Check>,
}
