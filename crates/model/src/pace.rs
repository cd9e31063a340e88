//! Figures of a trial that runs, for those who watch it. Nothing of them is in the results.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Work of the load and its server in the last second or so, all their threads together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Time that the counts are of.
    pub over_ns: u64,
    /// Time on CPUs.
    pub run_ns: u64,
    /// Time for which threads waited for a CPU.
    pub run_delay_ns: u64,
    /// Number of times that a thread was given a CPU.
    pub switches: u64,
    /// Number of times that a thread was moved to another CPU; none where the kernel does not say.
    pub migrations: Option<u64>,
    /// Counters of the sched_ext scheduler that have grown, by the kernel's names without `SCX_EV_`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sched_ext: BTreeMap<String, u64>,
    /// Figures that the sched_ext scheduler tells of itself (scx_stats), by its own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scheduler: BTreeMap<String, f64>,
    /// Latencies of the load that ended, by the names of their logs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Latencies>,
    /// CPU time that it took to read all this.
    pub cost_ns: u64,
}

/// Number of latencies, and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Number of requests, wake-ups or the like.
    pub count: u64,
    /// Sum of their latencies.
    pub sum_ns: u64,
}

impl Latencies {
    /// Mean latency; none without one.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// Latencies since an earlier look.
    pub fn count_since(&self, earlier: Latencies) -> Latencies {
        Latencies {
            count: self.count.saturating_sub(earlier.count),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
        }
    }
}

impl Pace {
    /// A count for each second.
    pub fn per_sec(&self, count: u64) -> f64 {
        count as f64 * 1e9 / (self.over_ns.max(1) as f64)
    }
}
