//! Kinds of workload: what an entry of their table says.
//!
//! A kind is one module of a crate above this one with its parameters and a [`KindDef`], and one line
//! in the catalogue, which puts it into [`KINDS`].
//! Whatever else has to know about kinds asks here: the reader of experiment files, the
//! lists of the command line, the agent for versions of programs, the schedulers for the
//! tasks that are measured.

use crate::registry::Registry;
use crate::roles::{ANTAGONISTS, SERVERS};
use crate::{
    Chosen, Driver, Entry, Keys, Params, Work, check_installed, latency, params, recording,
};
use model::{
    Experiment, KeyDef, Kind, Load, MetricDef, Problem, Program, Task, Tracing, Workload,
    format_duration_ns,
};

/// All kinds of the catalogue, the main one first.
pub static KINDS: Registry<KindDef> = Registry::new(&[]);

/// Programs of the catalogue that no entry names.
pub(crate) static INSTALLABLE: Registry<Program> = Registry::new(&[]);

/// A kind of workload: all that holds for every workload of it.
#[derive(Debug, Clone, Copy)]
pub struct KindDef {
    /// Name in the experiment file.
    pub name: &'static str,
    /// Other names that the file may use.
    pub aliases: &'static [&'static str],
    /// One sentence for `schedlab list workloads`.
    pub summary: &'static str,
    /// Forms in which its loads may be written.
    pub loads: LoadForms,
    /// The unit of a load: `workers`, `groups`, ….
    pub load_unit: &'static str,
    /// Part of the life of its process that is measured.
    pub window: Window,
    /// Load and lengths of time where the file names none.
    pub usual: Usual,
    /// The keys that [`Params::read`] asks for, in the same order.
    pub keys: &'static [KeyDef],
    /// The parameters, which do the work.
    pub work: Work<dyn Driver>,
    /// Has an open-loop client with a role of its own beside that of the server?
    pub client: bool,
    /// Metrics that a trial may have; not every trial has all of them.
    pub metrics: &'static [MetricDef],
    /// Metrics that decide when a cell stops, most important first.
    pub deciding: &'static [&'static str],
    /// Interval logs (`NAME.hlog`) that a trial leaves.
    pub logs: &'static [&'static str],
    /// Logs that report when, and on which thread, their worst value occurred: a recorder of each
    /// is `watched_as` its name.
    pub watched: &'static [&'static str],
    /// Tasks whose scheduling is measured, as they are named to a scheduler that can favour
    /// some. Tasks that only make requests are not among them.
    pub tasks: &'static [Task],
    /// Programs from PATH that do the work.
    pub programs: &'static [Program],
    /// Can the load carry the handicap of an arm (`handicap = "5%"`)?
    pub handicap: bool,
    /// Does its load record window by window, so that arms can take turns under it?
    pub turns: bool,
}

/// Values that hold where the experiment file says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Usual {
    /// Load where the file has no `loads`.
    pub load: Load,
    /// Length of the measured window.
    pub duration_ns: u64,
    /// Length of the warm-up before the window.
    pub warmup_ns: u64,
    /// `None`: ten times the window, and a minute.
    pub time_limit_ns: Option<u64>,
}

impl KindDef {
    /// The parameters that the keys of a workload give. Faults stay in the keys.
    pub fn read(&self, keys: &mut Keys) -> Kind {
        self.work.read(self.name, keys)
    }

    /// The kind with these parameters, which must be its own.
    pub fn with_params(&self, params: &impl Params) -> Kind {
        params::kind(self.name, params)
    }
}

impl Entry for KindDef {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn keys(&self) -> &'static [KeyDef] {
        self.keys
    }

    fn asked_keys(&self) -> Vec<&'static str> {
        self.work.asked_keys()
    }
}

/// Forms that the loads of a kind may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadForms {
    /// A number, or a percentage of the CPUs.
    Counts,
    /// A number, a percentage of the CPUs, or a rate.
    CountsOrRates,
    /// A rate, a search for the highest rate that holds a service level, or a share of that.
    Rates,
    /// A rate, or a share of the highest one, which whole trials look for: its process has one rate.
    RatesOfTrials,
    /// A rate.
    FixedRates,
}

