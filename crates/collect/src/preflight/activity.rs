//! Who else uses the CPUs: the whole machine and each process, watched for a while
//! (`/proc/stat`, `/proc/PID/stat`, `/proc/loadavg`).

use super::{Machine, Rule, Seen};
use crate::stat::{self, CpuTime};
use crate::tasks::{self, Pid};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Processes that are named.
const BUSIEST: usize = 3;
/// Below this share of the machine, processes and steal are left alone.
const NOTHING_PERCENT: f64 = 1.0;
/// The machine counts as busy from here on.
const BUSY_PERCENT: f64 = 5.0;

/// Activity of the machine while nothing was measured. `None`: /proc/stat cannot be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activity {
    /// Share of all CPUs that was busy or lost to the hypervisor.
    pub used: Option<Used>,
    /// Command and percent of one CPU, busiest first.
    pub busiest: Vec<(String, f64)>,
}

/// Shares of the CPU time of the machine, all CPUs together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// Share in which a task or an interrupt ran, in percent.
    pub busy_percent: f64,
    /// Share that the hypervisor gave to others, in percent.
    pub steal_percent: f64,
}

impl Activity {
    /// Watch the machine for `time`; it sleeps meanwhile.
    pub fn watch(root: &Path, time: Duration) -> Self {
        let machine = stat::read(root);
        let processes = times(root);
        std::thread::sleep(time);
        Activity {
            used: machine.and_then(|first| used(first, stat::read(root)?)),
            busiest: busiest(&processes, &times(root), time),
        }
    }
}

/// `None` where no time passed, as in a tree that does not change.
fn used(first: CpuTime, last: CpuTime) -> Option<Used> {
    let spent = last.time_since(first);
    let all = spent.total_ns() as f64;
    let percent = |ns: u64| 100.0 * ns as f64 / all;
    (all > 0.0).then(|| Used {
        busy_percent: percent(spent.busy_ns()),
        steal_percent: percent(spent.steal_ns),
    })
}

/// CPU time and command of every process but this one.
fn times(root: &Path) -> BTreeMap<Pid, (String, u64)> {
    let own = std::process::id() as Pid;
    tasks::list_processes(root)
        .into_iter()
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let stat = tasks::read_stat(root, pid)?;
            let cpu_ns = stat.cpu_ns();
            Some((pid, (stat.command, cpu_ns)))
        })
        .collect()
}

fn busiest(
    first: &BTreeMap<Pid, (String, u64)>,
    last: &BTreeMap<Pid, (String, u64)>,
    time: Duration,
) -> Vec<(String, f64)> {
    let mut by_command: BTreeMap<&str, f64> = BTreeMap::new();
    for (pid, (command, now_ns)) in last {
        // A process that began meanwhile counts from its start.
        let before_ns = first.get(pid).map_or(0, |(_, ns)| *ns);
        let used_ns = now_ns.saturating_sub(before_ns) as f64;
        *by_command.entry(command).or_default() += 100.0 * used_ns / time.as_nanos() as f64;
    }
    let mut found: Vec<(String, f64)> = by_command
        .into_iter()
        .filter(|(_, percent)| *percent >= NOTHING_PERCENT)
        .map(|(command, percent)| (command.to_owned(), percent))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.truncate(BUSIEST);
    found
}

/// Rule on the work of others: a caution above 5 % of the machine.
pub const BACKGROUND: Rule = Rule {
    name: "background-load",
    effect: "Other work takes CPUs away when it likes: more noise, so more blocks for the same \
             answer, and a scheduler is judged on a mix that nobody chose.",
    remedy: "stop the busiest processes, or measure when the machine is idle",
    look: background,
};

