//! Memory that workers need, so that too many of them are an error and not the end of the load.

use super::Workers;
use super::sets::Set;
use super::worker::{self, Interval, Shape};
use load::recording::Recorder;

/// Memory of one worker beside its records, at least: its buffer, and as much for the stack and what the
/// kernel keeps.
const LEAST_WORKER_BYTES: u64 = 128 << 10;
/// The same of one that is a process, with pages of its own for what the allocator and the kernel keep.
const LEAST_PROCESS_BYTES: u64 = 3 << 20;

/// Memory of one worker of a set at least, with what the load keeps of it.
pub fn of_worker(set: &Set, workers: Workers, shape: Shape) -> u64 {
    let longest_ns = worker::longest_lateness_ns(shape.duration_ns);
    let lateness = Recorder::bytes(shape.duration_ns, longest_ns);
    let intervals = shape.duration_ns.div_ceil(shape.interval_ns.max(1));
    let intervals = intervals.saturating_mul(size_of::<Interval>() as u64);
    // What a process has recorded is in the load, too.
    let (least, records) = match workers {
        Workers::Processes => (LEAST_PROCESS_BYTES, 2),
        Workers::Threads | Workers::Guests => (LEAST_WORKER_BYTES, 1),
    };
    // The figures are made of a copy.
    let copies = records + u64::from(set.is_judged());
    let memory = set.memory.map_or(0, |memory| memory.bytes);
    least
        .saturating_add(memory)
        .saturating_add(lateness.saturating_mul(copies))
        .saturating_add(intervals.saturating_mul(records))
}

/// Workers that need more than the memory that `/proc/meminfo` says is available.
pub fn find_excess(workers: u64, needed: u64, meminfo: &str) -> Option<String> {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let available = line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10;
    (needed > available).then(|| {
        format!(
            "{workers} workers need {} MiB of memory at least, and {} MiB are available",
            needed >> 20,
            available >> 20
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets::{self, Part};

    const KIB: u64 = 1 << 10;

    fn shape(seconds: u64) -> Shape {
        Shape {
            duration_ns: seconds * 1_000_000_000,
            interval_ns: 1_000_000_000,
            operations_per_kop: 1,
        }
    }

    #[test]
    fn more_workers_than_the_memory_holds_are_said_before_they_start() {
        let meminfo = "MemTotal: 4000000 kB\nMemAvailable:  1048576 kB\n";
        let bytes = 128 * KIB;
        assert_eq!(find_excess(8_192, 8_192 * bytes, meminfo), None);
        let said = find_excess(100_000, 100_000 * bytes, meminfo).unwrap();
        assert!(
            said.contains("12500 MiB") && said.contains("1024 MiB"),
            "{said}"
        );
        // What is not known keeps nobody from trying.
        assert_eq!(find_excess(100_000, 100_000 * bytes, ""), None);
    }

    #[test]
    fn what_a_worker_records_in_a_longer_window_is_part_of_its_memory() {
        let judged = sets::published_sets().remove(0);
        let threads = |set: &Set, seconds| of_worker(set, Workers::Threads, shape(seconds));
        // Ten histograms of 100 KiB and more, and their copy.
        assert!(threads(&judged, 60) > 2_000 * KIB);
        assert!(threads(&judged, 1) < 1_000 * KIB);
        let antagonist = Set {
            role: Part::Antagonist,
            ..judged.clone()
        };
        assert!(threads(&antagonist, 60) < threads(&judged, 60));
        // A process has its own, and the load has two more.
        let process = of_worker(&judged, Workers::Processes, shape(60));
        assert!(process > 6_000 * KIB, "{process}");
    }
}
