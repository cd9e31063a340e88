//! Writing a results directory.

use crate::files::{self, io, json, sync_parent, write_json, write_synced, write_whole};
use crate::read::read_manifest;
use crate::{Manifest, ResultsError, RunState};
use model::{Calibration, Experiment, Plan, System, Trial, TrialFile, Warning};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The one writer of a results directory.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    manifest: Manifest,
}

impl Writer {
    /// A new directory, which must not exist or be empty.
    pub fn create(
        dir: &Path,
        manifest: Manifest,
        source: Option<&str>,
        experiment: &Experiment,
        plan: &Plan,
    ) -> Result<Writer, ResultsError> {
        if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(ResultsError::Occupied(dir.to_owned()));
        }
        let trials = dir.join(files::TRIALS);
        fs::create_dir_all(&trials).map_err(io("creating", &trials))?;
        if let Some(text) = source {
            write_whole(&dir.join(files::EXPERIMENT_SOURCE), text.as_bytes())?;
        }
        write_json(&dir.join(files::EXPERIMENT), experiment)?;
        write_json(&dir.join(files::PLAN), plan)?;
        // Last: a directory with a manifest has everything else.
        write_json(&dir.join(files::MANIFEST), &manifest)?;
        Ok(Writer {
            dir: dir.to_owned(),
            manifest,
        })
    }

    /// Go on in a directory that an earlier run left.
    pub fn reopen(dir: &Path) -> Result<Writer, ResultsError> {
        let manifest = read_manifest(dir)?;
        let mut writer = Writer {
            dir: dir.to_owned(),
            manifest,
        };
        writer.remove_partial()?;
        writer.set_state(RunState::Running)?;
        Ok(writer)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn write_system(&self, system: &System) -> Result<(), ResultsError> {
        write_json(&self.dir.join(files::SYSTEM), system)
    }

    pub fn write_calibrations(
        &self,
        calibrations: &BTreeMap<String, Calibration>,
    ) -> Result<(), ResultsError> {
        write_json(&self.dir.join(files::CALIBRATION), calibrations)
    }

    pub fn set_state(&mut self, state: RunState) -> Result<(), ResultsError> {
        self.manifest.state = state;
        write_json(&self.dir.join(files::MANIFEST), &self.manifest)
    }

    /// Warnings about the whole run; each is kept once.
    pub fn warn(&mut self, warnings: Vec<Warning>) -> Result<(), ResultsError> {
        for warning in warnings {
            if !self.manifest.warnings.contains(&warning) {
                self.manifest.warnings.push(warning);
            }
        }
        write_json(&self.dir.join(files::MANIFEST), &self.manifest)
    }

    /// Store a finished trial: whole or absent.
    pub fn add_trial(&self, trial: &Trial, trial_files: &[TrialFile]) -> Result<(), ResultsError> {
        let name = trial_dir_name(trial);
        let trials = self.dir.join(files::TRIALS);
        let partial = trials.join(format!("{}{name}", files::PARTIAL));
        let place = trials.join(&name);
        let written = write_trial_dir(&partial, trial, trial_files).and_then(|()| {
            fs::rename(&partial, &place).map_err(io("renaming to", &place))?;
            sync_parent(&place)
        });
        if written.is_err() {
            // Best effort: what is left is ignored by readers and removed on resume.
            let _ = fs::remove_dir_all(&partial);
        }
        written
    }

    fn remove_partial(&self) -> Result<(), ResultsError> {
        let trials = self.dir.join(files::TRIALS);
        for entry in fs::read_dir(&trials).map_err(io("listing", &trials))? {
            let entry = entry.map_err(io("listing", &trials))?;
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with(files::PARTIAL)
            {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(io("removing", &path))?;
            }
        }
        Ok(())
    }
}

fn write_trial_dir(
    dir: &Path,
    trial: &Trial,
    trial_files: &[TrialFile],
) -> Result<(), ResultsError> {
    fs::create_dir_all(dir).map_err(io("creating", dir))?;
    for file in trial_files {
        write_synced(&dir.join(plain(&file.name)), file.text.as_bytes())?;
    }
    let path = dir.join(files::TRIAL);
    write_synced(&path, &json(&path, trial)?)?;
    fs::File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(io("syncing", dir))
}

/// `00042-wakeup-100%-b7-bpfland`; a repeated attempt adds `-a2`.
fn trial_dir_name(trial: &Trial) -> String {
    let mut name = format!(
        "{:05}-{}-b{}-{}",
        trial.place.index,
        plain(&trial.cell),
        trial.place.block,
        plain(&trial.arm)
    );
    if trial.attempt > 1 {
        name.push_str(&format!("-a{}", trial.attempt));
    }
    name
}

/// A name that is one path component whatever was in it.
fn plain(name: &str) -> String {
    let text: String = name
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '%' | '=' | '+' | ',' => c,
            _ => '-',
        })
        .take(80)
        .collect();
    text.trim_start_matches('.').to_owned()
}
