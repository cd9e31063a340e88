//! Which collectors a trial has: those that its arm names, else the usual ones but for
//! those that `schedlab overhead` found to cost more than one percent on this machine.

use crate::AgentError;
use crate::state::state_dir;
use model::{Arm, Collector};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A collector whose cost is surely above this share is off unless asked for.
pub const MOST: f64 = 0.01;

/// What `schedlab overhead` measured on this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    pub kernel_release: String,
    pub costs: Vec<Cost>,
}

/// The cost of one collector for one metric, as a share; the worst of all metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub collector: Collector,
    pub metric: String,
    pub cost: f64,
    /// Its interval.
    pub low: f64,
    pub high: f64,
    /// Does the difference hold when all collectors and metrics are looked at together?
    pub survives: bool,
    pub blocks: usize,
}

impl Cost {
    /// Is it surely above [`MOST`]?
    pub fn is_costly(&self) -> bool {
        self.low > MOST && self.survives
    }
}

/// Where the costs of this machine are kept.
pub fn costs_file() -> Result<PathBuf, AgentError> {
    Ok(state_dir()?.join("overhead.json"))
}

pub fn wanted(arm: &Arm) -> Vec<Collector> {
    match &arm.collect {
        Some(named) => named.clone(),
        None => cheap(&costs_file().map(|path| read(&path)).unwrap_or_default()),
    }
}

/// What was measured under another kernel says nothing about this one.
fn read(path: &Path) -> Costs {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let costs: Costs = serde_json::from_str(&text).unwrap_or_default();
    if costs.kernel_release == collect::system::kernel_release() {
        return costs;
    }
    Costs::default()
}

fn cheap(costs: &Costs) -> Vec<Collector> {
    let is_costly = |collector: &Collector| {
        let mut found = costs.costs.iter();
        found.any(|cost| cost.collector == *collector && cost.is_costly())
    };
    let mut all = Collector::ALL.to_vec();
    all.retain(|collector| collector.is_usual() && !is_costly(collector));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_that_is_above_it_by_chance_stays_on() {
        let mut costs = costs(0.012, "");
        costs.costs[0].survives = false;
        assert!(cheap(&costs).contains(&Collector::Distances));
    }

    fn costs(low: f64, kernel_release: &str) -> Costs {
        Costs {
            kernel_release: kernel_release.to_owned(),
            costs: vec![Cost {
                collector: Collector::Distances,
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
        assert!(!cheap(&costs(0.012, "")).contains(&Collector::Distances));
        assert!(cheap(&costs(0.009, "")).contains(&Collector::Distances));
    }

    #[test]
    fn what_is_work_at_each_switch_is_off_until_it_is_asked_for() {
        let usual = cheap(&Costs::default());
        assert_eq!(usual, [Collector::Delays, Collector::Distances]);
    }

    #[test]
    fn what_is_asked_for_is_on_whatever_it_costs() {
        let arm = Arm {
            collect: Some(vec![Collector::Distances]),
            ..Arm::unchanged("asked")
        };
        assert_eq!(wanted(&arm), [Collector::Distances]);
    }

    #[test]
    fn costs_of_another_kernel_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("overhead.json");
        let store = |costs: &Costs| {
            std::fs::write(&path, serde_json::to_string(costs).unwrap()).unwrap();
        };
        let own = costs(0.5, &collect::system::kernel_release());
        store(&own);
        assert_eq!(read(&path), own);
        store(&costs(0.5, "1.2.3-other"));
        assert_eq!(read(&path), Costs::default());
        assert_eq!(read(&directory.path().join("none")), Costs::default());
    }
}
