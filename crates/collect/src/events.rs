//! Events of process trees by the names of perf list(1): hardware, software and cache events,
//! tracepoints and raw events of the CPU, counted by perf_event_open(2).
//!
//! A tree is counted from the exec of its first process on, with all that it starts, ended
//! tasks included. Hardware has few counters: where more events are asked for, the kernel lets
//! them take turns, and a count is scaled up by the share of the time in which it was counted.

use crate::tracefs;
use perf_event::events::Tracepoint;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use perf_event::{Builder, Counter};
use std::fmt;
use std::io;
use std::path::Path;

const HARDWARE: [(&str, Hardware); 14] = [
    ("cpu-cycles", Hardware::CPU_CYCLES),
    ("cycles", Hardware::CPU_CYCLES),
    ("instructions", Hardware::INSTRUCTIONS),
    ("cache-references", Hardware::CACHE_REFERENCES),
    ("cache-misses", Hardware::CACHE_MISSES),
    ("branch-instructions", Hardware::BRANCH_INSTRUCTIONS),
    ("branches", Hardware::BRANCH_INSTRUCTIONS),
    ("branch-misses", Hardware::BRANCH_MISSES),
    ("bus-cycles", Hardware::BUS_CYCLES),
    ("ref-cycles", Hardware::REF_CPU_CYCLES),
    ("stalled-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
    ("idle-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
    ("idle-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
];

const SOFTWARE: [(&str, Software); 13] = [
    ("cpu-clock", Software::CPU_CLOCK),
    ("task-clock", Software::TASK_CLOCK),
    ("context-switches", Software::CONTEXT_SWITCHES),
    ("cs", Software::CONTEXT_SWITCHES),
    ("cpu-migrations", Software::CPU_MIGRATIONS),
    ("migrations", Software::CPU_MIGRATIONS),
    ("page-faults", Software::PAGE_FAULTS),
    ("faults", Software::PAGE_FAULTS),
    ("minor-faults", Software::PAGE_FAULTS_MIN),
    ("major-faults", Software::PAGE_FAULTS_MAJ),
    ("alignment-faults", Software::ALIGNMENT_FAULTS),
    ("emulation-faults", Software::EMULATION_FAULTS),
    ("cgroup-switches", Software::CGROUP_SWITCHES),
];

/// The caches, and whether one stores and prefetches (cache_valid() of perf's parser).
const CACHES: [(&str, CacheId, bool, bool); 7] = [
    ("L1-dcache", CacheId::L1D, true, true),
    ("L1-icache", CacheId::L1I, false, true),
    ("LLC", CacheId::LL, true, true),
    ("dTLB", CacheId::DTLB, true, true),
    ("iTLB", CacheId::ITLB, false, false),
    ("branch", CacheId::BPU, false, false),
    ("node", CacheId::NODE, true, true),
];

const ACCESSES: [(&str, CacheOp, CacheResult); 6] = [
    ("loads", CacheOp::READ, CacheResult::ACCESS),
    ("load-misses", CacheOp::READ, CacheResult::MISS),
    ("stores", CacheOp::WRITE, CacheResult::ACCESS),
    ("store-misses", CacheOp::WRITE, CacheResult::MISS),
    ("prefetches", CacheOp::PREFETCH, CacheResult::ACCESS),
    ("prefetch-misses", CacheOp::PREFETCH, CacheResult::MISS),
];

/// The names of all events but tracepoints and raw ones.
pub fn event_names() -> Vec<String> {
    let plain = HARDWARE.iter().map(|(name, _)| *name);
    let plain = plain.chain(SOFTWARE.iter().map(|(name, _)| *name));
    let caches = caches().into_iter().map(|(name, _)| name);
    plain.map(str::to_owned).chain(caches).collect()
}

fn caches() -> Vec<(String, Cache)> {
    let mut all = Vec::new();
    for (cache, which, stores, prefetches) in CACHES {
        for (access, operation, result) in ACCESSES {
            let is_there = match operation {
                CacheOp::WRITE => stores,
                CacheOp::PREFETCH => prefetches,
                _ => true,
            };
            let event = Cache {
                which,
                operation,
                result,
            };
            all.extend(is_there.then(|| (format!("{cache}-{access}"), event)));
        }
    }
    all
}

/// An event as its name means it.
#[derive(Debug, Clone)]
pub struct Event {
    name: String,
    source: Source,
    in_user: bool,
    in_kernel: bool,
}

#[derive(Debug, Clone)]
enum Source {
    Hardware(Hardware),
    Software(Software),
    Cache(Cache),
    Raw(u64),
    /// `sched/sched_wakeup`.
    Tracepoint(String),
}

/// Why an event cannot be counted here.
#[derive(Debug)]
pub enum Refusal {
    /// The CPU, or the hypervisor below it, does not count it.
    NotHere(io::Error),
    /// The kernel has no such tracepoint; those of its subsystem, if it has the subsystem.
    NoTracepoint(Vec<String>),
    /// This process may not count it.
    NotAllowed(io::Error),
}

impl Event {
    /// The event of a name; `None` if perf list(1) has no such name. Whether a tracepoint is
    /// there is known only to the kernel.
    pub fn from_name(name: &str) -> Option<Self> {
        let (plain, modes) = match name.rsplit_once(':') {
            Some((plain, modes)) if source(plain).is_some() => (plain, modes),
            Some(_) => return Some(Event::new(name, Source::Tracepoint(tracepoint(name)?))),
            None => (name, "uk"),
        };
        let (in_user, in_kernel) = (modes.contains('u'), modes.contains('k'));
        let is_known = !modes.is_empty() && modes.chars().all(|c| "uk".contains(c));
        is_known.then_some(Event {
            in_user,
            in_kernel,
            ..Event::new(name, source(plain)?)
        })
    }

    fn new(name: &str, source: Source) -> Self {
        Event {
            name: name.to_owned(),
            source,
            in_user: true,
            in_kernel: true,
        }
    }

    /// The name that it was found by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Unit of its counts.
    pub fn unit(&self) -> &'static str {
        match self.source {
            Source::Software(Software::CPU_CLOCK | Software::TASK_CLOCK) => "ns",
            _ => "count",
        }
    }

    /// Counts it in a process that has not run its program yet, from then on, and in all that
    /// the process starts.
    pub fn on_exec(&self, root: &Path, pid: i32) -> io::Result<TreeCounter> {
        let mut builder = self.builder(root)?;
        builder.observe_pid(pid).enable_on_exec(true);
        Ok(TreeCounter(builder.build()?))
    }

    /// Would it be counted here? It is opened for this process and never started.
    pub fn try_here(&self, root: &Path) -> Result<(), Refusal> {
        let builder = self.builder(root).map_err(|error| self.no_id(root, error));
        let built = builder.and_then(|builder| builder.build().map_err(refusal));
        built.map(drop)
    }

    fn builder(&self, root: &Path) -> io::Result<Builder<'static>> {
        let mut builder = match &self.source {
            Source::Hardware(event) => Builder::new(*event),
            Source::Software(event) => Builder::new(*event),
            Source::Cache(event) => Builder::new(event.clone()),
            Source::Raw(config) => Builder::new(Raw::new(*config)),
            Source::Tracepoint(path) => {
                Builder::new(Tracepoint::with_id(tracefs::event_id(root, path)?))
            }
        };
        builder
            .any_cpu()
            .inherit(true)
            .exclude_user(!self.in_user)
            .exclude_kernel(!self.in_kernel);
        Ok(builder)
    }

    /// Only a tracepoint has a number to look up.
    fn no_id(&self, root: &Path, error: io::Error) -> Refusal {
        let subsystem = match &self.source {
            Source::Tracepoint(path) => path.split('/').next().unwrap_or_default(),
            _ => "",
        };
        match error.kind() {
            io::ErrorKind::NotFound => {
                Refusal::NoTracepoint(tracefs::list_events(root, subsystem).unwrap_or_default())
            }
            _ => Refusal::NotAllowed(error),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn refusal(error: io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Refusal::NotAllowed(error),
        _ => Refusal::NotHere(error),
    }
}

fn source(name: &str) -> Option<Source> {
    if let Some((_, event)) = HARDWARE.iter().find(|(event, _)| *event == name) {
        return Some(Source::Hardware(*event));
    }
    if let Some((_, event)) = SOFTWARE.iter().find(|(event, _)| *event == name) {
        return Some(Source::Software(*event));
    }
    if let Some((_, event)) = caches().into_iter().find(|(event, _)| event == name) {
        return Some(Source::Cache(event));
    }
    let number = name.strip_prefix('r')?;
    let is_raw = !number.is_empty() && number.chars().all(|c| c.is_ascii_hexdigit());
    let config = u64::from_str_radix(number, 16).ok().filter(|_| is_raw)?;
    Some(Source::Raw(config))
}

/// `sched/sched_wakeup` of `sched:sched_wakeup`.
fn tracepoint(name: &str) -> Option<String> {
    let (subsystem, event) = name.split_once(':')?;
    let plain = |part: &str| {
        let mut chars = part.chars();
        !part.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    (plain(subsystem) && plain(event)).then(|| format!("{subsystem}/{event}"))
}

/// An open counter of one process tree.
#[derive(Debug)]
pub struct TreeCounter(Counter);

impl TreeCounter {
    /// The count since the exec. An error where it cannot be read.
    pub fn read(&mut self) -> io::Result<Count> {
        let read = self.0.read_count_and_time()?;
        Ok(Count {
            count: read.count,
            enabled_ns: read.time_enabled,
            running_ns: read.time_running,
        })
    }
}

/// A reading of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of events that were counted.
    pub count: u64,
    /// Time in which a task of the tree ran and the event was wanted.
    pub enabled_ns: u64,
    /// Time of it in which the event was counted.
    pub running_ns: u64,
}

impl Count {
    /// The part since `earlier`.
    pub fn count_since(self, earlier: Count) -> Count {
        Count {
            count: self.count.saturating_sub(earlier.count),
            enabled_ns: self.enabled_ns.saturating_sub(earlier.enabled_ns),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
        }
    }

    /// Share of the time in which it was counted, up to 1.
    pub fn counted_share(self) -> f64 {
        match self.enabled_ns {
            0 => 1.0,
            enabled => self.running_ns as f64 / enabled as f64,
        }
    }

    /// The count, scaled up to the whole time; `None` if it was wanted and never counted.
    pub fn scaled_count(self) -> Option<f64> {
        match (self.enabled_ns, self.running_ns) {
            (enabled, running) if enabled == running => Some(self.count as f64),
            (_, 0) => None,
            (enabled, running) => Some(self.count as f64 * enabled as f64 / running as f64),
        }
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |sum, one| Count {
            count: sum.count + one.count,
            enabled_ns: sum.enabled_ns + one.enabled_ns,
            running_ns: sum.running_ns + one.running_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::{skipped, tree};
    use std::process::Command;

    #[test]
    fn names_are_those_of_perf_list() {
        let all = event_names();
        for name in [
            "cycles",
            "LLC-load-misses",
            "iTLB-loads",
            "dTLB-store-misses",
            "L1-icache-prefetches",
            "task-clock",
        ] {
            assert!(all.iter().any(|known| known == name), "{name}");
        }
        assert!(!all.iter().any(|known| known == "iTLB-stores"));
        assert!(all.iter().all(|name| Event::from_name(name).is_some()));
    }

    #[test]
    fn modes_and_tracepoints_are_told_apart() {
        let event = Event::from_name("cycles:u").unwrap();
        assert!(event.in_user && !event.in_kernel);
        assert!(Event::from_name("cycles:x").is_none());
        let event = Event::from_name("sched:sched_wakeup").unwrap();
        assert!(matches!(&event.source, Source::Tracepoint(path) if path == "sched/sched_wakeup"));
        for wrong in ["sched:", ":x", "a:b:c", "../x:y", "cycle", "r", "rxyz", ""] {
            assert!(Event::from_name(wrong).is_none(), "{wrong}");
        }
        let raw = Event::from_name("r01c2").unwrap();
        assert!(matches!(raw.source, Source::Raw(0x01c2)));
    }

    #[test]
    fn a_count_is_scaled_by_the_share_of_time_in_which_it_was_counted() {
        let count = |count, enabled_ns, running_ns| Count {
            count,
            enabled_ns,
            running_ns,
        };
        assert_eq!(count(10, 200, 100).scaled_count(), Some(20.0));
        assert_eq!(count(10, 100, 100).scaled_count(), Some(10.0));
        assert_eq!(count(0, 0, 0).scaled_count(), Some(0.0));
        assert_eq!(count(0, 100, 0).scaled_count(), None);
        let window = count(30, 300, 150).count_since(count(10, 100, 100));
        assert_eq!(window, count(20, 200, 50));
        assert_eq!(window.counted_share(), 0.25);
    }

    #[test]
    fn a_tracepoint_that_is_not_there_is_answered_with_those_that_are() {
        let root = tree(&[
            ("sys/kernel/tracing/events/sched/sched_switch/id", "314\n"),
            ("sys/kernel/tracing/events/sched/enable", "0\n"),
        ]);
        let event = Event::from_name("sched:sched_swich").unwrap();
        let Err(Refusal::NoTracepoint(there)) = event.try_here(root.path()) else {
            panic!("it is not there");
        };
        assert_eq!(there, ["sched_switch"]);
    }

    /// A shell that waits until it may run the program, as the agent's children do.
    fn counted(event: &Event, program: &str) -> io::Result<Count> {
        let gate = "read line; exec sh -c \"$0\"";
        let mut child = Command::new("sh")
            .args(["-c", gate, program])
            .stdin(std::process::Stdio::piped())
            .spawn()?;
        let pid = i32::try_from(child.id()).unwrap();
        let counter = event.on_exec(Path::new("/"), pid);
        drop(child.stdin.take());
        child.wait()?;
        counter?.read()
    }

    #[test]
    fn events_of_children_that_ended_are_counted() {
        // Each process waits: one that only ends may never have been switched out, since the
        // kernel takes its event away before its last switch.
        let program = "i=0; while [ $i -lt 20 ]; do sleep 0.05 & i=$((i+1)); done; wait";
        for name in ["sched:sched_process_fork", "context-switches"] {
            let event = Event::from_name(name).unwrap();
            match counted(&event, program) {
                Ok(count) => assert!(count.count >= 20, "{name}: {count:?}"),
                Err(error) => skipped(format!("{name}: {error}")),
            }
        }
    }
}
