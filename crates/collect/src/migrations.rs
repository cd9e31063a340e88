//! Migrations of all tasks by distance: the tracepoint `sched:sched_migrate_task`
//! (include/trace/events/sched.h), counted on every CPU with filters on the CPU that
//! a task leaves and the one that it goes to. Counting costs some tens of
//! nanoseconds a migration; nothing is written anywhere.
//!
//! The event happens on the CPU of whoever moves the task, so it cannot be told
//! whose task it was without looking at each event: the figures are those of the
//! whole machine.

use crate::distance::{Distance, Group, Topology};
use crate::{sys, tracefs};
use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// The kernel takes filters of up to a page.
const LONGEST_FILTER: usize = 4000;
/// A process may have 1024 files open unless told otherwise.
const MOST_COUNTERS: usize = 512;

/// Open counters of all CPUs.
#[derive(Debug)]
pub struct Migrations {
    distances: Vec<Distance>,
    /// Counters of migrations over at most this distance, the closest first.
    within: Vec<Vec<Counter>>,
}

impl Migrations {
    /// Needs CAP_PERFMON and tracefs, which is attached privately if it is not mounted.
    pub fn open(root: &Path) -> io::Result<Self> {
        let topology = Topology::read(root).ok_or(io::ErrorKind::NotFound)?;
        let event = tracefs::event_id(root, "sched/sched_migrate_task")?;
        let distances = topology.distances();
        let mut within = Vec::new();
        for distance in &distances {
            within.push(open_level(&topology, *distance, event)?);
        }
        Ok(Migrations { distances, within })
    }

    /// Since they were opened, by distance.
    pub fn read(&mut self) -> io::Result<Vec<(Distance, u64)>> {
        let mut closer = 0;
        let mut counts = Vec::new();
        for (distance, counters) in self.distances.iter().zip(&mut self.within) {
            let mut sum = 0;
            for counter in counters {
                sum += counter.read()?;
            }
            counts.push((*distance, sum.saturating_sub(closer)));
            closer = sum;
        }
        Ok(counts)
    }
}

fn open_level(topology: &Topology, distance: Distance, event: u64) -> io::Result<Vec<Counter>> {
    let groups = topology.groups_within(distance);
    let filters = match groups.as_slice() {
        [all] if *all == topology.cpus => vec![None],
        groups => filters(groups).into_iter().map(Some).collect(),
    };
    if filters.len() * topology.cpus.len() > MOST_COUNTERS {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    let mut counters = Vec::new();
    for cpu in &topology.cpus {
        for filter in &filters {
            counters.push(open(event, *cpu, filter.as_deref())?);
        }
    }
    Ok(counters)
}

fn open(event: u64, cpu: u32, filter: Option<&str>) -> io::Result<Counter> {
    let mut counter = Builder::new(Tracepoint::with_id(event))
        .any_pid()
        .one_cpu(cpu as usize)
        .include_kernel()
        .build()?;
    if let Some(filter) = filter {
        sys::set_event_filter(&counter, filter)?;
    }
    counter.enable()?;
    Ok(counter)
}

/// Both CPUs in one of the groups, in as few filters as the kernel takes.
fn filters(groups: &[Group]) -> Vec<String> {
    let mut filters: Vec<String> = Vec::new();
    for group in groups {
        let (from, to) = (one_of("orig_cpu", group), one_of("dest_cpu", group));
        let both = format!("({from}&&{to})");
        match filters.last_mut() {
            Some(last) if last.len() + both.len() + 2 <= LONGEST_FILTER => {
                last.push_str("||");
                last.push_str(&both);
            }
            _ => filters.push(both),
        }
    }
    filters
}

/// `(field>=0&&field<=3||field==8)`
fn one_of(field: &str, cpus: &Group) -> String {
    let mut text = "(".to_owned();
    for (low, high) in ranges(cpus) {
        let or = if text.len() > 1 { "||" } else { "" };
        // Writing to a string cannot fail.
        let _ = match low == high {
            true => write!(text, "{or}{field}=={low}"),
            false => write!(text, "{or}({field}>={low}&&{field}<={high})"),
        };
    }
    text.push(')');
    text
}

fn ranges(cpus: &Group) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == *cpu => *high = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::testing::two_nodes;

    #[test]
    fn both_cpus_must_be_in_the_same_group() {
        let cores = two_nodes().groups_within(Distance::Core);
        let filters = filters(&cores[..2]);
        assert_eq!(
            filters,
            [
                "(((orig_cpu>=0&&orig_cpu<=1))&&((dest_cpu>=0&&dest_cpu<=1)))||\
              (((orig_cpu>=2&&orig_cpu<=3))&&((dest_cpu>=2&&dest_cpu<=3)))"
            ]
        );
    }

    #[test]
    fn cpus_are_written_as_ranges() {
        let cpus: Group = [0, 1, 2, 5, 8, 9].into_iter().collect();
        assert_eq!(ranges(&cpus), [(0, 2), (5, 5), (8, 9)]);
    }

    #[test]
    fn no_filter_is_longer_than_a_page() {
        let cores: Vec<Group> = (0..256)
            .map(|n| [n, n + 256].into_iter().collect())
            .collect();
        let filters = filters(&cores);
        assert!(filters.len() > 1);
        assert!(filters.iter().all(|f| f.len() <= LONGEST_FILTER));
        let pairs = filters.iter().map(|f| f.matches("orig_cpu==").count());
        assert_eq!(pairs.sum::<usize>(), 512);
    }

    #[test]
    fn moving_this_thread_from_cpu_to_cpu_is_counted() {
        let mut migrations = match Migrations::open(Path::new("/")) {
            Ok(migrations) => migrations,
            Err(error) => return ::tests::skipped(format!("no tracepoints: {error}")),
        };
        let before: u64 = migrations.read().unwrap().iter().map(|(_, n)| n).sum();
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|cpu| allowed.is_set(*cpu))
            .collect();
        if cpus.len() < 2 {
            return ::tests::skipped("there is one CPU only");
        }
        for cpu in [cpus[0], cpus[1], cpus[0]] {
            let mut one = rustix::thread::CpuSet::new();
            one.set(cpu);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
        }
        let after: u64 = migrations.read().unwrap().iter().map(|(_, n)| n).sum();
        assert!(after >= before + 2, "{before} {after}");
    }
}
