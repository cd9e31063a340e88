//! Stalls: latencies so long that a person may notice them, counted, with the worst
//! and when they were. A maximum says that something happened, a stall says when, so
//! that it can be looked up in the kernel's log or in a trace.
//!
//! The limits are fixed: a limit that followed the median of a trial would count
//! more stalls for the faster scheduler.

use model::MetricDef;

/// A wake-up that takes longer than a tick of the slowest kernels (100 Hz).
pub const WAKEUP_NS: u64 = 10_000_000;
/// A request that takes longer than what people notice as a delay.
pub const REQUEST_NS: u64 = 100_000_000;
/// Number of stalls that are kept, the worst of all.
const WORST: usize = 10;

/// Number of wake-ups that stalled.
pub const WAKEUP_STALLS: MetricDef = MetricDef::explaining(
    "wakeup_stalls",
    "count",
    "Wake-ups that took 10 ms or longer; the worst are in stalls.csv.",
);
/// Number of requests that stalled.
pub const REQUEST_STALLS: MetricDef = MetricDef::explaining(
    "request_stalls",
    "count",
    "Requests that took 100 ms or longer; the worst are in stalls.csv.",
);

/// One latency that reached the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stall {
    /// When it was over; of a request on a schedule, when it was due.
    pub at_ns: u64,
    /// Length of the latency.
    pub took_ns: u64,
}

/// Those of one thread, or of many together. Has no memory beside itself: nothing is
/// allocated when one is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalls {
    limit_ns: u64,
    count: u64,
    kept: usize,
    worst: [Stall; WORST],
}

impl Stalls {
    /// Counts what takes `limit_ns` or longer.
    pub fn with_limit(limit_ns: u64) -> Self {
        Stalls {
            limit_ns,
            count: 0,
            kept: 0,
            worst: [Stall::default(); WORST],
        }
    }

    /// List that counts nothing.
    pub fn none() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// Counts a latency and keeps it, if it is among the worst.
    pub fn record_latency(&mut self, at_ns: u64, took_ns: u64) {
        if took_ns >= self.limit_ns {
            self.count += 1;
            self.keep(Stall { at_ns, took_ns });
        }
    }

    fn keep(&mut self, stall: Stall) {
        if self.kept < WORST {
            self.worst[self.kept] = stall;
            self.kept += 1;
            return;
        }
        if let Some(least) = self.worst.iter_mut().min_by_key(|s| s.took_ns)
            && least.took_ns < stall.took_ns
        {
            *least = stall;
        }
    }

    /// Adds the stalls of another thread; the worst of both are kept.
    pub fn merge_from(&mut self, other: &Stalls) {
        self.count += other.count;
        other.kept().iter().for_each(|stall| self.keep(*stall));
    }

    /// Number of stalls, also of those that were not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn kept(&self) -> &[Stall] {
        &self.worst[..self.kept]
    }

    /// The worst first.
    pub fn worst_stalls(&self) -> Vec<Stall> {
        let mut worst = self.kept().to_vec();
        worst.sort_by_key(|stall| std::cmp::Reverse(stall.took_ns));
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_worst_ten_are_kept_in_order() {
        let mut stalls = Stalls::with_limit(100);
        (90..120).for_each(|took| stalls.record_latency(took * 2, took));
        assert_eq!(stalls.count(), 20);
        let worst = stalls.worst_stalls();
        assert_eq!(worst.len(), 10);
        let expected = Stall {
            at_ns: 238,
            took_ns: 119,
        };
        assert_eq!(worst[0], expected);
        assert_eq!(worst[9].took_ns, 110);
    }

    #[test]
    fn those_of_all_threads_are_put_together() {
        let (mut one, mut two) = (Stalls::with_limit(10), Stalls::with_limit(10));
        one.record_latency(1, 50);
        two.record_latency(2, 70);
        one.merge_from(&two);
        assert_eq!(one.count(), 2);
        assert_eq!(one.worst_stalls()[0].took_ns, 70);
    }

    #[test]
    fn without_a_limit_nothing_stalls() {
        let mut stalls = Stalls::none();
        stalls.record_latency(1, u64::MAX - 1);
        assert_eq!(stalls.count(), 0);
    }
}
