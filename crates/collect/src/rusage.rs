//! Resources that an ended process and its waited-for children used: `struct rusage` of
//! wait4(2), see getrusage(2).

use crate::sys::to_duration;

/// Resources of a process and of the children that it waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode (`ru_utime`).
    pub user_ns: u64,
    /// CPU time in the kernel (`ru_stime`).
    pub system_ns: u64,
    /// Context switches because a task waited for something (`ru_nvcsw`).
    pub voluntary_switches: u64,
    /// Context switches because a task was preempted (`ru_nivcsw`).
    pub involuntary_switches: u64,
    /// Minor and major.
    pub page_faults: u64,
    /// Largest resident memory of one of these processes, in bytes (`ru_maxrss`); 0 where it is not
    /// known. The kernel counts what a process had before it began its program, too.
    pub peak_memory_bytes: u64,
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        Usage {
            user_ns: model::whole_nanos(to_duration(usage.ru_utime)),
            system_ns: model::whole_nanos(to_duration(usage.ru_stime)),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            page_faults: count(usage.ru_minflt) + count(usage.ru_majflt),
            // In KiB, see getrusage(2).
            peak_memory_bytes: count(usage.ru_maxrss).saturating_mul(1024),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::zombie_processes)] // wait4 reaps it.
    fn a_child_that_was_reaped_has_faulted_and_ended_with_its_status() {
        let child = std::process::Command::new("sh")
            .args(["-c", "exit 3"])
            .spawn()
            .unwrap();
        let ended = crate::sys::wait4(child.id() as i32).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        let usage = Usage::from(ended.usage);
        assert!(usage.page_faults > 0);
        assert!(usage.peak_memory_bytes > 4096, "{usage:?}");
    }
}
