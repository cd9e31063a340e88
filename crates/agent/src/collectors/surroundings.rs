//! Readings of what went on around the work: steal, the scheduler's own process, the kernel's
//! threads, other processes, frequency, heat, memory and I/O pressure, and the kernel's log.

use super::attendants::AttendantTimes;
use collect::kernel_log::KernelLog;
use collect::psi::{self, Resource};
use collect::stat::{self, CpuTime};
use collect::{frequency, thermal};
use model::readings::WORK_ELSEWHERE;
use model::{Measurement, MetricDef, Severity, Warning};
use std::path::Path;
use std::time::Instant;

const STEAL: MetricDef = MetricDef::explaining(
    "steal_percent",
    "%",
    "Share of the CPU time of the window that the hypervisor gave to others.",
);
const FOREIGN: MetricDef = MetricDef::explaining(
    "foreign_percent",
    "%",
    "Share of all CPUs that processes used which are not part of the experiment.",
);
const WORKLOAD: MetricDef = MetricDef::explaining(
    "workload_percent",
    "%",
    "Share of all CPUs that the processes of the workload used: load, servers and antagonists.",
);
const ELSEWHERE: MetricDef = MetricDef::explaining(
    WORK_ELSEWHERE,
    "count",
    "1 where others used more CPU time than the command of the workload, else 0.",
);
const SCHEDULER: MetricDef = MetricDef::explaining(
    "scheduler_percent",
    "%",
    "Share of all CPUs that the sched_ext scheduler's own process used.",
);
const KERNEL: MetricDef = MetricDef::explaining(
    "kernel_percent",
    "%",
    "Share of all CPUs that the kernel used by itself: its threads, and interrupts.",
);
const FREQUENCY: MetricDef = MetricDef::explaining(
    "cpu_mhz",
    "MHz",
    "Mean frequency of the CPUs when the window closed.",
);
const FREQUENCY_CHANGE: MetricDef = MetricDef::explaining(
    "cpu_mhz_change",
    "%",
    "Change of the mean frequency from the opening of the window to its close.",
);
const THROTTLES: MetricDef = MetricDef::explaining(
    "throttles",
    "count",
    "How often a core or package was slowed down for its heat.",
);
const TEMPERATURE: MetricDef = MetricDef::explaining(
    "temperature",
    "C",
    "The hottest CPU sensor when the window closed.",
);
const MEMORY_PRESSURE: MetricDef = MetricDef::explaining(
    "psi_memory_some",
    "%",
    "Share of the window in which at least one task of the machine waited for memory.",
);
const IO_PRESSURE: MetricDef = MetricDef::explaining(
    "psi_io_some",
    "%",
    "Share of the window in which at least one task of the machine waited for I/O.",
);
const LOG_LINES: MetricDef = MetricDef::explaining(
    "kernel_log_lines",
    "count",
    "New messages in the kernel's log within the window.",
);

/// Metrics of what is around a trial. They are taken in every trial and never judged.
pub const METRICS: &[MetricDef] = &[
    STEAL,
    FOREIGN,
    WORKLOAD,
    ELSEWHERE,
    SCHEDULER,
    KERNEL,
    FREQUENCY,
    FREQUENCY_CHANGE,
    THROTTLES,
    TEMPERATURE,
    MEMORY_PRESSURE,
    IO_PRESSURE,
    LOG_LINES,
];

/// Messages of the log that are quoted.
const QUOTED_LINES: usize = 3;

/// One end of the window.
#[derive(Debug, Clone)]
struct Reading {
    at: Instant,
    cpu: Option<CpuTime>,
    mhz: Option<f64>,
    throttles: Option<u64>,
    celsius: Option<f64>,
    memory_wait_ns: Option<u64>,
    io_wait_ns: Option<u64>,
}

impl Reading {
    fn now(root: &Path) -> Self {
        let waited = |resource| psi::read(root, resource).map(|stalled| stalled.some_ns);
        Reading {
            at: Instant::now(),
            cpu: stat::read(root),
            mhz: frequency::mean_mhz(root),
            throttles: thermal::throttle_count(root),
            celsius: thermal::hottest_celsius(root),
            memory_wait_ns: waited(Resource::Memory),
            io_wait_ns: waited(Resource::Io),
        }
    }
}

/// Both ends, and what the kernel said in between.
#[derive(Debug)]
pub struct Surroundings {
    first: Reading,
    last: Option<Reading>,
    log: Option<KernelLog>,
    messages: Option<Vec<String>>,
}

impl Surroundings {
    pub fn begin_window(root: &Path) -> Self {
        Surroundings {
            log: KernelLog::from_now(root),
            first: Reading::now(root),
            last: None,
            messages: None,
        }
    }

