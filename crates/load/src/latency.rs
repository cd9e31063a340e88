//! Metrics of all loads that measure latency: the same thing has one name.

use model::{Better, MetricDef};

/// A metric and the quantile it is, in thousandths; `None`: the maximum.
pub type Quantile = (MetricDef, Option<u32>);

/// A latency, of which less is better.
pub const fn latency(name: &'static str, text: &'static str) -> MetricDef {
    MetricDef {
        name,
        unit: "ns",
        better: Better::Lower,
        text,
    }
}

/// Median wakeup latency.
pub const WAKEUP_P50: MetricDef = latency(
    "wakeup_p50",
    "Median wakeup latency: from the waker's stamp before the wakes until the woken thread runs.",
);
/// 90th percentile of wakeup latency.
pub const WAKEUP_P90: MetricDef = latency("wakeup_p90", "90th percentile of wakeup latency.");
/// 95th percentile of wakeup latency.
pub const WAKEUP_P95: MetricDef = latency("wakeup_p95", "95th percentile of wakeup latency.");
/// 99th percentile of wakeup latency.
pub const WAKEUP_P99: MetricDef = latency("wakeup_p99", "99th percentile of wakeup latency.");
/// 99.9th percentile of wakeup latency.
pub const WAKEUP_P999: MetricDef = latency("wakeup_p999", "99.9th percentile of wakeup latency.");
/// Longest wakeup latency.
pub const WAKEUP_MAX: MetricDef = latency("wakeup_max", "Longest wakeup latency in the window.");

/// Median request latency, in an open loop from the intended start.
pub const REQUEST_P50: MetricDef = latency(
    "request_p50",
    "Median request latency: from the intended start (closed loop: from the actual start) to the end.",
);
/// 75th percentile of request latency.
pub const REQUEST_P75: MetricDef = latency(
    "request_p75",
    "75th percentile of request latency (of services that are asked in an open loop).",
);
/// 90th percentile of request latency.
pub const REQUEST_P90: MetricDef = latency("request_p90", "90th percentile of request latency.");
/// 95th percentile of request latency.
pub const REQUEST_P95: MetricDef = latency("request_p95", "95th percentile of request latency.");
/// 99th percentile of request latency.
pub const REQUEST_P99: MetricDef = latency("request_p99", "99th percentile of request latency.");
/// 99.9th percentile of request latency.
pub const REQUEST_P999: MetricDef =
    latency("request_p999", "99.9th percentile of request latency.");
/// Longest request latency.
pub const REQUEST_MAX: MetricDef = latency("request_max", "Longest request latency in the window.");

/// Median service time: without the wait for the start.
pub const SERVICE_P50: MetricDef = latency(
    "service_p50",
    "Median service time: from the actual start of a request to its end (open loop only).",
);
/// 99th percentile of service time.
pub const SERVICE_P99: MetricDef = latency(
    "service_p99",
    "99th percentile of service time (open loop only).",
);

/// Rate of requests that were completed.
pub const REQUESTS_PER_SEC: MetricDef = MetricDef {
    name: "requests_per_sec",
    unit: "1/s",
    better: Better::Higher,
    text: "Requests completed in the window, per second.",
};
/// Rate of the slowest of several pairs.
pub const SLOWEST_PAIR: MetricDef = MetricDef {
    name: "slowest_pair_per_sec",
    unit: "1/s",
    better: Better::Higher,
    text: "Requests completed per second by the slowest of the pairs.",
};
/// Amount of data of a load that sends as much as it can.
pub const THROUGHPUT: MetricDef = MetricDef {
    name: "throughput",
    unit: "MB/s",
    better: Better::Higher,
    text: "Data that arrived, in millions of bytes per second.",
};
/// Throughput of the slowest of several pairs.
pub const SLOWEST_THROUGHPUT: MetricDef = MetricDef {
    name: "slowest_pair_throughput",
    unit: "MB/s",
    better: Better::Higher,
    text: "Data that arrived at the slowest of the pairs, in millions of bytes per second.",
};
/// Rate of requests that were to start, which a slow system does not change.
pub const OFFERED_PER_SEC: MetricDef = MetricDef::explaining(
    "offered_per_sec",
    "1/s",
    "Requests intended to start in the window, per second (open loop only).",
);
/// The mark of a trial whose latencies are not compared; see `results::overload`.
pub const OVERLOADED: MetricDef = MetricDef::explaining(
    "overloaded",
    "count",
    "1 where fewer than 99 % of the offered requests were done or more than 1 % failed, so \
           that latency is not compared, else 0 (open loop only).",
);
/// Share of the offered requests that were completed.
pub const ACHIEVED_PERCENT: MetricDef = MetricDef {
    name: "achieved_percent",
    unit: "%",
    better: Better::Higher,
    text: "Completed requests in percent of the offered ones (open loop only).",
};

/// Metrics of wakeup latency, with the quantile of each in thousandths.
pub const WAKEUP: &[Quantile] = &[
    (WAKEUP_P50, Some(500)),
    (WAKEUP_P90, Some(900)),
    (WAKEUP_P95, Some(950)),
    (WAKEUP_P99, Some(990)),
    (WAKEUP_P999, Some(999)),
    (WAKEUP_MAX, None),
];
/// Metrics of request latency, with the quantile of each in thousandths.
pub const REQUEST: &[Quantile] = &[
    (REQUEST_P50, Some(500)),
    (REQUEST_P90, Some(900)),
    (REQUEST_P95, Some(950)),
    (REQUEST_P99, Some(990)),
    (REQUEST_P999, Some(999)),
    (REQUEST_MAX, None),
];
/// Metrics of service time, with the quantile of each in thousandths.
pub const SERVICE: &[Quantile] = &[(SERVICE_P50, Some(500)), (SERVICE_P99, Some(990))];

/// Metrics that decide when a cell stops, of loads that measure wakeup latency.
pub const DECIDING: &[&str] = &["wakeup_p99", "request_p99", "requests_per_sec"];

/// Highest rate that holds the service level.
pub const SLO_RATE: MetricDef = MetricDef {
    name: "slo_rate",
    unit: "1/s",
    better: Better::Higher,
    text: "Highest rate that holds the service level (loads = { find = \"max\", slo = … } only).",
};
