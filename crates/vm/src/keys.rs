//! The keys of `[target]` with `kind = "vm"`.

use super::spec::{Forward, Topology, VmSpec};
use model::{Reset, Size};
use serde::{Deserialize, Deserializer};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileVm {
    kernel: String,
    cpus: Option<u32>,
    memory: Option<Size>,
    root: Option<String>,
    #[serde(default)]
    reset: Reset,
    accel: Option<String>,
    topology: Option<FileTopology>,
    host_cpus: Option<String>,
    append: Option<String>,
    #[serde(default)]
    expose: Vec<String>,
    #[serde(default)]
    forwards: Vec<FileForward>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileTopology {
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
        VmSpec {
            kernel: file.kernel,
            cpus: file.cpus.or(by_topology).unwrap_or(2),
            memory_bytes: file.memory.map_or(2 << 30, |m| m.0),
            root: file.root.unwrap_or_else(|| "host".to_owned()),
            reset: file.reset,
            accel: file.accel,
            topology,
            host_cpus: file.host_cpus,
            append: file.append,
            expose: file.expose,
            forwards: file.forwards.into_iter().map(Forward::from).collect(),
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
