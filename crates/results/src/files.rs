//! Names of the files in a results directory, and writing one whole or not at all.

use crate::ResultsError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::Write;
use std::path::Path;

pub const MANIFEST: &str = "manifest.json";
pub const EXPERIMENT: &str = "experiment.json";
pub const EXPERIMENT_SOURCE: &str = "experiment.toml";
pub const PLAN: &str = "plan.json";
pub const CALIBRATION: &str = "calibration.json";
pub const SYSTEM: &str = "system.json";
pub const TRIALS: &str = "trials";
pub const TRIAL: &str = "trial.json";
/// Prefix of what is being written; left over only by a crash.
pub const PARTIAL: &str = ".partial-";

pub(crate) fn io<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> ResultsError + 'a {
    move |source| ResultsError::Io {
        step,
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text = fs::read(path).map_err(io("reading", path))?;
    serde_json::from_slice(&text).map_err(|source| ResultsError::Json {
        path: path.to_owned(),
        source,
    })
}

/// Write beside the place, sync, rename: readers see the old file or the new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!("{PARTIAL}{name}"));
    write_synced(&partial, bytes)?;
    fs::rename(&partial, path).map_err(io("renaming to", path))?;
    sync_parent(path)
}

pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), ResultsError> {
    write_whole(path, &json(path, value)?)
}

pub(crate) fn json<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, ResultsError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|source| ResultsError::Json {
        path: path.to_owned(),
        source,
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let mut file = fs::File::create(path).map_err(io("creating", path))?;
    file.write_all(bytes).map_err(io("writing", path))?;
    file.sync_all().map_err(io("syncing", path))
}

/// A rename is on disk only when its directory is.
pub(crate) fn sync_parent(path: &Path) -> Result<(), ResultsError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(io("syncing", parent))
}
