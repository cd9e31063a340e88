//! The results of several machines that measured one experiment together.
//!
//! ```text
//! NAME-20261125T191606Z/
//!   nodes/experiment.json   the experiment of all, and experiment.toml as it was written
//!   nodes/n1/               results of a run, of one machine, and so on
//!   manifest.json …         all of them merged, made anew at each end of the run
//! ```

use crate::files::{self, io_error, read_json, write_json, write_whole};
use crate::merge::{self, Part};
use crate::write::{Held, is_directory};
use crate::{Manifest, ResultsError};
use doors::read::small_file_text;
use doors::written;
use model::Experiment;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the directory with the results of each machine.
const NODES: &str = "nodes";

/// A directory with results of several machines, and with what they come to. It is of one process.
#[derive(Debug)]
pub struct FleetDir {
    held: Held,
}

impl FleetDir {
    /// A new one. An error where there is something already.
    pub fn create(
        dir: &Path,
        experiment: &Experiment,
        source: Option<&str>,
    ) -> Result<Self, ResultsError> {
        let mut fleet = FleetDir {
            held: Held::take_new(dir)?,
        };
        let begun = fleet.begin(experiment, source);
        if begun.is_err() {
            fleet.held.remove_made();
        }
        begun.map(|()| fleet)
    }

    fn begin(&mut self, experiment: &Experiment, source: Option<&str>) -> Result<(), ResultsError> {
        let nodes = self.nodes();
        self.held.make_directory(NODES)?;
        if let Some(text) = source {
            let name = format!("{NODES}/{}", files::EXPERIMENT_SOURCE);
            self.held.write_new(&name, text.as_bytes())?;
        }
        let experiment = files::to_json(&nodes, experiment)?;
        self.held.write_new(&experiment_file(), &experiment)
    }

    /// Removes one in which nothing was begun; `false` where something was.
    pub fn discard(&self) -> bool {
        let is_new = self.find_runs().is_ok_and(|runs| runs.is_empty());
        if is_new {
            self.held.remove_made();
        }
        is_new
    }

    /// The one that is there. The directory is given back where it is no such thing.
    pub fn open(held: Held) -> Result<Result<Self, Held>, ResultsError> {
        if !is_fleet(held.dir()) {
            return Ok(Err(held));
        }
        is_directory(&held.dir().join(NODES))?;
        Ok(Ok(FleetDir { held }))
    }

    /// The directory of all.
    pub fn dir(&self) -> &Path {
        self.held.dir()
    }

    /// The experiment of all machines.
    pub fn read_experiment(&self) -> Result<Experiment, ResultsError> {
        self.held.read_experiment()
    }

    /// Stores the same experiment with another end.
    pub fn extend_experiment(&mut self, experiment: &Experiment) -> Result<(), ResultsError> {
        self.held.extend_experiment(experiment)
    }

    /// The experiment as it was written, if there was a file.
    pub fn read_source(&self) -> Option<String> {
        small_file_text(self.nodes().join(files::EXPERIMENT_SOURCE)).ok()
    }

    /// The results directory of a machine.
    pub fn machine_dir(&self, machine: &str) -> PathBuf {
        self.nodes().join(files::plain_name(machine))
    }

    /// The results directories that are there, by the names of their machines.
    pub fn find_runs(&self) -> Result<Vec<(String, PathBuf)>, ResultsError> {
        let nodes = self.nodes();
        let entries = fs::read_dir(&nodes).map_err(io_error("reading", &nodes))?;
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io_error("reading", &nodes))?;
            if entry.path().join(files::MANIFEST).exists() {
                let name = entry.file_name().to_string_lossy().into_owned();
                runs.push((name, entry.path()));
            }
        }
        runs.sort();
        Ok(runs)
    }

    /// Puts the merged results of these runs in the place of those of before.
    pub fn merge_runs(&self, parts: &[Part], manifest: Manifest) -> Result<(), ResultsError> {
        let new = self.dir().join(format!("{}merged", files::PARTIAL));
        self.held.remove_below(&new)?;
        merge::merge_runs(parts, &new, manifest)?;
        let merged: Experiment = read_json(&new.join(files::EXPERIMENT))?;
        let of_all = Experiment {
            target: self.read_experiment()?.target,
            ..merged
        };
        write_json(&new.join(files::EXPERIMENT), &of_all)?;
        // Without a manifest there are no results, until all of the new ones are in place.
        for old in files::OWN {
            self.held.remove_below(&self.dir().join(old))?;
        }
        let entries = fs::read_dir(&new).map_err(io_error("reading", &new))?;
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(io_error("reading", &new))?.file_name());
        }
        // This directory has a mark of its own.
        names.retain(|name| *name != *written::MARK);
        names.sort_by_key(|name| *name == *files::MANIFEST);
        for name in names {
            let to = self.dir().join(&name);
            self.held.remove_below(&to)?;
            written::move_durably(&new.join(&name), &to).map_err(io_error("moving to", &to))?;
        }
        if let Some(text) = self.read_source() {
            write_whole(&self.dir().join(files::EXPERIMENT_SOURCE), text.as_bytes())?;
        }
        self.held.remove_below(&new)
    }

    fn nodes(&self) -> PathBuf {
        self.dir().join(NODES)
    }
}

/// Path of the experiment of all machines in their directory.
pub(crate) fn experiment_file() -> String {
    format!("{NODES}/{}", files::EXPERIMENT)
}

/// The results directories of the machines, by name, for those who only read; empty where it is none of
/// several machines.
pub fn machine_dirs(dir: &Path) -> Vec<PathBuf> {
    if !is_fleet(dir) {
        return Vec::new();
    }
    let entries = fs::read_dir(dir.join(NODES)).into_iter().flatten();
    let dirs = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = dirs
        .filter(|dir| dir.join(files::MANIFEST).exists())
        .collect();
    found.sort();
    found
}

/// True for a directory with results of several machines, also before they were merged.
pub fn is_fleet(dir: &Path) -> bool {
    dir.join(NODES).join(files::EXPERIMENT).exists()
}
