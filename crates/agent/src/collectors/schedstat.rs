//! `/proc/schedstat` within the window: what the scheduler did on each CPU, and its load
//! balancing in each domain. Most of it is counted only while `kernel.sched_schedstats` is on,
//! which is turned on for the trial and put back.

use super::def::{At, Collected, Collecting, CollectorDef, Lack, Start};
use crate::journal::Undo;
use collect::schedstat::{self, Schedstat};
use doors::written;
use model::{MetricDef, Severity, TrialFile, Warning};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SYSCTL: &str = "proc/sys/kernel/sched_schedstats";

const RUN_TIME: MetricDef = MetricDef::explaining(
    "schedstat_run_time",
    "s",
    "Time that tasks ran, all CPUs together (/proc/schedstat).",
);
const RUN_DELAY: MetricDef = MetricDef::explaining(
    "schedstat_run_delay",
    "s",
    "Time that runnable tasks of the machine waited for a CPU, all CPUs together.",
);

/// Counts that are sums over CPUs, by their columns.
const OF_CPUS: [(&str, MetricDef); 6] = [
    (
        "timeslices",
        MetricDef::explaining(
            "schedstat_timeslices",
            "count",
            "How often a task of the machine was given a CPU.",
        ),
    ),
    (
        "schedules",
        MetricDef::explaining(
            "schedstat_schedules",
            "count",
            "How often a CPU looked for its next task.",
        ),
    ),
    (
        "idle_schedules",
        MetricDef::explaining(
            "schedstat_idle_schedules",
            "count",
            "How often a CPU found none and became idle.",
        ),
    ),
    (
        "wakeups",
        MetricDef::explaining("schedstat_wakeups", "count", "Wake-ups of tasks."),
    ),
    (
        "local_wakeups",
        MetricDef::explaining(
            "schedstat_local_wakeups",
            "count",
            "Wake-ups of tasks that stayed on the CPU of whoever woke them.",
        ),
    ),
    (
        "yields",
        MetricDef::explaining("schedstat_yields", "count", "Calls of sched_yield(2)."),
    ),
];

/// Counts that are sums over domains, by their columns.
const OF_DOMAINS: [(&str, MetricDef); 8] = [
    (
        "lb_count",
        MetricDef::explaining(
            "schedstat_balances",
            "count",
            "How often a CPU looked whether to pull tasks from others.",
        ),
    ),
    (
        "lb_failed",
        MetricDef::explaining(
            "schedstat_balances_failed",
            "count",
            "How often it wanted to pull tasks and could not.",
        ),
    ),
    (
        "lb_gained",
        MetricDef::explaining(
            "schedstat_pulled",
            "count",
            "Tasks that load balancing pulled from another CPU.",
        ),
    ),
    (
        "lb_hot_gained",
        MetricDef::explaining(
            "schedstat_pulled_hot",
            "count",
            "Those of them whose memory was likely in the cache of the CPU that they left.",
        ),
    ),
    (
        "alb_pushed",
        MetricDef::explaining(
            "schedstat_pushed",
            "count",
            "Running tasks that active balancing pushed to another CPU.",
        ),
    ),
    (
        "ttwu_wake_remote",
        MetricDef::explaining(
            "schedstat_remote_wakeups",
            "count",
            "Tasks that were woken on another CPU than that of whoever woke them.",
        ),
    ),
    (
        "ttwu_move_affine",
        MetricDef::explaining(
            "schedstat_affine_wakeups",
            "count",
            "Tasks that were pulled to the CPU of whoever woke them.",
        ),
    ),
    (
        "ttwu_move_balance",
        MetricDef::explaining(
            "schedstat_balanced_wakeups",
            "count",
            "Tasks that were moved at their wake-up to balance the load.",
        ),
    ),
];

const METRICS: [MetricDef; 2 + OF_CPUS.len() + OF_DOMAINS.len()] = {
    let mut all = [RUN_TIME; 2 + OF_CPUS.len() + OF_DOMAINS.len()];
    all[1] = RUN_DELAY;
    let mut at = 0;
    while at < OF_CPUS.len() {
        all[2 + at] = OF_CPUS[at].1;
        at += 1;
    }
    at = 0;
    while at < OF_DOMAINS.len() {
        all[2 + OF_CPUS.len() + at] = OF_DOMAINS[at].1;
        at += 1;
    }
    all
};

