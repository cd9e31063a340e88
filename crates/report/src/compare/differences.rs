//! Known differences between the circumstances of two results.

use model::System;
use results::{Manifest, ResultSet};
use serde::Serialize;
use std::collections::BTreeSet;

/// Beyond these the facts of two machines fill pages.
const MOST_FACTS: usize = 15;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Divergence {
    pub what: String,
    pub a: String,
    pub b: String,
}

/// A circumstance, and how to read it.
type Circumstance = (&'static str, fn(&ResultSet) -> String);

/// The weightiest first. The date always differs; it is in the head of both sides.
const CIRCUMSTANCES: [Circumstance; 13] = [
    ("machine", |r| {
        listed(list_runs(r).map(|(machine, ..)| machine))
    }),
    ("CPU model", |r| r.system.cpu_model.clone()),
    ("CPUs", |r| r.system.cpus.to_string()),
    ("architecture", |r| r.system.architecture.clone()),
    ("memory", |r| {
        crate::quantity::with_unit(r.system.memory_bytes as f64, "bytes")
    }),
    ("hypervisor", |r| r.system.hypervisor.clone()),
    ("target kind", |r| r.experiment.target.kind().to_owned()),
    ("kernel", |r| r.system.kernel_release.clone()),
    ("kernel build", |r| r.system.kernel_version.clone()),
    ("kernel command line", |r| {
        r.system.kernel_command_line.clone()
    }),
    ("tool version", |r| tool_version(&r.manifest)),
    ("seed", |r| listed(list_runs(r).map(|(.., seed)| seed))),
    ("day", |r| created_day(&r.manifest.created)),
];

/// Machine, date and seed of each run of the results.
pub fn list_runs(results: &ResultSet) -> Box<dyn Iterator<Item = (&str, &str, u64)> + '_> {
    let (manifest, sources) = (&results.manifest, &results.manifest.sources);
    match sources.as_slice() {
        [] => {
            let machine = results.system.hostname.as_str();
            Box::new(std::iter::once((
                machine,
                manifest.created.as_str(),
                manifest.seed,
            )))
        }
        all => Box::new(
            all.iter()
                .map(|run| (run.machine.as_str(), run.created.as_str(), run.seed)),
        ),
    }
}

/// Each of them once.
fn listed<T: Ord + ToString>(all: impl Iterator<Item = T>) -> String {
    let all: BTreeSet<T> = all.collect();
    let texts: Vec<String> = all.iter().map(T::to_string).collect();
    texts.join(", ")
}

pub fn find_differences(a: &ResultSet, b: &ResultSet) -> Vec<Divergence> {
    let values = CIRCUMSTANCES.iter().map(|(what, read)| Divergence {
        what: (*what).to_owned(),
        a: read(a),
        b: read(b),
    });
    let mut found: Vec<Divergence> = values.filter(|d| d.a != d.b).collect();
    found.extend(facts(a, b));
    found
}

/// Facts that have no part in what was measured: how long a guest took to boot, and why an
/// accelerator was chosen.
const IRRELEVANT: [&str; 3] = ["vm.boot_time_ms", "vm.boots_tried_again", "vm.accel_reason"];

/// A fact that can matter. The version of a program does if one of the two experiments names it.
fn can_matter(fact: &str, experiments: &[String; 2]) -> bool {
    match fact.strip_prefix("tool.") {
        Some(program) => experiments.iter().any(|text| text.contains(program)),
        None => !IRRELEVANT.contains(&fact),
    }
}

/// A fact that one side did not look at; a program that it does not have is one.
fn is_unrecorded(d: &Divergence) -> bool {
    (d.a.is_empty() || d.b.is_empty()) && !d.what.starts_with("tool.")
}

fn as_text(results: &ResultSet) -> String {
    // An experiment that was read can be written.
    serde_json::to_string(&results.experiment).unwrap_or_default()
}

pub fn find_common(a: &ResultSet, b: &ResultSet) -> Vec<String> {
    let same = CIRCUMSTANCES.iter().filter(|(_, read)| read(a) == read(b));
    same.map(|(what, _)| (*what).to_owned()).collect()
}

/// `0.1.0 (92f5de4)`.
pub fn tool_version(manifest: &Manifest) -> String {
    match manifest.tool_commit.as_str() {
        "" => manifest.tool_version.clone(),
        commit => {
            let short: String = commit.chars().take(12).collect();
            format!("{} ({short})", manifest.tool_version)
        }
    }
}

/// `2026-11-21` of an RFC 3339 time.
pub fn created_day(created: &str) -> String {
    created.chars().take(10).collect()
}

fn facts(a: &ResultSet, b: &ResultSet) -> Vec<Divergence> {
    let experiments = [as_text(a), as_text(b)];
    let (a, b) = (&a.system, &b.system);
    let names: BTreeSet<&String> = a.facts.keys().chain(b.facts.keys()).collect();
    let value = |system: &System, name: &str| system.facts.get(name).cloned().unwrap_or_default();
    let mut found: Vec<Divergence> = names
        .into_iter()
        .filter(|name| can_matter(name, &experiments))
        .map(|name| Divergence {
            what: name.clone(),
            a: value(a, name),
            b: value(b, name),
        })
        .filter(|d| d.a != d.b && !is_unrecorded(d))
        .collect();
    let more = found.len().saturating_sub(MOST_FACTS);
    if more > 0 {
        found.truncate(MOST_FACTS);
        found.push(Divergence {
            what: format!("{more} more facts"),
            a: String::new(),
            b: String::new(),
        });
    }
    found
}
