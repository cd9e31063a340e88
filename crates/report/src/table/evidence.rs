//! Proof of the treatment: the statements of the evidence, and the number of an arm's trials in
//! which each was found.

use crate::fold::in_ranges;
use model::readings::ATTACHES;
use model::{SchedulerBinary, Trial};
use results::ResultSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// A count that is another one in each trial is listed up to so often, and then as a range.
const MOST_COUNTS: usize = 2;

/// A statement, and the trials that bear it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    pub what: String,
    pub trials: usize,
}

/// Statements found in the trials of `arm` that count, the most frequent first.
pub fn of_arm(results: &ResultSet, arm: usize) -> Vec<Statement> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let counted = trials.filter(|t| t.is_ok() && t.place.arm == arm);
    let mut statements = folded(counted.map(statements));
    statements.sort_by_key(|statement| std::cmp::Reverse(statement.trials));
    statements
}

/// The statements of each trial, each once. Each attach of a scheduler is counted by the kernel, so that
/// trials, and turns within one, have numbers of their own: many are one statement with their range.
fn folded(trials: impl Iterator<Item = Vec<String>>) -> Vec<Statement> {
    let is_count = |what: &String| what.starts_with(ATTACHES);
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut with_counts = 0;
    for statements in trials {
        with_counts += usize::from(statements.iter().any(is_count));
        for what in statements {
            *found.entry(what).or_default() += 1;
        }
    }
    let counts: Vec<String> = found
        .keys()
        .filter(|what| is_count(what))
        .cloned()
        .collect();
    if counts.len() > MOST_COUNTS {
        found.retain(|what, _| !is_count(what));
        let counts: Vec<&str> = counts.iter().map(String::as_str).collect();
        found.insert(in_ranges(&counts), with_counts);
    }
    let found = found.into_iter();
    found
        .map(|(what, trials)| Statement { what, trials })
        .collect()
}

/// Schedulers that were attached in the trials of `arm` that count: `scx_rusty 1.1.4, sha256
/// 0123456789ab`.
pub fn attached_schedulers(results: &ResultSet, arm: usize) -> Vec<String> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let counted = trials.filter(|t| t.is_ok() && t.place.arm == arm);
    let binaries = counted.filter_map(|t| t.result.evidence.scheduler_binary.as_ref());
    let mut programs: Vec<String> = binaries.map(program).collect();
    programs.sort();
    programs.dedup();
    programs
}

fn program(binary: &SchedulerBinary) -> String {
    let name = binary.path.rsplit('/').next().unwrap_or_default();
    let digest: String = binary.sha256.chars().take(12).collect();
    match &binary.version {
        Some(version) if version.contains(name) => format!("{version}, sha256 {digest}"),
        Some(version) => format!("{name} {version}, sha256 {digest}"),
        None => format!("{name} of unknown version, sha256 {digest}"),
    }
}

/// Each once, whatever the number of readings.
fn statements(trial: &Trial) -> Vec<String> {
    let evidence = &trial.result.evidence;
    let facts = evidence.all_facts();
    let mut all: Vec<String> = facts
        .map(|fact| format!("{}: {}", fact.name(), fact.found))
        .collect();
    let binary = evidence.scheduler_binary.as_ref();
    all.extend(binary.map(|binary| format!("program {}", program(binary))));
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_attaches_are_a_range_once_they_are_many() {
        let trial = |counts: &[u32]| {
            let counts = counts.iter().map(|count| format!("{ATTACHES}: {count}"));
            counts.chain(["scheduler: rusty".to_owned()]).collect()
        };
        let of = |trials: Vec<Vec<String>>| {
            let folded = folded(trials.into_iter()).into_iter();
            let texts = folded.map(|one| format!("{} ({})", one.what, one.trials));
            texts.collect::<Vec<_>>()
        };
        let count = |text: &str| format!("{ATTACHES}: {text}");
        let two = of(vec![trial(&[1]), trial(&[10])]);
        assert_eq!(
            two,
            [&count("1 (1)"), &count("10 (1)"), "scheduler: rusty (2)"]
        );
        // The second trial had two turns of the arm.
        let many = of(vec![trial(&[1]), trial(&[10, 22])]);
        assert_eq!(many, [&count("1 to 22 (2)"), "scheduler: rusty (2)"]);
    }
}
