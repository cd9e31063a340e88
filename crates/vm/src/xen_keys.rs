//! The keys of `[target]` with `kind = "xen"`: a guest whose kernel is dom0 of a Xen below it.

use super::keys::FileTopology;
use super::spec::{Clock, Topology, VmSpec};
use model::{KeyDef, Reset, Size};
use serde::{Deserialize, Deserializer};

const SUITE: &str = "debian:bookworm";
const USUAL_MEMORY: u64 = 4 << 30;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileXen {
    xen: Option<String>,
    kernel: Option<String>,
    cpus: Option<u32>,
    memory: Option<Size>,
    #[serde(default)]
    reset: Reset,
    accel: Option<String>,
    topology: Option<FileTopology>,
    host_cpus: Option<String>,
    append: Option<String>,
    #[serde(default)]
    expose: Vec<String>,
    #[serde(default)]
    clock: Clock,
}

/// Keys of the table `[target]`.
pub const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "xen",
        "`debian:SUITE`, or a directory",
        "`debian:bookworm`",
        "Hypervisor with its toolstack: Debian's packages, unpacked in the cache, or a directory \
         that is laid out as they are (`boot/xen-VERSION.gz`, `usr/lib/xen-VERSION/bin`).",
    ),
    KeyDef::new(
        "kernel",
        "`debian:SUITE`, `debian:PACKAGE`, path of an image or a built tree, or `host`",
        "`debian:bookworm`",
        "Kernel of dom0 and of the guests of Xen, for arms that name no other.",
    ),
    KeyDef::new(
        "cpus",
        "number",
        "`2`, or as many as the topology has; `1` with a virtual clock",
        "Physical CPUs of the Xen host. Dom0 keeps the first, so a pool can have the others.",
    ),
    KeyDef::new(
        "memory",
        "size",
        "`\"4G\"`",
        "Memory of the Xen host; dom0 has 768 MiB of it.",
    ),
    KeyDef::new(
        "reset",
        "`none`, `block`, `workload` or `trial`",
        "`none`",
        "Boots again before each block, each workload of a block or each trial; `none` boots when \
         the kernel changes or the host died.",
    ),
    KeyDef::new(
        "accel",
        "`kvm` or `tcg`",
        "what works",
        "Virtualization, or emulation.",
    ),
    KeyDef::new(
        "topology",
        "table `{ sockets, llcs, cores, threads, numa-nodes }`",
        "cores only",
        "CPUs as the Xen host has them, as for `kind = \"vm\"`.",
    ),
    KeyDef::new(
        "host-cpus",
        "CPUs",
        "",
        "CPUs of this machine that the threads of the Xen host's CPUs are pinned to.",
    ),
    KeyDef::new("append", "text", "", "More arguments of dom0's kernel."),
    KeyDef::new(
        "expose",
        "list of paths",
        "",
        "Private files and folders of this machine that dom0 sees all the same.",
    ),
    KeyDef::new(
        "clock",
        "`host` or `virtual`",
        "`host`",
        "`virtual` makes time of instructions, on one emulated CPU, which dom0 shares with the guests: \
         each trial boots with the scheduler of its arm, sees nothing from outside, and gives the \
         same figures to the bit whenever its seed is the same. Dom0 sees toolstack, kernel and what \
         `expose` adds, in memory.",
    ),
];

/// The guest that the keys describe; it is not checked.
pub fn read<'de, D: Deserializer<'de>>(keys: D) -> Result<VmSpec, D::Error> {
    FileXen::deserialize(keys).map(VmSpec::from)
}

impl From<FileXen> for VmSpec {
    fn from(file: FileXen) -> Self {
        let kernel = file.kernel.unwrap_or_else(|| SUITE.to_owned());
        let memory = file.memory.map_or(USUAL_MEMORY, |memory| memory.0);
        let usual_cpus = match file.clock {
            Clock::Host => 2,
            Clock::Virtual => 1,
        };
        let topology = file.topology.map(Topology::from);
        let by_topology = topology.as_ref().and_then(Topology::cpus);
        let cpus = file.cpus.or(by_topology).unwrap_or(usual_cpus);
        VmSpec {
            reset: file.reset,
            accel: file.accel,
            topology,
            host_cpus: file.host_cpus,
            append: file.append,
            expose: file.expose,
            clock: file.clock,
            hypervisor: Some(file.xen.unwrap_or_else(|| SUITE.to_owned())),
            ..VmSpec::new(&kernel, cpus, memory)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_is_described() {
        let described: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
        let read = model::key::accepted_keys::<FileXen>().iter().copied();
        assert_eq!(described, read.collect());
    }
}
