//! The starts of a run: a run that is resumed is measured in several, perhaps by another
//! build of schedlab or on a machine that has changed.

use crate::System;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A build of schedlab. Runner and agent must be the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Version of the package.
    pub version: String,
    /// Commit of the source, empty if it is not known.
    pub commit: String,
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.commit.as_str() {
            "" => f.write_str(&self.version),
            commit => write!(f, "{} ({commit})", self.version),
        }
    }
}

/// One start of a run: `run` itself, then each `run --resume`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// RFC 3339, UTC.
    pub began: String,
    /// Build of the schedlab that was started.
    pub build: Build,
    /// One for each kernel that came up, in order.
    pub machines: Vec<Machine>,
}

/// The machine as it was found with one of the kernels of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel as the arms name it; `None` is the target's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Machine as the agent found it.
    pub system: System,
}
