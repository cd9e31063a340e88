//! Overruns of deadline threads: `SCHED_FLAG_DL_OVERRUN` of sched_setattr(2).
//!
//! A deadline thread that has used up its runtime is throttled until its next period
//! (`update_curr_dl`, kernel/sched/deadline.c). With the flag the kernel notes that, and sends
//! SIGXCPU to the process in the next tick of the thread (`check_dl_overrun`,
//! kernel/time/posix-cpu-timers.c).

use collect::sys::{DL_OVERRUN, sched_getattr, sched_setattr};
use model::Class;
use signal_hook::consts::SIGXCPU;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Overruns of all threads of this process.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// Whether the handler is there: without it SIGXCPU would end the process.
static HANDLED: OnceLock<bool> = OnceLock::new();

/// Overruns of all threads of this process so far.
pub fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// Asks for the overruns of the calling thread; false where it is no deadline thread, or where
/// the kernel does not tell them.
pub fn watch() -> bool {
    let Ok(attr) = sched_getattr(0) else {
        return false;
    };
    if Class::from_number(attr.policy) != Some(Class::Deadline) || !is_handled() {
        return false;
    }
    let mut watched = attr;
    watched.flags |= DL_OVERRUN;
    sched_setattr(0, &watched).is_ok()
}

fn is_handled() -> bool {
    let handle = || {
        let add = || {
            COUNT.fetch_add(1, Ordering::Relaxed);
        };
        // SAFETY: an atomic addition is safe in a signal handler.
        unsafe { signal_hook::low_level::register(SIGXCPU, add) }.is_ok()
    };
    *HANDLED.get_or_init(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use collect::sys::SchedAttr;
    use std::time::{Duration, Instant};

    #[test]
    fn a_thread_of_another_class_is_not_watched() {
        assert!(!watch());
    }

    #[test]
    fn a_deadline_thread_that_wants_more_than_its_runtime_overruns() {
        let deadline = SchedAttr {
            policy: Class::Deadline.kernel_number(),
            runtime_ns: 2_000_000,
            deadline_ns: 20_000_000,
            period_ns: 20_000_000,
            ..SchedAttr::default()
        };
        let spin = move || {
            if let Err(error) = sched_setattr(0, &deadline) {
                return ::tests::skipped(format!("no deadline threads: {error}"));
            }
            assert!(watch());
            let before = count();
            let end = Instant::now() + Duration::from_millis(400);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            // Twenty periods, each of which it overruns.
            let overruns = count() - before;
            assert!((3..=21).contains(&overruns), "{overruns}");
        };
        std::thread::spawn(spin).join().unwrap();
    }
}
