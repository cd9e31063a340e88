//! The file that schedbench is given, as an experiment of our own: the same sets of workers, first
//! one worker of each preset alone, then for every count that many of all presets together, under
//! every scheduler.
//!
//! Without `Runs` its `SimpleMatrix` is planned as the tool plans it. A file that was planned
//! already has `Runs`, and those are what is repeated, whether they were run or not.

mod input;
mod limits;

use crate::ImportError;
use crate::files::file_text;
use input::{Benchmark, Input, Params, Run, RunConfig, WorkerSet};
use limits::{Room, SMALLER, add_distinct, distinct_schedulers};
use model::check::MOST_CELLS;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

const REMEDY: &str = "give a whole file of schedbench, as its sample.bench is";
const NS_PER_SEC: u64 = 1_000_000_000;
/// Length of a run that says none.
const USUAL_SECONDS: u64 = 10;
/// Workers of a set beyond which no machine starts in time.
const MOST_WORKERS: u64 = 100_000;
/// Timers of Linux cannot wait for less.
const LEAST_WAIT_NS: u64 = 1_000;
const POLICIES: [&str; 5] = ["other", "batch", "idle", "fifo", "rr"];
const OF_XEN: [&str; 4] = ["credit", "credit2", "rtds", "null"];
/// The type of workers that are guests.
const OF_GUESTS: u32 = 1;
/// Guests boot, many at once, before a trial begins: none is to be told the start too late.
const GUESTS_WARMUP: &str = "5s";
const GUESTS_TIME_LIMIT: &str = "30m";
/// A guest with what the hypervisor needs for it, and dom0.
const GUEST_MIB: u64 = 256;
const DOM0_MIB: u64 = 1024;

/// Workers that run together, each set with its name and number.
type Together = Vec<(String, WorkerSet)>;

/// Scheduler that is compared, and whether Xen's toolstack is kept from choosing NUMA nodes.
#[derive(Clone, PartialEq, Eq)]
struct Under {
    scheduler: String,
    numa_disable: bool,
}

/// Contents of the file as they are asked for.
struct Wanted {
    schedulers: Vec<Under>,
    /// Cells with their length in seconds, in order.
    cells: Vec<(Together, u64)>,
}

#[derive(Serialize)]
struct File {
    name: String,
    question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    arm: Vec<Arm>,
    workload: Vec<Workload>,
}

/// A virtual machine with Xen.
#[derive(Serialize)]
struct Target {
    kind: &'static str,
    cpus: u32,
    memory: String,
    /// Nodes that the toolstack may choose among, where that is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<BTreeMap<&'static str, u32>>,
}

#[derive(Serialize)]
struct Arm {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<BTreeMap<&'static str, String>>,
    #[serde(
        rename = "hypervisor-scheduler",
        skip_serializing_if = "Option::is_none"
    )]
    hypervisor_scheduler: Option<BTreeMap<&'static str, toml::Value>>,
}

#[derive(Serialize, PartialEq)]
struct Workload {
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<&'static str>,
    loads: Vec<u64>,
    duration: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    warmup: Option<&'static str>,
    #[serde(rename = "time-limit", skip_serializing_if = "Option::is_none")]
    time_limit: Option<&'static str>,
    set: Vec<Set>,
}

