//! The results directory: raw, append only, versioned.
//!
//! ```text
//! NAME-20261121T191606Z/
//!   manifest.json     format, tool version, seed, state, warnings
//!   experiment.toml   verbatim, if there was a file      experiment.json   as understood
//!   plan.json         calibration.json                   system.json
//!   starts.json       build of each start (a resumed run has several) and its machines, one
//!                     for each kernel that came up; system.json is the very first of them
//!   trials/00042-wakeup-100%-b7-bpfland/trial.json, *.hlog, *.csv, *.log
//!   report/           made from the rest; may be deleted at any time
//! ```
//! A trial is written beside its place, synced, and renamed: it is whole or absent.

pub mod bound;
pub mod capsule;
pub mod files;
pub mod overload;
mod place;
pub mod read;
pub mod sample;
pub mod write;

pub use overload::Overload;
pub use read::{ResultSet, StoredTrial};
pub use sample::{BlockRatio, Pair, log_ratios, pairs};
pub use write::{TrialFiles, Writer};

use model::Warning;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The format that this version writes. A reader takes any minor of its major.
pub const FORMAT: Format = Format { major: 1, minor: 2 };

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
    #[error("{}: {source}", path.display())]
    Invalid {
        path: PathBuf,
        source: model::Invalid,
    },
    #[error("{}: is a link or no regular file; results are read from regular files only", .0.display())]
    NotAFile(PathBuf),
    #[error(
        "{}: belongs to another user ({owner}), who could lead what is written elsewhere; choose \
         another directory, or copy it",
        path.display()
    )]
    OfAnother { path: PathBuf, owner: u32 },
    #[error("{}: is a link or no directory", .0.display())]
    NotADirectory(PathBuf),
    #[error(
        "{}: larger than the {} MiB that are read of one file; schedlab writes none so large",
        .0.display(),
        files::MOST_BYTES >> 20
    )]
    TooLarge(PathBuf),
    #[error("{}: no usable capsule: {why}", path.display())]
    Capsule { path: PathBuf, why: String },
    #[error("signing the capsule: {0}")]
    Unsigned(String),
    #[error("{}: there is no manifest.json, so this is not a results directory", .0.display())]
    NotResults(PathBuf),
    #[error(
        "{}: nothing was measured: the run was ended before it began", .0.display()
    )]
    NeverBegan(PathBuf),
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
