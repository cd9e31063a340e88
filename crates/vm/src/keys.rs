//! The keys of `[target]` with `kind = "vm"`.

use super::spec::{Clock, Forward, Topology, VmSpec};
use model::{KeyDef, Reset, Size};
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileVm {
    kernel: String,
    architecture: Option<String>,
    agent: Option<PathBuf>,
    guests: Option<u32>,
    cpus: Option<u32>,
    memory: Option<Size>,
    root: Option<String>,
    #[serde(default)]
    reset: FileReset,
    accel: Option<String>,
    topology: Option<FileTopology>,
    capacities: Option<Vec<u32>>,
    host_cpus: Option<String>,
    append: Option<String>,
    #[serde(default)]
    expose: Vec<String>,
    #[serde(default)]
    forwards: Vec<FileForward>,
    #[serde(default)]
    clock: Clock,
}

/// `reset`: a word, or a table with the name of a snapshot.
#[derive(Debug, Default)]
struct FileReset {
    reset: Reset,
    snapshot: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSnapshot {
    snapshot: String,
}

impl<'de> Deserialize<'de> for FileReset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = FileReset;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a word such as \"trial\", or { snapshot = \"NAME\" }")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<FileReset, E> {
                Ok(FileReset {
                    reset: Reset::deserialize(word.into_deserializer())?,
                    snapshot: None,
                })
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<FileReset, A::Error> {
                let table = FileSnapshot::deserialize(MapAccessDeserializer::new(table))?;
                Ok(FileReset {
                    reset: Reset::Snapshot,
                    snapshot: Some(table.snapshot),
                })
            }
        }
        deserializer.deserialize_any(Written)
    }
}

/// Keys of the table `topology`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileTopology {
    #[serde(default = "one")]
    sockets: u32,
    #[serde(default = "one")]
    llcs: u32,
    cores: u32,
    #[serde(default = "one")]
    threads: u32,
    #[serde(default = "one")]
    numa_nodes: u32,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileForward {
    name: String,
    host_port: u16,
    guest_port: u16,
}

/// Keys of the table `[target]`.
pub const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "kernel",
        "`debian:SUITE`, `debian:PACKAGE`, `file:PACKAGES`, path of an image or a built tree, or `host`",
        "needed",
        "Kernel of the guest, for arms that name no other.",
    ),
    KeyDef::new(
        "architecture",
        "`x86_64` or `aarch64`",
        "that of this machine",
        "Architecture of the guest; another one than this machine's is emulated.",
    ),
    KeyDef::new(
        "agent",
        "path",
        "`schedlab-ARCHITECTURE` beside this program",
        "Build of the same schedlab for a guest of another architecture.",
    ),
    KeyDef::new(
        "guests",
        "number",
        "`1`",
        "Guests that measure at once, each in blocks of its own and on CPUs of the host that no other has.",
    ),
    KeyDef::new(
        "cpus",
        "number",
        "`2`, or as many as the topology has; `1` with a virtual clock",
        "CPUs of the guest.",
    ),
    KeyDef::new("memory", "size", "`\"2G\"`", "Memory of the guest."),
    KeyDef::new(
        "root",
        "`host`, or `image:PATH`",
        "`host`",
        "Root file system: the host's files, read-only, or an image.",
    ),
    KeyDef::new(
        "reset",
        "`none`, `block`, `workload`, `trial`, `snapshot`, `block-snapshot`, or `{ snapshot = \"NAME\" }`",
        "`none`",
        "Boots again before each block, each workload of a block or each trial; `none` boots when \
         the kernel changes or the guest died; `snapshot` puts the guest back, before each trial, to where it was when its \
         services had answered one whole load, and `block-snapshot` starts and saves them anew \
         for each block (both need an image as `root`). `{ snapshot = \"NAME\" }` goes on from a snapshot \
         that stays; a run makes it where there is none of the name. Then every arm waits for as long as the \
         slowest to be in force took so far, up to 10 s.",
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
        "CPUs as the guest sees them: sockets, last-level caches of a socket, cores of a cache, \
         threads of a core; each is 1 by default but `cores`, which is needed.",
    ),
    KeyDef::new(
        "capacities",
        "list of numbers from 1 to 1024",
        "all CPUs are as strong",
        "Capacity of each CPU as the kernel of an `aarch64` guest is told it (big.LITTLE). An emulated CPU \
         is as fast with any.",
    ),
    KeyDef::new(
        "host-cpus",
        "CPUs",
        "",
        "CPUs of the host that the threads of the guest's CPUs are pinned to; all threads of its QEMU stay on them.",
    ),
    KeyDef::new("append", "text", "", "More arguments of the kernel."),
    KeyDef::new(
        "expose",
        "list of paths",
        "",
        "Private files and folders of the host that the guest sees all the same.",
    ),
    KeyDef::new(
        "forwards",
        "list of tables `{ name, host-port, guest-port }`",
        "",
        "Ports of this machine's loopback that lead into the guest.",
    ),
    KeyDef::new(
        "clock",
        "`host` or `virtual`",
        "`host`",
        "`virtual` makes time of instructions, on one emulated CPU: each trial boots, sees nothing \
         from outside, and gives the same figures to the bit whenever its seed is the same. The \
         root is what the experiment names and `expose` adds, with its libraries, in memory. It \
         tells what a scheduler decides and how late tasks are by its clock, not how fast it is.",
    ),
];

/// The guest that the keys describe; it is not checked.
pub fn read<'de, D: Deserializer<'de>>(keys: D) -> Result<VmSpec, D::Error> {
    FileVm::deserialize(keys).map(VmSpec::from)
}

/// The text between the braces of `topology = { … }`.
pub fn parse_topology(text: &str) -> Result<Topology, String> {
    let table: FileTopology = toml::de::ValueDeserializer::parse(&format!("{{{text}}}"))
        .and_then(FileTopology::deserialize)
        .map_err(|e| format!("{}; write cores=2,threads=2", e.message()))?;
    Ok(table.into())
}

impl From<FileTopology> for Topology {
    fn from(file: FileTopology) -> Self {
        Topology {
            sockets: file.sockets,
            llcs: file.llcs,
            cores: file.cores,
            threads: file.threads,
            numa_nodes: file.numa_nodes,
        }
    }
}

impl From<FileVm> for VmSpec {
    fn from(file: FileVm) -> Self {
        let topology = file.topology.map(Topology::from);
        let by_topology = topology.as_ref().and_then(Topology::cpus);
        let usual_cpus = match file.clock {
            Clock::Host => 2,
            Clock::Virtual => 1,
        };
        VmSpec {
            kernel: file.kernel,
            architecture: file.architecture,
            agent: file.agent,
            guests: file.guests.unwrap_or(1),
            cpus: file.cpus.or(by_topology).unwrap_or(usual_cpus),
            memory_bytes: file.memory.map_or(2 << 30, |m| m.0),
            root: file.root.unwrap_or_else(|| "host".to_owned()),
            reset: file.reset.reset,
            snapshot: file.reset.snapshot,
            accel: file.accel,
            topology,
            capacities: file.capacities,
            host_cpus: file.host_cpus,
            append: file.append,
            expose: file.expose,
            hypervisor: None,
            forwards: file.forwards.into_iter().map(Forward::from).collect(),
            clock: file.clock,
        }
    }
}

impl From<FileForward> for Forward {
    fn from(file: FileForward) -> Self {
        Forward {
            name: file.name,
            host_port: file.host_port,
            guest_port: file.guest_port,
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
        let read = model::key::accepted_keys::<FileVm>().iter().copied();
        assert_eq!(described, read.collect());
    }
}
