//! Figures of burn-and-wait workers.

use load::latency::Quantile;
use model::{Better, MetricDef};

pub(crate) const WORK_PER_SEC: MetricDef = MetricDef {
    name: "work_per_sec",
    unit: "1/s",
    better: Better::Higher,
    text: "Thousands of operations that all workers did in a second, antagonists left out.",
};
pub(crate) const CPU_PERCENT: MetricDef = MetricDef::explaining(
    "cpu_percent",
    "%",
    "CPU time of the work of all workers, in percent of one CPU; of guests, their whole CPU time, as \
     the hypervisor has it.",
);
pub(crate) const STEAL: MetricDef = MetricDef::explaining(
    "guests_steal_percent",
    "%",
    "Time in which workers that are guests could have run and did not, as they see it themselves, of \
     all of them together, in percent of one CPU.",
);
pub(crate) const FAIRNESS: MetricDef = MetricDef {
    name: "fairness_percent",
    unit: "%",
    better: Better::Higher,
    text: "Jain's index of what each worker got of the work that it is entitled to: 100 % if all \
           got the same part, 100 %/n if one of n got everything.",
};
pub(crate) const SHORTFALL: MetricDef = MetricDef {
    name: "shortfall_percent",
    unit: "%",
    better: Better::Lower,
    text: "What the workers lack of the work that they are entitled to, those who got more left \
           out.",
};
pub(crate) const WORST_WORKER: MetricDef = MetricDef {
    name: "worst_worker_percent",
    unit: "%",
    better: Better::Higher,
    text: "What the worst worker got of the work that it is entitled to.",
};
pub(crate) const WORST_INTERVAL: MetricDef = MetricDef {
    name: "worst_interval_percent",
    unit: "%",
    better: Better::Higher,
    text: "What a worker got of the work that it is entitled to in the worst interval of any of \
           them, those left out in which nothing was due.",
};
pub(crate) const STARVED: MetricDef = MetricDef {
    name: "starved_percent",
    unit: "%",
    better: Better::Lower,
    text: "Intervals, of all workers together, in which a worker ended nothing although something \
           was due all the time.",
};
pub(crate) const LONGEST_WAIT: MetricDef = MetricDef {
    name: "longest_wait",
    unit: "ns",
    better: Better::Lower,
    text: "Longest time in which a worker ended no piece of its work although something was due, of the \
           worker with the longest: usually at least what a piece takes.",
};
pub(crate) const SPREAD: MetricDef = MetricDef {
    name: "spread_percent",
    unit: "%",
    better: Better::Lower,
    text: "Standard deviation of the work among the equal workers of a set, in percent of its \
           mean, of the set where it is largest.",
};
pub(crate) const LATENCY_COST: MetricDef = MetricDef {
    name: "latency_cost",
    unit: "times",
    better: Better::Lower,
    text: "Mean lateness of the events of a set, as a multiple of what one of its workers has alone \
           (a microsecond at least), of the set where it is highest: the price of company.",
};
pub(crate) const MISSED: MetricDef = MetricDef {
    name: "miss_percent",
    unit: "%",
    better: Better::Lower,
    text: "Deadlines that periodic events missed: those that had not ended when they were due again.",
};
pub(crate) const LATENESS_P50: MetricDef = MetricDef {
    name: "lateness_p50",
    unit: "ns",
    better: Better::Lower,
    text: "Median lateness: from when an event is due until its worker begins it, behind the \
           worker's own events too.",
};
pub(crate) const LATENESS_P90: MetricDef = MetricDef {
    name: "lateness_p90",
    text: "90th percentile of lateness.",
    ..LATENESS_P50
};
pub(crate) const LATENESS_P99: MetricDef = MetricDef {
    name: "lateness_p99",
    text: "99th percentile of lateness.",
    ..LATENESS_P50
};
pub(crate) const LATENESS_P999: MetricDef = MetricDef {
    name: "lateness_p999",
    text: "99.9th percentile of lateness.",
    ..LATENESS_P50
};
pub(crate) const LATENESS_MAX: MetricDef = MetricDef {
    name: "lateness_max",
    text: "Longest lateness in the window.",
    ..LATENESS_P50
};

/// Metrics of the load.
pub(crate) const METRICS: &[MetricDef] = &[
    WORK_PER_SEC,
    FAIRNESS,
    SHORTFALL,
    WORST_WORKER,
    WORST_INTERVAL,
    STARVED,
    LONGEST_WAIT,
    SPREAD,
    LATENESS_P50,
    LATENESS_P90,
    LATENESS_P99,
    LATENESS_P999,
    LATENESS_MAX,
    LATENCY_COST,
    MISSED,
    CPU_PERCENT,
    STEAL,
];
pub(crate) const LATENESS: &[Quantile] = &[
    (LATENESS_P50, Some(500)),
    (LATENESS_P90, Some(900)),
    (LATENESS_P99, Some(990)),
    (LATENESS_P999, Some(999)),
    (LATENESS_MAX, None),
];
