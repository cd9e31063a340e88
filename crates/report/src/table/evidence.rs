//! Proof of the treatment: the statements of the evidence, and the number of an arm's trials in
//! which each was found.

use model::{SchedulerBinary, Trial};
use results::ResultSet;
use serde::Serialize;
use std::collections::BTreeMap;

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
    let mut statements: Vec<Statement> = found
        .into_iter()
        .map(|(what, trials)| Statement { what, trials })
        .collect();
    statements.sort_by_key(|statement| std::cmp::Reverse(statement.trials));
    statements
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
    all.extend(evidence.scheduler_binary.as_ref().map(|binary| {
        let version = binary.version.as_deref().unwrap_or("version unknown");
        let digest: String = binary.sha256.chars().take(12).collect();
        format!("program {} ({version}, sha256 {digest})", binary.path)
    }));
    all.sort();
    all.dedup();
    all
}
