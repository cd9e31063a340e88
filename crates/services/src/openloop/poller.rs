//! Waiting for sockets and for a point in time: epoll(7) with a timerfd_create(2).
//!
//! epoll_wait(2) counts milliseconds, and epoll_pwait2(2) may be a thousandth of the
//! waiting time late (`select_estimate_accuracy` in fs/select.c); a timerfd is neither.

use load::sys::timespec;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Events taken at once. More wait in the kernel: a long list would make requests late.
const EVENTS: usize = 64;
const TIMER: u64 = u64::MAX;

/// Waiter for sockets and for a point in time.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The time that the timer is set to, until it has expired.
    armed_ns: Option<u64>,
}

/// A list of events for [`Poller::wait`], allocated once.
pub type Events = Vec<Event>;

/// List with room for all events of one wait.
pub fn events() -> Events {
    Vec::with_capacity(EVENTS)
}

/// Length of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Return at once.
    Poll,
    /// CLOCK_MONOTONIC.
    Until(u64),
    /// Until something comes.
    Forever,
}

impl Poller {
    /// Waiter without sockets. An error where the kernel gives no epoll or no timer.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // Edge-triggered: an expiry need not be read, and setting it anew clears it.
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), edge)?;
        Ok(Poller {
            epoll,
            timer,
            armed_ns: None,
        })
    }

    /// Events of the socket will carry `index`.
    pub fn add_socket(&self, socket: impl AsFd, index: usize, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(index as u64),
            flags,
        )?)
    }

    /// Replaces the events for which a socket that was added is waited for.
    pub fn modify(&self, socket: impl AsFd, index: usize, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            socket,
            EventData::new_u64(index as u64),
            flags,
        )?)
    }

    /// Waits, and replaces `events` by those that came; that of the timer has no index.
    pub fn wait(&mut self, events: &mut Events, wait: Wait) -> io::Result<()> {
        events.clear();
        let at_once = timespec(0);
        let timeout = match wait {
            Wait::Poll => Some(&at_once),
            Wait::Forever => None,
            Wait::Until(at_ns) => {
                self.arm(at_ns)?;
                None
            }
        };
        match epoll::wait(&self.epoll, spare_capacity(events), timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if events.iter().any(|event| index(event).is_none()) {
            self.armed_ns = None;
        }
        Ok(())
    }

    fn arm(&mut self, at_ns: u64) -> io::Result<()> {
        if self.armed_ns == Some(at_ns) {
            return Ok(());
        }
        let once = Itimerspec {
            it_interval: timespec(0),
            // A time of 0 would switch the timer off.
            it_value: timespec(at_ns.max(1)),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.armed_ns = Some(at_ns);
        Ok(())
    }
}

/// The index of the socket; `None` for the timer.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the index was a usize when its socket was registered"
)]
pub fn index(event: &Event) -> Option<usize> {
    let data = event.data;
    (data.u64() != TIMER).then(|| data.u64() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::sys::now_ns;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_wait_ends_at_its_time_and_not_before() {
        let (mut poller, mut events) = (Poller::new().unwrap(), events());
        let at_ns = now_ns() + 1_500_000;
        while now_ns() < at_ns {
            poller.wait(&mut events, Wait::Until(at_ns)).unwrap();
            assert!(now_ns() >= at_ns);
        }
        assert!(events.iter().all(|e| index(e).is_none()));
    }

    #[test]
    fn a_time_that_has_passed_ends_the_wait_at_once() {
        let (mut poller, mut events) = (Poller::new().unwrap(), events());
        poller.wait(&mut events, Wait::Until(1)).unwrap();
        poller.wait(&mut events, Wait::Until(0)).unwrap();
    }

    #[test]
    fn a_socket_with_data_is_named_by_its_index() {
        let (mut poller, mut events) = (Poller::new().unwrap(), events());
        let (mut here, there) = UnixStream::pair().unwrap();
        poller.add_socket(&there, 42, EventFlags::IN).unwrap();
        poller.wait(&mut events, Wait::Poll).unwrap();
        assert!(events.is_empty());
        here.write_all(b"x").unwrap();
        poller.wait(&mut events, Wait::Poll).unwrap();
        assert_eq!(events.iter().map(index).collect::<Vec<_>>(), [Some(42)]);
    }
}
