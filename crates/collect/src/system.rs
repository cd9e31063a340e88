//! The machine as it is found: kernel, CPU, memory, and what is known to move
//! figures (governor, SMT, mitigations, clock source, …).
//!
//! From /proc, /sys, uname(2), sched_getaffinity(2) and the CPUID instruction.

use crate::machine::{find_hypervisor, usable_cpus};
use crate::{find_chosen, kernel_config, preflight, read_trimmed, sched_ext, tools};
use model::{Program, System};
use rustix::system::uname;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Facts that are one line of one file.
const FILES: &[(&str, &str)] = &[
    ("cpu.boost", "sys/devices/system/cpu/cpufreq/boost"),
    (
        "cpu.driver",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
    ),
    (
        "cpu.governor",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ),
    (
        "cpu.idle-driver",
        "sys/devices/system/cpu/cpuidle/current_driver",
    ),
    ("cpu.isolated", "sys/devices/system/cpu/isolated"),
    (
        "cpu.no-turbo",
        "sys/devices/system/cpu/intel_pstate/no_turbo",
    ),
    ("cpu.online", "sys/devices/system/cpu/online"),
    ("cpu.smt", "sys/devices/system/cpu/smt/control"),
    (
        "clock.source",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    ("kernel.tainted", "proc/sys/kernel/tainted"),
    (
        "kernel.perf-event-paranoid",
        "proc/sys/kernel/perf_event_paranoid",
    ),
    ("memory.swappiness", "proc/sys/vm/swappiness"),
    ("numa.balancing", "proc/sys/kernel/numa_balancing"),
    ("numa.online", "sys/devices/system/node/online"),
    ("sched.autogroup", "proc/sys/kernel/sched_autogroup_enabled"),
    ("sched.rt-period-us", "proc/sys/kernel/sched_rt_period_us"),
    ("sched.rt-runtime-us", "proc/sys/kernel/sched_rt_runtime_us"),
    ("sched.schedstats", "proc/sys/kernel/sched_schedstats"),
];

/// Facts that are the `[chosen]` word of a file.
const CHOICES: &[(&str, &str)] = &[
    ("kernel.lockdown", "sys/kernel/security/lockdown"),
    ("memory.thp", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("sched.preempt", "sys/kernel/debug/sched/preempt"),
];

/// Read everything, also the versions of the programs; takes [`preflight::WATCH`]. `cpus` counts those that this process may run on.
pub fn probe_system(root: &Path, programs: &[Program]) -> System {
    let names = uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    System {
        hostname: text(names.nodename()),
        kernel_release: text(names.release()),
        kernel_version: text(names.version()),
        kernel_command_line: read_trimmed(&root.join("proc/cmdline")).unwrap_or_default(),
        architecture: text(names.machine()),
        cpu_model: cpu_info(root, "model name").unwrap_or_else(|| "unknown".to_owned()),
        cpus: usable_cpus(),
        memory_bytes: memory_bytes(root).unwrap_or(0),
        sched_ext: sched_ext::is_supported(root),
        root: rustix::process::geteuid().is_root(),
        hypervisor: find_hypervisor(root),
        facts: facts(root, programs),
        preflight: preflight::run_checks(root),
    }
}

fn facts(root: &Path, programs: &[Program]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for (name, path) in FILES {
        add(&mut facts, name, read_trimmed(&root.join(path)));
    }
    for (name, path) in CHOICES {
        let chosen = read_trimmed(&root.join(path)).and_then(|text| find_chosen(&text));
        add(&mut facts, name, chosen);
    }
    add(&mut facts, "cpu.microcode", cpu_info(root, "microcode"));
    for name in kernel_config::OPTIONS {
        add(
            &mut facts,
            &format!("config.{name}"),
            kernel_config::read(root, name),
        );
    }
    facts.extend(mitigations(root));
    facts.extend(debugfs_knobs(root));
    facts.extend(tools::find_versions(programs));
    facts
}

fn add(facts: &mut BTreeMap<String, String>, name: &str, value: Option<String>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        facts.insert(name.to_owned(), value);
    }
}

/// One line of /proc/cpuinfo, of the first CPU.
fn cpu_info(root: &Path, key: &str) -> Option<String> {
    let text = doors::read::kernel_text(root.join("proc/cpuinfo")).ok()?;
    let (_, value) = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned())
}

fn memory_bytes(root: &Path) -> Option<u64> {
    let text = doors::read::kernel_text(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// `mitigation.retbleed` and so on, in the kernel's words.
fn mitigations(root: &Path) -> BTreeMap<String, String> {
    files_of(
        &root.join("sys/devices/system/cpu/vulnerabilities"),
        "mitigation",
    )
}

/// `sched.base_slice_ns` and so on, where debugfs can be read.
fn debugfs_knobs(root: &Path) -> BTreeMap<String, String> {
    let mut knobs = files_of(&root.join("sys/kernel/debug/sched"), "sched");
    knobs.retain(|_, value| !value.contains('\n'));
    // Already given in the reader's form.
    knobs.remove("sched.preempt");
    knobs
}

fn files_of(directory: &Path, prefix: &str) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return BTreeMap::new();
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let value = read_trimmed(&entry.path())?;
            Some((format!("{prefix}.{}", entry.file_name().to_str()?), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    #[test]
    fn facts_come_from_the_tree() {
        let root = tree(&[
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "schedutil\n",
            ),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            (
                "sys/devices/system/cpu/vulnerabilities/retbleed",
                "Not affected\n",
            ),
            ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
            (
                "sys/kernel/debug/sched/preempt",
                "none voluntary (full) lazy\n",
            ),
            ("sys/kernel/debug/sched/debug", "many\nlines\n"),
        ]);
        let facts = facts(root.path(), &[]);
        let fact = |name: &str| facts.get(name).map(String::as_str);
        assert_eq!(fact("cpu.governor"), Some("schedutil"));
        assert_eq!(fact("memory.thp"), Some("madvise"));
        assert_eq!(fact("mitigation.retbleed"), Some("Not affected"));
        assert_eq!(fact("sched.base_slice_ns"), Some("2800000"));
        assert_eq!(fact("sched.preempt"), Some("full"));
        assert_eq!(fact("sched.debug"), None);
        assert_eq!(fact("cpu.boost"), None);
    }

    #[test]
    fn cpu_and_memory_are_read() {
        let root = tree(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n",
            ),
            ("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n"),
        ]);
        let system = probe_system(root.path(), &[]);
        assert_eq!(system.cpu_model, "AMD EPYC");
        assert_eq!(system.memory_bytes, 1024 * 1024);
        assert!(!system.sched_ext);
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let system = probe_system(Path::new("/"), &[]);
        assert!(system.cpus >= 1);
        assert!(!system.kernel_release.is_empty());
    }
}
