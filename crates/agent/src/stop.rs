//! Why a trial ends early.

use model::TrialState;

/// Why a trial ends without figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The arm was not in force.
    Void(String),
    /// The workload did not do its work.
    Failed(String),
    /// Another attempt would end in the same way, which is the one within: a program does not
    /// take its arguments.
    ForGood(Box<Stop>),
}

/// Exit status by which programs say that they were called in a wrong way (bash(1), clap).
const USAGE: i32 = 2;

impl Stop {
    /// The stop of a trial that the user or the runner ended.
    pub(crate) fn interrupted() -> Stop {
        Stop::Failed("interrupted".to_owned())
    }

    /// The stop of a program that ended with this exit status, if it is known.
    pub(crate) fn by_exit(self, code: Option<i32>) -> Stop {
        match code {
            Some(USAGE) => self.for_good(),
            _ => self,
        }
    }

    /// The stop of what would end in the same way again.
    pub(crate) fn for_good(self) -> Stop {
        Stop::ForGood(Box::new(self))
    }

    /// The same of one of several loads.
    pub(crate) fn about(self, name: &str) -> Stop {
        match self {
            Stop::Void(why) => Stop::Void(format!("{name}: {why}")),
            Stop::Failed(why) => Stop::Failed(format!("{name}: {why}")),
            Stop::ForGood(stop) => stop.about(name).for_good(),
        }
    }

    /// The reason, in words.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Stop::Void(why) | Stop::Failed(why) => why.clone(),
            Stop::ForGood(stop) => stop.in_words(),
        }
    }

    /// True if another attempt would end in the same way.
    pub(crate) fn is_for_good(&self) -> bool {
        matches!(self, Stop::ForGood(_))
    }
}

impl From<Stop> for TrialState {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Void(why) => TrialState::Void { why },
            Stop::Failed(why) => TrialState::Failed { why },
            Stop::ForGood(stop) => (*stop).into(),
        }
    }
}