    /// CPU time that all CPUs have in the window; 0 where it is not known.
    pub fn all_ns(&self) -> u64 {
        let ends = self
            .last
            .as_ref()
            .and_then(|last| last.cpu)
            .zip(self.first.cpu);
        ends.map_or(0, |(now, before)| now.time_since(before).total_ns())
    }

    pub fn end_window(&mut self, root: &Path) {
        self.last = Some(Reading::now(root));
        self.messages = self.log.as_mut().map(|log| log.lines_with(""));
    }

    /// `own_ns` is the CPU time of the workload within the window, `attended` of what it
    /// brought along.
    pub fn figures(&self, own_ns: u64, attended: AttendantTimes) -> Vec<Measurement> {
        let Some(last) = &self.last else {
            return Vec::new();
        };
        let first = &self.first;
        let mut metrics = Vec::new();
        if let (Some(now), Some(before)) = (last.cpu, first.cpu) {
            metrics.extend(shares(now.time_since(before), own_ns, attended));
        }
        metrics.extend(last.mhz.map(|mhz| FREQUENCY.to_measurement(mhz)));
        metrics.extend(frequency_change(first, last));
        metrics.extend(difference(THROTTLES, first.throttles, last.throttles));
        metrics.extend(
            last.celsius
                .map(|celsius| TEMPERATURE.to_measurement(celsius)),
        );
        let window_ns = last.at.duration_since(first.at).as_nanos().max(1) as f64;
        for (def, before, now) in [
            (MEMORY_PRESSURE, first.memory_wait_ns, last.memory_wait_ns),
            (IO_PRESSURE, first.io_wait_ns, last.io_wait_ns),
        ] {
            metrics.extend(difference(def, before, now).map(|mut waited| {
                waited.value = (100.0 * waited.value / window_ns).min(100.0);
                waited
            }));
        }
        let messages = self.messages.as_ref();
        metrics.extend(messages.map(|lines| LOG_LINES.to_measurement(lines.len() as f64)));
        metrics
    }

    /// Warnings about readings that are out of line. The words are the same in every trial, so
    /// that a report says them once; the numbers are in the metrics. The CPUs of this machine are not
    /// those of a load that is `elsewhere`.
    pub fn warnings(&self, metrics: &[Measurement], elsewhere: bool) -> Vec<Warning> {
        let value = |def: &MetricDef| {
            let found = metrics.iter().find(|m| m.metric == def.name);
            found.map(|m| m.value)
        };
        let mut warnings: Vec<Warning> = LIMITS
            .iter()
            .filter(|limit| !elsewhere || ![STEAL.name, FOREIGN.name].contains(&limit.metric.name))
            .filter(|limit| value(&limit.metric).is_some_and(|v| v.abs() > limit.most))
            .map(Limit::warning)
            .collect();
        warnings.extend(self.warning_of_log());
        warnings
    }

    fn warning_of_log(&self) -> Option<Warning> {
        let messages = self.messages.as_ref().filter(|lines| !lines.is_empty())?;
        let quoted = messages[..messages.len().min(QUOTED_LINES)].join(" | ");
        Some(Warning {
            severity: Severity::Note,
            what: format!("The kernel wrote to its log while it was measured: {quoted}"),
            remedy: "See dmesg; a driver or a fault at work takes CPU time from the trial."
                .to_owned(),
        })
    }
}

fn shares(spent: CpuTime, own_ns: u64, attended: AttendantTimes) -> Vec<Measurement> {
    let percent = |ns: u64| 100.0 * ns as f64 / spent.total_ns().max(1) as f64;
    let AttendantTimes {
        scheduler_ns,
        kernel_ns,
    } = attended;
    let known_ns = own_ns + kernel_ns + scheduler_ns.unwrap_or(0);
    let foreign_ns = spent.tasks_ns().saturating_sub(known_ns);
    let mut shares = vec![
        STEAL.to_measurement(percent(spent.steal_ns)),
        FOREIGN.to_measurement(percent(foreign_ns)),
        WORKLOAD.to_measurement(percent(own_ns)),
        KERNEL.to_measurement(percent(kernel_ns + spent.interrupt_ns)),
    ];
    shares.extend(scheduler_ns.map(|ns| SCHEDULER.to_measurement(percent(ns))));
    shares
}

/// CPU time within a window.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// The time that all CPUs have.
    pub all_ns: u64,
    /// The time of processes beside the workload that the arm changes.
    pub reached_ns: u64,
}

