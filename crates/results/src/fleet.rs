//! The results of several machines that measured one experiment together.
//!
//! ```text
//! NAME-20261125T191606Z/
//!   nodes/experiment.json   the experiment of all, and experiment.toml as it was written
//!   nodes/n1/               results of a run, of one machine, and so on
//!   manifest.json …         all of them merged, made anew at each end of the run
//! ```

use crate::files::{self, io, read_json, write_json, write_whole};
use crate::merge::{self, Part};
use crate::{Manifest, ResultsError, place};
use model::Experiment;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the directory with the results of each machine.
const NODES: &str = "nodes";

/// Name of the file that the process which measures has locked.
const LOCK: &str = "lock";

/// A directory with results of several machines, and with what they come to. It is of one process.
#[derive(Debug)]
pub struct FleetDir {
    dir: PathBuf,
    _lock: File,
}

impl FleetDir {
    /// A new one. An error where there is something already.
    pub fn create(
        dir: &Path,
        experiment: &Experiment,
        source: Option<&str>,
    ) -> Result<Self, ResultsError> {
        let is_taken = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken {
            return Err(ResultsError::Occupied(dir.to_owned()));
        }
        place::make(dir)?;
        let nodes = dir.join(NODES);
        place::make(&nodes)?;
        if let Some(text) = source {
            write_whole(&nodes.join(files::EXPERIMENT_SOURCE), text.as_bytes())?;
        }
        let lock = locked(&nodes)?;
        write_json(&nodes.join(files::EXPERIMENT), experiment)?;
        Ok(FleetDir {
            dir: dir.to_owned(),
            _lock: lock,
        })
    }

    /// Removes one in which nothing was begun; `false` where something was.
    pub fn discard(&self) -> bool {
        let is_new = self.runs().is_ok_and(|runs| runs.is_empty());
        if is_new {
            // What is left of it holds nothing.
            let _ = fs::remove_dir_all(self.nodes());
            let _ = fs::remove_dir(&self.dir);
        }
        is_new
    }

    /// The one that is there; `None` where the directory is no such thing.
    pub fn open(dir: &Path) -> Result<Option<Self>, ResultsError> {
        if !is_fleet(dir) {
            return Ok(None);
        }
        let nodes = dir.join(NODES);
        place::is_ours(dir)?;
        place::is_directory(&nodes)?;
        place::is_ours(&nodes)?;
        Ok(Some(FleetDir {
            dir: dir.to_owned(),
            _lock: locked(&nodes)?,
        }))
    }

    /// The directory of all.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The experiment of all machines.
    pub fn experiment(&self) -> Result<Experiment, ResultsError> {
        let path = self.nodes().join(files::EXPERIMENT);
        let experiment: Experiment = read_json(&path)?;
        let checked = experiment.check();
        checked.map_err(|source| ResultsError::Invalid { path, source })?;
        Ok(experiment)
    }

    /// Stores the same experiment with another end.
    pub fn extend(&self, experiment: &Experiment) -> Result<(), ResultsError> {
        write_json(&self.nodes().join(files::EXPERIMENT), experiment)
    }

    /// The experiment as it was written, if there was a file.
    pub fn source(&self) -> Option<String> {
        fs::read_to_string(self.nodes().join(files::EXPERIMENT_SOURCE)).ok()
    }

    /// The results directory of a machine.
    pub fn of(&self, machine: &str) -> PathBuf {
        self.nodes().join(files::plain(machine))
    }

    /// The results directories that are there, by the names of their machines.
    pub fn runs(&self) -> Result<Vec<(String, PathBuf)>, ResultsError> {
        let nodes = self.nodes();
        let entries = fs::read_dir(&nodes).map_err(io("reading", &nodes))?;
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io("reading", &nodes))?;
            if entry.path().join(files::MANIFEST).exists() {
                let name = entry.file_name().to_string_lossy().into_owned();
                runs.push((name, entry.path()));
            }
        }
        runs.sort();
        Ok(runs)
    }

    /// Puts the merged results of these runs in the place of those of before.
    pub fn merge(&self, parts: &[Part], manifest: Manifest) -> Result<(), ResultsError> {
        let new = self.dir.join(format!("{}merged", files::PARTIAL));
        remove(&new)?;
        merge::merge(parts, &new, manifest)?;
        let merged: Experiment = read_json(&new.join(files::EXPERIMENT))?;
        let of_all = Experiment {
            target: self.experiment()?.target,
            ..merged
        };
        write_json(&new.join(files::EXPERIMENT), &of_all)?;
        // Without a manifest there are no results, until all of the new ones are in place.
        for old in files::OWN {
            remove(&self.dir.join(old))?;
        }
        let entries = fs::read_dir(&new).map_err(io("reading", &new))?;
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(io("reading", &new))?.file_name());
        }
        names.sort_by_key(|name| *name == *files::MANIFEST);
        for name in names {
            let to = self.dir.join(&name);
            remove(&to)?;
            fs::rename(new.join(&name), &to).map_err(io("moving to", &to))?;
        }
        if let Some(text) = self.source() {
            write_whole(&self.dir.join(files::EXPERIMENT_SOURCE), text.as_bytes())?;
        }
        remove(&new)
    }

    fn nodes(&self) -> PathBuf {
        self.dir.join(NODES)
    }
}

/// True for a directory with results of several machines, also before they were merged.
pub(crate) fn is_fleet(dir: &Path) -> bool {
    dir.join(NODES).join(files::EXPERIMENT).exists()
}

/// The right to measure into the directory, until the file is closed.
fn locked(nodes: &Path) -> Result<File, ResultsError> {
    let path = nodes.join(LOCK);
    let options = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = options.map_err(io("opening", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ResultsError::InUse(nodes.to_owned())),
        Err(TryLockError::Error(error)) => Err(io("locking", &path)(error)),
    }
}

/// Removes a file or a directory, if it is there.
fn remove(path: &Path) -> Result<(), ResultsError> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("removing", path)(error)),
        _ => Ok(()),
    }
}
