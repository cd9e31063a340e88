//! Names of the files in a results directory, reading them with bounds, and writing one
//! whole or not at all.

use crate::ResultsError;
use doors::read::{MostJson, open_file_here, stream_bytes};
use doors::written;
pub use doors::written::PARTIAL;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Name of the file with format, version, seed, state and warnings.
pub const MANIFEST: &str = "manifest.json";
/// Name of the file with the experiment as it was understood.
pub const EXPERIMENT: &str = "experiment.json";
/// Name of the file with the experiment as it was written, if there was one.
pub const EXPERIMENT_SOURCE: &str = "experiment.toml";
/// Name of the file with the order of the trials.
pub const PLAN: &str = "plan.json";
/// Name of the file with the calibrations, by cell name.
pub const CALIBRATION: &str = "calibration.json";
/// Name of the file about the machine that came up first.
pub const SYSTEM: &str = "system.json";
/// Name of the file with the starts of the run and their machines.
pub const STARTS: &str = "starts.json";
/// Everything that a run writes before its first trial has ended.
pub const OWN: [&str; 7] = [
    MANIFEST,
    EXPERIMENT,
    EXPERIMENT_SOURCE,
    PLAN,
    CALIBRATION,
    SYSTEM,
    STARTS,
];
/// Made from the rest, as the report is.
pub const CERTIFICATE: &str = "certificate.json";
/// Name of the directory with the rates that were tried before the first block, a table for each
/// workload whose loads are shares of its highest rate.
pub const SEARCHES: &str = "searches";
/// Name of the directory with one directory for each trial.
pub const TRIALS: &str = "trials";
/// Below a trial: files that its services and its load left.
pub const KEPT: &str = "kept";
/// Path of the trace of the worst latency in the directory of a trial, where it has one.
pub fn trace_in(trial: &Path) -> PathBuf {
    trial.join(KEPT).join(model::trace::WORST_FILE)
}

/// Name of the file with the result of one trial, in the trial's directory.
pub const TRIAL: &str = "trial.json";

/// A name that is one path component without spaces, whatever was in it.
pub fn plain_name(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "._%=+,-".contains(c);
    let name = name.trim_start_matches('.').chars();
    name.map(|c| if keep(c) { c } else { '-' }).collect()
}

/// The most that is read of one file. The plan is the largest, and has its own limit
/// ([`model::check::MOST_PLACES`]) well below this.
pub const MOST_BYTES: u64 = 64 << 20;

/// Limits of a trial's file without a list of windows.
pub(crate) const MOST_OF_A_TRIAL: u64 = 1 << 20;

/// The most that is read of the JSON file of this name. A value of two bytes takes some ten times as
/// many in memory, so values have a limit, too.
fn most_of(name: &str) -> MostJson {
    let (mib, values) = match name {
        PLAN => (64, 2_600_000),
        // 10 000 windows, and 10 000 starts.
        TRIAL | STARTS => (16, 300_000),
        _ => (4, 100_000),
    };
    MostJson {
        bytes: mib << 20,
        values,
    }
}

pub(crate) fn io_error<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> ResultsError + 'a {
    move |source| ResultsError::Io {
        step,
        path: path.to_owned(),
        source,
    }
}

/// A file that is one: a link may lead out of the results, and a pipe never ends.
pub(crate) fn open(path: &Path) -> Result<fs::File, ResultsError> {
    open_file_here(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => ResultsError::NotAFile(path.to_owned()),
        _ => io_error("opening", path)(error),
    })
}

/// The bytes of one file of some results.
pub fn read(path: &Path) -> Result<Vec<u8>, ResultsError> {
    read_within(path, MOST_BYTES)
}

/// The bytes of one file of some results that has at most so many.
pub fn read_within(path: &Path, most_bytes: u64) -> Result<Vec<u8>, ResultsError> {
    stream_bytes(open(path)?, most_bytes).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => ResultsError::TooLarge {
            path: path.to_owned(),
            most_bytes,
        },
        _ => io_error("reading", path)(error),
    })
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    Ok(read_json_and_size(path)?.0)
}

/// The value, and the number of bytes that say it.
pub(crate) fn read_json_and_size<T: DeserializeOwned>(
    path: &Path,
) -> Result<(T, u64), ResultsError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let most = most_of(&name);
    let text = read_within(path, most.bytes)?;
    let value =
        doors::read::parse_json(&text, most.values).map_err(|source| ResultsError::Json {
            path: path.to_owned(),
            source,
        })?;
    Ok((value, text.len() as u64))
}

/// Readers see the old file or the new one, also after the machine lost power.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    written::write_file_durably(path, bytes).map_err(io_error("writing", path))
}

pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), ResultsError> {
    write_whole(path, &to_json(path, value)?)
}

pub(crate) fn to_json<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, ResultsError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|source| ResultsError::Json {
        path: path.to_owned(),
        source,
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let mut file = written::create_file(path).map_err(io_error("creating", path))?;
    file.write_all(bytes).map_err(io_error("writing", path))?;
    file.sync_all().map_err(io_error("syncing", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_single_path_components() {
        assert_eq!(plain_name("a/b c..%=+"), "a-b-c..%=+");
        assert_eq!(plain_name("../x"), "-x");
        assert_eq!(plain_name(".."), "");
    }
}
