//! A futex that one thread waits on and others post.

use load::sys;
use std::sync::atomic::{AtomicU32, Ordering};

/// The owner runs, or has been told to.
const RUNNING: u32 = 0;
/// The owner waits for work, or is about to.
const BLOCKED: u32 = 1;
/// The owner waits for a time, or is about to.
const TIMED: u32 = 2;

/// The owner says that it will wait, looks for work a last time, and waits: a post
/// between the first and the last is not lost.
#[derive(Debug, Default)]
pub struct Post(AtomicU32);

impl Post {
    /// The owner will wait for work.
    pub fn block(&self) {
        self.0.store(BLOCKED, Ordering::SeqCst);
    }

    /// The owner will wait for a time, and cares for no work before it.
    pub fn block_timed(&self) {
        self.0.store(TIMED, Ordering::SeqCst);
    }

    /// The owner has found work and does not wait.
    pub fn unblock(&self) {
        self.0.store(RUNNING, Ordering::SeqCst);
    }

    /// Waits until posted since [`Post::block`].
    pub fn wait(&self) {
        while self.0.load(Ordering::SeqCst) == BLOCKED {
            sys::futex_wait(&self.0, BLOCKED);
        }
    }

    /// Waits until the deadline, or until rung since [`Post::block_timed`].
    pub fn wait_until(&self, deadline_ns: u64) {
        while self.0.load(Ordering::SeqCst) == TIMED
            && !sys::futex_wait_until(&self.0, TIMED, deadline_ns)
        {}
        self.unblock();
    }

    /// Tells the owner that there is work. No system call unless it waits for some.
    pub fn post(&self) {
        let posted = self
            .0
            .compare_exchange(BLOCKED, RUNNING, Ordering::SeqCst, Ordering::SeqCst);
        if posted.is_ok() {
            sys::futex_wake(&self.0, 1);
        }
    }

    /// Wakes the owner whatever it waits for.
    pub fn ring(&self) {
        self.unblock();
        sys::futex_wake(&self.0, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_between_block_and_wait_is_not_lost() {
        let post = Post::default();
        post.block();
        post.post();
        post.wait();
    }

    #[test]
    fn a_post_does_not_cut_a_timed_wait_short() {
        let post = Post::default();
        let deadline = sys::now_ns() + 2_000_000;
        post.block_timed();
        post.post();
        post.wait_until(deadline);
        assert!(sys::now_ns() >= deadline);
    }

    #[test]
    fn a_ring_ends_a_timed_wait() {
        let post = Post::default();
        std::thread::scope(|scope| {
            post.block_timed();
            scope.spawn(|| post.ring());
            post.wait_until(sys::now_ns() + 3_600_000_000_000);
        });
    }
}
