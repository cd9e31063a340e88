//! Holds threads until it is opened, once.

use crate::sys;
use std::sync::atomic::{AtomicU32, Ordering};

/// Holds threads until it is opened, once.
#[derive(Debug, Default)]
pub struct Latch(AtomicU32);

impl Latch {
    /// Waits until it is open.
    pub fn wait(&self) {
        while self.0.load(Ordering::SeqCst) == 0 {
            sys::futex_wait(&self.0, 0);
        }
    }

    /// Opens it for all that wait and will wait.
    pub fn open(&self) {
        self.0.store(1, Ordering::SeqCst);
        sys::futex_wake(&self.0, i32::MAX as u32);
    }
}
