//! Steps that the kernel refuses for a moment with EBUSY.
//!
//! It keeps the bandwidth of a deadline thread for up to a period after its end
//! (`task_non_contending`, kernel/sched/deadline.c). In that moment it admits no other in its
//! place, and refuses a bound on deadline and real-time threads below what it keeps.

use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(5);

/// Result of the step, which is tried again while it is busy, for at most `limit`.
pub fn waited_for<E>(
    limit: Duration,
    is_busy: impl Fn(&E) -> bool,
    mut step: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let end = Instant::now() + limit;
    loop {
        match step() {
            Err(error) if is_busy(&error) && Instant::now() < end => std::thread::sleep(LOOK),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_tried_again_while_it_is_busy_and_no_other_error_is_waited_for() {
        let limit = Duration::from_secs(60);
        let mut tries = 0;
        let mut third = || {
            tries += 1;
            if tries < 3 { Err("busy") } else { Ok(()) }
        };
        assert_eq!(waited_for(limit, |e| *e == "busy", &mut third), Ok(()));
        assert_eq!(tries, 3);
        let other = waited_for(limit, |e| *e == "busy", || Err("gone"));
        assert_eq!(other, Err("gone"));
        let never = waited_for(Duration::ZERO, |e| *e == "busy", || Err("busy"));
        assert_eq!(never, Err("busy"));
    }
}
