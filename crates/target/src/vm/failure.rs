//! How errors of this target are made: step, object, remedy.

use crate::TargetError;
use model::Problem;
use std::path::Path;

/// For `map_err` on an I/O result.
pub fn io(step: &'static str, object: &Path) -> impl FnOnce(std::io::Error) -> TargetError {
    let object = object.display().to_string();
    move |source| TargetError::Io {
        step,
        object,
        source,
    }
}

/// A requirement that is not met.
pub fn unmet(object: &str, what: &str, remedy: &str) -> TargetError {
    TargetError::Unmet(Problem {
        object: object.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    })
}
