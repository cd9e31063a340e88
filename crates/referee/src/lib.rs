//! The referee's ledger of error.
//!
//! Somebody who asks many questions finds a better scheduler by luck. So each question is registered
//! in a ledger before it is measured, and pays from the error of its session
//! ([`stats::wealth`]). What was not registered is never called accepted. The ledger also knows how often
//! a question was asked before, since a new session begins with its whole error again.
//!
//! The ledger is one file of lines of JSON. It is only ever added to, under a lock, and each line has
//! the hash of the one before it, so a line that was changed or taken out is noticed.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod books;
mod entry;
mod identity;
mod ledger;

pub use books::{Books, Earlier, SessionState};
pub use entry::{Answer, Asker, Entry, Finding, Outcome, Question, Session};
pub use identity::{Identity, identify_question, identify_text};
pub use ledger::{Asked, Ledger, LedgerError, Registered, WhichSession};

/// Error of all questions of a session together.
pub const ERROR_OF_SESSION: f64 = stats::wealth::OF_SESSION;