pub const DEF: CollectorDef = CollectorDef {
    name: "schedstat",
    text: "run delay and load balancing of each CPU and domain (/proc/schedstat; on demand)",
    usual: false,
    metrics: &METRICS,
    logs: &[],
    limit: Duration::ZERO,
    missing,
    start: |at| Some(Box::new(Balancing::start(at))),
};

/// The kernel's switch for the counts that cost something.
#[derive(Debug, Default, PartialEq, Eq)]
enum Switch {
    /// It was on, or the kernel has none.
    #[default]
    Left,
    /// This collector turned it on; the file.
    TurnedOn(PathBuf),
    /// It is off, and this is why it stays so.
    Off(String),
}

#[derive(Debug)]
struct Balancing {
    switch: Switch,
    first: Option<Schedstat>,
    within: Result<Schedstat, String>,
}

impl Balancing {
    fn start(at: Start) -> Self {
        Balancing {
            switch: turn_on(at),
            first: None,
            within: Err("the window did not end".to_owned()),
        }
    }
}

fn turn_on(at: Start) -> Switch {
    let path = at.root.join(SYSCTL);
    if collect::read_trimmed(&path).as_deref() != Some("0") {
        return Switch::Left;
    }
    let undo = Undo::Write {
        path: path.clone(),
        text: "0".to_owned(),
    };
    if let Err(error) = at.journal.record(undo) {
        return Switch::Off(error.to_string());
    }
    match written::write_kernel_file(&path, "1") {
        Ok(()) => Switch::TurnedOn(path),
        Err(error) => Switch::Off(error.to_string()),
    }
}

impl Collecting for Balancing {
    fn begin_window(&mut self, at: &At) {
        self.first = schedstat::read(at.root).ok();
    }

    fn end_window(&mut self, at: &At) {
        let read = schedstat::read(at.root).map_err(|why| why.to_string());
        self.within = read.and_then(|last| {
            let first = self.first.as_ref();
            let first = first.ok_or("it could not be read when the window opened")?;
            Ok(last.counts_since(first))
        });
    }

    fn collected_results(&self) -> Collected {
        let mut collected = Collected::default();
        match &self.within {
            Ok(within) => {
                collected.metrics = figures(within, !matches!(self.switch, Switch::Off(_)));
                collected.files.push(TrialFile {
                    name: "schedstat.csv".to_owned(),
                    text: within.to_csv(),
                });
            }
            Err(why) => collected.warnings.push(caution(
                format!("schedstat was not collected: {why}"),
                "leave \"schedstat\" out of `collect`",
            )),
        }
        if let Switch::Off(why) = &self.switch {
            collected.warnings.push(caution(
                format!(
                    "kernel.sched_schedstats is 0 and could not be set ({why}): only run time, run \
                     delay and timeslices were counted"
                ),
                "run as root, or: sysctl kernel.sched_schedstats=1",
            ));
        }
        collected
    }

    /// The switch is put back. Where that fails, the journal has it still.
    fn stop(&mut self) -> Result<(), String> {
        if let Switch::TurnedOn(path) = &self.switch {
            let back = written::write_kernel_file(path, "0");
            back.map_err(|e| format!("write 0 to {}: {e}", path.display()))?;
            self.switch = Switch::Left;
        }
        Ok(())
    }
}

/// A trial that ends early never comes to `collected`.
impl Drop for Balancing {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!("{error}");
        }
    }
}

fn caution(what: String, remedy: &str) -> Warning {
    Warning {
        severity: Severity::Caution,
        what,
        remedy: remedy.to_owned(),
    }
}

/// While the switch is off, all but three columns stay at 0, and mean nothing.
fn figures(within: &Schedstat, is_on: bool) -> Vec<model::Measurement> {
    let seconds = |column| within.sum_of_cpus(column) as f64 / 1e9;
    let mut figures = vec![
        RUN_TIME.to_measurement(seconds("run_ns")),
        RUN_DELAY.to_measurement(seconds("wait_ns")),
    ];
    for (column, def) in OF_CPUS {
        if is_on || column == "timeslices" {
            figures.push(def.to_measurement(within.sum_of_cpus(column) as f64));
        }
    }
    if is_on {
        let of = |(column, def): &(&str, MetricDef)| {
            def.to_measurement(within.sum_of_domains(column) as f64)
        };
        figures.extend(OF_DOMAINS.iter().map(of));
    }
    figures
}

