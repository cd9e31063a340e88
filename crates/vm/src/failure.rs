//! Errors of this crate, and how they are made: step, object, remedy.

use model::Problem;
use std::path::Path;

/// Error in finding what a guest needs, in starting it, or in talking to it.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// The operating system refused a step.
    #[error("{step}: {object}: {source}")]
    Io {
        /// Verb of the step that failed, as in "open".
        step: &'static str,
        /// File, program or stream that the step was about.
        object: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A requirement is not met.
    #[error("{}: {}; {}", .0.object, .0.what, .0.remedy)]
    Unmet(Problem),
    /// The guest is gone.
    #[error("the guest ended: {why}")]
    Gone {
        /// Reason in one line: a panic of its kernel, or the end of QEMU.
        why: String,
        /// Last lines of its console.
        tail: String,
    },
    /// Asked for from outside while a guest was started.
    #[error("interrupted")]
    Interrupted,
    /// Bytes that are no message of the protocol.
    #[error("something was said that is not a message: {0}")]
    Garbled(String),
}

impl From<git::Error> for VmError {
    fn from(error: git::Error) -> Self {
        match error {
            git::Error::Io {
                step,
                object,
                source,
            } => VmError::Io {
                step,
                object,
                source,
            },
            git::Error::Unmet(problem) => VmError::Unmet(problem),
        }
    }
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
pub(crate) fn unmet_error(object: &str, what: &str, remedy: &str) -> VmError {
    VmError::Unmet(Problem {
        object: object.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    })
}
