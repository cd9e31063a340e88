//! Which CPUs there are for the work, and what they are: SMT, isolation, affinity,
//! the CPU limit of the own cgroup, mitigations, and whose guest this is.

use super::{Machine, Rule, Seen};
use std::collections::BTreeMap;
use std::path::Path;

pub const VIRTUALISATION: Rule = Rule {
    name: "virtualisation",
    effect: "The CPUs of a guest are threads of its host: they can lose the CPU at any time, and \
             their wake-ups and timers cost an exit to the hypervisor.",
    remedy: "repeat on bare metal, or pin the virtual CPUs to host CPUs of their own",
    look: virtualisation,
};

fn virtualisation(machine: &Machine) -> Seen {
    match machine.hypervisor.as_str() {
        "none" => Seen::Ok("none".to_owned()),
        "tcg" => Seen::Caution("tcg: every instruction is emulated".to_owned(), Vec::new()),
        kind => Seen::Caution(format!("guest ({kind})"), Vec::new()),
    }
}

pub const SMT: Rule = Rule {
    name: "smt",
    effect: "Two threads of a core share it: a figure depends on whether the sibling was busy, \
             which a scheduler can steer; without SMT that part of its work is not tested.",
    remedy: "echo off > /sys/devices/system/cpu/smt/control (on: again as before)",
    look: smt,
};

fn smt(machine: &Machine) -> Seen {
    match (
        machine.number::<u32>("sys/devices/system/cpu/smt/active"),
        machine.read("sys/devices/system/cpu/smt/control"),
    ) {
        (Some(1), _) => Seen::Ok("on".to_owned()),
        (_, Some(control)) => Seen::Ok(format!("off ({control})")),
        (Some(_), None) => Seen::Ok("off".to_owned()),
        (None, None) => Seen::Unknown("the kernel does not tell"),
    }
}

pub const ISOLATION: Rule = Rule {
    name: "isolation",
    effect: "No task is balanced onto or away from isolated CPUs: there, a scheduler has nothing \
             to decide.",
    remedy: "leave isolcpus= and nohz_full= out of the kernel command line, and end the isolated \
             partitions of cpusets",
    look: isolation,
};

fn isolation(machine: &Machine) -> Seen {
    let Some(command_line) = machine.read("proc/cmdline") else {
        return Seen::Unknown("the kernel command line cannot be read");
    };
    let asked = command_line
        .split_ascii_whitespace()
        .filter(|word| word.starts_with("isolcpus=") || word.starts_with("nohz_full="));
    let mut found: Vec<String> = asked.map(str::to_owned).collect();
    let isolated = machine.read("sys/devices/system/cpu/isolated");
    if let Some(cpus) = isolated.filter(|cpus| !cpus.is_empty() && found.is_empty()) {
        found.push(format!("CPUs {cpus}"));
    }
    // An isolated partition is made while the kernel runs (Documentation/admin-guide/cgroup-v2.rst).
    let partitions = machine.read("sys/fs/cgroup/cpuset.cpus.isolated");
    if let Some(cpus) = partitions.filter(|cpus| !cpus.is_empty()) {
        found.push(format!("an isolated partition of CPUs {cpus}"));
    }
    if found.is_empty() {
        return Seen::Ok("none".to_owned());
    }
    Seen::Caution(found.join(" "), Vec::new())
}

pub const AFFINITY: Rule = Rule {
    name: "affinity",
    effect: "Work that may use only some of the CPUs shows a scheduler at a smaller machine than \
             this one.",
    remedy: "start from a shell without taskset, or name the CPUs in the experiment",
    look: affinity,
};

fn affinity(machine: &Machine) -> Seen {
    let online = machine.read("sys/devices/system/cpu/online");
    let Some(online) = online.and_then(|list| model::parse_cpu_list(&list).ok()) else {
        return Seen::Unknown("the kernel does not list its CPUs");
    };
    let usable = machine.usable_cpus as usize;
    let value = format!("{usable} of {} CPUs", online.len());
    if usable < online.len() {
        return Seen::Caution(value, Vec::new());
    }
    Seen::Ok(value)
}

