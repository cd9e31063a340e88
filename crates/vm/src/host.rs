//! Resources that the host can give a guest, and its load meanwhile: CPUs, memory
//! (`/proc/meminfo`), steal and load (`/proc/stat`, `/proc/loadavg`; proc(5)), and the time
//! that the vCPU threads waited for a CPU (`/proc/PID/task/TID/schedstat`).

use model::{Measurement, MetricDef, parse_cpu_list};
use std::time::Instant;

const STEAL: MetricDef = MetricDef::explaining(
    "host_steal",
    "%",
    "Time that a hypervisor below the host took from the host's CPUs during the trial.",
);
const VCPU_WAIT: MetricDef = MetricDef::explaining(
    "host_vcpu_wait",
    "%",
    "Time that the vCPU threads were runnable and waited for a CPU of the host, per vCPU.",
);
const PINNED: MetricDef = MetricDef::explaining(
    "host_pinned_cpus",
    "count",
    "CPUs of the host that the vCPU threads are pinned to; 0 when they are not pinned.",
);
const LOAD: MetricDef = MetricDef::explaining(
    "host_load_1min",
    "count",
    "The host's load average over one minute at the end of the trial.",
);

/// Model of the host's CPU, where its kernel has a name for it.
pub(crate) fn cpu_model() -> Option<String> {
    let text = doors::read::kernel_text("/proc/cpuinfo").ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, model) = fields.find(|(name, _)| name.trim() == "model name")?;
    Some(model.trim().to_owned())
}

/// CPUs that this process may run on.
pub(crate) fn usable_cpus() -> Vec<u32> {
    let status = doors::read::kernel_text("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    list.and_then(|list| parse_cpu_list(list).ok())
        .unwrap_or_else(|| vec![0])
}

/// Bytes that can be given away without swapping.
pub(crate) fn available_memory() -> Option<u64> {
    let text = doors::read::kernel_text("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Reads around a trial: each call covers the time since the one before.
#[derive(Debug)]
pub struct Watch {
    pid: u32,
    vcpus: Vec<i32>,
    pinned: usize,
    last: Counters,
}

#[derive(Debug, Clone, Copy)]
struct Counters {
    at: Instant,
    steal: u64,
    all: u64,
    /// Nanoseconds that the vCPU threads were runnable and did not run.
    vcpu_wait_ns: u64,
}

impl Watch {
    pub(crate) fn new(pid: u32, vcpus: Vec<i32>, pinned: usize) -> Self {
        let last = Counters::read(pid, &vcpus);
        Watch {
            pid,
            vcpus,
            pinned,
            last,
        }
    }

    /// Figures of the host since the last call, or since the watch was made. CPUs of the host and
    /// the threads of the guest have shares in percent of wall time; without `/proc/loadavg` there
    /// is no load average.
    pub fn readings(&mut self) -> Vec<Measurement> {
        let now = Counters::read(self.pid, &self.vcpus);
        let last = std::mem::replace(&mut self.last, now);
        let wall = now.at.duration_since(last.at).as_nanos() as f64 * self.vcpus.len() as f64;
        let waited = now.vcpu_wait_ns.saturating_sub(last.vcpu_wait_ns);
        let mut readings = vec![
            STEAL.to_measurement(percent(
                now.steal.saturating_sub(last.steal),
                now.all.saturating_sub(last.all) as f64,
            )),
            VCPU_WAIT.to_measurement(percent(waited, wall)),
            PINNED.to_measurement(self.pinned as f64),
        ];
        readings.extend(load_average().map(|load| LOAD.to_measurement(load)));
        readings
    }
}

fn percent(part: u64, whole: f64) -> f64 {
    if whole > 0.0 {
        part as f64 / whole * 100.0
    } else {
        0.0
    }
}

impl Counters {
    fn read(pid: u32, vcpus: &[i32]) -> Self {
        let stat = doors::read::kernel_text("/proc/stat").unwrap_or_default();
        let (steal, all) = cpu_times(&stat);
        let wait = |tid| {
            let text =
                doors::read::kernel_text(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        Counters {
            at: Instant::now(),
            steal,
            all,
            vcpu_wait_ns: vcpus.iter().filter_map(wait).sum(),
        }
    }
}

/// Steal and all time of the `cpu` line, in ticks. Guest time is part of user time.
fn cpu_times(stat: &str) -> (u64, u64) {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "));
    let ticks: Vec<u64> = line
        .into_iter()
        .flat_map(str::split_whitespace)
        .take(8)
        .map_while(|n| n.parse().ok())
        .collect();
    (ticks.get(7).copied().unwrap_or(0), ticks.iter().sum())
}

fn load_average() -> Option<f64> {
    let text = doors::read::kernel_text("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_field_and_guest_time_is_not_counted_twice() {
        let stat = "cpu  100 0 50 800 10 0 5 35 99 0\ncpu0 1 2 3\n";
        assert_eq!(cpu_times(stat), (35, 1000));
    }

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(!usable_cpus().is_empty());
        assert!(available_memory().is_some_and(|bytes| bytes > 0));
    }
}
