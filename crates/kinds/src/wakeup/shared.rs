//! State that all threads of one load share: the gate that starts them, the window, the end.

use super::cpu_lock::CpuLocks;
use super::group::Group;
use load::gate::Gate;
use load::latch::Latch;

#[derive(Debug)]
pub struct Shared {
    pub groups: Vec<Group>,
    /// `None`: requests take no lock.
    pub locks: Option<CpuLocks>,
    pub gate: Gate,
    released: Latch,
}

impl Shared {
    pub fn new(groups: Vec<Group>, locks: Option<CpuLocks>) -> Self {
        Shared {
            groups,
            locks,
            gate: Gate::default(),
            released: Latch::default(),
        }
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
        self.gate.stop();
        for group in &self.groups {
            group.post.ring();
            group.ring_workers();
        }
    }
}
