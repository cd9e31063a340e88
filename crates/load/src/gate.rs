//! Start and end of a native load: the gate where its threads wait until all of them are
//! ready, and the times that they are told there.

use crate::recording::Window;
use crate::sys;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// When a load starts and when it is measured, CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time at which the load starts.
    pub start_ns: u64,
    /// Window that is measured.
    pub window: Window,
}

impl Timing {
    /// A start at this moment.
    pub fn from_now(warmup_ns: u64, duration_ns: u64) -> Self {
        let start_ns = sys::now_ns();
        let begin_ns = start_ns.saturating_add(warmup_ns);
        Timing {
            start_ns,
            window: Window {
                begin_ns,
                end_ns: begin_ns.saturating_add(duration_ns),
            },
        }
    }
}

/// One for all threads of a load.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    waiting: u32,
    /// Errors of threads that never came to the gate.
    failed: Vec<String>,
    timing: Option<Timing>,
}

impl Gate {
    /// Says that a thread is ready, and waits. `None`: there will be no load.
    pub fn wait(&self) -> Option<Timing> {
        let mut state = self.lock();
        state.waiting += 1;
        self.changed.notify_all();
        let is_early = |state: &mut State| state.timing.is_none() && !self.is_stopped();
        let passed = self.changed.wait_while(state, is_early);
        passed.unwrap_or_else(PoisonError::into_inner).timing
    }

    /// Says that a thread will not come.
    pub fn fail(&self, why: String) {
        self.lock().failed.push(why);
        self.changed.notify_all();
    }

    /// Waits until `threads` threads wait at the gate; an error if one will not come.
    pub fn gather(&self, threads: u32) -> Result<(), String> {
        let mut state = self.lock();
        loop {
            if let Some(why) = state.failed.first() {
                return Err(why.clone());
            }
            if state.waiting >= threads {
                return Ok(());
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the threads go, with these times.
    pub fn open(&self, timing: Timing) {
        self.lock().timing = Some(timing);
        self.changed.notify_all();
    }

    /// Ends the load, or keeps it from beginning.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Sequentially consistent: a thread that announces that it will sleep and then finds the
    /// load not stopped is woken by whoever stops it.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_pass_the_gate_when_it_is_opened() {
        let gate = Gate::default();
        let timing = Timing::from_now(5, 7);
        std::thread::scope(|scope| {
            let threads = [0, 1].map(|_| scope.spawn(|| gate.wait()));
            gate.gather(2).unwrap();
            gate.open(timing);
            for thread in threads {
                assert_eq!(thread.join().unwrap(), Some(timing));
            }
        });
        assert_eq!(timing.window.end_ns - timing.start_ns, 12);
    }

    #[test]
    fn a_thread_that_fails_is_not_waited_for() {
        let gate = Gate::default();
        gate.fail("no server".to_owned());
        assert_eq!(gate.gather(2), Err("no server".to_owned()));
        gate.stop();
        assert_eq!(gate.wait(), None);
    }
}
