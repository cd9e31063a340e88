//! Rules about the kernel's work beside running tasks, and about what it lets us see:
//! balancing, interrupts, clocks, the tick, perf events, lockdown.

use super::{Machine, Rule, Seen, Write};
use crate::{kernel_config, sched_ext, tasks};

/// A switch that is best at 0. `absent` is said where the kernel does not have it.
fn best_off(machine: &Machine, path: &str, absent: &'static str) -> Seen {
    match machine.number::<u32>(path) {
        None => Seen::Ok(absent.to_owned()),
        Some(0) => Seen::Ok("off".to_owned()),
        Some(_) => Seen::Caution(
            "on".to_owned(),
            vec![Write::new(machine.root.join(path), "0")],
        ),
    }
}

pub const SCHED_EXT: Rule = Rule {
    name: "sched-ext",
    effect: "Another sched_ext scheduler would run the tasks of every arm, the baseline too.",
    remedy: "stop the program that loaded it, for example: systemctl stop scx",
    look: other_scheduler,
};

fn other_scheduler(machine: &Machine) -> Seen {
    match sched_ext::read(machine.root) {
        None => Seen::Ok("not in this kernel".to_owned()),
        Some(state) if state.state == "disabled" => Seen::Ok("none attached".to_owned()),
        Some(state) => Seen::Caution(format!("{} is {}", state.ops, state.state), Vec::new()),
    }
}

pub const AUTOGROUP: Rule = Rule {
    name: "autogroup",
    effect: "CPU time is shared between sessions before it is shared between tasks: one busy \
             shell weighs as much as all threads of the work, and nice counts only inside a \
             session.",
    remedy: "sysctl -w kernel.sched_autogroup_enabled=0",
    look: autogroup,
};

fn autogroup(machine: &Machine) -> Seen {
    let path = "proc/sys/kernel/sched_autogroup_enabled";
    best_off(machine, path, "not in this kernel")
}

pub const NUMA_BALANCING: Rule = Rule {
    name: "numa-balancing",
    effect: "The kernel moves pages and tasks between nodes while it learns who uses what: slow \
             drifts and page faults that have nothing to do with an arm.",
    remedy: "sysctl -w kernel.numa_balancing=0",
    look: numa_balancing,
};

fn numa_balancing(machine: &Machine) -> Seen {
    let nodes = machine.each("sys/devices/system/node", "node", "cpulist");
    if nodes.len() < 2 {
        return Seen::Ok("one node".to_owned());
    }
    let path = "proc/sys/kernel/numa_balancing";
    best_off(machine, path, "not in this kernel")
}

pub const IRQBALANCE: Rule = Rule {
    name: "irqbalance",
    effect: "It moves interrupts to other CPUs every ten seconds, so that the CPU that serves \
             them differs from trial to trial.",
    remedy: "systemctl stop irqbalance (start it again afterwards)",
    look: irqbalance,
};

fn irqbalance(machine: &Machine) -> Seen {
    let pids = tasks::list_processes(machine.root);
    if pids.is_empty() {
        return Seen::Unknown("processes cannot be listed");
    }
    let mut commands = pids
        .into_iter()
        .filter_map(|pid| machine.read(&format!("proc/{pid}/comm")));
    if commands.any(|command| command == "irqbalance") {
        return Seen::Caution("running".to_owned(), Vec::new());
    }
    Seen::Ok("not running".to_owned())
}

pub const SCHEDSTATS: Rule = Rule {
    name: "schedstats",
    effect: "The kernel counts every wake-up and wait of every task, which costs up to a few \
             percent where switches are many.",
    remedy: "sysctl -w kernel.sched_schedstats=0",
    look: schedstats,
};

fn schedstats(machine: &Machine) -> Seen {
    let path = "proc/sys/kernel/sched_schedstats";
    best_off(machine, path, "not in this kernel")
}

pub const CLOCK_SOURCE: Rule = Rule {
    name: "clock-source",
    effect: "A clock that is read over a bus or by an exit to the hypervisor costs a microsecond \
             or more each time, in every latency and in the scheduler itself.",
    remedy: "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
    look: clock_source,
};

/// Clocks that are read in a few nanoseconds without leaving user space.
const FAST_CLOCKS: &[&str] = &[
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "riscv_clocksource",
    "timebase",
    "tod",
];

fn clock_source(machine: &Machine) -> Seen {
    let directory = "sys/devices/system/clocksource/clocksource0";
    let current = format!("{directory}/current_clocksource");
    let Some(name) = machine.read(&current) else {
        return Seen::Unknown("the kernel does not name its clock");
    };
    if FAST_CLOCKS.contains(&name.as_str()) {
        return Seen::Ok(name);
    }
    let available = machine.read(&format!("{directory}/available_clocksource"));
    let fast = available.as_deref().and_then(|names| {
        let mut names = names.split_ascii_whitespace();
        names.find(|name| FAST_CLOCKS.contains(name))
    });
    let write = fast.map(|fast| Write::new(machine.root.join(&current), fast));
    Seen::Caution(name, write.into_iter().collect())
}

pub const TICK: Rule = Rule {
    name: "tick",
    effect: "Preemption at the end of a slice and CPU time in /proc are only as fine as the \
             tick: 4 ms at 250 Hz, 1 ms at 1000 Hz.",
    remedy: "a kernel built with another CONFIG_HZ",
    look: tick,
};

