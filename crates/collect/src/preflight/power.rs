//! Frequency, idle states and heat: `/sys/devices/system/cpu/{cpufreq,cpuidle,
//! intel_pstate}` and `cpuN/{cpuidle,thermal_throttle}`
//! (Documentation/admin-guide/pm, Documentation/ABI/testing/sysfs-devices-system-cpu).

use super::{Machine, Rule, Seen, Write, share};
use crate::{read_number, read_trimmed};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const CPUS: &str = "sys/devices/system/cpu";

pub const GOVERNOR: Rule = Rule {
    name: "governor",
    effect: "A governor that follows the load makes each figure depend on how busy the CPU was \
             just before, and so on the scheduler's habits twice.",
    remedy: "echo performance | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    look: governor,
};

fn governor(machine: &Machine) -> Seen {
    let files = machine.each(
        "sys/devices/system/cpu/cpufreq",
        "policy",
        "scaling_governor",
    );
    if files.is_empty() {
        return Seen::Unknown("no cpufreq: the firmware or the host decides");
    }
    let slow: Vec<&PathBuf> = files
        .iter()
        .filter(|file| read_trimmed(file).as_deref() != Some("performance"))
        .collect();
    let found: BTreeSet<String> = files.iter().filter_map(|file| read_trimmed(file)).collect();
    let value = found.into_iter().collect::<Vec<_>>().join(", ");
    if slow.is_empty() {
        return Seen::Ok(value);
    }
    let value = format!("{value} ({} policies)", share(slow.len(), files.len()));
    let can = |file: &&&PathBuf| offers(file, "performance");
    let writes = slow.iter().filter(can);
    Seen::Caution(
        value,
        writes
            .map(|file| Write::new((*file).clone(), "performance"))
            .collect(),
    )
}

/// Is `governor` among those that this policy can have?
fn offers(file: &Path, governor: &str) -> bool {
    let available = read_trimmed(&file.with_file_name("scaling_available_governors"));
    available.is_none_or(|names| names.split_ascii_whitespace().any(|name| name == governor))
}

pub const TURBO: Rule = Rule {
    name: "turbo",
    effect: "Turbo lends speed as long as heat and idle neighbours allow: the first trials, and \
             those with few busy CPUs, are faster than the rest.",
    remedy: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or \
             echo 0 > /sys/devices/system/cpu/cpufreq/boost",
    look: turbo,
};

fn turbo(machine: &Machine) -> Seen {
    // The file, and the text that means "no turbo".
    let switches = [
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
        ("sys/devices/system/cpu/cpufreq/boost", "0"),
    ];
    for (path, off) in switches {
        match machine.read(path) {
            Some(text) if text == off => return Seen::Ok("off".to_owned()),
            Some(_) => {
                let write = Write::new(machine.root.join(path), off);
                return Seen::Caution("on".to_owned(), vec![write]);
            }
            None => {}
        }
    }
    Seen::Unknown("no switch for it: the firmware or the host decides")
}

/// Leaving a state that takes longer than this is seen in wakeup latencies, which
/// are some microseconds on an idle CPU.
const DEEP_US: u64 = 20;

pub const IDLE_STATES: Rule = Rule {
    name: "idle-states",
    effect: "Waking a CPU from a deep idle state takes up to hundreds of microseconds, which \
             counts as wakeup latency and favours whatever keeps CPUs from idling.",
    remedy: "cpupower idle-set -D 20, or echo 1 | tee \
             /sys/devices/system/cpu/cpu*/cpuidle/stateN/disable for each deep state N",
    look: idle_states,
};

/// An idle state of one CPU.
struct IdleState {
    directory: PathBuf,
    name: String,
    latency_us: u64,
    disabled: bool,
}

fn idle_states(machine: &Machine) -> Seen {
    let cpus = machine.each(CPUS, "cpu", "cpuidle");
    let states: Vec<IdleState> = cpus.iter().flat_map(|cpu| states_of(cpu)).collect();
    if states.is_empty() {
        return Seen::Unknown("no cpuidle: the firmware or the host decides");
    }
    let enabled = || states.iter().filter(|state| !state.disabled);
    let value = match enabled().max_by_key(|state| state.latency_us) {
        Some(deepest) => format!("deepest {} ({} us)", deepest.name, deepest.latency_us),
        None => "none enabled".to_owned(),
    };
    let deep = enabled().filter(|state| state.latency_us > DEEP_US);
    let writes: Vec<Write> = deep
        .map(|state| Write::new(state.directory.join("disable"), "1"))
        .collect();
    if writes.is_empty() {
        return Seen::Ok(value);
    }
    Seen::Caution(value, writes)
}

