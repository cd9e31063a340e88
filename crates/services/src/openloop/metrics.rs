//! Metrics of the open-loop generators. Latencies have the names that the wakeup load gives
//! them.

use load::latency as m;
use load::stalls::REQUEST_STALLS;
use load::steady::LATENCY_DRIFT;
use model::{Better, MetricDef};

/// Share of the intended requests that failed.
pub const ERROR_PERCENT: MetricDef = MetricDef {
    name: "error_percent",
    unit: "%",
    better: Better::Lower,
    text: "Requests intended in the window that failed: timed out, cut off, refused, wrong, garbled or unanswered.",
};
/// The mark of a rate that is only a bound; see `results::bound`.
pub const SLO_BOUND: MetricDef = MetricDef::explaining(
    "slo_bound",
    "count",
    "Where the highest rate is: -1 below slo_rate, which is where the search began, 1 above it, \
     where the search ended, 0 there.",
);
/// Mean request latency.
pub const REQUEST_MEAN: MetricDef = MetricDef {
    name: "request_mean",
    unit: "ns",
    better: Better::Lower,
    text: "Mean request latency, which a few long ones rule (of `gatling`, and of `http` with several kinds of request).",
};
/// Share of the gets that found their key.
pub const HIT_PERCENT: MetricDef = MetricDef::explaining(
    "hit_percent",
    "%",
    "Share of the answered gets that found their key.",
);
/// Median time to connect.
pub const CONNECT_P50: MetricDef = m::latency(
    "connect_p50",
    "Median time from connect(2) until the connection is made, of those that were begun in the window. There are such where the server ends connections, as it does after each answer with headers = { Connection = \"close\" }.",
);
/// 99th percentile of the time to connect.
pub const CONNECT_P99: MetricDef =
    m::latency("connect_p99", "99th percentile of the time to connect.");
/// Longest time to connect.
pub const CONNECT_MAX: MetricDef = m::latency("connect_max", "Longest time to connect.");
/// Metrics of the time to connect, with the quantile of each in thousandths.
pub const CONNECT: &[m::Quantile] = &[
    (CONNECT_P50, Some(500)),
    (CONNECT_P99, Some(990)),
    (CONNECT_MAX, None),
];
/// Median of the lateness that is the generator's own fault.
pub const LATENESS_P50: MetricDef = MetricDef::explaining(
    "generator_lateness_p50",
    "ns",
    "Median of what the generator itself adds: from when a request was due and had a free connection until it was sent.",
);
/// 99th percentile of the lateness that is the generator's own fault.
pub const LATENESS_P99: MetricDef = MetricDef::explaining(
    "generator_lateness_p99",
    "ns",
    "99th percentile of what the generator itself adds.",
);
/// CPU time of the generator.
pub const GENERATOR_CPU: MetricDef = MetricDef::explaining(
    "generator_cpu",
    "%",
    "CPU time of the generator's threads in the window, in percent of one CPU.",
);

/// Metrics of the generator's lateness, with the quantile of each in thousandths.
pub const LATENESS: &[m::Quantile] = &[(LATENESS_P50, Some(500)), (LATENESS_P99, Some(990))];

/// Metrics of the memcached load. The last is its own.
pub const MEMCACHED: &[MetricDef] = &[
    m::REQUEST_P50,
    m::REQUEST_P75,
    m::REQUEST_P90,
    m::REQUEST_P95,
    m::REQUEST_P99,
    m::REQUEST_P999,
    m::REQUEST_MAX,
    m::SLO_RATE,
    SLO_BOUND,
    m::SERVICE_P50,
    m::SERVICE_P99,
    m::REQUESTS_PER_SEC,
    m::OFFERED_PER_SEC,
    m::ACHIEVED_PERCENT,
    m::OVERLOADED,
    ERROR_PERCENT,
    LATENESS_P50,
    LATENESS_P99,
    GENERATOR_CPU,
    REQUEST_STALLS,
    LATENCY_DRIFT,
    CONNECT_P50,
    CONNECT_P99,
    CONNECT_MAX,
    HIT_PERCENT,
];
/// Metrics of the HTTP load. The last is that of several kinds of request.
pub const HTTP: &[MetricDef] = &[
    m::REQUEST_P50,
    m::REQUEST_P75,
    m::REQUEST_P90,
    m::REQUEST_P95,
    m::REQUEST_P99,
    m::REQUEST_P999,
    m::REQUEST_MAX,
    m::SLO_RATE,
    SLO_BOUND,
    m::SERVICE_P50,
    m::SERVICE_P99,
    m::REQUESTS_PER_SEC,
    m::OFFERED_PER_SEC,
    m::ACHIEVED_PERCENT,
    m::OVERLOADED,
    ERROR_PERCENT,
    LATENESS_P50,
    LATENESS_P99,
    GENERATOR_CPU,
    REQUEST_STALLS,
    LATENCY_DRIFT,
    CONNECT_P50,
    CONNECT_P99,
    CONNECT_MAX,
    REQUEST_MEAN,
];

/// Interval logs of every open-loop generator.
pub const LOGS: &[&str] = &["request", "service", "generator-lateness", "connect"];

/// Metrics that decide when a cell stops; with a search, [`m::SLO_RATE`].
pub const DECIDING: &[&str] = &["request_p99"];