impl LoadForms {
    /// True if a load may be of this form.
    pub fn has_form(self, load: &Load) -> bool {
        match load {
            Load::One | Load::Count(_) | Load::PercentOfCpus(_) => {
                matches!(self, LoadForms::Counts | LoadForms::CountsOrRates)
            }
            Load::RatePerSec(_) => self != LoadForms::Counts,
            Load::MaxRate(_) => self == LoadForms::Rates,
            Load::ShareOfMax(_) => matches!(self, LoadForms::Rates | LoadForms::RatesOfTrials),
        }
    }
}

/// The part of the life of its workload that a trial measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The part that the workload announces, after a warm-up ([`crate::phase`]).
    Phased,
    /// The part that the program itself measures, of a length that it is given.
    Own,
    /// All of it: the program does a set amount of work.
    Whole,
}

/// The kind with this name or alias.
pub fn find(name: &str) -> Option<&'static KindDef> {
    KINDS.find(name)
}

/// Names and aliases of all kinds.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.names()
}

/// The work of a kind; an error if this version has no such kind, or not with these
/// parameters.
pub fn driver(kind: &Kind) -> Result<Box<dyn Driver>, String> {
    check_installed()?;
    let name = kind.name();
    let def = find(name).ok_or_else(|| format!("there is no workload `{name}`"))?;
    let params = def.work.open(kind.params());
    params.map_err(|error| format!("the parameters of the workload `{name}`: {error}"))
}

/// A workload in one line, for plans and lists.
pub fn summary(workload: &Workload) -> String {
    let whole = find(workload.kind.name()).is_some_and(|def| def.window == Window::Whole);
    let chosen = driver(&workload.kind).map_or(Vec::new(), |driver| driver.chosen_programs());
    let program = chosen.into_iter().find_map(|chosen| match chosen {
        Chosen::Program(argv) if whole => Some(argv.join(" ")),
        _ => None,
    });
    program.unwrap_or_else(|| {
        let before = workload.snapshot_warmup_ns.map(|ns| {
            let ns = format_duration_ns(ns);
            format!(" ({ns} before the snapshot)")
        });
        format!(
            "{}, {} after {} warm-up{}",
            workload.kind.name(),
            format_duration_ns(workload.duration_ns),
            format_duration_ns(workload.warmup_ns),
            before.unwrap_or_default()
        )
    })
}

/// Every metric with the kind of workload that measures it.
pub fn metric_defs() -> Vec<(&'static str, MetricDef)> {
    let of_kind = |def: &'static KindDef| {
        let name = def.name;
        def.metrics.iter().map(move |metric| (name, *metric))
    };
    KINDS.iter().flat_map(of_kind).collect()
}

/// Programs that workloads, their servers and their antagonists start by name, each once.
pub fn programs() -> Vec<Program> {
    let mut all: Vec<Program> = Vec::new();
    let of_kinds = KINDS.iter().flat_map(|def| def.programs);
    for program in of_kinds
        .chain(SERVERS.programs())
        .chain(ANTAGONISTS.programs())
    {
        if !all.contains(program) {
            all.push(*program);
        }
    }
    all
}

/// The same, and those that can be installed and that no entry of the catalogue names.
pub fn all_programs() -> Vec<Program> {
    programs()
        .into_iter()
        .chain(INSTALLABLE.iter().copied())
        .collect()
}

/// Those that trials of the experiment can start: programs of its kinds, and those that its text names.
pub fn programs_of(experiment: &Experiment) -> Vec<Program> {
    // An experiment that was read can be written.
    let text = serde_json::to_string(experiment).unwrap_or_default();
    let has_kind = |name: &str| text.contains(&format!("\"{name}\""));
    let of_kinds = KINDS.iter().filter(|def| has_kind(def.name));
    let of_kinds: Vec<_> = of_kinds.flat_map(|def| def.programs).collect();
    let of_servers = SERVERS.programs_of(has_kind);
    let of_antagonists = ANTAGONISTS.programs_of(has_kind);
    let of_roles: Vec<_> = of_servers.chain(of_antagonists).collect();
    let mut all = all_programs();
    all.retain(|program| {
        text.contains(program.name) || of_kinds.contains(&program) || of_roles.contains(&program)
    });
    all
}

