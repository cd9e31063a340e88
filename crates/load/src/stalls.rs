//! Stalls: latencies so long that a person may notice them, counted, with the worst
//! and when they were. A maximum says that something happened, a stall says when, so
//! that it can be looked up in the kernel's log or in a trace.
//!
//! The limits are fixed: a limit that followed the median of a trial would count
//! more stalls for the faster scheduler.

use crate::recording::Recording;
use model::{Measurement, MetricDef, TrialFile};

/// A wake-up that takes longer than a tick of the slowest kernels (100 Hz).
pub const WAKEUP_NS: u64 = 10_000_000;
/// A request that takes longer than what people notice as a delay.
pub const REQUEST_NS: u64 = 100_000_000;
/// So many are kept.
const WORST: usize = 10;

pub const WAKEUP_STALLS: MetricDef = MetricDef::explaining(
    "wakeup_stalls",
    "count",
    "Wake-ups that took 10 ms or longer; the worst are in stalls.csv.",
);
pub const REQUEST_STALLS: MetricDef = MetricDef::explaining(
    "request_stalls",
    "count",
    "Requests that took 100 ms or longer; the worst are in stalls.csv.",
);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stall {
    /// When it was over; of a request on a schedule, when it was due.
    pub at_ns: u64,
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
    pub fn from(limit_ns: u64) -> Self {
        Stalls {
            limit_ns,
            count: 0,
            kept: 0,
            worst: [Stall::default(); WORST],
        }
    }

    pub fn none() -> Self {
        Self::from(u64::MAX)
    }

    pub fn see(&mut self, at_ns: u64, took_ns: u64) {
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

    pub fn add(&mut self, other: &Stalls) {
        self.count += other.count;
        other.kept().iter().for_each(|stall| self.keep(*stall));
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    fn kept(&self) -> &[Stall] {
        &self.worst[..self.kept]
    }

    /// The worst first.
    pub fn worst(&self) -> Vec<Stall> {
        let mut worst = self.kept().to_vec();
        worst.sort_by_key(|stall| std::cmp::Reverse(stall.took_ns));
        worst
    }
}

/// What of the recordings of a load (`wakeup`, `request`) took too long.
pub fn figures(recordings: &[(&str, MetricDef, &Recording)]) -> Vec<Measurement> {
    let count = |(_, def, recording): &(&str, MetricDef, &Recording)| {
        def.measured(recording.stalls().count() as f64)
    };
    recordings.iter().map(count).collect()
}

/// `stalls.csv`: what it was, when in the window, and how long it took.
/// `None` without any.
pub fn file(recordings: &[(&str, MetricDef, &Recording)]) -> Option<TrialFile> {
    let mut text = "what,at_ns,took_ns\n".to_owned();
    let head = text.len();
    for (name, _, recording) in recordings {
        for stall in recording.stalls().worst() {
            let at = recording.offset_ns(stall.at_ns);
            text.push_str(&format!("{name},{at},{}\n", stall.took_ns));
        }
    }
    (text.len() > head).then(|| TrialFile {
        name: "stalls.csv".to_owned(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Recorder, Window};

    #[test]
    fn all_are_counted_and_the_worst_ten_are_kept_in_order() {
        let mut stalls = Stalls::from(100);
        (90..120).for_each(|took| stalls.see(took * 2, took));
        assert_eq!(stalls.count(), 20);
        let worst = stalls.worst();
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
        let (mut one, mut two) = (Stalls::from(10), Stalls::from(10));
        one.see(1, 50);
        two.see(2, 70);
        one.add(&two);
        assert_eq!(one.count(), 2);
        assert_eq!(one.worst()[0].took_ns, 70);
    }

    #[test]
    fn without_a_limit_nothing_stalls() {
        let mut stalls = Stalls::none();
        stalls.see(1, u64::MAX - 1);
        assert_eq!(stalls.count(), 0);
    }

    #[test]
    fn the_file_says_when_in_the_window_and_is_left_out_without_stalls() {
        let recording = |took_ns| {
            let window = Window {
                begin_ns: 1_000,
                end_ns: 1_000_001_000,
            };
            let mut recorder = Recorder::new(1_000_000_000, 1_000_000_000)
                .unwrap()
                .with_stalls_from(WAKEUP_NS);
            recorder.open(window);
            recorder.record(5_000, took_ns);
            Recording::merge([recorder]).unwrap()
        };
        let (short, long) = (recording(10), recording(20_000_000));
        assert_eq!(file(&[("wakeup", WAKEUP_STALLS, &short)]), None);
        let all = [("wakeup", WAKEUP_STALLS, &long)];
        assert_eq!(
            file(&all).unwrap().text,
            "what,at_ns,took_ns\nwakeup,4000,20000000\n"
        );
        assert_eq!(figures(&all)[0].value, 1.0);
    }
}
