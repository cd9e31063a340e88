//! Rare events: what an experiment counts, and what a trial has counted.

use serde::{Deserialize, Serialize};

/// A rare event that an experiment counts in each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RareEvent {
    /// Name in reports and in trials; no other event of the experiment has it.
    pub name: String,
    /// Condition under which it has happened.
    pub when: When,
    /// Time after an event within which further ones belong to it.
    pub cluster_ns: u64,
    /// True if a cell goes on until there is a verdict on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
    /// Ratio of rates, above 1, within which arms count as the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_within: Option<f64>,
    /// Rate below which arms count as the same, whatever the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_below_per_sec: Option<f64>,
    /// Rest of the machine after an event that ended its window.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cool_down_ns: u64,
    /// Events that ended their windows after which an arm is measured no more in its cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
}

impl RareEvent {
    /// The event `name`, each for itself and without limits.
    pub fn new(name: &str, when: When) -> Self {
        RareEvent {
            name: name.to_owned(),
            when,
            cluster_ns: 0,
            decides: false,
            same_within: None,
            same_below_per_sec: None,
            cool_down_ns: 0,
            at_most: None,
        }
    }
}

/// Condition under which an event has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum When {
    /// The kernel has thrown the sched_ext scheduler of the arm out.
    Ejected,
    /// The scheduler of the arm has ended by itself within the window.
    ErrorExit,
    /// The machine of the arm, a guest, has died or hung within the window.
    GuestDeath,
    /// A latency of the load was longer than this.
    Latency {
        /// Log of the latency: `request`, `wakeup`.
        log: String,
        /// Longest latency that is no event; 0 where the baseline says it.
        beyond_ns: u64,
        /// Rule by which trials of the baseline that no block has say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of_baseline: Option<OfBaseline>,
    },
    /// A request of the load failed.
    FailedRequest,
    /// The kernel has killed a process for want of memory.
    OomKill,
    /// The kernel has logged a line that matches.
    KernelLog {
        /// Regular expression.
        line: String,
    },
}

impl When {
    /// True of an event after which the arm is no longer in force, so that its window ends.
    pub fn ends_window(&self) -> bool {
        matches!(self, When::Ejected | When::ErrorExit | When::GuestDeath)
    }

    /// The log of a latency and its bound.
    pub fn latency(&self) -> Option<(&str, u64)> {
        match self {
            When::Latency { log, beyond_ns, .. } => Some((log, *beyond_ns)),
            _ => None,
        }
    }

    /// Metric of the baseline that a bound is a multiple of, with the factor.
    pub fn metric_of_baseline(&self) -> Option<(String, u32)> {
        match self {
            When::Latency {
                log,
                of_baseline: Some(rule),
                ..
            } => Some((format!("{log}_{}", rule.quantile), rule.times)),
            _ => None,
        }
    }
}

/// A bound that is a multiple of a quantile of the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfBaseline {
    /// Quantile as metrics name it: `p99`, `p999`, `max`.
    pub quantile: String,
    /// Factor, 1 or more.
    pub times: u32,
}

/// Events of one name in one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// Name of the event.
    pub name: String,
    /// Time in which it could have happened: the part of the window in which the arm was in force.
    pub exposure_ns: u64,
    /// Requests that it could have been, where it is one of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Moments from the start of the trial, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_ns: Vec<u64>,
    /// Events whose moments are not kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub without_moment: u64,
    /// True where one of them ended the window: the arm was in force until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_window: bool,
    /// Messages of the kernel or a program about them, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// Moments that a trial keeps of one event: more are no rare event.
pub const MOST_MOMENTS: usize = 10_000;
/// Messages that a trial keeps of one event.
pub const MOST_MESSAGES: usize = 20;

impl Happened {
    /// Number of all events, each for itself.
    pub fn count(&self) -> u64 {
        self.at_ns.len() as u64 + self.without_moment
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}
