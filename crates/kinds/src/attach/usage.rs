//! The kernel's figures of the threads of a service: how long they ran and waited for a CPU, and how
//! often they changed.

use collect::daemon;
use collect::delays::{self, Delays};
use collect::tasks::{self, Pid};
use model::{Better, Daemon, MetricDef};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Mean wait for a CPU.
pub const WAIT_PER_RUN: MetricDef = MetricDef {
    name: "wait_per_run",
    unit: "ns",
    better: Better::Lower,
    text: "Mean time that a thread of the service was runnable and waited for a CPU, each time before \
           it ran.",
};
/// Share of time in which threads wait.
pub const WAITING: MetricDef = MetricDef::explaining(
    "service_waiting",
    "%",
    "Time in which threads of the service waited for a CPU, all together, of the time of the window.",
);
/// Share of time in which threads run.
pub const CPU: MetricDef =
    MetricDef::explaining("service_cpu", "%", "CPU time of the service, of one CPU.");
/// Switches of threads.
pub const SWITCHES: MetricDef = MetricDef::explaining(
    "service_switches_per_sec",
    "1/s",
    "Context switches of the service's threads.",
);
/// Moves of threads.
pub const MIGRATIONS: MetricDef = MetricDef::explaining(
    "service_migrations_per_sec",
    "1/s",
    "Moves of the service's threads to another CPU.",
);
/// All of them, the one that decides first.
pub const METRICS: [MetricDef; 5] = [WAIT_PER_RUN, WAITING, CPU, SWITCHES, MIGRATIONS];

/// Counts of one thread since it began.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    delays: Delays,
    switches: u64,
    migrations: Option<u64>,
}

impl Counts {
    fn read(root: &Path, pid: Pid, tid: Pid) -> Option<Self> {
        let switches = tasks::read_switches(root, pid, tid)?;
        Some(Counts {
            delays: delays::read(root, pid, tid)?,
            switches: switches.voluntary + switches.involuntary,
            migrations: tasks::read_migrations(root, pid, tid),
        })
    }

    fn add_since(&mut self, earlier: Counts, now: Counts) {
        let since = now.delays.count_since(earlier.delays);
        self.delays = [self.delays, since].into_iter().sum();
        self.switches += now.switches.saturating_sub(earlier.switches);
        if let Some(moves) = now.migrations {
            let since = moves.saturating_sub(earlier.migrations.unwrap_or(0));
            self.migrations = Some(self.migrations.unwrap_or(0) + since);
        }
    }
}

/// All threads of a service at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    at: Instant,
    processes: Vec<Pid>,
    threads: BTreeMap<Pid, Counts>,
}

impl Reading {
    /// The threads that are there now. An error where the service does not run.
    pub fn take(root: &Path, service: &Daemon) -> Result<Self, String> {
        let found = daemon::find(root, service).map_err(|e| e.to_string())?;
        let at = Instant::now();
        let mut threads = BTreeMap::new();
        for pid in &found.processes {
            let tids = tasks::list_threads(root, *pid).into_iter();
            let counts = tids.filter_map(|tid| Some((tid, Counts::read(root, *pid, tid)?)));
            threads.extend(counts);
        }
        Ok(Reading {
            at,
            processes: found.processes,
            threads,
        })
    }

    /// The moment at which the threads were read.
    pub fn taken_at(&self) -> Instant {
        self.at
    }

    /// Figures from an earlier reading to this one, in the order of [`METRICS`]. An error where none of
    /// the processes of then is left. A thread that ended in between takes its part along.
    pub fn figures_since(&self, earlier: &Reading) -> Result<Vec<(MetricDef, f64)>, String> {
        if !self
            .processes
            .iter()
            .any(|pid| earlier.processes.contains(pid))
        {
            return Err("the service was started anew within the window".to_owned());
        }
        let mut sum = Counts::default();
        for (tid, now) in &self.threads {
            sum.add_since(earlier.threads.get(tid).copied().unwrap_or_default(), *now);
        }
        let ns = self.at.duration_since(earlier.at).as_nanos().max(1) as f64;
        let per_sec = |count: u64| 1e9 * count as f64 / ns;
        let percent = |time_ns: u64| 100.0 * time_ns as f64 / ns;
        let delays = sum.delays;
        let mean =
            (delays.timeslices > 0).then(|| delays.wait_ns as f64 / delays.timeslices as f64);
        let values = [
            mean,
            Some(percent(delays.wait_ns)),
            Some(percent(delays.run_ns)),
            Some(per_sec(sum.switches)),
            sum.migrations.map(per_sec),
        ];
        let figures = METRICS.into_iter().zip(values);
        Ok(figures
            .filter_map(|(def, value)| Some((def, value?)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_burns_uses_a_cpu_and_one_that_is_not_there_is_said_to_be_gone() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let root = Path::new("/");
        // What this process started is refused as schedlab's own, so it is read without being found.
        let take = || Reading {
            at: Instant::now(),
            processes: vec![pid],
            threads: BTreeMap::from([(pid, Counts::read(root, pid, pid).unwrap())]),
        };
        let first = take();
        let figure = loop {
            let figures = take().figures_since(&first).unwrap();
            let cpu = figures.iter().find(|(def, _)| def.name == CPU.name);
            match cpu.map(|(_, value)| *value) {
                Some(value) if value > 0.0 => break value,
                _ => std::thread::yield_now(),
            }
        };
        assert!(figure < 1000.0, "{figure}");
        let other = Reading {
            processes: vec![1],
            ..take()
        };
        assert!(other.figures_since(&first).unwrap_err().contains("anew"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(Reading::take(root, &Daemon::Pid(pid)).is_err());
    }
}
