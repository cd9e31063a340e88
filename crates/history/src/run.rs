//! One run as the store keeps it: what it was, and the figures that are followed.

use crate::digest::hash_value;
use jiff::Timestamp;
use model::{Arm, Better, Experiment, Workload};
use report::compare::{describe_work, list_runs};
use report::{LogRatio, Table, format_rough_time};
use results::{ResultSet, RunState};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Digits of a commit in the words for a version.
const SHOWN_COMMIT: usize = 12;
/// A clock of another machine may be so far ahead.
const MOST_AHEAD_SECONDS: i64 = 600;

/// A ratio beyond the exponential of this is none.
const MOST_LOG: f64 = 100.0;

/// A run in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Hash of `parts`. A directory and its capsule have the same, and a run that was resumed keeps it.
    pub id: String,
    /// Hashes of machine, beginning and seed of each run that the results are made of: one, unless they were merged.
    pub parts: Vec<String>,
    /// Beginning (RFC 3339).
    pub created: Timestamp,
    /// Moment at which it came into the store (RFC 3339).
    pub added: Timestamp,
    /// True if schedlab has measured it here and added it at its end: its experiment may be measured again unasked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
    /// Name of the experiment.
    pub name: String,
    /// Hash of the experiment as it was measured, by which the store keeps it.
    pub experiment: String,
    /// Machine, as it calls itself.
    pub machine: String,
    /// Properties that machines must share for their figures to be compared.
    pub class: MachineClass,
    /// Release of the kernel.
    pub kernel: String,
    /// Version of the schedlab that measured.
    pub tool: String,
    /// Trials that count.
    pub trials: usize,
    /// Versions of the arms by their names.
    pub arms: BTreeMap<String, Version>,
    /// Figures that are followed.
    pub figures: Vec<Figure>,
    /// Comparisons that decide and cannot be followed: they are differences, or have fewer than three blocks.
    pub left_out: usize,
}

/// Properties of a machine that move ratios.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MachineClass {
    /// Kind of the target.
    pub target: String,
    /// Name of the instruction set.
    pub architecture: String,
    /// Model of the CPUs.
    pub cpu_model: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Hypervisor, or `none`.
    pub hypervisor: String,
}

/// An arm of a run: what could differ from the night before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The arm in the words of the command line.
    pub text: String,
    /// Schedulers that were attached, with version and hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// The ratio of an arm to its anchor, for one metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the cell.
    pub cell: String,
    /// Name of its workload.
    pub workload: String,
    /// Hash of the work.
    pub work: String,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the levels.
    pub unit: String,
    /// Direction in which the metric improves.
    pub better: Better,
    /// Name of the arm.
    pub arm: String,
    /// Name of the anchor, the baseline of the run.
    pub anchor: String,
    /// Hash of what the anchor changes.
    pub anchor_is: String,
    /// Logarithm of arm over anchor.
    pub log_ratio: f64,
    /// Its standard error, from the blocks of the run.
    pub error: f64,
    /// Blocks that it is from.
    pub blocks: usize,
    /// Level of the arm.
    pub level: Option<f64>,
    /// Level of the anchor.
    pub anchor_level: Option<f64>,
}

/// Reason for which results are not taken into a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Runs of other tools have no blocks.
    #[error("it was imported, so its arms were not interleaved and it has no ratios")]
    Imported,
    /// A run that is under way.
    #[error("it is under way, or its process died")]
    Running,
    /// Nothing can be followed.
    #[error(
        "it has no figure that can be followed: that takes an arm beside the baseline, and three blocks with a \
         ratio of the two"
    )]
    Nothing,
    /// The beginning of the run lies ahead.
    #[error("it began at {created}, which is {ahead} from now: the clock there or here is wrong")]
    Ahead {
        /// Beginning as the results have it.
        created: String,
        /// Time until then, as people say it.
        ahead: String,
    },
    /// The beginning of the run is no time.
    #[error("its beginning, `{0}`, is no time")]
    NoTime(String),
}

impl Refusal {
    /// Remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Refusal::Imported => "`schedlab report` describes it; add runs of `schedlab run`",
            Refusal::Running => "wait for its end, or go on with `schedlab run --resume`",
            Refusal::Nothing => {
                "run it with a baseline (-a default -a …) and for longer (--budget)"
            }
            Refusal::Ahead { .. } => {
                "set the clock; runs are ordered by their beginnings, so this one would be the newest for good"
            }
            Refusal::NoTime(_) => "`schedlab verify` says whether the results were changed",
        }
    }
}

impl Run {
    /// Record of some results in the store; `now` is the moment at which they are added.
    pub fn from_results(results: &ResultSet, now: Timestamp) -> Result<Run, Refusal> {
        if results.experiment.import_source().is_some() {
            return Err(Refusal::Imported);
        }
        if results.manifest.state == RunState::Running {
            return Err(Refusal::Running);
        }
        let created = read_beginning(&results.manifest.created, now)?;
        let table = Table::verdicts_only(results);
        let (figures, left_out) = list_figures(results, &table);
        if figures.is_empty() {
            return Err(Refusal::Nothing);
        }
        let mut parts: Vec<String> = list_runs(results).map(|part| hash_value(&part)).collect();
        parts.sort();
        let arms = results.experiment.arms.iter();
        let version = |arm: &Arm| Version {
            text: name_commit(arm).summary(),
            programs: table.list_programs(&arm.name).to_vec(),
        };
        Ok(Run {
            id: hash_value(&parts),
            parts,
            created,
            added: now,
            is_own: false,
            name: results.manifest.name.clone(),
            experiment: hash_value(&results.experiment),
            machine: results.system.hostname.clone(),
            class: MachineClass::from_results(results),
            kernel: results.system.kernel_release.clone(),
            tool: results.manifest.tool_version.clone(),
            trials: table.trials_that_count(),
            arms: arms.map(|arm| (arm.name.clone(), version(arm))).collect(),
            figures,
            left_out,
        })
    }
}

