//! Plan and target to events: trials in the plan's order, repeated where they are
//! void, stopped when decided, resumed where they were left.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod cells;
mod check;
mod connection;
mod controller_load;
mod death;
mod gaps;
mod network;
mod pool;
mod run;
mod same_machine;
mod trial;

pub use cells::{CellState, Decisions, OpenComparison, OpenDifference};
pub use check::{Looked, check_experiment};
pub use gaps::{find_unexplained, find_unmeasured};
pub use pool::{Member, Pool};
pub use run::{Options, Outcome, find_set_aside, run_plan, says_budget_ended, says_of_budget};

use machines::TargetError;
use model::{Pace, PlannedTrial, Problem, Slo, Trial, Warning};
use results::ResultsError;
use schedule::Search;

/// Events of a run, for whoever wants to show them.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// The agent answers and the whole experiment was checked.
    Ready {
        /// Warnings about the experiment and its target.
        warnings: &'a [Warning],
    },
    /// A highest rate, of which loads are shares, is about to be looked for.
    SearchStarted {
        /// Name of the workload.
        workload: &'a str,
        /// Name of the arm that it is looked for under, which is the baseline.
        arm: &'a str,
        /// Service level, ends and likely time of the search.
        search: &'a Search,
    },
    /// An ordinary trial was offered the rate that a search found, or a lower one.
    RateTried {
        /// Name of the workload.
        workload: &'a str,
        /// Requests a second.
        rate_per_sec: f64,
        /// Whether the service level held.
        held: bool,
        /// Figures of the trial, in words.
        what: &'a str,
    },
    /// A rate holds in an ordinary trial, and it is stored.
    RateFound {
        /// Name of the workload.
        workload: &'a str,
        /// Service level that holds at this rate.
        slo: &'a Slo,
        /// Requests a second.
        rate_per_sec: f64,
    },
    /// A search came to nothing; another one follows, or the run ends.
    SearchFailed {
        /// Name of the workload.
        workload: &'a str,
        /// Reason for which its trial does not count.
        why: &'a str,
    },
    /// Something holds for a cell from now on: by a pilot whether its arms take turns, the bound of an event, or
    /// that an arm was thrown out often enough.
    FoundOut {
        /// Name of the cell.
        cell: &'a str,
        /// The finding, in words.
        what: &'a str,
    },
    /// A trial is about to start.
    TrialStarted {
        /// Place of the trial in the plan.
        place: &'a PlannedTrial,
        /// Name of the cell.
        cell: &'a str,
        /// Name of the arm.
        arm: &'a str,
        /// Number of the attempt at this place, from 1 on.
        attempt: u32,
    },
    /// The agent's current step.
    Step {
        /// Name of the step, as the agent gives it.
        step: &'a str,
    },
    /// Figures of the trial under way, which are kept nowhere.
    Pace {
        /// Counts since the last ones.
        pace: &'a Pace,
    },
    /// A trial has ended and is stored.
    TrialEnded {
        /// Trial with its result.
        trial: &'a Trial,
    },
    /// A block of a cell is complete.
    BlockEnded {
        /// State of the run after the block.
        state: &'a Progress,
    },
    /// A trial takes so long that a block does not fit into the budget.
    TooLong {
        /// Times of trial, block and budget, in a sentence.
        what: &'a str,
    },
    /// An arm never once worked in a cell and is tried no more.
    GaveUp {
        /// Name of the cell.
        cell: &'a str,
        /// Name of the arm.
        arm: &'a str,
        /// Reason of the last attempt.
        why: &'a str,
    },
    /// The agent or its machine died and is started again.
    Restarting {
        /// Reason for which the agent is gone.
        why: &'a str,
    },
}

/// State of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Number of the block that ended last, from 1 on.
    pub block: u32,
    /// Number of cells that need no more blocks.
    pub decided: usize,
    /// Number of cells that get no more blocks, since those would hardly decide them.
    pub set_aside: usize,
    /// Number of all cells of the plan.
    pub cells: usize,
    /// Comparisons that are not decided, by name.
    pub open: Vec<OpenComparison>,
    /// Wall time of this start so far, and of the trials of earlier ones.
    pub elapsed_ns: u64,
    /// At most; `None` before the first block has ended.
    pub left_ns: Option<u64>,
}

/// Error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target, or its agent, lacks what the experiment needs.
    #[error("{} requirement(s) are not met", .0.len())]
    Unmet(Vec<Problem>),
    /// The values of a cell could not be found.
    #[error("calibrating {cell}: {why}")]
    Calibration {
        /// Name of the cell.
        cell: String,
        /// Reason that the agent gives.
        why: String,
    },
    /// The trials of a run would not be comparable with those of its earlier starts.
    #[error("the run would mix what differs")]
    Mixed(Vec<Problem>),
    /// The agent is not of the build of this runner.
    #[error(
        "the agent is another build of schedlab ({found}, not {expected}); use the same on both sides"
    )]
    OtherBuild {
        /// Build of the agent.
        found: String,
        /// Build of the runner.
        expected: String,
    },
    /// The agent sent a reply that does not belong to the request, which begins so.
    #[error("the agent answered {0} out of turn")]
    OutOfTurn(String),
    /// The agent could not undo these changes of an earlier trial.
    #[error("what an earlier trial changed could not be undone: {}", .0.join("; "))]
    Unrestored(Vec<String>),
    /// The target or the connection to its agent failed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The results could not be read or written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}