pub const QUOTA: Rule = Rule {
    name: "cpu-quota",
    effect: "A cgroup with a CPU limit stops all its tasks for the rest of each period once it \
             is used up, which looks like stalls of tens of milliseconds.",
    remedy: "run outside of the limited container or slice, or raise its cpu.max",
    look: quota,
};

fn quota(machine: &Machine) -> Seen {
    let Some(text) = machine.read("proc/self/cgroup") else {
        return Seen::Unknown("the own cgroup cannot be read");
    };
    let limits: Vec<String> = text
        .lines()
        .filter_map(|line| limit_of(machine.root, line))
        .collect();
    match limits.first() {
        Some(limit) => Seen::Caution(limit.clone(), Vec::new()),
        None => Seen::Ok("none".to_owned()),
    }
}

/// The first limit on the way from the own cgroup up to the root, for one line
/// (`ID:CONTROLLERS:PATH`) of /proc/self/cgroup.
fn limit_of(root: &Path, line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let base = match controllers {
        "" => root.join("sys/fs/cgroup"),
        names if names.split(',').any(|name| name == "cpu") => {
            root.join("sys/fs/cgroup").join(names)
        }
        _ => return None,
    };
    let own = base.join(path.trim_start_matches('/'));
    own.ancestors()
        .take_while(|directory| directory.starts_with(&base))
        .find_map(limit_in)
}

/// `cpu.max` of version 2, `cpu.cfs_*` of version 1.
fn limit_in(directory: &Path) -> Option<String> {
    if let Some(text) = crate::read_trimmed(&directory.join("cpu.max")) {
        let (quota, period) = text.split_once(' ')?;
        return limit(quota.parse().ok()?, period.parse().ok()?);
    }
    let quota = crate::read_number::<i64>(&directory.join("cpu.cfs_quota_us"))?;
    let period = crate::read_number::<i64>(&directory.join("cpu.cfs_period_us"))?;
    limit(quota, period)
}

fn limit(quota_us: i64, period_us: i64) -> Option<String> {
    let percent = 100.0 * quota_us as f64 / period_us.max(1) as f64;
    (quota_us > 0).then(|| format!("{percent:.0} % of one CPU"))
}

pub const MITIGATIONS: Rule = Rule {
    name: "mitigations",
    effect: "Mitigations make entering the kernel and switching tasks slower: the same for every \
             arm, but not for two machines or two kernel command lines.",
    remedy: "mitigations=off on the kernel command line, on a machine that nobody else uses",
    look: mitigations,
};

