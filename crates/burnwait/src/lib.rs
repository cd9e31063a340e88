//! Workers that burn and wait (native): constant demand with known parameters, so that what
//! differs between two trials is the scheduler and not the load.
//!
//! A worker is a queue of events. An event burns its operations in one piece and is due again
//! its wait after that. Sets of workers with different events run together, and each worker is
//! judged by the share of the CPUs that it is entitled to. This is the design of schedbench
//! (George Dunlap, for Xen), with the fairness computed that it describes.

pub mod antagonist;
mod baseline;
mod burn;
mod company;
mod entitlement;
mod figures;
pub mod guests;
mod memory;
mod metrics;
mod pipe;
mod processes;
mod set_rules;
mod sets;
mod tally;
mod weight;
mod wire;
mod worker;
mod worker_process;

pub use company::{Company, beside_main, calibrate as calibrate_company, check as check_company};
use load::gate::Gate;
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    PartGroup, Phases, Run, Usual, Window, Work, crew, phase,
};
use metrics::METRICS;
use model::{Calibration, Invalid, KeyDef, Kind, Load, Problem, Task, Turns};
use pipe::Pipe;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
pub use sets::Set;
pub use sets::{published_sets, read as read_set, read_events};
use std::time::Duration;
use worker::{Member, Own, Shape, Worker};
pub use worker_process::process_main as worker_main;

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "set",
        "tables `[[workload.set]]`",
        "the published sets A and B",
        "Sets of workers. Each has a `name` and `events`, a list of texts such as `\"70 200us\"`: \
         thousands of operations that are done in one piece, and the wait until they are due \
         again. `\"70 every 10ms\"` is due at fixed times, and is to end before the next of them, for \
         which its worker has one CPU; \
         `\"70 random 10ms\"` waits a time that is drawn from 0 to 20ms; `\"8x10 5ms\"` is a burst \
         of eight pieces. A \
         worker of A burns 70 and waits 200us; one of B has seven events that burn 10, \
         20, 10, 10, 10, 10 and 30 and wait 300us each. A thousand operations take about a \
         microsecond: their unit is calibrated once for a run. `nice` gives the workers of a \
         set another weight, by which their entitlement counts, too; `count` is a number of \
         workers that does not follow the load. `role = \"antagonist\"` is for workers that are only in the \
         way: they take part in what everybody is entitled to, and no metric but `cpu_percent` counts them. `on` and `off` are the lengths of times in which \
         its events are due and are not, by turns. `after = \"NAME\"` makes a pipeline: the first \
         worker of that set hands over to the first of this one when a piece has ended, and so on; \
         events of this one have no wait (`\"30\"`). `cpus` places the workers (`\"0-1\"`, \
         `\"0%-50%\"`). `memory` is the size of a worker's memory beyond the caches, and \
         `memory-percent` the part of its work, by time alone, that waits for it (100). A set of \
         `processes` may have a `weight` (1 to 10000, usually 100) and a `quota` (`\"50%\"` of one CPU, for \
         all its workers together): each set is in a cgroup of its own then (`cpu.weight`, `cpu.max`), and \
         the CPUs are shared among the sets first. Workers that \
         are guests have a `weight` (1 to 65535, \
         usually 256) in place of the nice value, and may have a `cap` in percent of one CPU and \
         `soft-cpus`, those CPUs of the Xen host that they prefer (its soft affinity).",
    ),
    KeyDef::new(
        "workers",
        "`threads`, `processes` or `guests`",
        "`threads`",
        "What a worker is: a thread, a process, or a guest of Xen with one virtual CPU, on a target \
         with Xen.",
    ),
    KeyDef::new(
        "baselines",
        "`true` or `false`",
        "`false`",
        "Whether one worker of each set alone is measured as well, under all arms, as a workload \
         `NAME SET alone`. What a worker wants is calibrated in any case, once and under no arm.",
    ),
    KeyDef::new(
        "interval",
        "duration",
        "`1s`",
        "Length of the intervals in which each worker's progress is recorded.",
    ),
];

