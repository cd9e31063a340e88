//! Memory: huge pages, pressure, swap (`/sys/kernel/mm`, `/proc/pressure/memory`,
//! `/proc/meminfo`).

use super::{Machine, Rule, Seen, Write};
use crate::find_chosen;

pub const HUGE_PAGES: Rule = Rule {
    name: "huge-pages",
    effect: "With transparent huge pages for all memory, faults take longer and khugepaged works \
             beside the load, at moments of its own.",
    remedy: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    look: huge_pages,
};

fn huge_pages(machine: &Machine) -> Seen {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    match machine
        .read(path)
        .as_deref()
        .and_then(find_chosen)
        .as_deref()
    {
        None => Seen::Unknown("this kernel has none"),
        Some("always") => Seen::Caution(
            "always".to_owned(),
            vec![Write::new(machine.root.join(path), "madvise")],
        ),
        Some(other) => Seen::Ok(other.to_owned()),
    }
}

pub const PRESSURE: Rule = Rule {
    name: "memory-pressure",
    effect: "Tasks that wait for memory to be freed wait for no scheduler: their latencies say \
             nothing about one.",
    remedy: "free memory, or use a smaller load",
    look: pressure,
};

/// Share of the last ten seconds in which a task waited for memory.
const PRESSURE_PERCENT: f64 = 1.0;
/// Memory that can still be had without swapping.
const AVAILABLE_PERCENT: u64 = 10;

fn pressure(machine: &Machine) -> Seen {
    let Some(available) = meminfo(machine, "MemAvailable:")
        .zip(meminfo(machine, "MemTotal:"))
        .map(|(available, total)| available * 100 / total.max(1))
    else {
        return Seen::Unknown("/proc/meminfo cannot be read");
    };
    let waited = machine
        .read("proc/pressure/memory")
        .and_then(|text| average_10s(&text));
    let waits = match waited {
        Some(percent) => format!(", tasks waited {percent} % of 10 s"),
        None => String::new(),
    };
    let value = format!("{available} % available{waits}");
    if available < AVAILABLE_PERCENT || waited.is_some_and(|p| p > PRESSURE_PERCENT) {
        return Seen::Caution(value, Vec::new());
    }
    Seen::Ok(value)
}

/// `avg10` of the line `some` (Documentation/accounting/psi.rst).
fn average_10s(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    let mut fields = line.split_ascii_whitespace();
    fields
        .find_map(|field| field.strip_prefix("avg10="))?
        .parse()
        .ok()
}

fn meminfo(machine: &Machine, key: &str) -> Option<u64> {
    let text = machine.read("proc/meminfo")?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

pub const SWAP: Rule = Rule {
    name: "swap",
    effect: "A page that was swapped out comes back from the disk in the middle of a trial: \
             milliseconds that belong to no scheduler.",
    remedy: "swapoff -a, with enough memory free (swapon -a: again as before)",
    look: swap,
};

fn swap(machine: &Machine) -> Seen {
    let (Some(total), Some(free)) = (
        meminfo(machine, "SwapTotal:"),
        meminfo(machine, "SwapFree:"),
    ) else {
        return Seen::Unknown("/proc/meminfo cannot be read");
    };
    let used = total.saturating_sub(free) / 1024;
    match (total, used) {
        (0, _) => Seen::Ok("none".to_owned()),
        (_, 0) => Seen::Ok("not in use".to_owned()),
        (_, used) => Seen::Caution(format!("{used} MiB in use"), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_caution, is_unknown, seen, writes};
    use super::*;
    use ::tests::tree;

    fn memory(text: &str, psi: &str) -> tempfile::TempDir {
        tree(&[("proc/meminfo", text), ("proc/pressure/memory", psi)])
    }

    const QUIET: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

    #[test]
    fn huge_pages_for_all_memory_are_reduced_to_those_asked_for() {
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        let root = tree(&[(path, "[always] madvise never\n")]);
        let finding = seen(&HUGE_PAGES, root.path());
        assert_eq!(
            writes(&finding, root.path()),
            [(path.to_owned(), "madvise")]
        );
    }

    #[test]
    fn little_memory_and_waiting_tasks_are_both_cautions() {
        let enough = "MemTotal: 1000 kB\nMemAvailable: 900 kB\n";
        let little = "MemTotal: 1000 kB\nMemAvailable: 50 kB\n";
        let waiting = "some avg10=3.50 avg60=0.00 avg300=0.00 total=9\n";
        let state = |text, psi| is_caution(&seen(&PRESSURE, memory(text, psi).path()));
        assert!(!state(enough, QUIET));
        assert!(state(little, QUIET));
        assert!(state(enough, waiting));
        assert!(is_unknown(&seen(&PRESSURE, tree(&[]).path())));
    }

    #[test]
    fn swap_is_a_caution_only_while_something_is_in_it() {
        let value = |text| seen(&SWAP, memory(text, QUIET).path());
        assert!(!is_caution(&value("SwapTotal: 0 kB\nSwapFree: 0 kB\n")));
        assert!(!is_caution(&value(
            "SwapTotal: 4096 kB\nSwapFree: 4096 kB\n"
        )));
        let used = value("SwapTotal: 4096 kB\nSwapFree: 1024 kB\n");
        assert_eq!(used.check.value, "3 MiB in use");
        assert!(is_caution(&used));
    }
}