fn missing(root: &Path, _: Vec<PathBuf>) -> Lack {
    let remedy = "use a kernel that has it, or a VM: --vm debian:sid";
    let why = schedstat::read(root).err()?;
    Some((why.to_string(), remedy.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::Fence;
    use crate::interrupt::Interrupt;
    use crate::journal::Journal;
    use crate::process::Origin;
    use ::tests::tree;

    const FILE: &str = "version 16\ntimestamp 1\ncpu0 1 0 2 3 4 5 6000000000 7000000000 8\n";
    const LATER: &str = "version 16\ntimestamp 2\ncpu0 2 0 4 6 8 10 8000000000 7500000000 18\n";

    fn value(collected: &Collected, name: &str) -> Option<f64> {
        let found = collected.metrics.iter().find(|m| m.metric == name);
        found.map(|m| m.value)
    }

    /// A window over a tree of files, with the switch as it was.
    fn collected(switch: &str) -> (Collected, String, String) {
        let root = tree(&[("proc/schedstat", FILE), (SYSCTL, switch)]);
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        let mark = format!("schedstat-{}-{}", std::process::id(), switch.len());
        let fence = Fence::set_up(root.path(), mark, &mut journal).unwrap();
        let interrupt = Interrupt::new().unwrap();
        let mut collector = Balancing::start(Start {
            root: root.path(),
            origin: Origin {
                executable: Path::new("/proc/self/exe"),
                fence: &fence,
            },
            journal: &mut journal,
            interrupt: &interrupt,
            folders: state.path(),
            mark: "schedstat",
        });
        let at = At {
            root: root.path(),
            leaders: &[],
            interrupt: &interrupt,
        };
        let read = || std::fs::read_to_string(root.path().join(SYSCTL)).unwrap();
        collector.begin_window(&at);
        let within = read();
        std::fs::write(root.path().join("proc/schedstat"), LATER).unwrap();
        collector.end_window(&at);
        collector.stop().unwrap();
        (collector.collected_results(), within, read())
    }

    #[test]
    fn figures_are_those_of_the_window() {
        let (collected, _, _) = collected("1\n");
        assert_eq!(value(&collected, "schedstat_run_time"), Some(2.0));
        assert_eq!(value(&collected, "schedstat_run_delay"), Some(0.5));
        assert_eq!(value(&collected, "schedstat_timeslices"), Some(10.0));
        assert_eq!(value(&collected, "schedstat_wakeups"), Some(4.0));
        assert!(collected.files[0].text.starts_with("cpu,domain,name,mask,"));
        assert!(collected.warnings.is_empty());
    }

    #[test]
    fn the_switch_is_on_within_the_window_and_put_back() {
        let (_, within, after) = collected("0\n");
        assert_eq!((within.as_str(), after.as_str()), ("1", "0"));
        let (_, within, after) = collected("1\n");
        assert_eq!((within.as_str(), after.as_str()), ("1\n", "1\n"));
    }

    #[test]
    fn what_is_not_counted_while_the_switch_is_off_is_left_out() {
        let root = tree(&[("proc/schedstat", FILE)]);
        let read = schedstat::read(root.path()).unwrap();
        let names: Vec<String> = figures(&read, false)
            .into_iter()
            .map(|m| m.metric)
            .collect();
        let expected = [
            "schedstat_run_time",
            "schedstat_run_delay",
            "schedstat_timeslices",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_kernel_without_the_file_or_with_another_version_says_so() {
        let (what, _) = missing(tree(&[]).path(), Vec::new()).unwrap();
        assert!(what.contains("CONFIG_SCHEDSTATS"), "{what}");
        let root = tree(&[("proc/schedstat", "version 18\n")]);
        let (what, _) = missing(root.path(), Vec::new()).unwrap();
        assert!(what.contains("version 18"), "{what}");
        let root = tree(&[("proc/schedstat", FILE)]);
        assert_eq!(missing(root.path(), Vec::new()), None);
    }
}
