//! When the threads of a native load start, and when they are measured.

use crate::recording::Window;
use crate::sys;

/// When a load starts and when it is measured, CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    pub start_ns: u64,
    pub window: Window,
}

impl Timing {
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
