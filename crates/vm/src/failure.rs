//! Errors of this crate, and how they are made: step, object, remedy.

use model::Problem;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum VmError {
    #[error("{step}: {object}: {source}")]
    Io {
        step: &'static str,
        object: String,
        source: std::io::Error,
    },
    /// A requirement is not met.
    #[error("{}: {}; {}", .0.object, .0.what, .0.remedy)]
    Unmet(Problem),
    /// The guest is gone. `tail` holds the last lines of its console.
    #[error("the guest ended: {why}")]
    Gone { why: String, tail: String },
    /// Asked for from outside while a guest was started.
    #[error("interrupted")]
    Interrupted,
    #[error("something was said that is not a message: {0}")]
    Garbled(String),
}

/// For `map_err` on an I/O result.
pub fn io(step: &'static str, object: &Path) -> impl FnOnce(std::io::Error) -> VmError {
    let object = object.display().to_string();
    move |source| VmError::Io {
        step,
        object,
        source,
    }
}

/// A requirement that is not met.
pub fn unmet(object: &str, what: &str, remedy: &str) -> VmError {
    VmError::Unmet(Problem {
        object: object.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    })
}
