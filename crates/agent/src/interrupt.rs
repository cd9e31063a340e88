//! One flag that ends a trial: the runner is gone or has said goodbye, or a signal
//! came. It is a file descriptor, so that poll(2) waits for it beside all else.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Interrupt {
    event: Arc<OwnedFd>,
}

impl Interrupt {
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Interrupt {
            event: Arc::new(event),
        })
    }

    /// Raised for good.
    pub fn raise(&self) {
        // Fails only when the counter is full, and then it is raised.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }

    pub fn is_raised(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Sleep for `time`; `true` as soon as it is raised.
    pub fn wait(&self, time: Duration) -> bool {
        let mut fds = [PollFd::new(&self.event, PollFlags::IN)];
        wait_for(&mut fds, time);
        !fds[0].revents().is_empty()
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// poll(2) with a time limit; a signal counts as a wake-up without events.
pub fn wait_for(fds: &mut [PollFd<'_>], time: Duration) {
    let time = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let _ = poll(fds, Some(&time));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_raised_it_stays_raised_for_all_its_copies() {
        let interrupt = Interrupt::new().unwrap();
        let copy = interrupt.clone();
        assert!(!copy.is_raised());
        interrupt.raise();
        assert!(copy.is_raised() && copy.is_raised());
    }
}
