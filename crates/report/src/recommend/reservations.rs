//! Everything that a recommendation does not cover: places, figures and events that it did not weigh, and
//! those that were not measured.

use super::answer::Field;
use super::parts::Together;
use super::{Advice, Recommendation, Source};
use crate::lacks::{self, Lack};
use crate::table::{Comparison, Table, Verdict};
use std::collections::BTreeSet;

/// Sentences of one kind, beyond which they are counted.
const MOST: usize = 4;

/// Arms and cells that were to be measured and were not.
pub fn find_lacks(together: &Together, sources: &[Source], field: &Field) -> Vec<String> {
    let unmeasured = field.unmeasured.iter();
    let mut found: Vec<String> = unmeasured
        .map(|part| {
            format!(
                "{} {}: no arm has enough blocks, so its weight counts for nothing",
                part.cell, part.metric
            )
        })
        .collect();
    for (table, source) in together.tables.iter().zip(sources) {
        let lacks = lacks::find_lacks(table, source.results);
        // What was not measured of an arm is said of that arm.
        let is_weighed = |cell: &String| field.parts.iter().any(|part| part.cell == *cell);
        let is_lost = |lack: &&Lack| !lack.cell.as_ref().is_some_and(is_weighed);
        let of_run = lacks.iter().filter(is_lost);
        let sentence = |lack: &Lack| match sources.len() {
            1 => lack.to_string(),
            _ => format!("{}: {lack}", source.label),
        };
        found.extend(of_run.map(sentence));
    }
    found
}

/// Sentences on what the answer does not cover, the most serious first.
pub fn list_uncovered(
    together: &Together,
    sources: &[Source],
    recommendation: &Recommendation,
) -> Vec<String> {
    let mut said = list_worse_events(&together.tables, recommendation);
    said.extend(list_worse_figures(&together.tables, recommendation));
    said.push(describe_place(sources));
    said.extend(describe_many_machines(sources));
    said.extend(describe_kernels(sources));
    if together.tables.iter().any(has_turns) {
        said.push(
            "Arms took turns inside one process: what differs from one process to the next is not in \
             the intervals."
                .to_owned(),
        );
    }
    said
}

/// Rare events that the arm has more of. They have no place in a mean, and may matter more than it.
fn list_worse_events(tables: &[Table], of: &Recommendation) -> Vec<String> {
    let events = tables.iter().flat_map(|table| &table.across.events);
    let worse = events.filter(|e| !e.aa && e.arm == of.arm && e.verdict == Verdict::Worse);
    let said = worse.map(|e| {
        format!(
            "{} has more of the event {} than {} in {}.",
            e.arm, e.event, e.baseline, e.cell
        )
    });
    cut(said.collect())
}

/// Figures without a weight that are worse.
fn list_worse_figures(tables: &[Table], of: &Recommendation) -> Vec<String> {
    if of.advice == Advice::Baseline {
        return Vec::new();
    }
    let mut worse: Vec<(&str, &Comparison)> = Vec::new();
    for cell in tables.iter().flat_map(|table| &table.cells) {
        let is_weighed = |c: &Comparison| {
            let mut mix = of.mix.iter();
            mix.any(|weight| weight.cell == cell.name && weight.metric == c.metric)
        };
        let is_worse = |c: &&Comparison| {
            let holds = c.survives_ebh != Some(false);
            c.arm == of.arm && c.verdict == Verdict::Worse && holds && !is_weighed(c)
        };
        let found = cell.comparisons.iter().filter(is_worse);
        worse.extend(found.map(|c| (cell.name.as_str(), c)));
    }
    worse.sort_by(|a, b| b.1.change_size().total_cmp(&a.1.change_size()));
    let said = worse.iter().map(|(cell, c)| {
        let change = c.format_change().unwrap_or_default();
        format!(
            "{} is worse in what has no weight: {cell} {} {change}.",
            c.arm, c.metric
        )
    });
    cut(said.collect())
}

fn cut(mut said: Vec<String>) -> Vec<String> {
    let more = said.len().saturating_sub(MOST);
    said.truncate(MOST);
    if more > 0 {
        said.push(format!("And {more} more of this kind."));
    }
    said
}

fn describe_place(sources: &[Source]) -> String {
    let results = sources[0].results;
    let system = &results.system;
    format!(
        "It holds for this work on this machine ({}, {} CPUs, target {}), and for no other.",
        system.cpu_model,
        system.cpus,
        results.experiment.target.kind()
    )
}

fn describe_many_machines(sources: &[Source]) -> Option<String> {
    let merged = sources.iter().flat_map(|s| &s.results.manifest.sources);
    let machines: BTreeSet<&str> = merged.map(|run| run.machine.as_str()).collect();
    (machines.len() > 1).then(|| {
        let machines: Vec<&str> = machines.into_iter().collect();
        format!(
            "The merged runs are of several machines ({}), which may need different arms.",
            machines.join(", ")
        )
    })
}

fn describe_kernels(sources: &[Source]) -> Option<String> {
    let kernels = sources
        .iter()
        .map(|s| s.results.system.kernel_release.as_str());
    let kernels: BTreeSet<&str> = kernels.collect();
    (kernels.len() > 1).then(|| {
        let kernels: Vec<&str> = kernels.into_iter().collect();
        format!("The runs are of several kernels: {}.", kernels.join(", "))
    })
}

fn has_turns(table: &Table) -> bool {
    table.all_comparisons().any(|c| c.in_turns.is_some())
}