/// The mark of a command whose work others did, and the warning that names them. `None` where the
/// shares of the CPUs are not known.
pub fn work_elsewhere(
    metrics: &[Measurement],
    spent: Spent,
    strangers: impl FnOnce() -> Vec<String>,
) -> Option<(Measurement, Option<Warning>)> {
    let share = |def: &MetricDef| metrics.iter().find(|m| m.metric == def.name);
    let all_ns = spent.all_ns as f64;
    let reached = 100.0 * spent.reached_ns as f64 / all_ns.max(1.0);
    let foreign = share(&FOREIGN)?.value - reached;
    let own = share(&WORKLOAD)?.value + reached;
    let foreign_ns = foreign / 100.0 * all_ns;
    if foreign_ns < LEAST_ELSEWHERE_NS || foreign <= LEAST_ELSEWHERE_PERCENT || foreign <= own {
        return Some((ELSEWHERE.to_measurement(0.0), None));
    }
    let names = match strangers() {
        names if names.is_empty() => "they have ended".to_owned(),
        names => names.join(", "),
    };
    let warning = Warning {
        severity: Severity::Caution,
        what: format!(
            "Others used more CPU time than the command itself: {names}. Where a daemon does the work \
             of a command (docker run, systemd-run, a client of a database), the arm does not reach \
             that work"
        ),
        remedy:
            "Say that the arm is for the daemon (to = { unit = … }, or container, name), measure the \
                 program itself in place of its client, or stop what is not part of the experiment"
                .to_owned(),
    };
    Some((ELSEWHERE.to_measurement(1.0), Some(warning)))
}

/// Share of the CPUs up to which others do not matter, whatever the command used.
const LEAST_ELSEWHERE_PERCENT: f64 = 5.0;
/// CPU time of others up to which they do not matter: the kernel counts in ticks of up to 10 ms,
/// and schedlab itself is among the others.
const LEAST_ELSEWHERE_NS: f64 = 1e8;

fn frequency_change(first: &Reading, last: &Reading) -> Option<Measurement> {
    let (before, now) = (first.mhz?, last.mhz?);
    (before > 0.0).then(|| FREQUENCY_CHANGE.to_measurement(100.0 * (now / before - 1.0)))
}

fn difference(def: MetricDef, before: Option<u64>, now: Option<u64>) -> Option<Measurement> {
    Some(def.to_measurement(now?.saturating_sub(before?) as f64))
}

/// A reading beyond which a trial carries a warning.
struct Limit {
    metric: MetricDef,
    most: f64,
    what: &'static str,
    remedy: &'static str,
}

const LIMITS: &[Limit] = &[
    Limit {
        metric: STEAL,
        most: 1.0,
        what: "The hypervisor gave more than 1 % of the CPU time to others (steal_percent).",
        remedy: "Use a host whose CPUs are not overcommitted, or pin the virtual CPUs.",
    },
    Limit {
        metric: FOREIGN,
        most: 5.0,
        what: "Other processes used more than 5 % of the CPUs (foreign_percent).",
        remedy: "Stop what is not part of the experiment; `schedlab doctor` names the busiest.",
    },
    Limit {
        metric: FREQUENCY_CHANGE,
        most: 10.0,
        what: "The CPU frequency changed by more than 10 % within the window (cpu_mhz_change).",
        remedy: "Set the governor `performance` and turn turbo off: `schedlab doctor --fix`",
    },
    Limit {
        metric: THROTTLES,
        most: 0.0,
        what: "The CPU was slowed down for its heat (throttles).",
        remedy: "Cool it better or turn turbo off: `schedlab doctor --fix`",
    },
    Limit {
        metric: MEMORY_PRESSURE,
        most: 1.0,
        what: "Tasks waited for memory for more than 1 % of the window (psi_memory_some).",
        remedy: "Free memory, or use a smaller load.",
    },
];

