//! `results/latest`, a link to the directory of the newest run. Commands that read results take
//! it where they are given none.

use crate::exit::CliError;
use crate::output::note;
use doors::written;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of runs that are told no other.
pub const RESULTS: &str = "results";
const LATEST: &str = "latest";

/// Makes a run the newest, if there is `results/` here. A link that cannot be made fails nothing.
pub fn remember(run: &Path) {
    let (Ok(results), Ok(run)) = (Path::new(RESULTS).canonicalize(), run.canonicalize()) else {
        return;
    };
    let to = run.strip_prefix(&results).unwrap_or(&run);
    let link = results.join(LATEST);
    if let Err(error) = written::write_link(to, &link) {
        tracing::warn!("{} stays as it is: {error}", link.display());
    }
}

/// The directory or capsule that was given, or else that of the newest run, which is said on
/// standard error.
pub fn or_newest(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let results = Path::new(RESULTS);
    let link = results.join(LATEST);
    let newest = fs::read_link(&link).map(|to| results.join(to));
    match newest {
        Ok(newest) if newest.is_dir() => {
            note!("The newest run: {}", newest.display());
            Ok(newest)
        }
        _ => Err(CliError::usage(
            format!("{} leads to no run", link.display()),
            "give a results directory, or go to where `schedlab run` was started",
        )),
    }
}
