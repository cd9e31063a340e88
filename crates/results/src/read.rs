//! Reading a results directory.

use crate::files::{self, io, read_json};
use crate::{FORMAT, Format, Manifest, ResultsError};
use model::{Calibration, Experiment, Plan, System, Trial};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that a results directory says.
#[derive(Debug, Clone)]
pub struct ResultSet {
    pub dir: PathBuf,
    pub manifest: Manifest,
    pub experiment: Experiment,
    pub plan: Plan,
    pub system: System,
    /// By place in the plan, then by attempt; void and failed ones included.
    pub trials: Vec<StoredTrial>,
}

/// A trial and the directory with its files.
#[derive(Debug, Clone)]
pub struct StoredTrial {
    pub trial: Trial,
    pub dir: PathBuf,
}

impl ResultSet {
    pub fn read(dir: &Path) -> Result<ResultSet, ResultsError> {
        let manifest = read_manifest(dir)?;
        let (experiment, plan) = read_plan(dir)?;
        Ok(ResultSet {
            dir: dir.to_owned(),
            manifest,
            experiment,
            plan,
            system: read_json(&dir.join(files::SYSTEM))?,
            trials: read_trials(dir)?,
        })
    }
}

/// What was to be measured, of a directory in a format that this version knows.
pub fn read_plan(dir: &Path) -> Result<(Experiment, Plan), ResultsError> {
    read_manifest(dir)?;
    Ok((
        read_json(&dir.join(files::EXPERIMENT))?,
        read_json(&dir.join(files::PLAN))?,
    ))
}

/// The manifest, after its format was found to be one that this version knows.
pub fn read_manifest(dir: &Path) -> Result<Manifest, ResultsError> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: Format,
    }
    let path = dir.join(files::MANIFEST);
    if !path.exists() {
        return Err(ResultsError::NotResults(dir.to_owned()));
    }
    let head: Head = read_json(&path)?;
    if head.format.major > FORMAT.major {
        return Err(ResultsError::TooNew {
            path: dir.to_owned(),
            found: head.format.major,
            known: FORMAT.major,
        });
    }
    read_json(&path)
}

/// What was calibrated, by cell name; empty if nothing was yet.
pub fn read_calibrations(dir: &Path) -> Result<BTreeMap<String, Calibration>, ResultsError> {
    let path = dir.join(files::CALIBRATION);
    if path.exists() {
        read_json(&path)
    } else {
        Ok(BTreeMap::new())
    }
}

/// All finished trials, in the order of the plan.
pub fn read_trials(dir: &Path) -> Result<Vec<StoredTrial>, ResultsError> {
    let dir = &dir.join(files::TRIALS);
    let mut trials = Vec::new();
    for entry in fs::read_dir(dir).map_err(io("listing", dir))? {
        let path = entry.map_err(io("listing", dir))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(files::PARTIAL) {
            continue;
        }
        let trial = read_json(&path.join(files::TRIAL))?;
        trials.push(StoredTrial { trial, dir: path });
    }
    trials.sort_by_key(|t| (t.trial.place.index, t.trial.attempt));
    Ok(trials)
}