fn tick(machine: &Machine) -> Seen {
    match kernel_config::read(machine.root, "CONFIG_HZ") {
        Some(hz) => Seen::Ok(format!("{hz} Hz")),
        None => Seen::Unknown("the kernel's configuration is not on this machine"),
    }
}

pub const PERF_EVENTS: Rule = Rule {
    name: "perf-events",
    effect: "Without the right to count perf events, reports have no switches, migrations or \
             cache misses to explain a difference.",
    remedy: "sysctl -w kernel.perf_event_paranoid=1, or run as root",
    look: perf_events,
};

fn perf_events(machine: &Machine) -> Seen {
    let Some(level) = machine.number::<i32>("proc/sys/kernel/perf_event_paranoid") else {
        return Seen::Unknown("this kernel has no perf events");
    };
    if machine.is_root || level <= 1 {
        return Seen::Ok(format!("allowed (paranoid {level})"));
    }
    Seen::Caution(format!("not allowed (paranoid {level})"), Vec::new())
}

pub const LOCKDOWN: Rule = Rule {
    name: "lockdown",
    effect: "A locked-down kernel refuses debugfs, where tunables such as base_slice are, and at \
             the level `confidentiality` also most of BPF.",
    remedy: "boot without lockdown= and secure boot, or run in a virtual machine: `--vm debian:sid`",
    look: lockdown,
};

fn lockdown(machine: &Machine) -> Seen {
    let Some(text) = machine.read("sys/kernel/security/lockdown") else {
        return Seen::Unknown("securityfs is not mounted, or the kernel has no lockdown");
    };
    match crate::find_chosen(&text).as_deref() {
        Some("none") => Seen::Ok("none".to_owned()),
        Some(level) => Seen::Caution(level.to_owned(), Vec::new()),
        None => Seen::Unknown("the kernel names no level"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_caution, is_unknown, machine, seen, writes};
    use super::*;
    use ::tests::tree;

    #[test]
    fn a_scheduler_of_someone_else_is_named() {
        let root = tree(&[
            ("sys/kernel/sched_ext/state", "enabled\n"),
            ("sys/kernel/sched_ext/root/ops", "lavd\n"),
        ]);
        let finding = seen(&SCHED_EXT, root.path());
        assert!(is_caution(&finding) && finding.check.value.contains("lavd"));
    }

    #[test]
    fn autogroup_and_schedstats_are_switched_off() {
        for (rule, path) in [
            (AUTOGROUP, "proc/sys/kernel/sched_autogroup_enabled"),
            (SCHEDSTATS, "proc/sys/kernel/sched_schedstats"),
        ] {
            let root = tree(&[(path, "1\n")]);
            let finding = seen(&rule, root.path());
            assert_eq!(writes(&finding, root.path()), [(path.to_owned(), "0")]);
            assert!(!is_caution(&seen(&rule, tree(&[(path, "0\n")]).path())));
        }
    }

    #[test]
    fn numa_balancing_matters_only_between_nodes() {
        let switch = ("proc/sys/kernel/numa_balancing", "1\n");
        let node = |path| (path, "0\n");
        let one = tree(&[switch, node("sys/devices/system/node/node0/cpulist")]);
        assert!(!is_caution(&seen(&NUMA_BALANCING, one.path())));
        let two = tree(&[
            switch,
            node("sys/devices/system/node/node0/cpulist"),
            node("sys/devices/system/node/node1/cpulist"),
        ]);
        assert!(is_caution(&seen(&NUMA_BALANCING, two.path())));
    }

    #[test]
    fn irqbalance_is_found_among_the_processes() {
        let busy = tree(&[("proc/7/comm", "irqbalance\n"), ("proc/8/comm", "sh\n")]);
        assert!(is_caution(&seen(&IRQBALANCE, busy.path())));
        let quiet = tree(&[("proc/8/comm", "sh\n")]);
        assert!(!is_caution(&seen(&IRQBALANCE, quiet.path())));
        assert!(is_unknown(&seen(&IRQBALANCE, tree(&[]).path())));
    }

    #[test]
    fn a_slow_clock_is_replaced_by_a_fast_one_that_is_available() {
        let current = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        let available = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        let root = tree(&[(current, "hpet\n"), (available, "hpet tsc acpi_pm\n")]);
        let finding = seen(&CLOCK_SOURCE, root.path());
        assert_eq!(writes(&finding, root.path()), [(current.to_owned(), "tsc")]);
        let root = tree(&[(current, "hpet\n"), (available, "hpet\n")]);
        let finding = seen(&CLOCK_SOURCE, root.path());
        assert!(is_caution(&finding) && finding.fix.is_empty());
    }

    #[test]
    fn perf_events_are_always_allowed_to_root() {
        let root = tree(&[("proc/sys/kernel/perf_event_paranoid", "2\n")]);
        let mut machine = machine(root.path());
        assert!(!is_caution(&PERF_EVENTS.apply(&machine)));
        machine.is_root = false;
        assert!(is_caution(&PERF_EVENTS.apply(&machine)));
    }

    #[test]
    fn the_level_of_lockdown_is_the_one_in_brackets() {
        let path = "sys/kernel/security/lockdown";
        let locked = tree(&[(path, "none integrity [confidentiality]\n")]);
        assert_eq!(
            seen(&LOCKDOWN, locked.path()).check.value,
            "confidentiality"
        );
        let open = tree(&[(path, "[none] integrity confidentiality\n")]);
        assert!(!is_caution(&seen(&LOCKDOWN, open.path())));
    }
}
