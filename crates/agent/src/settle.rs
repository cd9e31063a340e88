//! Rest of the machine before it is saved: what a load left to do, compilers of a JVM above all, comes
//! to an end. Otherwise every trial from the snapshot would begin with it, and an arm that takes long
//! to be put in force would leave it behind.

use crate::interrupt::Interrupt;
use collect::stat::{self, CpuTime};
use std::path::Path;
use std::time::Duration;

/// Part of the CPUs that are in use on a machine at rest, at most: idle services have timers.
const AT_REST: f64 = 0.15;
/// Looks at the CPUs, of which the first at rest is the last.
const LOOKS: u32 = 20;
/// Time between two looks, at least: CPU times are counted in hundredths of a second.
const LEAST_LOOK: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(120);
/// Lengths of the load that is waited for, at most.
const LOADS: u32 = 4;

/// Longest rest after a load of this length.
pub fn limit(load: Duration) -> Duration {
    load.saturating_mul(LOADS).min(MOST)
}

/// Waits until the machine is at rest, or the limit is over; true where it was interrupted.
pub fn wait_for_rest(root: &Path, interrupt: &Interrupt, limit: Duration) -> bool {
    let look = (limit / LOOKS).max(LEAST_LOOK);
    until_rest(
        limit,
        look,
        || stat::read(root),
        |time| interrupt.wait(time),
    )
}

fn until_rest(
    limit: Duration,
    look: Duration,
    mut read: impl FnMut() -> Option<CpuTime>,
    mut wait: impl FnMut(Duration) -> bool,
) -> bool {
    let mut waited = Duration::ZERO;
    let mut before = read();
    while waited < limit {
        if wait(look) {
            return true;
        }
        waited += look;
        let now = read();
        let Some(spent) = now.zip(before).map(|(now, before)| now.time_since(before)) else {
            // Nothing tells when it is at rest.
            continue;
        };
        if spent.busy_ns() as f64 <= AT_REST * spent.total_ns() as f64 {
            break;
        }
        before = now;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Seconds that are waited for a machine whose CPUs are in use by so many percent, second by second.
    fn waited(limit: u32, busy: &[u64]) -> u32 {
        let mut time = CpuTime::default();
        let mut seconds = 0;
        let mut parts = busy.iter();
        let read = || {
            let now = time;
            let part = parts.next().copied().unwrap_or(100);
            time.user_ns += part * 10_000_000;
            time.idle_ns += (100 - part) * 10_000_000;
            Some(now)
        };
        let is_interrupted = until_rest(SECOND * limit, SECOND, read, |_| {
            seconds += 1;
            false
        });
        assert!(!is_interrupted);
        seconds
    }

    #[test]
    fn a_machine_is_at_rest_once_its_cpus_are_hardly_used() {
        assert_eq!(waited(60, &[10]), 1);
        assert_eq!(waited(60, &[100, 90, 50, 5]), 4);
        assert_eq!(waited(5, &[]), 5, "one that is never at rest");
    }

    #[test]
    fn what_cannot_be_read_is_waited_for_and_an_interruption_ends_it() {
        let mut looks = 0;
        let look = |_| {
            looks += 1;
            looks == 3
        };
        assert!(until_rest(SECOND * 9, SECOND, || None, look));
    }

    #[test]
    fn a_rest_is_a_few_times_as_long_as_the_load_at_most() {
        assert_eq!(limit(SECOND), 4 * SECOND);
        assert_eq!(limit(600 * SECOND), MOST);
    }
}
