//! An experiment: arms × workloads × loads, a target, and when to stop.

use crate::arm::Arm;
use crate::check::Invalid;
use crate::event::RareEvent;
use crate::trace::Tracing;
use crate::workload::Workload;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An experiment as it is understood: every default is filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Name, from which that of the results directory is made.
    pub name: String,
    /// Question that the experiment is to answer, in words of its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Seed of the order of trials, and of all that is random in them.
    pub seed: u64,
    /// Target: the place of the trials, and its settings.
    pub target: TargetSpec,
    /// At least one; names are unique. An A/A arm, if asked for, is among them.
    pub arms: Vec<Arm>,
    /// Index of the baseline in `arms`.
    pub baseline: usize,
    /// At least one; names are unique.
    pub workloads: Vec<Workload>,
    /// Rule by which measuring ends.
    pub stop: StopRule,
    /// Time for which nothing is run between the trials of two cells.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_ns: u64,
    /// Observations of every trial.
    #[serde(flatten)]
    pub observe: Observe,
    /// Name of the arm that repeats the baseline, where the experiment asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aa_arm: Option<String>,
}

/// Observations of every trial beside the metrics of its load, in an experiment and in each of its
/// trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observe {
    /// Names of the collectors; `None`: all that are known to cost little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collect: Option<Vec<String>>,
    /// Events that are counted, as perf list(1) names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub perf: Vec<String>,
    /// Trace that each trial keeps; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Tracing>,
    /// Rare events that are counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RareEvent>,
}

impl Observe {
    /// The observations but for the trace.
    pub fn without_trace(self) -> Self {
        Observe {
            trace: None,
            ..self
        }
    }

    /// The observation of nothing that can be left out.
    pub fn nothing() -> Self {
        Observe {
            collect: Some(Vec::new()),
            ..Observe::default()
        }
    }
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
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

    /// Thing that a comparison of this arm with the baseline has once in the whole run, and not in each block.
    pub fn find_once(&self, workload: &Workload, arm: usize) -> Option<Once> {
        let [arm, baseline] = [arm, self.baseline].map(|arm| &self.arms[arm].kernel);
        match self.target.reset() == Reset::Snapshot {
            true if arm != baseline => Some(Once::ThisBoot),
            true if workload.is_served() => Some(Once::ThisStart),
            _ => None,
        }
    }
}

/// Thing that all blocks of a run share, so that its luck is in each of them, and no test of that run can tell it from a
/// difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Once {
    /// Arm and baseline have a boot each, of kernels of their own.
    ThisBoot,
    /// The services were started once, for all arms.
    ThisStart,
}

/// The target of the trials: its name, and keys that only this target reads. The crate `machines`
/// has the table of all targets, which says what each of them can.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetSpec {
    kind: String,
    #[serde(flatten)]
    keys: Map<String, Value>,
}

impl TargetSpec {
    /// The target `kind`; its keys are the fields of a struct.
    pub fn new(kind: &str, keys: &impl Serialize) -> Self {
        let Ok(Value::Object(keys)) = serde_json::to_value(keys) else {
            unreachable!("the keys of a target are the fields of a struct")
        };
        TargetSpec {
            kind: kind.to_owned(),
            keys,
        }
    }

    /// This machine.
    pub fn local() -> Self {
        TargetSpec {
            kind: "local".to_owned(),
            keys: Map::new(),
        }
    }

    /// True for this machine, with whatever keys.
    pub fn is_local(&self) -> bool {
        self.kind == Self::local().kind
    }

    /// Name of the target, as in the table of targets.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Occasions on which the target is started anew, where it has the key `reset`.
    pub fn reset(&self) -> Reset {
        let named = self.keys.get("reset").cloned();
        let read = named.and_then(|named| serde_json::from_value(named).ok());
        read.unwrap_or_default()
    }

    /// True for a real machine that is restarted with the kernels of arms.
    pub fn reboots(&self) -> bool {
        self.keys.get("reboots").is_some_and(|by| !by.is_null())
    }

    /// The target but for one of its keys.
    pub fn without_key(&self, key: &str) -> Self {
        let mut other = self.clone();
        other.keys.remove(key);
        other
    }

    /// The target with another value of one of its keys.
    pub fn with_key(&self, key: &str, value: Value) -> Self {
        let mut other = self.clone();
        other.keys.insert(key.to_owned(), value);
        other
    }

    /// The keys as what they were made from.
    pub fn read_keys<T: DeserializeOwned>(&self) -> Result<T, Invalid> {
        let keys = Value::Object(self.keys.clone());
        serde_json::from_value(keys).map_err(|e| Invalid::new("target", e.to_string()))
    }

    /// The kind is shown to people, also where no target has this name.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        match (1..=40).contains(&self.kind.len()) && self.kind.chars().all(plain) {
            true => Ok(()),
            false => Err(Invalid::new("kind", "a target has a plain name")),
        }
    }
}

/// When the agent, and the machine that the target brings, are started anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// Only when the kernel changes or the machine died.
    #[default]
    None,
    /// Before every block.
    Block,
    /// Before every workload of a block: its cells are neighbours in time.
    Workload,
    /// Before every trial.
    Trial,
    /// Before every trial the machine is put back to where it was when its services had been
    /// started and had answered one whole load.
    Snapshot,
    /// The same, with services that are started and saved anew for each block.
    BlockSnapshot,
}

impl Reset {
    /// True where trials go on from a snapshot.
    pub fn has_snapshot(self) -> bool {
        matches!(self, Reset::Snapshot | Reset::BlockSnapshot)
    }
}

/// When measuring ends. A cell ends when all its comparisons are decided, at
/// `max_blocks`, or when the budget is used up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Wall time for the trials; `None`: until decided or `max_blocks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// 1 − alpha, for e-values and intervals.
    pub confidence: f64,
    /// Smallest ratio change of interest, as a fraction (0.02 = 2 %).
    pub smallest_effect: f64,
    /// Number of blocks before which no cell is decided.
    pub min_blocks: u32,
    /// Number of blocks after which a cell ends, decided or not.
    pub max_blocks: u32,
    /// Attempts for one place of the plan before it is given up.
    pub max_attempts: u32,
    /// Figures that end a cell.
    #[serde(default, skip_serializing_if = "DecidedBy::is_metrics")]
    pub decided_by: DecidedBy,
}

/// Figures whose verdicts end a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The deciding metrics, and those events that say so.
    #[default]
    Metrics,
    /// The events, all of them and nothing else.
    Events,
}

impl DecidedBy {
    /// True where metrics are waited for.
    pub fn is_metrics(&self) -> bool {
        *self == DecidedBy::Metrics
    }
}

/// The rule of an experiment that says nothing about it.
impl Default for StopRule {
    fn default() -> Self {
        StopRule {
            budget_ns: None,
            confidence: 0.95,
            smallest_effect: 0.02,
            min_blocks: 3,
            max_blocks: 40,
            max_attempts: 3,
            decided_by: DecidedBy::default(),
        }
    }
}
