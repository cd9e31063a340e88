//! `/proc/stat`: CPU time of the whole machine by kind, see proc_stat(5).

use rustix::param::clock_ticks_per_second;
use std::path::Path;

/// CPU time since boot, all CPUs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// User time, niced included.
    pub user_ns: u64,
    /// System time, without interrupts.
    pub system_ns: u64,
    /// Interrupts and soft interrupts.
    pub interrupt_ns: u64,
    /// Idle time, waiting for I/O included.
    pub idle_ns: u64,
    /// Time that the hypervisor gave to others.
    pub steal_ns: u64,
}

impl CpuTime {
    /// Time spent since `earlier`. A counter that went back counts as 0.
    pub fn time_since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            interrupt_ns: self.interrupt_ns.saturating_sub(earlier.interrupt_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }

    /// In which a task ran.
    pub fn tasks_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// In which a task or an interrupt ran.
    pub fn busy_ns(self) -> u64 {
        self.tasks_ns() + self.interrupt_ns
    }

    /// Sum of all kinds: the time since boot, times the number of CPUs.
    pub fn total_ns(self) -> u64 {
        self.busy_ns() + self.idle_ns + self.steal_ns
    }
}

/// CPU time since boot; `None` where `/proc/stat` cannot be read.
pub fn read(root: &Path) -> Option<CpuTime> {
    parse(&doors::read::kernel_text(root.join("proc/stat")).ok()?)
}

fn parse(text: &str) -> Option<CpuTime> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    let sum = |fields: &[usize]| {
        let ticks: u64 = fields.iter().filter_map(|f| ticks.get(*f)).sum();
        ticks_to_ns(ticks)
    };
    Some(CpuTime {
        user_ns: sum(&[0, 1]),
        system_ns: sum(&[2]),
        interrupt_ns: sum(&[5, 6]),
        idle_ns: sum(&[3, 4]),
        steal_ns: sum(&[7]),
    })
}

/// USER_HZ ticks, the unit of CPU times under /proc, as nanoseconds.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    ticks * 1_000_000_000 / clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_split_by_kind() {
        let time = parse("cpu  100 20 30 400 5 6 7 8 0 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(time.user_ns, ticks_to_ns(120));
        assert_eq!(time.system_ns, ticks_to_ns(30));
        assert_eq!(time.interrupt_ns, ticks_to_ns(13));
        assert_eq!(time.idle_ns, ticks_to_ns(405));
        assert_eq!(time.steal_ns, ticks_to_ns(8));
    }

    #[test]
    fn time_is_spent_by_kind_and_in_all() {
        let earlier = parse("cpu  1 0 0 10 0 0 0 2\n").unwrap();
        let later = parse("cpu  4 0 2 30 0 0 0 1\n").unwrap();
        let spent = later.time_since(earlier);
        assert_eq!(spent.busy_ns(), ticks_to_ns(5));
        assert_eq!(spent.total_ns(), ticks_to_ns(25));
    }

    #[test]
    fn a_file_without_totals_reads_as_none() {
        assert_eq!(parse("intr 1 2 3\n"), None);
    }
}
