//! Collectors: what explains a trial and can be left out of it.

use serde::{Deserialize, Serialize};

/// A group of readings that are taken together. What costs nothing inside the window
/// (two readings of /proc/stat, of PSI, of the load's times, switches and migrations in
/// /proc) is always taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collector {
    /// Switches, migrations and page faults of the load, of threads that come and go
    /// too: software perf events.
    Switches,
    /// Run delay and slices of every role: `/proc/PID/task/TID/schedstat`.
    Delays,
    /// Migrations of the whole machine by distance: a tracepoint.
    Distances,
    /// Cycles, instructions and cache misses of the load: hardware perf events.
    Hardware,
    /// Waits in run queues of every role, on each CPU: BPF, in a program of its own.
    #[serde(rename = "runqueue")]
    RunQueue,
}

impl Collector {
    pub const ALL: [Collector; 5] = [
        Collector::Switches,
        Collector::Delays,
        Collector::Distances,
        Collector::Hardware,
        Collector::RunQueue,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Collector::Switches => "switches",
            Collector::Delays => "delays",
            Collector::Distances => "distances",
            Collector::Hardware => "hardware",
            Collector::RunQueue => "runqueue",
        }
    }

    /// What it reads, for lists.
    pub fn text(self) -> &'static str {
        match self {
            Collector::Switches => {
                "switches, migrations and page faults of the load (perf; on demand)"
            }
            Collector::Delays => "run delay and slices of every role (schedstat of each thread)",
            Collector::Distances => "migrations of the whole machine by distance (tracepoint)",
            Collector::Hardware => {
                "cycles, instructions and cache misses of the load (perf; on demand)"
            }
            Collector::RunQueue => "run-queue latency of every role, on each CPU (BPF; on demand)",
        }
    }

    /// Taken unless an experiment says otherwise. The others are work at each switch of
    /// a task: counting the load's perf events makes wake-ups a tenth slower and more
    /// (docs/performance.md).
    pub fn is_usual(self) -> bool {
        matches!(self, Collector::Delays | Collector::Distances)
    }

    pub fn from_name(name: &str) -> Option<Collector> {
        Collector::ALL.into_iter().find(|c| c.name() == name)
    }
}
