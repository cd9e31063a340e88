//! Message threads: they wake the workers of their group.

use super::group::{Group, Message};
use super::shared::Shared;
use load::gate::Timing;
use load::pacing::IntendedStarts;
use load::sys;
use std::collections::VecDeque;

/// Closed loop: whoever offers itself is woken at once.
///
/// All workers of one round get the stamp from before the first wake. If the kernel
/// lets a woken worker preempt the waker, the others wait longer, and that counts.
pub fn closed_loop(shared: &Shared, group: &Group) {
    while !shared.gate.is_stopped() {
        group.post.block();
        let idle = group.take_idle();
        let message = Message {
            woken_ns: sys::now_ns(),
            intended_ns: 0,
        };
        for worker in idle {
            group.wake(worker, message);
        }
        if shared.gate.is_stopped() {
            return;
        }
        group.post.wait();
    }
}

/// Open loop: hands requests out when they are due, to the worker that is idle for
/// the longest time. While none is idle, requests wait, and their latency counts
/// from their intended start: nothing is dropped, nothing is put off.
#[derive(Debug)]
pub struct OpenLoop<'a> {
    shared: &'a Shared,
    group: &'a Group,
    starts: IntendedStarts,
    timing: Timing,
    next_ns: u64,
    /// Intended starts inside the window so far.
    offered: u64,
    idle: VecDeque<u32>,
}

impl<'a> OpenLoop<'a> {
    pub fn new(
        shared: &'a Shared,
        group: &'a Group,
        starts: IntendedStarts,
        idle: VecDeque<u32>,
        timing: Timing,
    ) -> Self {
        let mut open_loop = OpenLoop {
            shared,
            group,
            starts,
            timing,
            next_ns: 0,
            offered: 0,
            idle,
        };
        open_loop.advance();
        open_loop
    }

    /// Runs until the load stops. The number of requests intended inside the window.
    pub fn run(mut self) -> u64 {
        while !self.shared.gate.is_stopped() {
            self.collect_idle();
            self.hand_out_due();
            if self.idle.is_empty() {
                self.wait_for_worker();
            } else {
                self.wait_for_start();
            }
        }
        while self.next_ns < self.timing.window.end_ns {
            self.advance();
        }
        self.offered
    }

    fn advance(&mut self) {
        self.next_ns = self.timing.start_ns + self.starts.advance();
        self.offered += u64::from(self.timing.window.contains(self.next_ns));
    }

    fn collect_idle(&mut self) {
        let known = self.idle.len();
        self.idle.extend(self.group.take_idle());
        // The list has the latest first; the queue has the longest idle first.
        self.idle.make_contiguous()[known..].reverse();
    }

    /// One stamp for all that are due, as in the closed loop.
    fn hand_out_due(&mut self) {
        let now_ns = sys::now_ns();
        while self.next_ns <= now_ns {
            let Some(worker) = self.idle.pop_front() else {
                return;
            };
            let message = Message {
                woken_ns: now_ns,
                intended_ns: self.next_ns,
            };
            self.group.wake(worker, message);
            self.advance();
        }
    }

    fn wait_for_worker(&mut self) {
        self.group.post.block();
        self.collect_idle();
        if self.idle.is_empty() && !self.shared.gate.is_stopped() {
            self.group.post.wait();
        }
        self.group.post.unblock();
    }

    fn wait_for_start(&self) {
        if self.next_ns <= sys::now_ns() {
            return;
        }
        self.group.post.block_timed();
        if !self.shared.gate.is_stopped() {
            self.group.post.wait_until(self.next_ns);
        }
    }
}
