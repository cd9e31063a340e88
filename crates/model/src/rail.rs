//! Rails: conditions on the figures of a service in use that end a run.

use serde::{Deserialize, Serialize};

/// Rail that was hit, and what became of the arm in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RailHit {
    /// The rail as it was written: `request_p99 > 250ms for 5s`.
    pub rail: String,
    /// Figure that was seen, in words: `312ms`.
    pub seen: String,
    /// Name of the arm that was in force.
    pub arm: String,
    /// From the start of the trial until the rail was hit, in nanoseconds.
    pub at_ns: u64,
    /// From then until the arm was taken back, in nanoseconds.
    pub taken_back_ns: u64,
}

impl RailHit {
    /// The same in a sentence.
    pub fn in_words(&self) -> String {
        format!(
            "The rail `{}` was hit: {}, while {} was in force. What the arm had changed was taken back {} later.",
            self.rail,
            self.seen,
            self.arm,
            crate::format_duration_ns(self.taken_back_ns)
        )
    }
}