/// The arm with the commit of its scheduler beside its name: a branch is called alike every night.
fn name_commit(arm: &Arm) -> Arm {
    let mut arm = arm.clone();
    let scheduler = arm.scheduler.as_mut();
    if let Some(of) = scheduler.and_then(|scheduler| scheduler.built_from.as_mut())
        && let Some(asked) = &mut of.asked
        && !of.commit.starts_with(asked.as_str())
    {
        let short = of.commit.get(..SHOWN_COMMIT).unwrap_or(&of.commit);
        *asked = format!("{asked}#{short}");
    }
    arm
}

fn read_beginning(text: &str, now: Timestamp) -> Result<Timestamp, Refusal> {
    let created: Timestamp = text.parse().map_err(|_| Refusal::NoTime(text.to_owned()))?;
    let ahead = created.as_second() - now.as_second();
    match ahead > MOST_AHEAD_SECONDS {
        true => Err(Refusal::Ahead {
            created: text.to_owned(),
            ahead: format_rough_time(1e9 * ahead as f64),
        }),
        false => Ok(created),
    }
}

impl MachineClass {
    /// Class of the machine on which results were measured.
    pub fn from_results(results: &ResultSet) -> MachineClass {
        let system = &results.system;
        MachineClass {
            target: results.experiment.target.kind().to_owned(),
            architecture: system.architecture.clone(),
            cpu_model: system.cpu_model.clone(),
            cpus: system.cpus,
            hypervisor: system.hypervisor.clone(),
        }
    }

    /// Properties by name.
    pub fn list_properties(&self) -> [(&'static str, String); 5] {
        [
            ("target", self.target.clone()),
            ("architecture", self.architecture.clone()),
            ("CPU model", self.cpu_model.clone()),
            ("CPUs", self.cpus.to_string()),
            ("hypervisor", self.hypervisor.clone()),
        ]
    }

    /// The class in words: `local, 2 CPUs of X (x86_64, none)`.
    pub fn in_words(&self) -> String {
        format!(
            "{}, {} of {} ({}, hypervisor {})",
            self.target,
            report::format_count(self.cpus as usize, "CPU"),
            self.cpu_model,
            self.architecture,
            self.hypervisor
        )
    }
}

/// Figures of the comparisons that decide, and the number of those that cannot be followed.
fn list_figures(results: &ResultSet, table: &Table) -> (Vec<Figure>, usize) {
    let experiment = &results.experiment;
    let anchor_is = hash_anchor(experiment);
    let mut figures = Vec::new();
    let mut left_out = 0;
    for cell in &table.cells {
        for comparison in cell.comparisons.iter().filter(|c| c.deciding && !c.aa) {
            let mut workloads = experiment.workloads.iter();
            let workload = workloads.find(|workload| workload.name == comparison.workload);
            let log_ratio = comparison.log_ratio().filter(is_sound);
            let (Some(log_ratio), Some(workload)) = (log_ratio, workload) else {
                left_out += 1;
                continue;
            };
            figures.push(Figure {
                cell: cell.name.clone(),
                workload: workload.name.clone(),
                work: hash_work(workload),
                metric: comparison.metric.clone(),
                unit: comparison.unit.clone(),
                better: comparison.better,
                arm: comparison.arm.clone(),
                anchor: comparison.baseline.clone(),
                anchor_is: anchor_is.clone(),
                log_ratio: log_ratio.value,
                error: log_ratio.error,
                blocks: comparison.blocks,
                level: comparison.arm_level,
                anchor_level: comparison.baseline_level,
            });
        }
    }
    (figures, left_out)
}

/// Figures beyond these were written by hand.
fn is_sound(log_ratio: &LogRatio) -> bool {
    log_ratio.value.abs() < MOST_LOG && log_ratio.error < MOST_LOG
}

/// Changes of the anchor, whatever it is called.
fn hash_anchor(experiment: &Experiment) -> String {
    let anchor = Arm {
        name: String::new(),
        ..experiment.arms[experiment.baseline].clone()
    };
    hash_value(&anchor)
}

/// The work as `merge` and `gate` compare it, with those who answer and disturb.
fn hash_work(workload: &Workload) -> String {
    hash_value(&json!([describe_work(workload), describe_roles(workload)]))
}

/// Programs beside the load, by the word for their role.
pub fn describe_roles(workload: &Workload) -> BTreeMap<&'static str, String> {
    let roles = [
        ("client", json!(workload.client)),
        ("server", json!(workload.server)),
        ("services", json!(workload.services)),
        ("antagonists", json!(workload.antagonists)),
        ("files", json!(workload.files)),
        ("turns", json!(workload.in_place)),
    ];
    let roles = roles.into_iter();
    roles
        .map(|(role, value)| (role, value.to_string()))
        .collect()
}
