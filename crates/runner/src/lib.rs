//! Plan and target to events: trials in the plan's order, repeated where they are
//! void, stopped when decided, resumed where they were left.

mod apart;
mod cells;
mod connection;
mod missing;
mod mixing;
mod run;

pub use cells::{CellState, Decisions, OpenComparison};
pub use missing::unexplained;
pub use run::{Options, Outcome, check, run};

use model::{PlannedTrial, Problem, Trial, Warning};
use results::ResultsError;
use target::TargetError;

/// Events of a run, for whoever wants to show them.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// The agent answers and the whole experiment was checked.
    Ready {
        warnings: &'a [Warning],
    },
    TrialStarted {
        place: &'a PlannedTrial,
        cell: &'a str,
        arm: &'a str,
        attempt: u32,
    },
    /// The agent's current step.
    Step {
        step: &'a str,
    },
    TrialEnded {
        trial: &'a Trial,
    },
    /// A block of a cell is complete.
    BlockEnded {
        state: &'a Progress,
    },
    /// An arm never once worked in a cell and is tried no more.
    GaveUp {
        cell: &'a str,
        arm: &'a str,
        why: &'a str,
    },
    /// The agent or its machine died and is started again.
    Restarting {
        why: &'a str,
    },
}

/// State of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub block: u32,
    pub decided: usize,
    pub cells: usize,
    /// Comparisons that are not decided, by name.
    pub open: Vec<OpenComparison>,
    pub elapsed_ns: u64,
    /// At most; `None` before the first block has ended.
    pub left_ns: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{} requirement(s) are not met", .0.len())]
    Unmet(Vec<Problem>),
    #[error("calibrating {cell}: {why}")]
    Calibration { cell: String, why: String },
    /// The trials of a run would not be comparable with those of its earlier starts.
    #[error("the run would mix what differs")]
    Mixed(Vec<Problem>),
    #[error(
        "the agent is another build of schedlab ({found}, not {expected}); use the same on both sides"
    )]
    OtherBuild { found: String, expected: String },
    #[error("the agent answered {0} out of turn")]
    OutOfTurn(String),
    #[error("what an earlier trial changed could not be undone: {}", .0.join("; "))]
    Unrestored(Vec<String>),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Results(#[from] ResultsError),
}
