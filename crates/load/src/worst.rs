//! The worst latency of a load: when it was, whose it was, and news of it while the load runs,
//! so that what the kernel recorded around it is not overwritten.
//!
//! A process of a generator is told in its job which kind of latency is watched, if any. A
//! recorder that is not watched pays a test of one field for each value; one that is watched
//! pays more only for a value that is worse than all before it in its thread.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Line of a generator within its window: a latency was worse than all before it. What was
/// recorded until now holds it.
pub const WORSE: &str = "worse";
/// Line of a generator within its window: for [`LOOK`] after the last [`WORSE`] there was
/// nothing worse, so that what was recorded since then may be kept as it is.
pub const SETTLED: &str = "settled";
/// Time between two looks for something worse.
pub const LOOK: Duration = Duration::from_millis(100);

/// The worst latency of one kind within a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst {
    /// Length of the latency.
    pub took_ns: u64,
    /// Its end, CLOCK_MONOTONIC.
    pub end_ns: u64,
    /// ID of the thread that recorded it: the one that was waited for, or that waited.
    pub thread: i32,
    /// Opening of the window, CLOCK_MONOTONIC.
    pub window_begin_ns: u64,
    /// End of the window.
    pub window_end_ns: u64,
}

impl Worst {
    /// Time at which it began.
    pub fn begin_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.took_ns)
    }
}

/// The moment that a recorder is given with each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The value was complete then.
    End,
    /// It began to count then.
    Due,
}

#[derive(Debug)]
struct Watched {
    log: String,
    worst_ns: AtomicU64,
}

/// One for the process: a generator has one job.
static WATCHED: OnceLock<Watched> = OnceLock::new();

/// Watches the latencies of one log of this process. Only the first call counts.
pub fn watch(log: &str) {
    let _ = WATCHED.set(Watched {
        log: log.to_owned(),
        worst_ns: AtomicU64::new(0),
    });
}

pub(crate) fn is_watched(log: &str) -> bool {
    WATCHED.get().is_some_and(|watched| watched.log == log)
}

/// Called by a thread whose worst value so far this is.
pub(crate) fn report_value(took_ns: u64) {
    if let Some(watched) = WATCHED.get() {
        watched.worst_ns.fetch_max(took_ns, Ordering::Relaxed);
    }
}

/// The worst value of all threads so far; `None` where nothing is watched.
pub(crate) fn worst_so_far() -> Option<u64> {
    let watched = WATCHED.get()?;
    Some(watched.worst_ns.load(Ordering::Relaxed))
}

/// The looks of one thread at what the others tell.
#[derive(Debug, Default)]
pub(crate) struct Lookout {
    seen_ns: u64,
    is_open: bool,
}

impl Lookout {
    /// The line that is due at this look.
    pub fn due_line(&mut self, worst_ns: u64) -> Option<&'static str> {
        if worst_ns > self.seen_ns {
            self.seen_ns = worst_ns;
            self.is_open = true;
            return Some(WORSE);
        }
        std::mem::take(&mut self.is_open).then_some(SETTLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_is_said_at_once_and_settles_at_the_next_look() {
        let mut lookout = Lookout::default();
        let said: Vec<_> = [0, 5, 5, 5, 9, 12, 12, 3]
            .into_iter()
            .map(|worst_ns| lookout.due_line(worst_ns))
            .collect();
        let (worse, settled) = (Some(WORSE), Some(SETTLED));
        assert_eq!(
            said,
            [None, worse, settled, None, worse, worse, settled, None]
        );
    }
}
