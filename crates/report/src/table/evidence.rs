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
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for trial in counted {
        for what in statements(trial) {
            *found.entry(what).or_default() += 1;
        }
    }
    let found = found.into_iter();
    let mut statements: Vec<Statement> = found
        .map(|(what, trials)| Statement { what, trials })
        .collect();
    fold_counts(&mut statements);
    statements.sort_by_key(|statement| std::cmp::Reverse(statement.trials));
    statements
}

/// Each attach of a scheduler is counted by the kernel, so each trial has a number of its own.
fn fold_counts(statements: &mut Vec<Statement>) {
    let is_count = |statement: &mut Statement| statement.what.starts_with(ATTACHES);
    let counts: Vec<Statement> = statements.extract_if(.., is_count).collect();
    if counts.len() <= MOST_COUNTS {
        return statements.extend(counts);
    }
    let texts: Vec<&str> = counts.iter().map(|count| count.what.as_str()).collect();
    statements.push(Statement {
        what: in_ranges(&texts),
        trials: counts.iter().map(|count| count.trials).sum(),
    });
}

/// Schedulers that were attached in the trials of `arm` that count: `scx_rusty 1.1.4, sha256
/// 0123456789ab`.
pub fn programs(results: &ResultSet, arm: usize) -> Vec<String> {
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

    fn statement(what: &str, trials: usize) -> Statement {
        let what = what.to_owned();
        Statement { what, trials }
    }

    #[test]
    fn counts_of_attaches_are_a_range_once_they_are_many() {
        let count = |number: usize| statement(&format!("{ATTACHES}: {number}"), 2);
        let scheduler = statement("scheduler: rusty", 6);
        let mut two = vec![scheduler.clone(), count(1), count(10)];
        fold_counts(&mut two);
        assert_eq!(two, [scheduler.clone(), count(1), count(10)]);
        let mut many = vec![scheduler.clone(), count(1), count(10), count(22)];
        fold_counts(&mut many);
        let range = statement(&format!("{ATTACHES}: 1 to 22"), 6);
        assert_eq!(many, [scheduler, range]);
    }
}
