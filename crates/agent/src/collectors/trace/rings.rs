//! Two rings that take turns.

use crate::journal::{Journal, Undo};
use collect::sched_trace::{Recorded, Ring};
use load::Worst;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory of one ring for each CPU: three seconds of fifty thousand events a second.
const BYTES: u64 = 8 << 20;
/// Memory of all rings together: on a machine of many CPUs each has less.
const MOST_BYTES: u64 = 512 << 20;

/// Number of the next pair of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Rings {
    rings: [Turn; 2],
    /// The one that records now, and holds the worst latency once it has settled.
    active: usize,
    /// Both record, since something worse was just seen.
    is_open: bool,
    /// Memory of each for one CPU.
    pub bytes: u64,
}

#[derive(Debug)]
struct Turn {
    ring: Ring,
    /// When it last began to record, and when it stopped; CLOCK_MONOTONIC.
    began_ns: u64,
    ended_ns: u64,
}

impl Rings {
    /// The first of them records from now on. Each name is in the journal, and in `made`, before
    /// the ring of that name is made.
    pub fn make(
        root: &Path,
        journal: &mut Journal,
        made: &mut Vec<String>,
    ) -> Result<Self, String> {
        let cpus = u64::from(collect::machine::usable_cpus().max(1));
        let bytes = BYTES.min(MOST_BYTES / 2 / cpus);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut make = |letter: &str| {
            let name = format!("schedlab-{}-{number}{letter}", std::process::id());
            let undo = Undo::RemoveRing { name: name.clone() };
            journal.record(undo).map_err(|e| e.to_string())?;
            made.push(name.clone());
            let ring = Ring::make(root, &name, bytes);
            ring.map(Turn::new)
                .map_err(|e| format!("make a ring of {bytes} bytes for each CPU: {e}"))
        };
        let mut rings = [make("a")?, make("b")?];
        rings[0].start().map_err(|e| e.to_string())?;
        Ok(Rings {
            rings,
            active: 0,
            is_open: false,
            bytes,
        })
    }

    /// The active ring holds something worse than what the other one was kept for.
    pub fn keep_worse(&mut self) -> io::Result<()> {
        if self.is_open {
            return Ok(());
        }
        self.is_open = true;
        let other = &mut self.rings[1 - self.active];
        other.ring.clear()?;
        other.start()
    }

    /// The active ring is kept as it is.
    pub fn keep_settled(&mut self) -> io::Result<()> {
        if !self.is_open {
            return Ok(());
        }
        self.is_open = false;
        self.rings[self.active].stop()?;
        self.active = 1 - self.active;
        Ok(())
    }

    /// The window has closed.
    pub fn end_window(&mut self) -> io::Result<()> {
        self.rings.iter_mut().try_for_each(Turn::stop)
    }

    /// Nothing is recorded any more.
    pub fn stop_all(&self) -> io::Result<()> {
        self.rings.iter().try_for_each(|turn| turn.ring.stop())
    }

    /// The events of a span, from the ring that has most of it.
    pub fn read(&self, worst: &Worst, span_ns: RangeInclusive<u64>) -> io::Result<Recorded> {
        let mut best: Option<Recorded> = None;
        for turn in self.rings.iter().filter(|turn| turn.holds(worst.end_ns)) {
            let mut recorded = turn.ring.read(span_ns.clone())?;
            recorded.whole_from_ns = recorded.whole_from_ns.max(turn.began_ns);
            if best
                .as_ref()
                .is_none_or(|best| best.whole_from_ns > recorded.whole_from_ns)
            {
                best = Some(recorded);
            }
        }
        best.ok_or_else(|| io::Error::other("no ring was recording then"))
    }
}

impl Turn {
    fn new(ring: Ring) -> Self {
        Turn {
            ring,
            began_ns: u64::MAX,
            ended_ns: 0,
        }
    }

    fn start(&mut self) -> io::Result<()> {
        self.ring.start()?;
        self.began_ns = now_ns();
        self.ended_ns = u64::MAX;
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        if self.ended_ns == u64::MAX {
            self.ended_ns = now_ns();
            self.ring.stop()?;
        }
        Ok(())
    }

    fn holds(&self, at_ns: u64) -> bool {
        (self.began_ns..=self.ended_ns).contains(&at_ns)
    }
}

/// CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}