#[derive(Serialize, PartialEq)]
struct Set {
    name: String,
    events: Vec<String>,
    /// Number of workers, where it is not the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

/// Text of the experiment file that does what a file of schedbench asks for.
pub fn experiment_text(path: &Path) -> Result<String, ImportError> {
    let text = file_text(path)?;
    let refuse = |what: String, remedy: &str| ImportError::in_file(path, what, remedy);
    if text.trim().is_empty() {
        return Err(refuse("the file is empty".to_owned(), REMEDY));
    }
    let benchmark: Benchmark =
        serde_json::from_str(&text).map_err(|e| ImportError::in_json(path, &e, REMEDY))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let file = of(&benchmark, &stem).map_err(|(what, remedy)| refuse(what, &remedy))?;
    let text = toml::to_string(&file).map_err(|e| refuse(e.to_string(), REMEDY))?;
    Ok(format!(
        "# Made of {}, a file of schedbench.\n{text}",
        stem.replace(char::is_control, " ")
    ))
}

type Fault = (String, String);

fn fault<T>(what: impl Into<String>, remedy: &str) -> Result<T, Fault> {
    Err((what.into(), remedy.to_owned()))
}

fn of(benchmark: &Benchmark, stem: &str) -> Result<File, Fault> {
    let presets = benchmark.input.as_ref().map(|input| &input.worker_presets);
    // Each set of workers is looked up among all of them.
    if presets.is_some_and(|presets| presets.len() > MOST_CELLS) {
        return fault(
            format!("there are more than {MOST_CELLS} WorkerPresets in it"),
            SMALLER,
        );
    }
    let wanted = match benchmark.runs.as_deref() {
        Some(runs) if !runs.is_empty() => of_runs(runs, benchmark)?,
        _ => of_matrix(benchmark)?,
    };
    refuse_what_is_not_read(benchmark)?;
    let (cpus, pool) = place(benchmark)?;
    let arms = wanted.schedulers.iter().map(|under| arm(under, cpus, pool));
    let arms = arms.collect::<Result<Vec<Arm>, Fault>>()?;
    let is_of_xen = |arm: &Arm| arm.hypervisor_scheduler.is_some();
    let on_xen = arms.iter().any(is_of_xen);
    if let Some(other) = arms.iter().find(|arm| on_xen && !is_of_xen(arm)) {
        return fault(
            format!(
                "Schedulers has some of Xen and `{}`, which is not",
                other.name
            ),
            "make a file of each: workers are guests under those of Xen, and threads under those of Linux",
        );
    }
    if benchmark.worker_type == OF_GUESTS && !on_xen {
        return fault(
            "WorkerType 1 is guests of Xen, and there is no scheduler of Xen",
            "write \"Schedulers\": [\"credit\", \"credit2\"]: without any, the tool takes the one that the \
             pool has, and which that is the file does not say; or WorkerType 0 for threads of Linux",
        );
    }
    let mut workloads: Vec<Workload> = Vec::new();
    for (together, seconds) in &wanted.cells {
        let workload = workload(together, *seconds)?;
        add(
            &mut workloads,
            if on_xen {
                workload.in_guests()
            } else {
                workload
            },
        );
    }
    Ok(File {
        name: named(stem, "schedbench"),
        question: "What does each worker get of what it is entitled to?".to_owned(),
        target: on_xen.then(|| target(&wanted, cpus)),
        arm: arms,
        workload: workloads,
    })
}

/// CPUs and pool of all runs. The tool writes them into each run, which goes before what the file has.
fn place(benchmark: &Benchmark) -> Result<(&[u32], &str), Fault> {
    let all = &benchmark.run_config;
    let runs = benchmark.runs.iter().flatten();
    let mut places = runs.map(|run| place_of(run, all));
    let Some(first) = places.next() else {
        return Ok((&all.cpus, &all.pool));
    };
    match places.find(|place| *place != first) {
        Some(other) => {
            let in_words =
                |(cpus, pool): (&[u32], &str)| format!("the Cpus {cpus:?} of the pool `{pool}`");
            fault(
                format!(
                    "a run has {}, and another {}",
                    in_words(first),
                    in_words(other)
                ),
                "make a file for each: all arms of an experiment have the same workloads",
            )
        }
        None => Ok(first),
    }
}

fn place_of<'a>(run: &'a Run, all: &'a RunConfig) -> (&'a [u32], &'a str) {
    let own = &run.run_config;
    let mut cpus = [&run.cpus, &own.cpus, &all.cpus].into_iter();
    let mut pools = [&run.pool, &own.pool, &all.pool].into_iter();
    let cpus = cpus.find(|cpus| !cpus.is_empty());
    let pool = pools.find(|pool| !pool.is_empty());
    (
        cpus.map_or(&[], Vec::as_slice),
        pool.map_or("", String::as_str),
    )
}

