//! The counters that every trial carries, whatever its workload.
//!
//! For a phased workload they are read when its window opens and closes; for any
//! other, the window is the life of its process.

use crate::memory;
use collect::perf::{Counters, Counts};
use collect::psi::{self, Resource};
use collect::rusage::Usage;
use collect::stat;
use collect::tasks::{self, Pid};
use model::{Measurement, MetricDef};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

const USER_TIME: MetricDef = MetricDef::explaining(
    "user_time",
    "s",
    "CPU time of the workload in its own code.",
);
const SYSTEM_TIME: MetricDef = MetricDef::explaining(
    "system_time",
    "s",
    "CPU time of the workload in the kernel.",
);
const VOLUNTARY: MetricDef = MetricDef::explaining(
    "voluntary_switches",
    "count",
    "How often a task of the workload gave up its CPU to wait.",
);
const INVOLUNTARY: MetricDef = MetricDef::explaining(
    "involuntary_switches",
    "count",
    "How often a task of the workload was made to give up its CPU.",
);
const SWITCHES: MetricDef = MetricDef::explaining(
    "context_switches",
    "count",
    "Context switches of the workload, of both kinds (software perf event).",
);
const MIGRATIONS: MetricDef = MetricDef::explaining(
    "migrations",
    "count",
    "How often a task of the workload was moved to another CPU; of a command only with collect = \
     [\"switches\"].",
);
const FAULTS: MetricDef = MetricDef::explaining(
    "page_faults",
    "count",
    "Page faults of the workload, minor and major.",
);
const STEAL: MetricDef = MetricDef::explaining(
    "steal_time",
    "s",
    "CPU time that the hypervisor gave to others, all CPUs together.",
);
const PRESSURE: MetricDef = MetricDef::explaining(
    "psi_cpu_some",
    "%",
    "Share of the window in which at least one task of the machine waited for a CPU.",
);

/// Every metric of this file.
pub const METRICS: &[MetricDef] = &[
    USER_TIME,
    SYSTEM_TIME,
    VOLUNTARY,
    INVOLUNTARY,
    SWITCHES,
    MIGRATIONS,
    FAULTS,
    memory::PEAK,
    memory::PEAK_OF_GROUP,
    STEAL,
    PRESSURE,
];

/// All counters at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    at: Instant,
    perf: Option<Counts>,
    steal_ns: Option<u64>,
    waiting_ns: Option<u64>,
    /// Use of the process tree; zero before it runs.
    usage: Usage,
    /// Migrations of each thread that lives; empty where the kernel does not tell.
    migrations: BTreeMap<Pid, u64>,
}

impl Reading {
    /// While the process tree lives.
    pub fn of_tree(root: &Path, leader: Pid, perf: Option<&mut Counters>) -> Self {
        let (usage, migrations) = of_tree(root, leader);
        Reading {
            migrations,
            ..Self::of_machine(root, perf, usage)
        }
    }

    /// Counters of the machine alone, with what the load has used.
    pub fn of_machine(root: &Path, perf: Option<&mut Counters>, usage: Usage) -> Self {
        Reading {
            at: Instant::now(),
            perf: perf.and_then(|counters| counters.read().ok()),
            steal_ns: stat::read(root).map(|time| time.steal_ns),
            waiting_ns: psi::read(root, Resource::Cpu).map(|stalled| stalled.some_ns),
            usage,
            migrations: BTreeMap::new(),
        }
    }

    /// Switches of threads that ended with the window are known only from wait4(2),
    /// which adds those of the process's own end.
    pub fn with_switches_of(mut self, usage: Usage) -> Self {
        self.usage.voluntary_switches = usage.voluntary_switches;
        self.usage.involuntary_switches = usage.involuntary_switches;
        self
    }

    /// With all that a process used, which wait4(2) says when it has ended.
    pub fn with_usage(self, usage: Usage) -> Self {
        Reading { usage, ..self }
    }