/// The kind `burnwait`.
pub static KIND: KindDef = KindDef {
    name: "burnwait",
    aliases: &[],
    summary: "workers that burn and wait, many at once, judged by the share that each is entitled \
              to (native; what schedbench measures)",
    loads: LoadForms::Counts,
    load_unit: "workers of each set",
    window: Window::Phased,
    usual: Usual {
        load: Load::Count(4),
        duration_ns: 5_000_000_000,
        warmup_ns: 500_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<BurnWait>(),
    client: false,
    metrics: METRICS,
    deciding: &["work_per_sec", "fairness_percent", "lateness_p99"],
    logs: &["lateness"],
    watched: &["lateness"],
    tasks: &[Task::Thread("burnwait")],
    programs: &[],
    handicap: false,
    turns: true,
};

/// The calibrated unit of work: operations that take a microsecond.
const OPERATIONS_PER_KOP: &str = "operations_per_kop";
/// Cycles of a worker in a window, at least: what it does in fewer is by chance.
const FEWEST_CYCLES: u64 = 3;
/// Shorter intervals hold too few events to be told apart.
const SHORTEST_INTERVAL_NS: u64 = 10_000_000;

/// Workers that burn and wait. The load is the number of workers of each set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BurnWait {
    /// Sets of workers, which all run together.
    pub sets: Vec<Set>,
    /// Form of a worker.
    #[serde(default, skip_serializing_if = "Workers::are_threads")]
    pub workers: Workers,
    /// Length of an interval.
    pub interval_ns: u64,
    /// True if each set has a cell in which one of its workers is alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baselines: bool,
}

/// Form of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workers {
    /// A thread of the load.
    #[default]
    Threads,
    /// A process of its own, which ends with the load.
    Processes,
    /// A guest of Xen with one virtual CPU.
    Guests,
}

impl Workers {
    /// Word for it, as in experiment files.
    fn name(self) -> &'static str {
        match self {
            Workers::Threads => "threads",
            Workers::Processes => "processes",
            Workers::Guests => "guests",
        }
    }

    fn are_threads(&self) -> bool {
        *self == Workers::Threads
    }
}

impl Params for BurnWait {
    fn read(keys: &mut Keys) -> Self {
        BurnWait {
            sets: keys
                .tables("set", sets::read)
                .unwrap_or_else(sets::published_sets),
            workers: keys.get("workers").unwrap_or_default(),
            baselines: keys.get("baselines").unwrap_or_default(),
            interval_ns: keys.duration("interval").unwrap_or(1_000_000_000),
        }
    }
}

/// The problem of a set whose CPUs the load may not use.
fn elsewhere(job: &Job, set: &Set) -> Option<Problem> {
    let allowed = load::allowed_cpus();
    let what = match model::choose_cpus(set.cpus.as_ref()?, &allowed) {
        Ok(cpus) => {
            let other = cpus.iter().find(|cpu| !allowed.contains(cpu))?;
            format!(
                "the set {} is placed on CPU {other}, which the load may not use",
                set.name
            )
        }
        Err(what) => format!("the cpus of the set {}: {what}", set.name),
    };
    Some(job.problem(what, "cpus = \"0-1\", or a part of them: \"0%-50%\""))
}

impl BurnWait {
    /// Number of workers of all sets, and the memory that they need at least.
    fn needs(&self, job: &Job) -> (u64, u64) {
        let count = job.load_count();
        // The unit of work has no part in it.
        let shape = Shape {
            duration_ns: job.measured_ns(),
            interval_ns: self.interval_ns,
            operations_per_kop: 1,
        };
        let of_set = |set: &Set| {
            let bytes = memory::of_worker(set, self.workers, shape);
            let workers = set.count.unwrap_or(count);
            (workers, workers.saturating_mul(bytes))
        };
        let add = |(workers, bytes): (u64, u64), (more, their): (u64, u64)| {
            (workers.saturating_add(more), bytes.saturating_add(their))
        };
        self.sets.iter().map(of_set).fold((0, 0), add)
    }

