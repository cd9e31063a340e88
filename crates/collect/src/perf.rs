//! Software events of a process tree, by perf_event_open(2).
//!
//! The counters are opened on a child before it runs its program, start with the
//! exec, and are inherited by everything that it starts: a read gives the sum over
//! the tree, ended tasks included.

use perf_event::events::{Event, Software};
use perf_event::{Builder, Counter};
use std::io;

/// Readings of all counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of times that a task of the tree left a CPU for another task.
    pub context_switches: u64,
    /// Number of times that a task of the tree went to another CPU.
    pub migrations: u64,
    /// Number of page faults, minor and major.
    pub page_faults: u64,
}

impl Counts {
    /// Counts since `earlier`.
    pub fn counts_since(self, earlier: Counts) -> Counts {
        Counts {
            context_switches: self
                .context_switches
                .saturating_sub(earlier.context_switches),
            migrations: self.migrations.saturating_sub(earlier.migrations),
            page_faults: self.page_faults.saturating_sub(earlier.page_faults),
        }
    }
}

/// Counts an event from the exec of a child on, in all that it starts.
pub(crate) fn of_tree(pid: i32, event: impl Event) -> io::Result<Counter> {
    Builder::new(event)
        .observe_pid(pid)
        .any_cpu()
        .inherit(true)
        .enable_on_exec(true)
        .include_kernel()
        .build()
}

/// Open counters of one process tree.
#[derive(Debug)]
pub struct Counters {
    context_switches: Counter,
    migrations: Counter,
    page_faults: Counter,
}

impl Counters {
    /// For a child that has not run its program yet. Needs CAP_PERFMON or
    /// `kernel.perf_event_paranoid` of at most 1, for the events happen in the kernel.
    pub fn on_exec(pid: i32) -> io::Result<Self> {
        let open = |event| of_tree(pid, event);
        Ok(Counters {
            context_switches: open(Software::CONTEXT_SWITCHES)?,
            migrations: open(Software::CPU_MIGRATIONS)?,
            page_faults: open(Software::PAGE_FAULTS)?,
        })
    }

    /// Counts since the exec. An error where a counter cannot be read.
    pub fn read(&mut self) -> io::Result<Counts> {
        Ok(Counts {
            context_switches: self.context_switches.read()?,
            migrations: self.migrations.read()?,
            page_faults: self.page_faults.read()?,
        })
    }
}
