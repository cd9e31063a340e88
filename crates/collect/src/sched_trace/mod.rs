//! Scheduling events in a ring buffer of its own: an instance of tracefs
//! (Documentation/trace/ftrace.rst, "Instances"). Its clock is CLOCK_MONOTONIC, so that moments
//! that a program noted are found in it. Times are whole microseconds, as tracefs prints them.

mod event;

pub use event::{Event, Happened, Task};

use crate::tracefs;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The most that a line of a trace has.
const LONGEST_LINE: u64 = 64 << 10;
/// The tracepoints that are recorded, of the group `sched`.
const EVENTS: [&str; 8] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
];

/// A ring buffer that this process made. It stays until [`remove_ring`] is called.
#[derive(Debug)]
pub struct Ring {
    tracefs: OwnedFd,
    name: String,
}

/// The events of a span, and whether they are all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Events in the order of their time.
    pub events: Vec<Event>,
    /// From here on no event was overwritten by a later one; 0 where none was at all.
    pub whole_from_ns: u64,
    /// Events that the kernel could not store.
    pub lost: u64,
    /// Lines that could not be read.
    pub unread: u64,
}

/// Why rings cannot be had here; `None` where they can. Nothing is made.
pub fn find_obstacle(root: &Path) -> Option<io::Error> {
    let look = || {
        let tracefs = tracefs::open(root)?;
        openat(&tracefs, "instances", OFlags::RDONLY, Mode::empty())?;
        let event = "events/sched/sched_waking/id";
        openat(&tracefs, event, OFlags::RDONLY, Mode::empty())?;
        Ok(())
    };
    look().err()
}

/// Names of the rings and other instances that there are.
pub fn ring_names(root: &Path) -> io::Result<Vec<String>> {
    let tracefs = tracefs::open(root)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    entries(openat(tracefs, "instances", flags, Mode::empty())?)
}

fn entries(directory: impl Into<OwnedFd>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory.into())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}

