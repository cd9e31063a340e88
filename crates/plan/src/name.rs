//! Names that a file or a command line gives.

use crate::error::PlanError;

/// Names stand in tables and in names of directories.
pub(crate) fn check_name(name: &str) -> Result<(), PlanError> {
    if name.trim().is_empty() {
        return Err(PlanError::new("an arm needs a name")
            .with_help("write NAME:=CHANGES, or leave out `:=`"));
    }
    if name.len() > 60 {
        return Err(PlanError::new(format!("`{name}` is not a usable name"))
            .with_help("use at most 60 printable characters"));
    }
    check_shows(name)
}

/// A name is what a reader sees of it.
pub(crate) fn check_shows(name: &str) -> Result<(), PlanError> {
    match name.contains(model::printable::is_hidden) {
        false => Ok(()),
        true => Err(PlanError::new(format!(
            "the name `{name}` has a character that does not show"
        ))
        .with_help("use printable characters only")),
    }
}