impl Limit {
    fn warning(&self) -> Warning {
        Warning {
            severity: Severity::Caution,
            what: self.what.to_owned(),
            remedy: self.remedy.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn reading(at: Instant) -> Reading {
        Reading {
            at,
            cpu: Some(CpuTime::default()),
            mhz: Some(2000.0),
            throttles: Some(4),
            celsius: Some(50.0),
            memory_wait_ns: Some(0),
            io_wait_ns: None,
        }
    }

    /// One second on two CPUs, changed by `change`.
    fn surroundings(change: impl FnOnce(&mut Reading)) -> Surroundings {
        let now = Instant::now();
        let mut last = reading(now + Duration::from_secs(1));
        last.cpu = Some(CpuTime {
            user_ns: SECOND,
            idle_ns: SECOND,
            ..CpuTime::default()
        });
        change(&mut last);
        Surroundings {
            first: reading(now),
            last: Some(last),
            log: None,
            messages: None,
        }
    }

    fn value(metrics: &[Measurement], def: MetricDef) -> Option<f64> {
        metrics
            .iter()
            .find(|m| m.metric == def.name)
            .map(|m| m.value)
    }

    fn warned_of(surroundings: &Surroundings, own_ns: u64) -> String {
        let metrics = surroundings.figures(own_ns, AttendantTimes::default());
        let warnings = surroundings.warnings(&metrics, false);
        warnings.iter().map(|w| w.what.as_str()).collect()
    }

    #[test]
    fn what_the_workload_did_not_use_was_used_by_others() {
        let metrics = surroundings(|_| {}).figures(SECOND / 2, AttendantTimes::default());
        assert_eq!(value(&metrics, FOREIGN), Some(25.0));
        assert_eq!(value(&metrics, STEAL), Some(0.0));
    }

    #[test]
    fn what_others_use_of_dom0_does_not_matter_to_guests() {
        let surroundings = surroundings(|_| {});
        let metrics = surroundings.figures(0, AttendantTimes::default());
        let of = |elsewhere| surroundings.warnings(&metrics, elsewhere);
        assert!(of(false)[0].what.starts_with("Other processes"));
        assert_eq!(of(true), []);
    }

    #[test]
    fn the_scheduler_and_the_kernel_are_no_strangers() {
        let surroundings = surroundings(|last| {
            last.cpu = Some(CpuTime {
                user_ns: SECOND,
                interrupt_ns: SECOND / 5,
                idle_ns: 4 * SECOND / 5,
                ..CpuTime::default()
            });
        });
        let attended = AttendantTimes {
            scheduler_ns: Some(SECOND / 10),
            kernel_ns: SECOND / 5,
        };
        let metrics = surroundings.figures(SECOND / 2, attended);
        assert_eq!(value(&metrics, FOREIGN), Some(10.0));
        assert_eq!(value(&metrics, KERNEL), Some(20.0));
        assert_eq!(value(&metrics, SCHEDULER), Some(5.0));
    }

    #[test]
    fn a_command_whose_work_others_did_is_marked_and_names_them() {
        let spent = |all_ns, reached_ns| Spent { all_ns, reached_ns };
        let marked = |own_ns, reached_ns| {
            let spent = spent(2 * SECOND, reached_ns);
            let metrics = surroundings(|_| {}).figures(own_ns, AttendantTimes::default());
            work_elsewhere(&metrics, spent, || vec!["dockerd".to_owned()]).unwrap()
        };
        let (mark, warning) = marked(SECOND / 10, 0);
        assert_eq!(mark.value, 1.0);
        assert!(warning.unwrap().what.contains("itself: dockerd."));
        // All of it by the command, or by the daemon that the arm is for.
        for (own_ns, reached_ns) in [(SECOND * 9 / 10, 0), (SECOND / 10, SECOND * 8 / 10)] {
            let (mark, warning) = marked(own_ns, reached_ns);
            assert_eq!((mark.value, warning), (0.0, None));
        }
        assert_eq!(work_elsewhere(&[], spent(2 * SECOND, 0), Vec::new), None);
        // A command of some milliseconds, beside a tick of somebody else.
        let metrics = surroundings(|_| {}).figures(0, AttendantTimes::default());
        let (mark, warning) = work_elsewhere(&metrics, spent(SECOND / 50, 0), Vec::new).unwrap();
        assert_eq!((mark.value, warning), (0.0, None));
    }

    #[test]
    fn a_quiet_machine_gives_no_warning() {
        assert_eq!(warned_of(&surroundings(|_| {}), SECOND), "");
    }

    #[test]
    fn each_reading_out_of_line_is_a_warning_that_names_its_metric() {
        let busy = surroundings(|_| {});
        assert!(warned_of(&busy, 0).contains("foreign_percent"));
        let slower = surroundings(|last| last.mhz = Some(1500.0));
        assert!(warned_of(&slower, SECOND).contains("cpu_mhz_change"));
        let hot = surroundings(|last| last.throttles = Some(5));
        assert!(warned_of(&hot, SECOND).contains("throttles"));
        let short = surroundings(|last| last.memory_wait_ns = Some(SECOND / 10));
        assert!(warned_of(&short, SECOND).contains("psi_memory_some"));
        let stolen = surroundings(|last| {
            last.cpu = Some(CpuTime {
                idle_ns: SECOND,
                steal_ns: SECOND / 10,
                ..CpuTime::default()
            });
        });
        assert!(warned_of(&stolen, 0).contains("steal_percent"));
    }

    #[test]
    fn what_the_kernel_said_is_counted_and_quoted() {
        let mut surroundings = surroundings(|_| {});
        surroundings.messages = Some(["a", "b", "c", "d"].map(str::to_owned).to_vec());
        let metrics = surroundings.figures(SECOND, AttendantTimes::default());
        assert_eq!(value(&metrics, LOG_LINES), Some(4.0));
        assert!(warned_of(&surroundings, SECOND).ends_with("a | b | c"));
    }

    #[test]
    fn what_this_machine_does_not_tell_is_absent_not_zero() {
        let metrics =
            surroundings(|last| last.throttles = None).figures(0, AttendantTimes::default());
        assert_eq!(value(&metrics, THROTTLES), None);
        assert_eq!(value(&metrics, IO_PRESSURE), None);
    }
}
