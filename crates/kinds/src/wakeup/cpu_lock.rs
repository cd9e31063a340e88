//! One spinning lock per CPU around the work of a request.
//!
//! A worker that is preempted while it holds the lock of its CPU makes every other
//! worker there spin: preemption at the wrong moment has a price, as with the
//! per-CPU locks of real servers.

use load::sys;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
#[repr(align(128))]
struct CpuLock(AtomicBool);

#[derive(Debug)]
pub struct CpuLocks(Vec<CpuLock>);

/// Gives the lock back when it is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a AtomicBool);

impl CpuLocks {
    pub fn new(cpus: usize) -> Self {
        CpuLocks(
            (0..cpus.max(1))
                .map(|_| CpuLock(AtomicBool::new(false)))
                .collect(),
        )
    }

    /// Spins until it holds the lock of the CPU that it runs on.
    pub fn lock_current(&self) -> Held<'_> {
        loop {
            let cpu = sys::current_cpu();
            let held = self.lock(cpu);
            if sys::current_cpu() == cpu {
                return held;
            }
            // Migrated while it spun: this is the lock of another CPU by now.
        }
    }

    fn lock(&self, cpu: usize) -> Held<'_> {
        let lock = &self.0[cpu % self.0.len()].0;
        while lock
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        Held(lock)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_again_after_it_was_held() {
        let locks = CpuLocks::new(1);
        drop(locks.lock(0));
        drop(locks.lock(0));
        assert!(!locks.0[0].0.load(Ordering::Relaxed));
    }

    #[test]
    fn two_threads_never_hold_the_same_lock() {
        let locks = CpuLocks::new(1);
        let inside = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _held = locks.lock(0);
                        assert!(!inside.swap(true, Ordering::SeqCst));
                        inside.store(false, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
