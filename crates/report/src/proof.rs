//! Proof of a comparison in a few lines: what the kernel said was in force, in how many trials, and what
//! does not count.

use crate::table::Table;
use crate::words;
use model::{Trial, TrialState};
use results::ResultSet;
use serde::Serialize;
use std::collections::BTreeSet;

/// Reasons that are given; the report has all.
const MOST_REASONS: usize = 3;
/// Facts of an arm that are given.
const MOST_FACTS: usize = 6;

/// Proof of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Arms with what was read while they ran.
    pub in_force: Vec<InForce>,
    /// `24 trials, all ok`.
    pub trials: String,
    /// Pairs of windows that were measured, where arms took turns; 0 otherwise.
    #[serde(skip_serializing_if = "is_none")]
    pub pairs: usize,
    /// Those of them that do not count.
    #[serde(skip_serializing_if = "is_none")]
    pub void_pairs: usize,
    /// Reasons of the first trials and windows that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<String>,
}

/// Statements of the kernel about an arm in its trials that count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InForce {
    /// Name of the arm.
    pub arm: String,
    /// Changes of the arm in the words of the command line.
    pub is: String,
    /// Trials that count, in all cells.
    pub trials: usize,
    /// Number of times that the kernel was read in them.
    pub readings: usize,
    /// Values that were wanted and found.
    pub found: Vec<String>,
}

fn is_none(number: &usize) -> bool {
    *number == 0
}

/// Proof of the comparisons of these results.
pub fn find_proof(results: &ResultSet, table: &Table) -> Proof {
    let of = |name: &str| {
        let trials = results.trials.iter().map(|stored| &stored.trial);
        trials
            .filter(|trial| trial.is_ok() && trial.arm == name)
            .collect::<Vec<&Trial>>()
    };
    let arms = results.experiment.arms.iter();
    let in_force = arms.map(|arm| find_in_force(&arm.name, &arm.summary(), &of(&arm.name)));
    let turns = || table.all_comparisons().filter_map(|c| c.in_turns.as_ref());
    let excluded = table.excluded.iter();
    let reasons = excluded.map(|excluded| format!("{}: {}", excluded.arm, excluded.first_line()));
    let windows = turns().filter_map(|turns| turns.why_void.clone());
    let mut seen = BTreeSet::new();
    let void = reasons
        .chain(windows)
        .filter(|why| seen.insert(why.clone()))
        .take(MOST_REASONS);
    Proof {
        in_force: in_force.collect(),
        trials: words::count_trials(&table.trials),
        pairs: turns().map(|turns| turns.pairs).max().unwrap_or(0),
        void_pairs: turns().map(|turns| turns.void_pairs).max().unwrap_or(0),
        void: void.collect(),
    }
}

fn find_in_force(arm: &str, is: &str, trials: &[&Trial]) -> InForce {
    debug_assert!(trials.iter().all(|t| t.result.state == TrialState::Ok));
    let mut found = BTreeSet::new();
    let mut readings = 0;
    for trial in trials {
        let evidence = &trial.result.evidence;
        readings += evidence.points.len();
        let proven = evidence.all_facts().filter(|fact| fact.wanted.is_some());
        found.extend(proven.map(|fact| format!("{} {}", fact.name(), fact.found)));
    }
    InForce {
        arm: arm.to_owned(),
        is: is.to_owned(),
        trials: trials.len(),
        readings,
        found: found.into_iter().take(MOST_FACTS).collect(),
    }
}
