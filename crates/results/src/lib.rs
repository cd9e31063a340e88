//! The results directory: raw, append only, versioned.
//!
//! ```text
//! NAME-20261121T191606Z/
//!   manifest.json     format, tool version, seed, state, warnings
//!   experiment.toml   verbatim, if there was a file      experiment.json   as understood
//!   plan.json         calibration.json                   system.json
//!   starts.json       build of each start (a resumed run has several) and its machines, one
//!                     for each kernel that came up; system.json is the very first of them
//!   searches/bank.csv   rates that were tried before the first block, where loads are shares
//!   trials/00042-wakeup-100%-b7-bpfland/trial.json, *.hlog, *.csv, *.log
//!   report/           made from the rest; may be deleted at any time
//! ```
//! A trial is written beside its place, synced, and renamed: it is whole or absent.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod bound;
pub mod capsule;
pub mod files;
pub mod fleet;
pub mod merge;
pub mod now;
pub mod overload;
pub mod read;
pub mod remote_work;
pub mod sample;
pub mod turns;
pub mod write;

pub use now::Now;
pub use overload::Overload;
pub use read::{ResultSet, StoredTrial};
pub use sample::{BlockRatio, LEAST_PERCENT, Pair, log_ratios, pair_trials};
pub use write::{Held, TrialFiles, Writer};

use model::Warning;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The format that this version writes. A reader takes any minor of its major.
pub const FORMAT: Format = Format { major: 1, minor: 0 };

/// Version of a format, of the results directory or of a capsule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Format {
    /// Number that changes when older readers cannot read the format.
    pub major: u32,
    /// Number that changes when something is added that older readers may ignore.
    pub minor: u32,
}

/// `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the results directory.
    pub format: Format,
    /// Version of the schedlab that made the directory.
    pub tool_version: String,
    /// Commit of the tool's source, empty if it is not known.
    pub tool_commit: String,
    /// Name of the experiment.
    pub name: String,
    /// Seed of the plan, from which the order of the trials follows.
    pub seed: u64,
    /// RFC 3339, UTC.
    pub created: String,
    /// State of the run.
    pub state: RunState,
    /// Warnings about the whole run, each of them once.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Runs that these results were merged from, in the order of their blocks; empty for a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// The run was one of several machines, and its cells were decided by the blocks of all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
}

/// One of the runs that results were merged from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Machine of the run: its host name, or where that says nothing the place of its results.
    pub machine: String,
    /// RFC 3339, UTC.
    pub created: String,
    /// Seed of its plan.
    pub seed: u64,
    /// Number of its blocks.
    pub blocks: u32,
    /// Its cells were decided by the blocks of all runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
}

/// State of a run, as its manifest says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Under way, or its process died.
    Running,
    /// Ended in order: decided, at the last block, or out of budget.
    Done,
    /// Ended by a signal before its plan was complete; it can be resumed.
    Interrupted,
    /// Ended by an error.
    Aborted,
}

/// Error in reading, writing, packing or unpacking results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The operating system refused a step.
    #[error("{step} {}: {source}", path.display())]
    Io {
        /// Participle of the step that failed, as in "opening".
        step: &'static str,
        /// Path that the step was about.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file that is no JSON, or not that of its type.
    #[error("{}: not valid: {source}", path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Error of the parser, with line and column.
        source: serde_json::Error,
    },
    /// A file whose values do not fit together.
    #[error("{}: {source}", path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// Key with the wrong value, and what is wrong with it.
        source: model::Invalid,
    },
    /// A link, a pipe, or what else is no regular file.
    #[error("{}: is a link or no regular file; results are read from regular files only", .0.display())]
    NotAFile(PathBuf),
    /// A link, or what else is no directory.
    #[error("{}: is a link or no directory", .0.display())]
    NotADirectory(PathBuf),
    /// A file with more bytes than are read of it.
    #[error("{}: is larger than {} MiB, and no such file of any run is", path.display(), most_bytes >> 20)]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// The most that is read of it.
        most_bytes: u64,
    },
    /// An archive that is no capsule, or that goes beyond the limits of unpacking.
    #[error("{}: no usable capsule: {why}", path.display())]
    Capsule {
        /// Path of the capsule, or of the list of hashes in it.
        path: PathBuf,
        /// Reason for which it is refused.
        why: String,
    },
    /// The list of hashes could not be signed, for the reason given.
    #[error("signing the capsule: {0}")]
    Unsigned(String),
    /// A directory into which another process measures.
    #[error(
        "{}: another run measures into it; wait for its end (`schedlab run --wait` does), or choose \
         another directory", .0.display()
    )]
    InUse(PathBuf),
    /// A directory with results of several machines that are not merged yet.
    #[error(
        "{}: the results of its machines are not merged yet; that is done when the run ends, or when \
         it is resumed", .0.display()
    )]
    NotMerged(PathBuf),
    /// A directory without a manifest.
    #[error("{}: there is no manifest.json, so this is not a results directory", .0.display())]
    NotResults(PathBuf),
    /// A directory of a run that ended before it wrote its manifest.
    #[error(
        "{}: nothing was measured: the run was ended before it began", .0.display()
    )]
    NeverBegan(PathBuf),
    /// Results in a format with a newer major version.
    #[error(
        "{}: written in format {found}, newer than the {known} of this schedlab; use a newer schedlab",
        path.display()
    )]
    TooNew {
        /// Path of the results directory.
        path: PathBuf,
        /// Major version of the format that was found.
        found: u32,
        /// Newest major version that this schedlab reads.
        known: u32,
    },
    /// A directory for new results that holds something already.
    #[error("{}: exists and is not empty; choose another directory or use --resume", .0.display())]
    Occupied(PathBuf),
}