/// Removes a ring with all that it holds. One that is gone is fine.
pub fn remove_ring(root: &Path, name: &str) -> io::Result<()> {
    let tracefs = tracefs::open(root)?;
    match unlinkat(tracefs, format!("instances/{name}"), AtFlags::REMOVEDIR) {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

impl Ring {
    /// An empty ring that records nothing yet. `bytes` is what it holds of each CPU. Where it
    /// fails, a part of it may be left for [`remove_ring`].
    pub fn make(root: &Path, name: &str, bytes: u64) -> io::Result<Ring> {
        let tracefs = tracefs::open(root)?;
        let mode = Mode::from_raw_mode(0o700);
        mkdirat(&tracefs, format!("instances/{name}"), mode)?;
        let ring = Ring {
            tracefs,
            name: name.to_owned(),
        };
        // An instance records from its beginning.
        ring.write("tracing_on", "0")?;
        ring.write("trace_clock", "mono")?;
        ring.write("buffer_size_kb", &bytes.div_ceil(1024).to_string())?;
        for event in EVENTS {
            ring.write(&format!("events/sched/{event}/enable"), "1")?;
        }
        Ok(ring)
    }

    /// Records from now on.
    pub fn start(&self) -> io::Result<()> {
        self.write("tracing_on", "1")
    }

    /// Records no more, and keeps what it has.
    pub fn stop(&self) -> io::Result<()> {
        self.write("tracing_on", "0")
    }

    /// Forgets all events. The kernel takes some milliseconds to do it.
    pub fn clear(&self) -> io::Result<()> {
        self.open("trace", OFlags::WRONLY | OFlags::TRUNC).map(drop)
    }

    /// The events of a span of CLOCK_MONOTONIC. The ring should have been stopped.
    pub fn read(&self, span_ns: std::ops::RangeInclusive<u64>) -> io::Result<Recorded> {
        let mut recorded = Recorded::default();
        for cpu in self.cpus()? {
            recorded.add_state(&self.text(&format!("per_cpu/{cpu}/stats"))?);
        }
        let trace = BufReader::new(self.open("trace", OFlags::RDONLY)?);
        recorded.add_events(trace, span_ns)?;
        Ok(recorded)
    }

    /// The names of the buffers of CPUs, `cpu0`.
    fn cpus(&self) -> io::Result<Vec<String>> {
        let mut names = entries(self.open("per_cpu", OFlags::RDONLY | OFlags::DIRECTORY)?)?;
        names.retain(|name| name.starts_with("cpu"));
        Ok(names)
    }

    fn open(&self, file: &str, flags: OFlags) -> io::Result<File> {
        let path = format!("instances/{}/{file}", self.name);
        let opened = openat(&self.tracefs, path, flags | OFlags::CLOEXEC, Mode::empty());
        let said = |e: rustix::io::Errno| {
            let e = io::Error::from(e);
            io::Error::new(e.kind(), format!("open {file} of the ring: {e}"))
        };
        Ok(File::from(opened.map_err(said)?))
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let written = self.open(file, OFlags::WRONLY)?.write_all(text.as_bytes());
        written.map_err(|e| io::Error::new(e.kind(), format!("write {text} to {file}: {e}")))
    }

    fn text(&self, file: &str) -> io::Result<String> {
        doors::read::stream_text(self.open(file, OFlags::RDONLY)?, doors::read::KERNEL_BYTES)
    }
}

impl Recorded {
    /// The file `stats` of one CPU.
    fn add_state(&mut self, stats: &str) {
        let value = |name: &str| {
            let mut lines = stats.lines();
            let text = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            text.map_or("", str::trim)
        };
        let count = |name| value(name).parse::<u64>().unwrap_or(0);
        self.lost += count("dropped events") + count("commit overrun");
        if count("overrun") > 0 {
            let oldest = event::parse_time(value("oldest event ts")).unwrap_or(0);
            self.whole_from_ns = self.whole_from_ns.max(oldest);
        }
    }

    fn add_events(
        &mut self,
        text: impl BufRead,
        span_ns: std::ops::RangeInclusive<u64>,
    ) -> io::Result<()> {
        // A name may be any bytes.
        for line in doors::read::lines_within(text, LONGEST_LINE) {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            match Event::parse(&line) {
                Some(event) if span_ns.contains(&event.at_ns) => self.events.push(event),
                Some(_) => {}
                None => self.unread += 1,
            }
        }
        self.events.sort_by_key(|event| event.at_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::{skipped, tree};

    const TRACE: &str = include_str!("fixture.txt");

    #[test]
    fn the_events_of_a_span_are_read_and_what_is_no_event_is_counted() {
        let mut recorded = Recorded::default();
        let all = 2_196_745_000_000..=2_196_800_000_000;
        recorded.add_events(TRACE.as_bytes(), all).unwrap();
        assert_eq!((recorded.events.len(), recorded.unread), (17, 0));
        let mut few = Recorded::default();
        let text = format!("{TRACE}CPU:1 [LOST 3 EVENTS]\n");
        few.add_events(text.as_bytes(), 2_196_759_193_000..=2_196_759_220_000)
            .unwrap();
        assert_eq!((few.events.len(), few.unread), (3, 1));
    }

    #[test]
    fn events_are_whole_from_the_oldest_of_the_cpu_that_overwrote_most() {
        let stats = |overrun, oldest, dropped| {
            format!(
                "entries: 16\noverrun: {overrun}\ncommit overrun: 0\nbytes: 864\n\
                 oldest event ts:  {oldest}\nnow ts:  2196.783169\ndropped events: {dropped}\n"
            )
        };
        let mut recorded = Recorded::default();
        recorded.add_state(&stats(0, "9.000000", 0));
        assert_eq!(recorded, Recorded::default());
        recorded.add_state(&stats(4, "2.500000", 3));
        recorded.add_state(&stats(1, "2.250000", 1));
        assert_eq!((recorded.whole_from_ns, recorded.lost), (2_500_000_000, 4));
    }

    #[test]
    fn a_tree_without_tracefs_has_no_rings() {
        assert!(find_obstacle(tree(&[]).path()).is_some());
        assert!(Ring::make(tree(&[]).path(), "schedlab-none", 1 << 20).is_err());
    }

    #[test]
    fn a_ring_of_this_machine_records_a_thread_that_sleeps() {
        let root = Path::new("/");
        if let Some(why) = find_obstacle(root) {
            return skipped(format!("tracefs: {why}"));
        }
        let name = format!("schedlab-test-{}", std::process::id());
        let ring = Ring::make(root, &name, 1 << 20);
        let recorded = ring.and_then(|ring| {
            ring.start()?;
            std::thread::sleep(std::time::Duration::from_millis(5));
            ring.stop()?;
            let recorded = ring.read(0..=u64::MAX);
            ring.clear()?;
            let cleared = ring.read(0..=u64::MAX)?;
            Ok((recorded?, cleared))
        });
        assert!(ring_names(root).unwrap().contains(&name));
        remove_ring(root, &name).unwrap();
        remove_ring(root, &name).unwrap();
        assert!(!ring_names(root).unwrap().contains(&name));
        let (recorded, cleared) = recorded.unwrap();
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let mut switches = recorded.events.iter().map(|event| &event.happened);
        let slept = switches
            .any(|happened| matches!(happened, Happened::Switch { prev, .. } if prev.pid == own));
        assert!(slept, "{recorded:?}");
        assert_eq!(recorded.unread, 0);
        assert_eq!(cleared.events, []);
    }
}
