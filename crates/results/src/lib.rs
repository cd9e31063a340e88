//! The results directory: raw, append only, versioned.
//!
//! ```text
//! NAME-20261121T191606Z/
//!   manifest.json     format, tool version, seed, state, warnings
//!   experiment.toml   verbatim, if there was a file      experiment.json   as understood
//!   plan.json         calibration.json                   system.json
//!   trials/00042-wakeup-100%-b7-bpfland/trial.json, *.hlog, *.csv, *.log
//!   report/           made from the rest; may be deleted at any time
//! ```
//! A trial is written beside its place, synced, and renamed: it is whole or absent.

pub mod bound;
pub mod capsule;
mod files;
pub mod overload;
pub mod read;
pub mod sample;
pub mod write;

pub use overload::Overload;
pub use read::{ResultSet, StoredTrial};
pub use sample::{BlockRatio, Pair, log_ratios, pairs};
pub use write::Writer;

use model::Warning;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The format that this version writes. A reader takes any minor of its major.
pub const FORMAT: Format = Format { major: 1, minor: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Format {
    pub major: u32,
    pub minor: u32,
}

/// `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: Format,
    pub tool_version: String,
    /// Commit of the tool's source, empty if it is not known.
    pub tool_commit: String,
    pub name: String,
    pub seed: u64,
    /// RFC 3339, UTC.
    pub created: String,
    pub state: RunState,
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Under way, or its process died.
    Running,
    Done,
    Interrupted,
    /// Ended by an error.
    Aborted,
}

#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("{step} {}: {source}", path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: not valid: {source}", path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: no usable capsule: {why}", path.display())]
    Capsule { path: PathBuf, why: String },
    #[error("{}: there is no manifest.json, so this is not a results directory", .0.display())]
    NotResults(PathBuf),
    #[error(
        "{}: written in format {found}, newer than the {known} of this schedlab; use a newer schedlab",
        path.display()
    )]
    TooNew {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("{}: exists and is not empty; choose another directory or use --resume", .0.display())]
    Occupied(PathBuf),
}
