//! What a bisection keeps in its directory: the steps so far, and the log of git.

use super::{State, Step};
use crate::exit::CliError;
use crate::output;
use doors::written::{self, Marked};
use git::Bisection;
use std::io::ErrorKind;
use std::path::Path;

/// File with the steps so far.
const STEPS: &str = "bisect.json";
/// The most that is read of it: a bisection has some dozen steps.
const MOST_STEPS_BYTES: u64 = 16 << 20;
/// Directory of the results of all comparisons.
pub(super) const RESULTS: &str = "steps";
/// File that `git bisect replay` takes.
const LOG: &str = "bisect.log";

/// The directory of a bisection, for this process alone: a new one, an empty one, or that of an
/// earlier start.
pub(super) fn take_directory(dir: &Path) -> Result<Marked, CliError> {
    let remedy = "give another directory (-o)";
    let taken = Marked::claim_dir(dir).map_err(|error| {
        let dir = dir.display();
        match error.kind() {
            ErrorKind::AlreadyExists => {
                let what = format!("{dir} holds what `schedlab bisect` did not make");
                CliError::usage(what, remedy)
            }
            ErrorKind::WouldBlock => CliError::usage(
                format!("{dir}: another bisection is under way there"),
                remedy,
            ),
            _ => CliError::internal(format!("{dir}: {error}")),
        }
    })?;
    // git obeys the settings of a clone, and programs of commits run.
    match taken.was_made_here() {
        true => Ok(taken),
        false => Err(CliError::usage(
            format!(
                "the bisection in {} was begun elsewhere, and its clone and its trees may hold any program",
                dir.display()
            ),
            remedy,
        )),
    }
}

fn torn(file: &Path, error: &serde_json::Error) -> CliError {
    CliError::usage(
        format!("{} is not valid: {error}", file.display()),
        "remove it: git has the commits that were judged, and the same command goes on with them; \
         only both ends are compared once more",
    )
}

/// Steps of which git alone knows, since what was kept of them is gone.
pub(super) fn known_to_git(bisection: &Bisection, dir: &Path) -> Result<Vec<Step>, CliError> {
    let step = |(index, (verdict, commit)): (usize, (String, String))| {
        let results = Path::new(RESULTS).join(format!("{:02}", index + 1));
        Ok(Step {
            subject: bisection.read_subject(&commit)?,
            commit,
            verdict,
            why: "judged before, as git knows".to_owned(),
            results: dir.join(&results).exists().then_some(results),
        })
    };
    bisection
        .judged_commits()?
        .into_iter()
        .enumerate()
        .map(step)
        .collect()
}

/// The state that an earlier start left.
pub(super) fn read_state(dir: &Path) -> Result<Option<State>, CliError> {
    let file = dir.join(STEPS);
    let Ok(text) = doors::read::file_text(&file, MOST_STEPS_BYTES) else {
        return Ok(None);
    };
    let state = serde_json::from_str(&text).map_err(|error| torn(&file, &error))?;
    Ok(Some(state))
}

/// Keeps the state, and the log of git beside it.
pub(super) fn write_state(dir: &Path, state: &State, log: String) -> Result<(), CliError> {
    let json = output::json_text(state)?;
    written::write_file_durably(&dir.join(STEPS), json).map_err(CliError::internal)?;
    written::write_file_durably(&dir.join(LOG), log).map_err(CliError::internal)
}
