//! Findings on a machine, before the first trial, that move figures.

use serde::{Deserialize, Serialize};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// `governor`, `turbo`, …
    pub name: String,
    /// Value in force; for [`CheckState::Unknown`], why that cannot be told.
    pub value: String,
    /// Judgement on the value in force.
    pub state: CheckState,
    /// Effect on figures, in one sentence.
    pub effect: String,
    /// A command or a step that changes it.
    pub remedy: String,
}

/// Judgement of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Moves no figures.
    Ok,
    /// Cannot be told on this machine.
    Unknown,
    /// Moves figures, or hides why they move.
    Caution,
}
