//! Messages between the load and a worker that is a process of its own, or the only one of a guest:
//! lines over its standard streams, which are a guest's console.
//!
//! The worker marks its lines, since a guest's kernel may print there too. Times are nanoseconds of
//! the worker's CLOCK_MONOTONIC, which the load has asked a guest for. Clocks of guests cannot be taken
//! for the same: each has lost the ticks that it did not see while it booted.

use super::baseline::Want;
use super::sets::Set;
use super::worker::{Interval, Member, Own, Record, Shape, Standing};
use load::recording::Recorder;
use serde::{Deserialize, Serialize};

/// Beginning of each line of a worker.
pub const MARK: &str = "schedlab: ";
/// Last on the command line of a guest's kernel: the word that makes a program its worker.
pub const ARGUMENT: &str = "schedlab.worker";

/// First line to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Be one worker of a set, when it is time.
    Work {
        /// Set of the worker.
        set: Box<Set>,
        /// Length of the window.
        duration_ns: u64,
        /// Length of an interval.
        interval_ns: u64,
        /// Operations in one of the thousands that events are written in.
        operations_per_kop: u64,
        /// Time from the start of the load until its first event is due.
        after_ns: u64,
        /// Seed of its waits.
        seed: u64,
        /// Reads of its large memory that take a millisecond.
        reads_per_ms: u64,
    },
    /// Find out what a worker of each set does alone.
    Alone {
        /// The sets.
        sets: Vec<Set>,
        /// Operations in a microsecond, where they are known.
        operations_per_us: Option<u64>,
        /// Length of an interval.
        interval_ns: u64,
    },
}

/// Line to a worker that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Tell the clock.
    TellClock,
    /// Work.
    Go(Go),
}

/// When a worker works, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Go {
    /// Start of the work.
    pub start_ns: u64,
    /// Opening of the window.
    pub begin_ns: u64,
    /// End of the window.
    pub end_ns: u64,
}

/// Line of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// It is up.
    Ready,
    /// It knows its task and waits.
    Waiting,
    /// Its clock.
    Clock(u64),
    /// Demands of workers of the sets alone.
    Wants {
        /// Operations in a microsecond.
        operations_per_us: u64,
        /// Demands in the order of the sets.
        wants: Vec<Want>,
    },
    /// The work is over.
    Report(Report),
    /// It cannot go on.
    Failed(String),
}

/// Record of a worker, in whole numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Work, CPU time, longest lateness and idle time of each interval.
    intervals: Vec<(u64, u64, u64, u64)>,
    /// Each value of lateness with its count, in each interval of its recorder.
    lateness: Vec<Vec<(u64, u64)>>,
    /// Periodic events with a deadline in the window, and those of them that missed it.
    deadlines: (u64, u64),
    /// Longest time in which something was due and no piece of work ended.
    longest_wait_ns: u64,
    /// Weight and CPUs of the worker when its window began, by the kernel that it is on.
    pub standing: Standing,
    /// Time in the window in which a guest could have run and another one did.
    pub steal_ns: u64,
}

impl Task {
    /// The task of one worker of a set.
    pub fn for_set(set: &Set, shape: Shape, own: &Own) -> Self {
        Task::Work {
            set: Box::new(set.clone()),
            duration_ns: shape.duration_ns,
            interval_ns: shape.interval_ns,
            operations_per_kop: shape.operations_per_kop,
            after_ns: own.after_ns,
            seed: own.seed,
            reads_per_ms: own.reads_per_ms,
        }
    }
}

impl Report {
    /// The report of a record.
    pub fn from_record(record: &Record, steal_ns: u64) -> Self {
        let interval = |i: &Interval| (i.kops, i.cpu_ns, i.late_ns, i.idle_ns);
        Report {
            intervals: record.intervals.iter().map(interval).collect(),
            lateness: record.lateness.counts(),
            deadlines: (record.deadlines, record.missed),
            longest_wait_ns: record.longest_wait_ns,
            standing: record.standing.clone(),
            steal_ns,
        }
    }

    /// The record of a worker as it was there; its lateness goes into a recorder of the same window.
    pub fn into_record(self, member: Member, mut lateness: Recorder) -> Record {
        lateness.add_counts(&self.lateness);
        let interval = |(kops, cpu_ns, late_ns, idle_ns)| Interval {
            kops,
            cpu_ns,
            late_ns,
            idle_ns,
        };
        Record {
            member,
            standing: self.standing,
            in_turns: Vec::new(),
            intervals: self.intervals.into_iter().map(interval).collect(),
            lateness,
            deadlines: self.deadlines.0,
            missed: self.deadlines.1,
            longest_wait_ns: self.longest_wait_ns,
        }
    }
}

impl Said {
    /// Its line.
    pub fn line(&self) -> String {
        // Numbers and texts only.
        format!("{MARK}{}", serde_json::to_string(self).unwrap_or_default())
    }

    /// Meaning of a line of the console; `None` where it is the kernel's.
    pub fn parse(line: &str) -> Option<Result<Self, String>> {
        let (_, json) = line.split_once(MARK)?;
        Some(serde_json::from_str(json).map_err(|e| format!("it said what cannot be read: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_the_same_after_its_way() {
        let recorder = || Recorder::new(2_000_000_000, 4_000_000_000).unwrap();
        let mut lateness = recorder();
        lateness.open(load::recording::Window {
            begin_ns: 0,
            end_ns: 2_000_000_000,
        });
        for (at_ns, late_ns) in [(5, 7), (6, 7), (1_500_000_000, 900)] {
            lateness.record(at_ns, late_ns);
        }
        let interval = Interval {
            kops: 3,
            cpu_ns: 5,
            late_ns: 900,
            idle_ns: 7,
        };
        let record = Record {
            member: Member { set: 1, number: 3 },
            standing: Standing {
                weight: 512,
                cpus: Vec::new(),
            },
            in_turns: Vec::new(),
            intervals: vec![interval, Interval::default()],
            lateness,
            deadlines: 9,
            missed: 2,
            longest_wait_ns: 901,
        };
        let line = Said::Report(Report::from_record(&record, 40)).line();
        let Some(Ok(Said::Report(report))) = Said::parse(&format!("[1.0] {line}")) else {
            panic!("{line}");
        };
        assert_eq!(report.steal_ns, 40);
        let back = report.into_record(record.member, recorder());
        assert_eq!(back.member, record.member);
        assert_eq!(back.standing, record.standing);
        assert_eq!((back.deadlines, back.missed), (9, 2));
        assert_eq!(back.longest_wait_ns, 901);
        assert_eq!(back.intervals, record.intervals);
        assert_eq!(back.lateness.counts(), record.lateness.counts());
    }

    #[test]
    fn lines_of_the_kernel_are_passed_over_and_torn_ones_are_errors() {
        assert_eq!(Said::parse("[    1.2] random: crng init done"), None);
        assert!(Said::parse("schedlab: {\"Report\":").unwrap().is_err());
    }
}