/// Refuses what would make another experiment of it if it were passed over.
fn refuse_what_is_not_read(benchmark: &Benchmark) -> Result<(), Fault> {
    let runs = benchmark.runs.iter().flatten();
    let sets = runs.clone().flat_map(|run| &run.worker_sets);
    let of_sets = sets.map(|set| &set.config.soft_affinity);
    let of_runs = runs.map(|run| &run.soft_affinity);
    let mut soft = of_sets.chain(of_runs).chain([&benchmark.soft_affinity]);
    match soft.find(|soft| !soft.is_empty()) {
        Some(soft) => fault(
            format!("SoftAffinity `{soft}` is not read"),
            "take it out, and write `soft-cpus` of the sets into the experiment.toml that a run of \
             the file leaves in its results",
        ),
        None => Ok(()),
    }
}

/// A machine with the CPUs of the pool and one for dom0, and memory for the most guests.
fn target(wanted: &Wanted, cpus: &[u32]) -> Target {
    let guests = |(together, _): &(Together, u64)| {
        let counts = together.iter().map(|(_, set)| set.count);
        counts.fold(0, u64::saturating_add)
    };
    let most = wanted.cells.iter().map(guests).max().unwrap_or_default();
    let mib = DOM0_MIB.saturating_add(most.saturating_mul(GUEST_MIB));
    let cpus = cpus.iter().max().map_or(2, |last| last.saturating_add(1));
    let is_of_nodes = wanted.schedulers.iter().any(|under| under.numa_disable);
    // Nodes have equal shares of the CPUs.
    let cores = cpus.div_ceil(2).max(1);
    let nodes = [("sockets", 2), ("cores", cores), ("numa-nodes", 2)];
    Target {
        kind: "xen",
        cpus: match is_of_nodes {
            true => cores.saturating_mul(2),
            false => cpus.max(2),
        },
        memory: format!("{}G", mib.div_ceil(1024)),
        topology: is_of_nodes.then(|| nodes.into()),
    }
}

impl Workload {
    fn in_guests(self) -> Self {
        Workload {
            workers: Some("guests"),
            warmup: Some(GUESTS_WARMUP),
            time_limit: Some(GUESTS_TIME_LIMIT),
            ..self
        }
    }
}

/// Another load of a workload that is there, or a workload.
fn add(workloads: &mut Vec<Workload>, mut new: Workload) {
    let mut known = workloads.iter_mut();
    let same =
        known.find(|w| (&w.name, &w.duration, &w.set) == (&new.name, &new.duration, &new.set));
    match same {
        Some(same) => same.loads.append(&mut new.loads),
        None => workloads.push(new),
    }
}

/// As `schedbench plan` does it.
fn of_matrix(benchmark: &Benchmark) -> Result<Wanted, Fault> {
    let Some(Input {
        worker_presets: presets,
        simple_matrix: Some(matrix),
    }) = &benchmark.input
    else {
        return fault(
            "there are neither Runs nor an Input.SimpleMatrix in it",
            REMEDY,
        );
    };
    if matrix.workers.is_empty() || matrix.count.is_empty() {
        return fault("SimpleMatrix needs Workers and Count", REMEDY);
    }
    let mut room = Room::of_all();
    let mut set = |name: &String, count: u64| {
        let Some(params) = presets.get(name) else {
            return fault(
                format!("Workers names `{name}`, which is not in WorkerPresets"),
                REMEDY,
            );
        };
        room.take_text(name, params)?;
        Ok((name.clone(), WorkerSet::from_preset(params, count)))
    };
    let mut cells = Vec::new();
    for name in &matrix.workers {
        let alone = (vec![set(name, 1)?], USUAL_SECONDS);
        add_distinct(&mut cells, alone, MOST_CELLS, "cells")?;
    }
    for &count in &matrix.count {
        let together = matrix.workers.iter().map(|name| set(name, count));
        let cell = (
            together.collect::<Result<Together, Fault>>()?,
            USUAL_SECONDS,
        );
        // One of a lone preset is its baseline.
        add_distinct(&mut cells, cell, MOST_CELLS, "cells")?;
    }
    let own = &benchmark.run_config;
    let names = match matrix.schedulers.is_empty() {
        true => std::slice::from_ref(&own.scheduler),
        false => &matrix.schedulers,
    };
    let disabled = match matrix.numa_disable.is_empty() {
        true => &[own.numa_disable.unwrap_or_default()][..],
        false => &matrix.numa_disable,
    };
    let disabled = distinct_schedulers(disabled.iter().copied())?;
    let under = names.iter().flat_map(|scheduler| {
        disabled.iter().map(|&numa_disable| Under {
            scheduler: scheduler.clone(),
            numa_disable,
        })
    });
    Ok(Wanted {
        schedulers: distinct_schedulers(under)?,
        cells,
    })
}

