//! The directory of a race: its rounds as results, the confirmation, and who is still in it.

use super::state::State;
use crate::exit::CliError;
use crate::output;
use doors::written::{self, Marked};
use std::io::ErrorKind;
use std::path::Path;

/// File with the state.
pub(super) const STATE: &str = "tune.json";
const MOST_BYTES: u64 = 16 << 20;
/// Directory of the results of the rounds.
pub(super) const ROUNDS: &str = "rounds";
/// Results of the confirmation.
pub(super) const CONFIRMATION: &str = "confirmation";

const REMEDY: &str = "give another directory (-o)";

/// The directory of a race, for this process alone: a new one, an empty one, or that of an earlier start.
pub(super) fn take_directory(dir: &Path) -> Result<Marked, CliError> {
    Marked::claim_dir(dir).map_err(|error| {
        let dir = dir.display();
        match error.kind() {
            ErrorKind::AlreadyExists => CliError::usage(
                format!("{dir} holds what `schedlab tune` did not make"),
                REMEDY,
            ),
            ErrorKind::WouldBlock => {
                CliError::usage(format!("{dir}: another race is under way there"), REMEDY)
            }
            _ => CliError::internal(format!("{dir}: {error}")),
        }
    })
}

/// The state that an earlier start left.
pub(super) fn read_state(dir: &Path) -> Result<Option<State>, CliError> {
    let file = dir.join(STATE);
    let Ok(text) = doors::read::file_text(&file, MOST_BYTES) else {
        return Ok(None);
    };
    let state = serde_json::from_str(&text).map_err(|error| {
        let what = format!("{} is not valid: {error}", file.display());
        CliError::usage(what, REMEDY)
    })?;
    Ok(Some(state))
}

/// The state, where it is that of the race that is asked for.
pub(super) fn check_same(dir: &Path, state: State, begun: &State) -> Result<State, CliError> {
    let differs = [
        ("baseline", state.baseline != begun.baseline),
        ("space", state.vary != begun.vary),
        ("mix", state.weigh != begun.weigh),
        ("objective", state.objective != begun.objective),
        (
            "list of what must not worsen",
            state.must_not_worsen != begun.must_not_worsen,
        ),
    ];
    match differs.into_iter().find(|(_, differs)| *differs) {
        None => Ok(state),
        Some((what, _)) => Err(CliError::usage(
            format!("{} holds another race: its {what} differs", dir.display()),
            REMEDY,
        )),
    }
}

pub(super) fn write_state(dir: &Path, state: &State) -> Result<(), CliError> {
    let json = output::json_text(state)?;
    written::write_file_durably(&dir.join(STATE), json).map_err(CliError::internal)
}