    /// A set with a piece of work that fills an interval, in which nothing could end. Among others it
    /// lasts as many times as long as there are workers for a CPU; the pool of guests is not known yet.
    fn beyond_interval(&self, job: &Job) -> Option<String> {
        let (workers, _) = self.needs(job);
        let for_a_cpu = match self.in_guests() {
            true => 1,
            false => (workers / u64::from(job.cpus.max(1))).max(1),
        };
        let longest_ns = |set: &Set| {
            let kops = set.events.iter().map(|event| event.kops).max();
            let alone_ns = kops.unwrap_or(0).saturating_mul(tally::NS_PER_KOP);
            alone_ns.saturating_mul(for_a_cpu)
        };
        let mut sets = self.sets.iter();
        let set = sets.find(|set| longest_ns(set).saturating_mul(2) > self.interval_ns)?;
        let among = match for_a_cpu {
            1 => String::new(),
            _ => format!(", with {for_a_cpu} workers for each CPU"),
        };
        Some(format!(
            "a piece of work of the set {} takes {} or more{among}, and the interval of {} is to have two",
            set.name,
            model::format_duration_ns(longest_ns(set)),
            model::format_duration_ns(self.interval_ns)
        ))
    }

    /// A set that does not do the same often enough in a window.
    fn beyond_window(&self, duration_ns: u64) -> Option<String> {
        let cycle_ns = |set| baseline::cycle_ns(&self.sets, set);
        let is_beyond = |set: &usize| cycle_ns(*set).saturating_mul(FEWEST_CYCLES) > duration_ns;
        let set = (0..self.sets.len()).find(is_beyond)?;
        Some(format!(
            "a worker of the set {} does the same again after {}, and the window of {} has less than \
             {FEWEST_CYCLES} of these cycles",
            self.sets[set].name,
            model::format_duration_ns(cycle_ns(set)),
            model::format_duration_ns(duration_ns)
        ))
    }

    fn shape(&self, job: &Job, duration_ns: u64) -> Shape {
        let calibrated = job.calibration.values.get(OPERATIONS_PER_KOP).copied();
        Shape {
            duration_ns,
            interval_ns: self.interval_ns,
            operations_per_kop: calibrated.unwrap_or_else(burn::operations_per_us),
        }
    }

    /// The workers in the order of their start. One of each set, over and over, so that no set
    /// stands together in time; the seed says which is the first.
    fn order(&self, job: &Job) -> Vec<Member> {
        let count = job.load_count();
        let count_of = |set: &Set| set.count.unwrap_or(count);
        let most = self.sets.iter().map(count_of).max().unwrap_or_default();
        let sets = self.sets.len().max(1) as u64;
        let first = usize::try_from(job.seed % sets).unwrap_or_default();
        let round = |round: u64| {
            let number = usize::try_from(round).unwrap_or(usize::MAX);
            let sets = self.sets.iter().enumerate();
            let left = sets.cycle().skip(first).take(self.sets.len());
            let left = left.filter(move |(_, set)| round < count_of(set));
            left.map(move |(set, _)| Member { set, number })
        };
        (0..most).flat_map(round).collect()
    }

    /// The workers in the order of their start, and what each has for itself. Each begins within
    /// one wait, or one cycle, of the load's start, as the seed of the trial says: blocks differ in how
    /// their workers meet, and all arms of a block have the same.
    fn owns(&self, job: &Job) -> Vec<(Member, Own)> {
        let mut random = ChaCha8Rng::seed_from_u64(job.seed);
        let order = self.order(job);
        let sets: Vec<usize> = order.iter().map(|member| member.set).collect();
        let pipes = Pipe::lay_pipes(&self.sets, &sets);
        let own = |(member, pipe): (Member, Pipe)| {
            let set = &self.sets[member.set];
            let want = baseline::Want::from_calibration(&set.name, &job.calibration);
            let own = Own {
                after_ns: random.random_range(0..=set.apart_ns()),
                seed: random.random(),
                pipe,
                reads_per_ms: want.map_or(0, |want| want.reads_per_ms),
            };
            (member, own)
        };
        order.into_iter().zip(pipes).map(own).collect()
    }

