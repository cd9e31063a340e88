//! What all threads of one load share: the gate that starts them, the window, the end.

use super::cpu_lock::CpuLocks;
use super::group::Group;
use crate::latch::Latch;
use crate::sys;
use crate::timing::Timing;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[derive(Debug)]
pub struct Shared {
    pub groups: Vec<Group>,
    /// `None`: requests take no lock.
    pub locks: Option<CpuLocks>,
    arrived: AtomicU32,
    gate: Latch,
    timing: OnceLock<Timing>,
    stop: AtomicBool,
    released: Latch,
}

impl Shared {
    pub fn new(groups: Vec<Group>, locks: Option<CpuLocks>) -> Self {
        Shared {
            groups,
            locks,
            arrived: AtomicU32::new(0),
            gate: Latch::default(),
            timing: OnceLock::new(),
            stop: AtomicBool::new(false),
            released: Latch::default(),
        }
    }

    /// Called by each thread when it is set up. `None`: the load ends before it began.
    pub fn wait_at_gate(&self) -> Option<Timing> {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        sys::futex_wake(&self.arrived, 1);
        self.gate.wait();
        self.timing.get().copied()
    }

    /// Waits until so many threads wait at the gate.
    pub fn wait_for_arrivals(&self, threads: u32) {
        loop {
            let arrived = self.arrived.load(Ordering::SeqCst);
            if arrived >= threads {
                return;
            }
            sys::futex_wait(&self.arrived, arrived);
        }
    }

    /// Lets all threads run, with the window known.
    pub fn start(&self, timing: Timing) {
        // Set once: there is one start.
        let _ = self.timing.set(timing);
        self.gate.open();
    }

    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Called by each thread at its end.
    pub fn wait_for_release(&self) {
        self.released.wait();
    }

    /// Lets the threads end.
    pub fn release(&self) {
        self.released.open();
    }

    /// Ends the load: no thread waits for another from here on.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.gate.open();
        for group in &self.groups {
            group.post.ring();
            group.ring_workers();
        }
    }
}