/// Cells that were planned already: each set of workers once, under each scheduler.
fn of_runs(runs: &[Run], benchmark: &Benchmark) -> Result<Wanted, Fault> {
    let presets = benchmark.input.as_ref().map(|input| &input.worker_presets);
    let name = |index: usize, params: &Params| {
        let mut known = presets.into_iter().flatten();
        let found = known.find(|(_, preset)| *preset == params);
        found.map_or_else(|| format!("set{}", index + 1), |(name, _)| name.clone())
    };
    let mut cells: Vec<(Together, u64)> = Vec::new();
    let mut room = Room::of_all();
    for run in runs {
        let mut left = room;
        let sets = run.worker_sets.iter().enumerate();
        let sets = sets.map(|(index, set)| {
            let name = name(index, &set.params);
            left.take_text(&name, &set.params)?;
            Ok((name, set.clone()))
        });
        let sets = sets.collect::<Result<Together, Fault>>()?;
        let seconds = match run.runtime_seconds {
            0 => USUAL_SECONDS,
            seconds => seconds,
        };
        let known = cells.len();
        add_distinct(&mut cells, (sets, seconds), MOST_CELLS, "cells")?;
        // The same cell is there once, under each scheduler.
        if cells.len() > known {
            room = left;
        }
    }
    let under = |run: &Run| {
        let (own, all) = (&run.run_config, &benchmark.run_config);
        let said = [&run.scheduler, &own.scheduler, &all.scheduler];
        let said = said.into_iter().find(|name| !name.is_empty());
        let disabled = run.numa_disable.or(own.numa_disable).or(all.numa_disable);
        Under {
            scheduler: said.cloned().unwrap_or_default(),
            numa_disable: disabled.unwrap_or_default(),
        }
    };
    Ok(Wanted {
        schedulers: distinct_schedulers(runs.iter().map(under))?,
        cells,
    })
}

fn arm(under: &Under, cpus: &[u32], pool: &str) -> Result<Arm, Fault> {
    let scheduler = under.scheduler.as_str();
    if under.numa_disable && !OF_XEN.contains(&scheduler.trim()) {
        return fault(
            format!(
                "NumaDisable is a setting of Xen's toolstack, and `{scheduler}` is none of Xen's"
            ),
            "take NumaDisable out, and write arms of cpus = \"LIST\" in its place",
        );
    }
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let cpus = (!list.is_empty()).then(|| list.join(","));
    let arm = |name: &str| Arm {
        name: name.to_owned(),
        scheduler: None,
        cpus: cpus.clone(),
        policy: None,
        hypervisor_scheduler: None,
    };
    let program = scheduler.split_whitespace().next().unwrap_or_default();
    match scheduler.trim() {
        "" | "default" | "eevdf" => Ok(arm("default")),
        name if POLICIES.contains(&name) => Ok(Arm {
            policy: Some(BTreeMap::from([("class", name.to_owned())])),
            ..arm(name)
        }),
        text if program.starts_with("scx_") => Ok(Arm {
            scheduler: Some(text.to_owned()),
            ..arm(program)
        }),
        name if OF_XEN.contains(&name) => {
            let mut parts = BTreeMap::from([("scheduler", name.into())]);
            parts.extend(cpus.clone().map(|cpus| ("cpus", cpus.into())));
            let named = (!pool.is_empty()).then_some(("pool", pool.into()));
            parts.extend(named);
            // Without NumaDisable the toolstack does as it does for everybody.
            let off = under
                .numa_disable
                .then_some(("numa-placement", false.into()));
            parts.extend(off);
            // As the tool's own results are called when they are imported.
            let suffix = if under.numa_disable { " NumaOff" } else { "" };
            Ok(Arm {
                // The pool has them, and in it are the guests.
                cpus: None,
                hypervisor_scheduler: Some(parts),
                ..arm(&format!("{name}{suffix}"))
            })
        }
        name => fault(
            format!("Schedulers has `{name}`, which is no scheduler"),
            "write default, batch, idle, fifo, rr or scx_NAME, or credit, credit2, rtds or null of \
             Xen; `schedlab list arms` has all that an \
             experiment file can say",
        ),
    }
}

