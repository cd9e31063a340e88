//! The worker pool: threads that all have a job at the same moments, as when a scene needs shaders
//! that were not compiled yet.

use crate::matrices::Matrices;
use load::gate::Gate;
use load::sys;

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "frames-compile";

/// One thread of the pool with all that it needs, made before the load starts.
pub struct Compiler {
    /// Time between two jobs. One that takes longer puts the next one off.
    pub every_ns: u64,
    /// Work of a job.
    pub rows: u64,
    pub matrices: Matrices,
}

impl Compiler {
    /// From the gate to the end of the window. Gives the moments at which jobs were done.
    pub fn run(mut self, gate: &Gate) -> Vec<u64> {
        let mut done = Vec::new();
        let Some(timing) = gate.wait() else {
            return done;
        };
        let mut due_ns = timing.start_ns;
        while due_ns < timing.window.end_ns && !gate.is_stopped() {
            sys::sleep_until(due_ns);
            if sys::now_ns() < due_ns {
                // A signal.
                continue;
            }
            self.matrices.multiply_rows(self.rows);
            let done_ns = sys::now_ns();
            done.push(done_ns);
            let jobs = done_ns.saturating_sub(timing.start_ns) / self.every_ns.max(1) + 1;
            due_ns = timing.start_ns.saturating_add(jobs * self.every_ns);
        }
        done
    }
}