fn mitigations(machine: &Machine) -> Seen {
    let directory = machine.root.join("sys/devices/system/cpu/vulnerabilities");
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Seen::Unknown("the kernel does not list its vulnerabilities");
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in entries.filter_map(|entry| crate::read_trimmed(&entry.ok()?.path())) {
        let kind = ["Mitigation", "Vulnerable"]
            .into_iter()
            .find(|kind| text.contains(kind));
        *counts.entry(kind.unwrap_or("not affected")).or_default() += 1;
    }
    let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    Seen::Ok(format!(
        "{} in force, {} vulnerable",
        count("Mitigation"),
        count("Vulnerable")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_caution, is_unknown, machine, seen};
    use super::*;
    use ::tests::tree;

    #[test]
    fn a_guest_is_a_caution_and_names_its_hypervisor() {
        let root = tree(&[]);
        let mut machine = machine(root.path());
        assert!(!is_caution(&VIRTUALISATION.apply(&machine)));
        machine.hypervisor = "kvm".to_owned();
        let finding = VIRTUALISATION.apply(&machine);
        assert!(is_caution(&finding) && finding.check.value.contains("kvm"));
    }

    #[test]
    fn smt_is_on_off_or_not_there() {
        let active = "sys/devices/system/cpu/smt/active";
        let control = "sys/devices/system/cpu/smt/control";
        let value = |files: &[(&str, &str)]| seen(&SMT, tree(files).path()).check.value;
        assert_eq!(value(&[(active, "1\n"), (control, "on\n")]), "on");
        assert_eq!(
            value(&[(active, "0\n"), (control, "notsupported\n")]),
            "off (notsupported)"
        );
        assert!(is_unknown(&seen(&SMT, tree(&[]).path())));
    }

    #[test]
    fn isolated_cpus_are_found_on_the_command_line_and_in_sysfs() {
        let quiet = tree(&[("proc/cmdline", "root=/dev/sda quiet\n")]);
        assert!(!is_caution(&seen(&ISOLATION, quiet.path())));
        let asked = tree(&[("proc/cmdline", "quiet isolcpus=2-3\n")]);
        assert_eq!(seen(&ISOLATION, asked.path()).check.value, "isolcpus=2-3");
        let found = tree(&[
            ("proc/cmdline", "quiet\n"),
            ("sys/devices/system/cpu/isolated", "2-3\n"),
        ]);
        assert_eq!(seen(&ISOLATION, found.path()).check.value, "CPUs 2-3");
    }

    #[test]
    fn isolation_with_flags_of_ticks_alone_and_by_a_cpuset_is_seen() {
        let value = |files: &[(&str, &str)]| {
            let found = seen(&ISOLATION, tree(files).path());
            assert!(is_caution(&found), "{files:?}");
            found.check.value
        };
        let flags = "quiet isolcpus=managed_irq,domain,2-3\n";
        let said = value(&[("proc/cmdline", flags)]);
        assert_eq!(said, "isolcpus=managed_irq,domain,2-3");
        let ticks = value(&[("proc/cmdline", "nohz_full=1 rcu_nocbs=1\n")]);
        assert_eq!(ticks, "nohz_full=1");
        let partition = ("sys/fs/cgroup/cpuset.cpus.isolated", "4-5\n");
        let by_cpuset = value(&[("proc/cmdline", "quiet\n"), partition]);
        assert_eq!(by_cpuset, "an isolated partition of CPUs 4-5");
        let none = ("sys/fs/cgroup/cpuset.cpus.isolated", "\n");
        let quiet = tree(&[("proc/cmdline", "quiet\n"), none]);
        assert!(!is_caution(&seen(&ISOLATION, quiet.path())));
    }

    #[test]
    fn a_process_kept_to_some_cpus_is_a_caution() {
        let online = "sys/devices/system/cpu/online";
        assert!(is_caution(&seen(
            &AFFINITY,
            tree(&[(online, "0-3\n")]).path()
        )));
        assert!(!is_caution(&seen(
            &AFFINITY,
            tree(&[(online, "0-1\n")]).path()
        )));
    }

    #[test]
    fn the_limit_of_a_parent_cgroup_counts_in_both_versions() {
        let second = tree(&[
            ("proc/self/cgroup", "0::/slice/own\n"),
            ("sys/fs/cgroup/slice/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/slice/own/cpu.max", "max 100000\n"),
        ]);
        let finding = seen(&QUOTA, second.path());
        assert_eq!(finding.check.value, "150 % of one CPU");
        let first = tree(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/own\n3:memory:/own\n"),
            ("sys/fs/cgroup/cpu,cpuacct/own/cpu.cfs_quota_us", "50000\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/own/cpu.cfs_period_us",
                "100000\n",
            ),
        ]);
        assert_eq!(seen(&QUOTA, first.path()).check.value, "50 % of one CPU");
    }

    #[test]
    fn a_cgroup_without_a_limit_is_fine() {
        let root = tree(&[
            ("proc/self/cgroup", "4:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(seen(&QUOTA, root.path()).check.value, "none");
    }

    #[test]
    fn mitigations_are_counted_by_kind() {
        let directory = "sys/devices/system/cpu/vulnerabilities";
        let root = tree(&[
            (&format!("{directory}/mds"), "Not affected\n"),
            (&format!("{directory}/spectre_v1"), "Mitigation: barriers\n"),
            (&format!("{directory}/srso"), "Vulnerable: no microcode\n"),
        ]);
        let finding = seen(&MITIGATIONS, root.path());
        assert_eq!(finding.check.value, "1 in force, 1 vulnerable");
    }
}