fn workload(together: &Together, seconds: u64) -> Result<Workload, Fault> {
    let Some(first) = together.first().map(|(_, set)| set.count) else {
        return fault("there is a run without WorkerSets", REMEDY);
    };
    // A number that all sets have is the load.
    let is_load = together.iter().all(|(_, set)| set.count == first);
    let labels = together.iter().map(|(name, set)| match is_load {
        true => name.clone(),
        false => format!("{name}{}", set.count),
    });
    let mut name = labels.collect::<Vec<_>>().join("-");
    if together.len() == 1 && first == 1 {
        name += "-baseline";
    }
    let sets = together.iter().map(|(name, set)| {
        let of_set = of_set(name, set)?;
        Ok(match is_load {
            true => Set {
                count: None,
                ..of_set
            },
            false => of_set,
        })
    });
    let sets = sets.collect::<Result<Vec<Set>, Fault>>()?;
    if seconds > u64::MAX / NS_PER_SEC {
        return fault(
            format!("a run of {seconds} s is longer than anything lasts"),
            REMEDY,
        );
    }
    Ok(Workload {
        kind: "burnwait",
        name: named(&name, "workers"),
        workers: None,
        loads: vec![if is_load { first } else { 1 }],
        duration: format!("{seconds}s"),
        warmup: None,
        time_limit: None,
        set: sets,
    })
}

fn of_set(name: &str, set: &WorkerSet) -> Result<Set, Fault> {
    if !(1..=MOST_WORKERS).contains(&set.count) {
        return fault(
            format!("{} workers of {name} cannot be started", set.count),
            &format!("a Count is from 1 to {MOST_WORKERS}"),
        );
    }
    let events = set.params.args.chunks(3).map(|event| of_event(name, event));
    let events: Result<Vec<String>, Fault> = events.collect();
    let events = events?;
    if events.is_empty() {
        return fault(format!("the preset {name} has no Args"), REMEDY);
    }
    Ok(Set {
        name: named(name, "set"),
        events,
        count: Some(set.count),
    })
}

fn of_event(name: &str, event: &[String]) -> Result<String, Fault> {
    let form =
        "an event is three texts: \"burnwait\", thousands of operations, nanoseconds to wait";
    let [word, kops, wait] = event else {
        return fault(format!("the Args of {name} end within an event"), form);
    };
    let numbers = (kops.parse::<u64>(), wait.parse::<u64>());
    let (Ok(kops), Ok(wait_ns), "burnwait") = (numbers.0, numbers.1, word.as_str()) else {
        return fault(
            format!("`{word} {kops} {wait}` of {name} is no event"),
            form,
        );
    };
    if (1..LEAST_WAIT_NS).contains(&wait_ns) {
        return fault(
            format!("a wait of {wait_ns} ns, in {name}, is below what timers resolve"),
            "wait 1000 ns or more, or 0 for work without a pause",
        );
    }
    Ok(format!("{kops} {wait_ns}ns"))
}

/// A name as experiments have them.
fn named(text: &str, otherwise: &str) -> String {
    let keep = |c: char| match c.is_ascii_alphanumeric() || c == '-' || c == '_' {
        true => c,
        false => '-',
    };
    let name: String = text.trim().chars().map(keep).collect();
    match name.trim_matches('-') {
        "" => otherwise.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