fn background(machine: &Machine) -> Seen {
    let Some(used) = machine.activity.used else {
        return Seen::Unknown("/proc/stat cannot be read");
    };
    let load = machine.read("proc/loadavg");
    let load = load.as_deref().and_then(|text| text.split(' ').next());
    let mut value = format!("{:.0} % busy", used.busy_percent);
    if let Some(load) = load {
        value.push_str(&format!(", load average {load}"));
    }
    for (command, percent) in &machine.activity.busiest {
        value.push_str(&format!(", {command} {percent:.0} %"));
    }
    if used.busy_percent > BUSY_PERCENT {
        return Seen::Caution(value, Vec::new());
    }
    Seen::Ok(value)
}

/// Rule on CPU time that the hypervisor gave to others: a caution above 1 % of the machine.
pub const STEAL: Rule = Rule {
    name: "steal",
    effect: "While the hypervisor runs someone else on our CPU, every task on it stands still, \
             and no scheduler can help it.",
    remedy: "a host without overcommitted CPUs, or virtual CPUs pinned to CPUs of their own",
    look: steal,
};

fn steal(machine: &Machine) -> Seen {
    let Some(used) = machine.activity.used else {
        return Seen::Unknown("/proc/stat cannot be read");
    };
    let value = format!("{:.1} % of the CPU time", used.steal_percent);
    if used.steal_percent > NOTHING_PERCENT {
        return Seen::Caution(value, Vec::new());
    }
    Seen::Ok(value)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_caution, machine};
    use super::*;
    use ::tests::tree;

    fn with_use(busy_percent: f64, steal_percent: f64) -> (tempfile::TempDir, Activity) {
        let activity = Activity {
            used: Some(Used {
                busy_percent,
                steal_percent,
            }),
            busiest: vec![("make".to_owned(), 87.4)],
        };
        (tree(&[("proc/loadavg", "1.5 1.0 0.5 2/99 7\n")]), activity)
    }

    #[test]
    fn a_busy_machine_is_a_caution_that_names_who_is_busy() {
        let (root, activity) = with_use(44.0, 0.0);
        let machine = Machine {
            activity,
            ..machine(root.path())
        };
        let finding = BACKGROUND.apply(&machine);
        assert!(is_caution(&finding));
        assert_eq!(
            finding.check.value,
            "44 % busy, load average 1.5, make 87 %"
        );
        assert!(!is_caution(&STEAL.apply(&machine)));
    }

    #[test]
    fn steal_is_a_caution_of_its_own() {
        let (root, activity) = with_use(1.0, 3.0);
        let machine = Machine {
            activity,
            ..machine(root.path())
        };
        assert!(is_caution(&STEAL.apply(&machine)));
        assert!(!is_caution(&BACKGROUND.apply(&machine)));
    }

    #[test]
    fn shares_are_of_the_time_of_all_cpus() {
        let first = CpuTime::default();
        let last = CpuTime {
            user_ns: 20,
            system_ns: 10,
            interrupt_ns: 0,
            idle_ns: 60,
            steal_ns: 10,
        };
        let used = used(first, last).unwrap();
        assert_eq!((used.busy_percent, used.steal_percent), (30.0, 10.0));
    }

    #[test]
    fn processes_of_one_name_are_added_up_and_sorted() {
        let second = Duration::from_secs(1);
        let process = |command: &str, ns| (command.to_owned(), ns);
        let first = BTreeMap::from([(1, process("cc", 0)), (2, process("sh", 5))]);
        let last = BTreeMap::from([
            (1, process("cc", 300_000_000)),
            (2, process("sh", 5)),
            (3, process("cc", 200_000_000)),
            (4, process("ld", 900_000_000)),
        ]);
        let found = busiest(&first, &last, second);
        assert_eq!(found, [("ld".to_owned(), 90.0), ("cc".to_owned(), 50.0)]);
    }

    #[test]
    fn this_machine_spends_time_while_it_is_watched() {
        let activity = Activity::watch(Path::new("/"), Duration::from_millis(50));
        let used = activity.used.unwrap();
        assert!((0.0..=100.0).contains(&used.busy_percent));
    }
}
