//! Kinds of workload: the one table, and what an entry says.
//!
//! A kind is one module of this crate with a [`KindDef`], and one line in [`KINDS`].
//! Whatever else has to know about kinds asks here: the reader of experiment files, the
//! lists of the command line, the agent for versions of programs, the schedulers for the
//! tasks that are measured.

use crate::{command, hackbench, http, memcached, program, recording, schbench, wakeup};
use model::{Load, MetricDef, Program, Task, Workload};

/// All kinds, the main one first.
pub static KINDS: &[&KindDef] = &[
    &wakeup::KIND,
    &schbench::KIND,
    &hackbench::KIND,
    &command::KIND,
    &http::KIND,
    &memcached::KIND,
];

/// What holds for every workload of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KindDef {
    /// As in the experiment file.
    pub name: &'static str,
    /// Other names that the file may use.
    pub aliases: &'static [&'static str],
    /// One sentence for `schedlab list workloads`.
    pub summary: &'static str,
    pub loads: LoadForms,
    /// What a load counts: `workers`, `groups`, ….
    pub load_unit: &'static str,
    pub window: Window,
    /// Has an open-loop client with a role of its own beside that of the server?
    pub client: bool,
    pub metrics: &'static [MetricDef],
    /// Metrics that decide when a cell stops, most important first.
    pub deciding: &'static [&'static str],
    /// Interval logs (`NAME.hlog`) that a trial leaves.
    pub logs: &'static [&'static str],
    /// Tasks whose scheduling is measured, as they are named to a scheduler that can favour
    /// some. Tasks that only make requests are not among them.
    pub tasks: &'static [Task],
    /// Programs from PATH that do the work.
    pub programs: &'static [Program],
    /// Can the load carry the handicap of an arm (`handicap = "5%"`)?
    pub handicap: bool,
}

/// Forms that the loads of a kind may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadForms {
    /// A number, or a percentage of the CPUs.
    Counts,
    /// A number, a percentage of the CPUs, or a rate.
    CountsOrRates,
    /// A rate, or a search for the highest rate that holds a service level.
    Rates,
}

impl LoadForms {
    pub fn has(self, load: &Load) -> bool {
        match load {
            Load::One | Load::Count(_) | Load::PercentOfCpus(_) => self != LoadForms::Rates,
            Load::RatePerSec(_) => self != LoadForms::Counts,
            Load::MaxRate(_) => self == LoadForms::Rates,
        }
    }
}

/// What a trial measures of the life of its workload.
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
    let is_it = |def: &&&KindDef| def.name == name || def.aliases.contains(&name);
    KINDS.iter().find(is_it).copied()
}

/// Names and aliases of all kinds.
pub fn names() -> impl Iterator<Item = &'static str> {
    let all = KINDS.iter();
    all.flat_map(|def| std::iter::once(def.name).chain(def.aliases.iter().copied()))
}

/// Every metric with the kind of workload that measures it.
pub fn metric_defs() -> Vec<(&'static str, MetricDef)> {
    let of_kind = |def: &&'static KindDef| {
        let name = def.name;
        def.metrics.iter().map(move |metric| (name, *metric))
    };
    KINDS.iter().flat_map(of_kind).collect()
}

/// Programs that workloads, their servers and their antagonists start by name, each once.
pub fn programs() -> Vec<Program> {
    let mut all: Vec<Program> = Vec::new();
    let of_kinds = KINDS.iter().flat_map(|def| def.programs);
    for program in of_kinds.chain(program::OF_ROLES) {
        if !all.contains(program) {
            all.push(*program);
        }
    }
    all
}

/// Tasks that workloads measure: those of the native loads and servers, and the programs
/// that are started by name. What makes requests to a server is not among them, nor is the
/// program of a `command`, which has any name.
pub fn measured_tasks() -> Vec<Task> {
    let of_kinds = KINDS.iter().flat_map(|def| def.tasks);
    of_kinds.chain(program::TASKS_OF_ROLES).copied().collect()
}

/// The metrics that decide when the cells of a workload stop.
pub fn deciding(workload: &Workload) -> Vec<String> {
    let searches = |load: &Load| matches!(load, Load::MaxRate(_));
    if workload.loads.iter().any(searches) {
        return vec![crate::openloop::metrics::SLO_RATE.name.to_owned()];
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_kinds_share_a_name_or_an_alias() {
        let mut seen = BTreeSet::new();
        assert!(names().all(|name| seen.insert(name)));
        assert_eq!(find("messaging").map(|def| def.name), Some("hackbench"));
        assert_eq!(find("no-such-kind"), None);
    }

    #[test]
    fn what_decides_is_among_the_metrics_of_the_kind() {
        for def in KINDS {
            let names: Vec<&str> = def.metrics.iter().map(|metric| metric.name).collect();
            assert!(
                def.deciding.iter().all(|name| names.contains(name)),
                "{}",
                def.name
            );
        }
    }

    #[test]
    fn only_kinds_with_rates_can_search() {
        let rate = Load::RatePerSec(1_000.0);
        assert!(
            LoadForms::CountsOrRates.has(&rate) && LoadForms::CountsOrRates.has(&Load::Count(1))
        );
        assert!(LoadForms::Rates.has(&rate) && !LoadForms::Rates.has(&Load::Count(1)));
        assert!(LoadForms::Counts.has(&Load::One) && !LoadForms::Counts.has(&rate));
    }

    #[test]
    fn scripts_setup_installs_the_packages_of_all_programs() {
        let setup = include_str!("../../../scripts/setup");
        for program in programs() {
            let Some(package) = program.package else {
                continue;
            };
            let line = format!("need {} {package}", program.name);
            let there = setup.lines().any(|l| l.trim() == line);
            assert!(there, "scripts/setup has no line `{line}`");
        }
    }

    #[test]
    fn the_versions_of_servers_and_antagonists_are_asked_for_too() {
        let names: Vec<&str> = programs().iter().map(|program| program.name).collect();
        for name in [
            "hackbench",
            "schbench",
            "memcached",
            "nginx",
            "http-echo",
            "stress-ng",
        ] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn the_threads_of_the_native_loads_and_servers_are_measured_by_their_names() {
        let is_measured = |thread: &str| {
            measured_tasks().iter().any(|task| match task {
                Task::Thread(pattern) => thread.starts_with(pattern.trim_end_matches('*')),
                Task::Process(_) => false,
            })
        };
        for thread in [
            wakeup::MESSAGE_THREAD,
            wakeup::WORKER_THREAD,
            crate::serve::THREAD,
        ] {
            assert!(is_measured(thread), "{thread}");
        }
        assert!(!is_measured(crate::openloop::THREAD), "it makes requests");
    }
}
