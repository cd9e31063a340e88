//! A message thread and its workers: what they share.
//!
//! A worker with nothing to do puts itself on the list of its group and waits on its
//! own post; the message thread takes the whole list and posts the workers on it.

use super::post::Post;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Ends a list; no group has so many workers.
const NOBODY: u32 = u32::MAX;

/// Place of one worker. Whoever wakes it writes to this one cache line (two, for the
/// adjacent-line prefetcher).
#[derive(Debug)]
#[repr(align(128))]
pub struct Slot {
    pub post: Post,
    /// The next one on the list.
    next: AtomicU32,
    /// The waker's stamp, from before the wakes.
    woken_ns: AtomicU64,
    /// Intended start of the request that the worker is woken for; open loop only.
    intended_ns: AtomicU64,
}

#[derive(Debug)]
#[repr(align(128))]
pub struct Group {
    /// Post of the message thread.
    pub post: Post,
    idle: AtomicU32,
    slots: Vec<Slot>,
}

/// Times that a woken worker finds in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    pub woken_ns: u64,
    pub intended_ns: u64,
}

impl Group {
    pub fn new(workers: u32) -> Self {
        Group {
            post: Post::default(),
            idle: AtomicU32::new(NOBODY),
            slots: (0..workers).map(|_| Slot::new()).collect(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "`new` makes them from a u32"
    )]
    pub fn workers(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Says that a worker has nothing to do, to whoever has work. Then it waits on
    /// the post of its slot.
    pub fn offer(&self, worker: u32) {
        let slot = &self.slots[worker as usize];
        slot.post.block();
        let mut head = self.idle.load(Ordering::Relaxed);
        loop {
            slot.next.store(head, Ordering::Relaxed);
            let pushed =
                self.idle
                    .compare_exchange_weak(head, worker, Ordering::SeqCst, Ordering::Relaxed);
            match pushed {
                Ok(_) => break,
                Err(current) => head = current,
            }
        }
        self.post.post();
    }

    /// All workers that offered themselves since the last call, the latest first.
    pub fn take_idle(&self) -> Idle<'_> {
        Idle {
            group: self,
            next: self.idle.swap(NOBODY, Ordering::SeqCst),
        }
    }

    /// Hands a message to a worker taken from [`Group::take_idle`].
    pub fn wake(&self, worker: u32, message: Message) {
        let slot = &self.slots[worker as usize];
        slot.woken_ns.store(message.woken_ns, Ordering::Relaxed);
        slot.intended_ns
            .store(message.intended_ns, Ordering::Relaxed);
        // The post orders the stores above before what the worker reads.
        slot.post.post();
    }

    /// The message that the worker's post was about.
    pub fn message(&self, worker: u32) -> Message {
        let slot = &self.slots[worker as usize];
        Message {
            woken_ns: slot.woken_ns.load(Ordering::Relaxed),
            intended_ns: slot.intended_ns.load(Ordering::Relaxed),
        }
    }

    pub fn slot(&self, worker: u32) -> &Slot {
        &self.slots[worker as usize]
    }

    /// Wakes every worker, so that it finds out that the load ends.
    pub fn ring_workers(&self) {
        self.slots.iter().for_each(|slot| slot.post.ring());
    }
}

impl Slot {
    fn new() -> Self {
        Slot {
            post: Post::default(),
            next: AtomicU32::new(NOBODY),
            woken_ns: AtomicU64::new(0),
            intended_ns: AtomicU64::new(0),
        }
    }
}

/// A list taken from a group.
#[derive(Debug)]
pub struct Idle<'a> {
    group: &'a Group,
    next: u32,
}

impl Iterator for Idle<'_> {
    type Item = u32;

    /// Reads the link before the worker is woken: after that it may be on a new list.
    fn next(&mut self) -> Option<u32> {
        if self.next == NOBODY {
            return None;
        }
        let worker = self.next;
        self.next = self.group.slot(worker).next.load(Ordering::Relaxed);
        Some(worker)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    #[test]
    fn idle_workers_are_taken_once_the_latest_first() {
        let group = Group::new(3);
        (0..3).for_each(|worker| group.offer(worker));
        assert_eq!(group.take_idle().collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(group.take_idle().count(), 0);
    }

    #[test]
    fn a_worker_finds_the_message_that_it_was_woken_with() {
        let group = Group::new(1);
        let message = Message {
            woken_ns: 5,
            intended_ns: 3,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                group.offer(0);
                group.slot(0).post.wait();
                assert_eq!(group.message(0), message);
            });
            while group.take_idle().map(|w| group.wake(w, message)).count() == 0 {
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn no_worker_is_lost_when_many_offer_themselves_at_once() {
        const ROUNDS: u32 = 2000;
        let group = Group::new(4);
        let message = Message {
            woken_ns: 0,
            intended_ns: 0,
        };
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let group = &group;
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        group.offer(worker);
                        group.slot(worker).post.wait();
                    }
                });
            }
            let mut woken = 0;
            while woken < 4 * ROUNDS {
                group.post.block();
                let now = group.take_idle().map(|w| group.wake(w, message)).count();
                woken += now as u32;
                if now == 0 {
                    group.post.wait();
                }
            }
        });
    }
}