    /// The work of each thread.
    fn works(&self, job: &Job) -> Vec<crew::Work<worker::Record>> {
        let shape = self.shape(job, job.measured_ns());
        let work = |(member, own): (Member, Own)| -> crew::Work<worker::Record> {
            let set = self.sets[member.set].clone();
            let turns = job.turns.clone();
            Box::new(move |gate| {
                let settled = Settled::new(member, &set, shape, own)?;
                settled.in_turns(turns.as_ref()).run(gate)
            })
        };
        self.owns(job).into_iter().map(work).collect()
    }
}

/// A worker on the calling thread, which has the CPUs and the nice value of its set.
struct Settled {
    set: String,
    cpus: Option<Vec<u32>>,
    worker: Worker,
}

impl Settled {
    fn new(member: Member, set: &Set, shape: Shape, own: Own) -> Result<Self, String> {
        let cpus = set.cpus.as_deref().map(place).transpose()?;
        if set.nice != 0 {
            weight::take_nice(set.nice)?;
        }
        Ok(Settled {
            set: set.name.clone(),
            cpus,
            worker: Worker::new(member, set, shape, own)?,
        })
    }

    fn in_turns(mut self, turns: Option<&Turns>) -> Self {
        self.worker = self.worker.in_turns(turns);
        self
    }

    /// From the gate to the end of the window. An error where it was not on its CPUs.
    fn run(self, gate: &Gate) -> Result<worker::Record, String> {
        let record = self.worker.run(gate);
        let cpus = &record.standing.cpus;
        match self.cpus {
            // Where the load was stopped early, nobody has looked.
            Some(placed) if *cpus != placed && !cpus.is_empty() => Err(format!(
                "a worker of the set {} was on the CPUs {cpus:?} and not on {placed:?}: does an arm \
                 place the load?",
                self.set
            )),
            _ => Ok(record),
        }
    }
}

/// Keeps the calling thread to its set's CPUs, which are returned.
fn place(cpus: &str) -> Result<Vec<u32>, String> {
    let chosen = model::choose_cpus(cpus, &load::allowed_cpus())?;
    let kept = load::sys::keep_to(&chosen);
    kept.map_err(|e| format!("keep a worker to the CPUs {cpus}: {e}"))?;
    Ok(chosen)
}

impl Driver for BurnWait {
    fn check(&self) -> Result<(), Invalid> {
        if self.interval_ns < SHORTEST_INTERVAL_NS {
            let least = model::format_duration_ns(SHORTEST_INTERVAL_NS);
            return Err(Invalid::new(
                "interval",
                format!("`interval` is at least {least}"),
            ));
        }
        if self.sets.is_empty() {
            return Err(Invalid::new("set", "there are no sets of workers"));
        }
        set_rules::check(&self.sets, self.workers)?;
        baseline::check(&self.sets)
    }

    fn in_guests(&self) -> bool {
        self.workers == Workers::Guests
    }

    fn never_in_turns(&self) -> Option<String> {
        let are = match self.workers {
            Workers::Threads => return None,
            Workers::Processes => "processes",
            Workers::Guests => "guests",
        };
        Some(format!(
            "its workers are {are}, which record for their whole life"
        ))
    }

    fn baselines(&self) -> Vec<(String, Kind)> {
        // A set that another hands over to does nothing alone.
        let apart = self
            .sets
            .iter()
            .filter(|set| set.after.is_none() && set.is_judged());
        // It is in a cgroup where it has company in one.
        let weight = |set: &Set| match self.groups().is_empty() {
            true => set.weight,
            false => Some(set.group_weight()),
        };
        let alone = |set: &Set| {
            let load = BurnWait {
                sets: vec![Set {
                    count: Some(1),
                    weight: weight(set),
                    ..set.clone()
                }],
                baselines: false,
                ..self.clone()
            };
            (set.name.clone(), KIND.with_params(&load))
        };
        match self.baselines {
            true => apart.map(alone).collect(),
            false => Vec::new(),
        }
    }