    /// Counts since `start`.
    pub fn counts_since(&self, start: &Reading) -> Vec<Measurement> {
        let mut metrics = vec![
            USER_TIME.to_measurement(seconds(self.usage.user_ns, start.usage.user_ns)),
            SYSTEM_TIME.to_measurement(seconds(self.usage.system_ns, start.usage.system_ns)),
        ];
        metrics.extend(self.switches_since(start).into_iter().flatten());
        metrics.extend(self.perf_since(start));
        metrics.extend(memory::peak_of_load(self.usage));
        metrics.extend(self.of_machine_since(start));
        metrics
    }

    /// The figures that are of the machine and not of the load.
    pub fn of_machine_since(&self, start: &Reading) -> Vec<Measurement> {
        let steal = difference(self.steal_ns, start.steal_ns);
        let waiting = difference(self.waiting_ns, start.waiting_ns);
        let window_ns = self.at.duration_since(start.at).as_nanos().max(1) as f64;
        let share = |ns: u64| (ns as f64 / window_ns * 100.0).min(100.0);
        let steal = steal.map(|ns| STEAL.to_measurement(ns as f64 / 1e9));
        let pressure = waiting.map(|ns| PRESSURE.to_measurement(share(ns)));
        steal.into_iter().chain(pressure).collect()
    }

    /// Left out if threads ended within the window and took their counts along.
    fn switches_since(&self, start: &Reading) -> Option<[Measurement; 2]> {
        let voluntary = self
            .usage
            .voluntary_switches
            .checked_sub(start.usage.voluntary_switches)?;
        let involuntary = self
            .usage
            .involuntary_switches
            .checked_sub(start.usage.involuntary_switches)?;
        Some([
            VOLUNTARY.to_measurement(voluntary as f64),
            INVOLUNTARY.to_measurement(involuntary as f64),
        ])
    }

    /// Migrations of threads that live at the end; those that are new since `start` began with
    /// none.
    fn migrations_since(&self, start: &Reading) -> Option<u64> {
        let before = |tid: &Pid| start.migrations.get(tid).copied().unwrap_or(0);
        let since = |(tid, now): (&Pid, &u64)| now.saturating_sub(before(tid));
        (!start.migrations.is_empty()).then(|| self.migrations.iter().map(since).sum())
    }

    /// Without perf events page faults are known from /proc or wait4(2), and migrations
    /// of threads that live to the end from /proc.
    fn perf_since(&self, start: &Reading) -> Vec<Measurement> {
        let Some(now) = self.perf else {
            let faults = self.usage.page_faults.checked_sub(start.usage.page_faults);
            return [
                self.migrations_since(start)
                    .map(|n| MIGRATIONS.to_measurement(n as f64)),
                faults.map(|n| FAULTS.to_measurement(n as f64)),
            ]
            .into_iter()
            .flatten()
            .collect();
        };
        let counts = now.counts_since(start.perf.unwrap_or_default());
        vec![
            SWITCHES.to_measurement(counts.context_switches as f64),
            MIGRATIONS.to_measurement(counts.migrations as f64),
            FAULTS.to_measurement(counts.page_faults as f64),
        ]
    }
}

fn seconds(now_ns: u64, start_ns: u64) -> f64 {
    now_ns.saturating_sub(start_ns) as f64 / 1e9
}

fn difference(now: Option<u64>, start: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(start?))
}

