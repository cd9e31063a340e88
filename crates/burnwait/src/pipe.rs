//! Pipelines: workers that hand over to others, which wait for them.

use super::sets::Set;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A worker's place in a pipeline. The default is none.
#[derive(Debug, Default)]
pub struct Pipe {
    from: Option<Receiver<u64>>,
    to: Vec<Sender<u64>>,
}

impl Pipe {
    /// The places of workers, whose sets are in `order`: the first of a set hands over to the first
    /// of each set that is after it.
    pub fn lay_pipes(sets: &[Set], order: &[usize]) -> Vec<Pipe> {
        let mut pipes: Vec<Pipe> = order.iter().map(|_| Pipe::default()).collect();
        let mut members = vec![Vec::new(); sets.len()];
        for (worker, set) in order.iter().enumerate() {
            members[*set].push(worker);
        }
        for (index, set) in sets.iter().enumerate() {
            let Some(front) = set.front_set(sets) else {
                continue;
            };
            for (first, second) in members[front].iter().zip(&members[index]) {
                let (to, from) = channel();
                pipes[*first].to.push(to);
                pipes[*second].from = Some(from);
            }
        }
        pipes
    }

    /// Does another worker hand over to this one?
    pub fn is_second(&self) -> bool {
        self.from.is_some()
    }

    /// Waits until something is handed over: when that was. `None` when nobody will any more.
    pub fn wait(&self) -> Option<u64> {
        self.from.as_ref()?.recv().ok()
    }

    /// The next that was handed over and not waited for.
    pub fn next(&self) -> Option<u64> {
        self.from.as_ref()?.try_recv().ok()
    }

    /// Wakes those who are after this worker.
    pub fn hand_over(&self, now_ns: u64) {
        for to in &self.to {
            // One that has ended takes nothing.
            let _ = to.send(now_ns);
        }
    }
}
