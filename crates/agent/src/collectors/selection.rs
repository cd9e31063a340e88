//! Which collectors a trial has: those that its arm names, else those that the experiment
//! names, else the usual ones but for
//! those that `schedlab overhead` found to cost more than one percent on this machine.

use super::def::CollectorDef;
use super::table::{COLLECTORS, find};
use super::{pace, trace};
use crate::error::AgentError;
use crate::state::state_dir;
use model::TrialSpec;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A collector whose cost is surely above this share is off unless asked for.
pub const MOST: f64 = 0.01;

/// Measurements of `schedlab overhead` on this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// `uname -r` of the kernel that they were measured under; under another they say nothing.
    pub kernel_release: String,
    /// Costs of the collectors, at most one each.
    pub costs: Vec<Cost>,
}

/// The cost of one collector for one metric, as a share; the worst of all metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Its name.
    pub collector: String,
    /// Name of the metric.
    pub metric: String,
    /// Share by which the metric is worse with the collector; 0.02 is 2 %, below 0 is better.
    pub cost: f64,
    /// Lower end of the interval of `cost`.
    pub low: f64,
    /// Upper end of the interval of `cost`.
    pub high: f64,
    /// Does the difference hold when all collectors and metrics are looked at together?
    pub survives: bool,
    /// Number of blocks that the cost comes from.
    pub blocks: usize,
}

impl Cost {
    /// Is it surely above [`MOST`]?
    pub fn is_costly(&self) -> bool {
        self.low > MOST && self.survives
    }
}

/// File with the costs of this machine.
pub fn costs_file() -> Result<PathBuf, AgentError> {
    Ok(state_dir()?.join("overhead.json"))
}

/// Names that are not known were refused by the check. A trace that is wanted is one more.
pub fn wanted_collectors(spec: &TrialSpec) -> Vec<&'static CollectorDef> {
    let mut wanted: Vec<&CollectorDef> =
        match spec.arm.collect.as_ref().or(spec.observe.collect.as_ref()) {
            Some(named) => named.iter().filter_map(|name| find(name)).collect(),
            None => usual(spec),
        };
    let is_missing = wanted.iter().all(|def| def.name != trace::DEF.name);
    if spec.observe.trace.is_some() && is_missing {
        wanted.push(&trace::DEF);
    }
    if spec.turns.is_some() {
        // The others count within the window of one arm.
        wanted.retain(|def| def.name == pace::DEF.name);
    }
    wanted
}

/// Those that nobody named. What only those see who watch is not read for nobody.
fn usual(spec: &TrialSpec) -> Vec<&'static CollectorDef> {
    let costs = costs_file().map(|path| read(&path)).unwrap_or_default();
    let mut usual = cheap(&costs);
    usual.retain(|def| spec.is_watched || def.name != pace::DEF.name);
    usual
}

/// Stored costs; none if they were measured under another kernel, which says nothing about this
/// one.
fn read(path: &Path) -> Costs {
    let text = doors::read::small_file_text(path).unwrap_or_default();
    let costs: Costs = serde_json::from_str(&text).unwrap_or_default();
    if costs.kernel_release == collect::machine::kernel_release() {
        return costs;
    }
    Costs::default()
}

fn cheap(costs: &Costs) -> Vec<&'static CollectorDef> {
    let is_costly = |def: &CollectorDef| {
        let mut found = costs.costs.iter();
        found.any(|cost| cost.collector == def.name && cost.is_costly())
    };
    let mut all = COLLECTORS.to_vec();
    all.retain(|def| def.usual && !is_costly(def));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Arm, Load, Tracing};

    fn names(costs: &Costs) -> Vec<&'static str> {
        cheap(costs).iter().map(|def| def.name).collect()
    }

    #[test]
    fn one_of_many_that_is_above_it_by_chance_stays_on() {
        let mut costs = costs(0.012, "");
        costs.costs[0].survives = false;
        assert!(names(&costs).contains(&"distances"));
    }

    fn costs(low: f64, kernel_release: &str) -> Costs {
        Costs {
            kernel_release: kernel_release.to_owned(),
            costs: vec![Cost {
                collector: "distances".to_owned(),
                metric: "requests_per_sec".to_owned(),
                cost: low + 0.01,
                low,
                high: low + 0.02,
                survives: true,
                blocks: 20,
            }],
        }
    }

    #[test]
    fn what_surely_costs_more_than_a_percent_is_off() {
        assert!(!names(&costs(0.012, "")).contains(&"distances"));
        assert!(names(&costs(0.009, "")).contains(&"distances"));
    }

    #[test]
    fn what_is_work_at_each_switch_is_off_until_it_is_asked_for() {
        assert_eq!(
            names(&Costs::default()),
            ["delays", "work", "distances", "pace"]
        );
    }

    #[test]
    fn what_is_asked_for_is_on_and_an_arm_asks_first() {
        let one = |name: &str| Some(vec![name.to_owned()]);
        let arm = Arm::unchanged("asked");
        let mut spec = TrialSpec::new(arm, crate::fixture::command(), Load::One);
        spec.observe.collect = one("runqueue");
        let names = |spec: &TrialSpec| -> Vec<&'static str> {
            wanted_collectors(spec).iter().map(|def| def.name).collect()
        };
        assert_eq!(names(&spec), ["runqueue"]);
        spec.arm.collect = one("switches");
        assert_eq!(names(&spec), ["switches"]);
        spec.observe.trace = Some(Tracing::default());
        assert_eq!(names(&spec), ["switches", "trace"]);
    }

    #[test]
    fn costs_of_another_kernel_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("overhead.json");
        let store = |costs: &Costs| {
            std::fs::write(&path, serde_json::to_string(costs).unwrap()).unwrap();
        };
        let own = costs(0.5, &collect::machine::kernel_release());
        store(&own);
        assert_eq!(read(&path), own);
        store(&costs(0.5, "1.2.3-other"));
        assert_eq!(read(&path), Costs::default());
        assert_eq!(read(&directory.path().join("none")), Costs::default());
    }
}
