//! Problems and warnings as data: they travel with results and every renderer shows them.

use serde::{Deserialize, Serialize};

/// A requirement that is not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Subject of the problem: `arm rusty`, `workload hackbench`, `target`.
    pub object: String,
    /// Description of what is missing or wrong.
    pub what: String,
    /// Advice on what to do about it.
    pub remedy: String,
}

/// Something that does not stop a run but that a reader must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Importance for a reader of the results.
    pub severity: Severity,
    /// Description of what happened or was found, in whole sentences.
    pub what: String,
    /// Advice on what to do about it; empty if nothing can be done.
    pub remedy: String,
}

/// Importance of a warning, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know; no result depends on it.
    Note,
    /// Results hold with a reservation.
    Caution,
    /// Belongs on the first screen of a report.
    Serious,
}