/// Use and migrations of a living process tree, as far as /proc tells.
fn of_tree(root: &Path, leader: Pid) -> (Usage, BTreeMap<Pid, u64>) {
    let mut usage = Usage::default();
    let mut migrations = BTreeMap::new();
    for pid in tasks::process_tree(root, leader) {
        if let Some(stat) = tasks::read_stat(root, pid) {
            usage.user_ns += stat.user_ns;
            usage.system_ns += stat.system_ns;
            usage.page_faults += stat.page_faults;
        }
        let peak_bytes = tasks::peak_memory_bytes(root, pid).unwrap_or(0);
        usage.peak_memory_bytes = usage.peak_memory_bytes.max(peak_bytes);
        for tid in tasks::list_threads(root, pid) {
            if let Some(switches) = tasks::read_switches(root, pid, tid) {
                usage.voluntary_switches += switches.voluntary;
                usage.involuntary_switches += switches.involuntary;
            }
            if let Some(moved) = tasks::read_migrations(root, pid, tid) {
                migrations.insert(tid, moved);
            }
        }
    }
    (usage, migrations)
}

/// The metrics of the driver, and the counters that it does not measure itself.
pub fn merge(own: Vec<Measurement>, counters: Vec<Measurement>) -> Vec<Measurement> {
    let mut metrics = own;
    for counter in counters {
        if metrics.iter().all(|m| m.metric != counter.metric) {
            metrics.push(counter);
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn reading(after: Duration, start: Instant) -> Reading {
        Reading {
            at: start + after,
            perf: None,
            steal_ns: Some(model::whole_nanos(after) / 10),
            waiting_ns: Some(model::whole_nanos(after) / 4),
            usage: Usage {
                user_ns: model::whole_nanos(after),
                voluntary_switches: 7,
                peak_memory_bytes: 4096,
                ..Usage::default()
            },
            migrations: BTreeMap::from([(7, after.as_secs())]),
        }
    }

    fn value(metrics: &[Measurement], name: &str) -> Option<f64> {
        metrics.iter().find(|m| m.metric == name).map(|m| m.value)
    }

    #[test]
    fn counters_are_differences_over_the_window() {
        let now = Instant::now();
        let start = reading(Duration::ZERO, now);
        let metrics = reading(Duration::from_secs(2), now).counts_since(&start);
        assert_eq!(value(&metrics, "user_time"), Some(2.0));
        assert_eq!(value(&metrics, "steal_time"), Some(0.2));
        assert_eq!(value(&metrics, "psi_cpu_some"), Some(25.0));
        assert_eq!(value(&metrics, "voluntary_switches"), Some(0.0));
        assert_eq!(value(&metrics, "peak_memory"), Some(4096.0));
        assert_eq!(value(&metrics, "migrations"), Some(2.0));
    }

    #[test]
    fn a_thread_that_ends_takes_no_migrations_of_others_along() {
        let now = Instant::now();
        let mut start = reading(Duration::ZERO, now);
        start.migrations = BTreeMap::from([(7, 500), (8, 10)]);
        let mut last = reading(Duration::from_secs(1), now);
        last.migrations = BTreeMap::from([(8, 12), (9, 3)]);
        assert_eq!(value(&last.counts_since(&start), "migrations"), Some(5.0));
    }

    #[test]
    fn switches_of_threads_that_ended_are_left_out_not_guessed() {
        let now = Instant::now();
        let mut later = reading(Duration::from_secs(1), now);
        later.usage.voluntary_switches = 3;
        let metrics = later.counts_since(&reading(Duration::ZERO, now));
        assert_eq!(value(&metrics, "voluntary_switches"), None);
    }

    #[test]
    fn what_the_driver_measures_itself_is_not_replaced() {
        let own = vec![USER_TIME.to_measurement(1.0)];
        let merged = merge(
            own,
            vec![USER_TIME.to_measurement(9.0), STEAL.to_measurement(0.0)],
        );
        assert_eq!(value(&merged, "user_time"), Some(1.0));
        assert_eq!(value(&merged, "steal_time"), Some(0.0));
    }

    #[test]
    fn this_machine_can_be_read() {
        let root = Path::new("/");
        let start = Reading::of_machine(root, None, Usage::default());
        let own = std::process::id() as Pid;
        let metrics = Reading::of_tree(root, own, None).counts_since(&start);
        assert!(value(&metrics, "user_time").is_some());
    }
}