    fn groups(&self) -> Vec<PartGroup> {
        match self.workers {
            Workers::Processes => processes::groups(&self.sets),
            Workers::Threads | Workers::Guests => Vec::new(),
        }
    }

    fn deciding_metrics(&self) -> &[&'static str] {
        match &self.sets[..] {
            // With nobody beside it, there is nothing to be fair about.
            [alone] if alone.count == Some(1) => &["work_per_sec", "lateness_p99"],
            _ => &[],
        }
    }

    fn tells_worst(&self) -> bool {
        self.workers == Workers::Threads
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.interval_ns > job.workload.duration_ns {
            let what = "the interval is longer than the window".to_owned();
            problems.push(job.problem(what, "give the workload a shorter `interval`"));
        }
        if let Some(what) = self.beyond_interval(job) {
            problems
                .push(job.problem(what, "use a longer `interval`, or events in several pieces"));
        }
        if let Some(what) = self.beyond_window(job.workload.duration_ns) {
            problems.push(job.problem(what, "use a longer `duration`, of many of its cycles"));
        }
        if self.in_guests() {
            problems.extend(guests::require(self, job));
        } else {
            let available = doors::read::kernel_text("/proc/meminfo").unwrap_or_default();
            let (workers, bytes) = self.needs(job);
            if let Some(what) = memory::find_excess(workers, bytes, &available) {
                let remedy = "lower the load, the `count` of the sets, or the `duration`";
                problems.push(job.problem(what, remedy));
            }
            problems.extend(self.sets.iter().filter_map(|set| elsewhere(job, set)));
            let files = match self.workers {
                Workers::Processes => processes::beyond_files(workers, load::sys::most_files()),
                Workers::Threads | Workers::Guests => None,
            };
            let remedy = "lower the load, or raise the limit (ulimit -Hn)";
            problems.extend(files.map(|what| job.problem(what, remedy)));
        }
        let raised = self.sets.iter().find(|set| set.nice < 0);
        if let Some(set) = raised.filter(|_| !rustix::process::geteuid().is_root()) {
            let what = format!(
                "the set {} has nice {}, which needs root",
                set.name, set.nice
            );
            problems.push(job.problem(what, "run as root, or raise the nice of the other sets"));
        }
        problems
    }

    fn starts_within(&self, load: Load) -> Duration {
        if !self.in_guests() {
            return Duration::ZERO;
        }
        // Guests of a percentage of the CPUs: of two at least.
        let count = load.resolve_count(2).unwrap_or(1);
        let each = self.sets.iter().map(|set| set.count.unwrap_or(count));
        let guests = u32::try_from(each.fold(0, u64::saturating_add)).unwrap_or(u32::MAX);
        guests::BOOTS_WITHIN.saturating_mul(guests)
    }

    fn calibrates_within(&self) -> Duration {
        baseline::limit(&self.sets)
    }

    fn calibrate(&self, job: &Job, _run: &mut Run) -> Result<Calibration, String> {
        if self.in_guests() {
            return guests::calibrate(self, job);
        }
        let mut calibration = Calibration {
            of_all_loads: true,
            ..Calibration::default()
        };
        // The unit is the machine's: all workloads of a run have the same.
        let known = job.calibration.values.get(OPERATIONS_PER_KOP).copied();
        let unit = known.unwrap_or_else(burn::operations_per_us);
        calibration
            .values
            .insert(OPERATIONS_PER_KOP.to_owned(), unit);
        let wants = baseline::measure_wants(&self.sets, self.interval_ns, unit)?;
        for (set, want) in self.sets.iter().zip(wants) {
            want.store(&set.name, &mut calibration);
        }
        Ok(calibration)
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        match self.workers {
            Workers::Threads => {}
            Workers::Processes => return processes::generate(self, job, phases),
            Workers::Guests => return guests::generate(self, job, phases),
        }
        let works = self.works(job);
        let (opened, records) = crew::run(worker::THREAD, works, job, phases)?;
        figures::compute_figures(self, job, records, opened, None).map_err(NativeError::Generator)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}

#[cfg(test)]
mod tests;
