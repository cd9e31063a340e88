//! The machine as the agent found it.

use crate::preflight::Check;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fact about the clock that a guest goes by, where it is not the host's.
pub const CLOCK: &str = "vm.clock";
/// Value of [`CLOCK`] where time is a number of instructions.
pub const VIRTUAL: &str = "virtual";

/// Kernel, CPU and memory of a machine, and the settings that move figures on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// Name of the machine in its network (`nodename` of uname(2)).
    pub hostname: String,
    /// Release of the kernel, such as `6.12.9` (`release` of uname(2)).
    pub kernel_release: String,
    /// Number and date of the kernel's build (`version` of uname(2)).
    pub kernel_version: String,
    /// Parameters that the kernel was booted with (`/proc/cmdline`).
    pub kernel_command_line: String,
    /// Name of the instruction set, such as `x86_64` (`machine` of uname(2)).
    pub architecture: String,
    /// Model name of the first CPU (`/proc/cpuinfo`), or `unknown`.
    pub cpu_model: String,
    /// Online CPUs that the agent may use.
    pub cpus: u32,
    /// Memory that the kernel has (`MemTotal` of `/proc/meminfo`); 0 where it is not known.
    pub memory_bytes: u64,
    /// `true` where `/sys/kernel/sched_ext` is there.
    pub sched_ext: bool,
    /// True if the agent runs as root.
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

impl System {
    /// True if its time is a number of instructions.
    pub fn in_virtual_time(&self) -> bool {
        self.facts.get(CLOCK).is_some_and(|clock| clock == VIRTUAL)
    }
}