fn states_of(cpuidle: &Path) -> Vec<IdleState> {
    let directory = |number| cpuidle.join(format!("state{number}"));
    let states = (0..).map(directory).take_while(|d| d.exists());
    states
        .filter_map(|directory| {
            Some(IdleState {
                name: read_trimmed(&directory.join("name"))?,
                latency_us: read_number(&directory.join("latency"))?,
                disabled: read_number::<u64>(&directory.join("disable"))? != 0,
                directory,
            })
        })
        .collect()
}

pub const THROTTLING: Rule = Rule {
    name: "throttling",
    effect: "A CPU that became too hot runs slower until it has cooled down, whichever arm is \
             under test then.",
    remedy: "better cooling, a lower power limit, or turbo off",
    look: throttling,
};

fn throttling(machine: &Machine) -> Seen {
    match crate::thermal::throttle_count(machine.root) {
        None => Seen::Unknown("the kernel counts no throttling here"),
        Some(0) => Seen::Ok("never since boot".to_owned()),
        Some(count) => Seen::Caution(format!("{count} times since boot"), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_caution, is_unknown, seen, writes};
    use super::*;
    use ::tests::tree;

    const POLICY0: &str = "sys/devices/system/cpu/cpufreq/policy0";
    const POLICY1: &str = "sys/devices/system/cpu/cpufreq/policy1";

    #[test]
    fn a_governor_is_changed_only_where_it_is_another() {
        let (fast, slow) = (
            format!("{POLICY0}/scaling_governor"),
            format!("{POLICY1}/scaling_governor"),
        );
        let root = tree(&[(&fast, "performance\n"), (&slow, "schedutil\n")]);
        let finding = seen(&GOVERNOR, root.path());
        assert_eq!(
            finding.check.value,
            "performance, schedutil (1 of 2 policies)"
        );
        assert_eq!(writes(&finding, root.path()), [(slow, "performance")]);
    }

    #[test]
    fn a_governor_that_the_driver_does_not_have_is_not_written() {
        let root = tree(&[
            (&format!("{POLICY0}/scaling_governor"), "schedutil\n"),
            (
                &format!("{POLICY0}/scaling_available_governors"),
                "schedutil powersave\n",
            ),
        ]);
        let finding = seen(&GOVERNOR, root.path());
        assert!(is_caution(&finding) && finding.fix.is_empty());
    }

    #[test]
    fn turbo_has_two_switches_of_opposite_meaning() {
        for (path, on, off) in [
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n", "1"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n", "0"),
        ] {
            let root = tree(&[(path, on)]);
            let finding = seen(&TURBO, root.path());
            assert_eq!(writes(&finding, root.path()), [(path.to_owned(), off)]);
            assert!(!is_caution(&seen(&TURBO, tree(&[(path, off)]).path())));
        }
        assert!(is_unknown(&seen(&TURBO, tree(&[]).path())));
    }

    #[test]
    fn only_idle_states_that_take_long_to_leave_are_disabled() {
        let state = |number: u32, name: &'static str, latency: &'static str| {
            let directory = format!("sys/devices/system/cpu/cpu0/cpuidle/state{number}");
            [
                (format!("{directory}/name"), name),
                (format!("{directory}/latency"), latency),
                (format!("{directory}/disable"), "0\n"),
            ]
        };
        let files = [state(0, "POLL\n", "0\n"), state(1, "C6\n", "133\n")].concat();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let root = tree(&files);
        let finding = seen(&IDLE_STATES, root.path());
        assert_eq!(finding.check.value, "deepest C6 (133 us)");
        let disable = "sys/devices/system/cpu/cpu0/cpuidle/state1/disable";
        assert_eq!(writes(&finding, root.path()), [(disable.to_owned(), "1")]);
    }

    #[test]
    fn a_cpu_that_was_throttled_once_is_a_caution() {
        let path = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
        assert!(is_caution(&seen(
            &THROTTLING,
            tree(&[(path, "2\n")]).path()
        )));
        assert!(!is_caution(&seen(
            &THROTTLING,
            tree(&[(path, "0\n")]).path()
        )));
        assert!(is_unknown(&seen(&THROTTLING, tree(&[]).path())));
    }
}
