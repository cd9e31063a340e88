//! Facts: what was found in a trial beside what its arm needs. Whatever proves a
//! treatment is one, and one rule judges them all.

use crate::arm::Role;
use serde::{Deserialize, Serialize};

/// One thing that was so in a trial, and what should have been so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// `kernel`, `tunable base_slice`, `policy`, …
    pub what: String,
    /// The role whose thing it is; `None` where it is the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The value that the arm needs; `None` where any will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The value that was read where it is in force.
    pub found: String,
}

impl Fact {
    /// Fact about the machine, with no value that it should have.
    pub fn new(what: impl Into<String>, found: impl Into<String>) -> Self {
        Fact {
            what: what.into(),
            role: None,
            wanted: None,
            found: found.into(),
        }
    }

    /// The fact as one about the threads of a role.
    pub fn about_role(mut self, role: &Role) -> Self {
        self.role = Some(role.clone());
        self
    }

    /// The fact with the value that the arm needs.
    pub fn with_wanted(mut self, wanted: impl Into<String>) -> Self {
        self.wanted = Some(wanted.into());
        self
    }

    /// Its subject, apart from the values.
    pub fn subject(&self) -> (&str, Option<&Role>) {
        (&self.what, self.role.as_ref())
    }

    /// `policy of the load`.
    pub fn name(&self) -> String {
        match &self.role {
            Some(role) => format!("{} of the {}", self.what, role.name()),
            None => self.what.clone(),
        }
    }

    /// Why the trial is void, where another value was found than the wanted one.
    pub fn find_disagreement(&self) -> Option<String> {
        let wanted = self.wanted.as_ref().filter(|w| **w != self.found)?;
        Some(format!(
            "the {} was {}, not {wanted}",
            self.name(),
            self.found
        ))
    }
}