/// Tasks that workloads measure: those of the native loads and servers, and the programs
/// that are started by name. What makes requests to a server is not among them, nor is the
/// program of a `command`, which has any name.
pub fn measured_tasks() -> Vec<Task> {
    let of_kinds = KINDS.iter().flat_map(|def| def.tasks);
    let all = of_kinds.chain(SERVERS.tasks()).chain(ANTAGONISTS.tasks());
    all.copied().collect()
}

/// The metrics that decide when the cells of a workload stop: those of its load, and of each co-runner.
pub fn deciding_metrics(workload: &Workload) -> Vec<String> {
    let mut deciding = own_deciding_metrics(workload);
    for co_runner in &workload.co_runners {
        let own = own_deciding_metrics(co_runner);
        deciding.extend(own.iter().map(|metric| co_runner.name_beside(metric)));
    }
    deciding
}

fn own_deciding_metrics(workload: &Workload) -> Vec<String> {
    let searches = |load: &Load| matches!(load, Load::MaxRate(_));
    if workload.loads.iter().any(searches) {
        return vec![latency::SLO_RATE.name.to_owned()];
    }
    let own = driver(&workload.kind).map_or(Vec::new(), |driver| {
        let mut own = driver.own_metrics();
        own.extend(driver.deciding_metrics());
        own.into_iter().map(str::to_owned).collect()
    });
    if !own.is_empty() {
        return own;
    }
    let names = find(workload.kind.name()).map_or(&[][..], |def| def.deciding);
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The interval log (`NAME.hlog`) of a trial that a quantile or maximum comes from; `None`
/// for figures without one.
pub fn log_of(workload: &Workload, load: &Load, metric: &str) -> Option<&'static str> {
    // A search keeps what it tried, not the histograms.
    if matches!(load, Load::MaxRate(_)) {
        return None;
    }
    let logs = find(workload.kind.name()).map_or(&[][..], |def| def.logs);
    recording::log_among(logs, metric)
}

/// The log of a workload whose worst value a trace is made of: the one that is named, as a log
/// or by one of its metrics; else that of the first metric that decides and has one, else the
/// first of the kind. The error says which there are.
pub fn watched_log(
    workload: &Workload,
    load: &Load,
    trace: &Tracing,
) -> Result<&'static str, Problem> {
    let is_told = crate::driver(&workload.kind).map_or(true, |driver| driver.tells_worst());
    let watched = match (find(workload.kind.name()), load) {
        (Some(def), load) if is_told && !matches!(load, Load::MaxRate(_)) => def.watched,
        _ => &[],
    };
    let among = |name: &str| {
        let mut logs = watched.iter().copied();
        logs.find(|log| *log == name)
            .or_else(|| recording::log_among(watched, name))
    };
    let found = match &trace.worst_of {
        Some(name) => among(name),
        None => {
            let mut deciding = workload.metrics.iter();
            let deciding = deciding.find_map(|metric| among(metric));
            deciding.or_else(|| watched.first().copied())
        }
    };
    found.ok_or_else(|| unwatched(&workload.name, trace, watched))
}

fn unwatched(workload: &str, trace: &Tracing, watched: &[&str]) -> Problem {
    let trace = trace.words();
    let (what, remedy) = if watched.is_empty() {
        let kinds = KINDS.iter().filter(|def| !def.watched.is_empty());
        let kinds: Vec<&str> = kinds.map(|def| def.name).collect();
        (
            format!("trace {trace}: this load does not say when its worst latency was"),
            format!(
                "leave it out, or use a fixed load of one of {}",
                kinds.join(", ")
            ),
        )
    } else {
        let known: Vec<String> = watched.iter().map(|log| format!("worst:{log}")).collect();
        (
            format!("trace {trace}: this workload has no such latency"),
            format!("use {}", known.join(" or ")),
        )
    };
    Problem {
        object: format!("workload {workload}"),
        what,
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_with_rates_can_search() {
        let rate = Load::RatePerSec(1_000.0);
        assert!(
            LoadForms::CountsOrRates.has_form(&rate)
                && LoadForms::CountsOrRates.has_form(&Load::Count(1))
        );
        assert!(LoadForms::Rates.has_form(&rate) && !LoadForms::Rates.has_form(&Load::Count(1)));
        assert!(
            LoadForms::FixedRates.has_form(&rate) && !LoadForms::FixedRates.has_form(&Load::One)
        );
        assert!(LoadForms::Counts.has_form(&Load::One) && !LoadForms::Counts.has_form(&rate));
    }
}
