//! Why a trial ends early.

use model::TrialState;

/// Why a trial ends without figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The arm was not in force.
    Void(String),
    /// The workload did not do its work.
    Failed(String),
}

impl From<Stop> for TrialState {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Void(why) => TrialState::Void { why },
            Stop::Failed(why) => TrialState::Failed { why },
        }
    }
}
