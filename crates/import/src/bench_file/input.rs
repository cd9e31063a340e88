//! The file of schedbench as the tool writes it.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// An empty list where the tool has written `null` for one.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Benchmark {
    #[serde(default)]
    pub input: Option<Input>,
    #[serde(default)]
    pub runs: Option<Vec<Run>>,
    #[serde(default)]
    pub run_config: RunConfig,
    #[serde(default)]
    pub soft_affinity: String,
    /// Processes are 0, guests of Xen 1.
    #[serde(default)]
    pub worker_type: u32,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub struct Input {
    pub worker_presets: BTreeMap<String, Params>,
    pub simple_matrix: Option<Matrix>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Matrix {
    #[serde(default, deserialize_with = "list")]
    pub schedulers: Vec<String>,
    #[serde(default, deserialize_with = "list")]
    pub workers: Vec<String>,
    #[serde(default, deserialize_with = "list")]
    pub count: Vec<u64>,
    #[serde(default, deserialize_with = "list")]
    pub numa_disable: Vec<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub struct RunConfig {
    pub scheduler: String,
    pub pool: String,
    #[serde(deserialize_with = "list")]
    pub cpus: Vec<u32>,
    pub numa_disable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Run {
    #[serde(default, deserialize_with = "list")]
    pub worker_sets: Vec<WorkerSet>,
    #[serde(default)]
    pub runtime_seconds: u64,
    #[serde(default)]
    pub scheduler: String,
    #[serde(default)]
    pub pool: String,
    #[serde(default, deserialize_with = "list")]
    pub cpus: Vec<u32>,
    #[serde(default)]
    pub run_config: RunConfig,
    #[serde(default)]
    pub numa_disable: Option<bool>,
    #[serde(default)]
    pub soft_affinity: String,
}

#[derive(Deserialize, Clone, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
pub struct WorkerSet {
    pub params: Params,
    pub count: u64,
    #[serde(default)]
    pub config: WorkerConfig,
}

impl WorkerSet {
    /// So many workers of a preset.
    pub fn from_preset(params: &Params, count: u64) -> Self {
        WorkerSet {
            params: params.clone(),
            count,
            config: WorkerConfig::default(),
        }
    }
}

#[derive(Deserialize, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkerConfig {
    pub soft_affinity: String,
}

#[derive(Deserialize, Clone, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
pub struct Params {
    #[serde(default, deserialize_with = "args")]
    pub args: Vec<String>,
}

/// The words of a worker. A file that was run has the clock of its machine before them, as `kHZ`
/// and a number, which says nothing of the work.
fn args<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let mut args: Vec<String> = list(from)?;
    if args.len() > 1 && args[0] == "kHZ" {
        args.drain(..2);
    }
    Ok(args)
}
