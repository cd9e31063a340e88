//! Writing a results directory.

use crate::capsule::Found;
use crate::files::{self, io, json, sync_parent, write_json, write_synced, write_whole};
use crate::place;
use crate::read::{read_manifest, read_starts};
use crate::{Manifest, ResultsError, RunState};
use model::{Calibration, Experiment, Machine, Plan, Start, Trial, TrialFile, Warning};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a trial besides its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialFiles {
    /// Histograms, tables and logs, by name.
    pub texts: Vec<TrialFile>,
    /// Files that the services and the load left, by path: `load/report/index.html`.
    pub kept: BTreeMap<String, Vec<u8>>,
}

/// The one writer of a results directory.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    manifest: Manifest,
    starts: Vec<Start>,
    /// Tables of searches that this process wrote.
    searches: Vec<PathBuf>,
    /// Did this process make the directory's contents?
    is_new: bool,
}

impl Writer {
    /// A new directory, which must not exist or be empty. What a run left that was killed
    /// before it had a manifest is replaced.
    pub fn create(
        dir: &Path,
        manifest: Manifest,
        source: Option<&str>,
        experiment: &Experiment,
        plan: &Plan,
    ) -> Result<Writer, ResultsError> {
        if dir.exists() && !is_empty(dir)? && !never_began(dir)? {
            return Err(ResultsError::Occupied(dir.to_owned()));
        }
        place::make(dir)?;
        place::make(&dir.join(files::TRIALS))?;
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
            starts: Vec::new(),
            searches: Vec::new(),
            is_new: true,
        })
    }

    /// Go on in a directory that an earlier run left.
    pub fn reopen(dir: &Path) -> Result<Writer, ResultsError> {
        let manifest = read_manifest(dir)?;
        place::is_ours(dir)?;
        place::is_directory(&dir.join(files::TRIALS))?;
        let mut writer = Writer {
            dir: dir.to_owned(),
            starts: read_starts(dir, &manifest)?,
            manifest,
            searches: Vec::new(),
            is_new: false,
        };
        writer.remove_partial()?;
        writer.set_state(RunState::Running)?;
        Ok(writer)
    }

    /// Stores a longer plan of the same experiment, and drops the warnings about the shorter one.
    pub fn extend(
        &mut self,
        experiment: &Experiment,
        plan: &Plan,
        is_outdated: impl Fn(&Warning) -> bool,
    ) -> Result<(), ResultsError> {
        // The plan first: a longer one than the experiment says does no harm.
        write_json(&self.dir.join(files::PLAN), plan)?;
        write_json(&self.dir.join(files::EXPERIMENT), experiment)?;
        self.manifest.warnings.retain(|w| !is_outdated(w));
        write_json(&self.dir.join(files::MANIFEST), &self.manifest)
    }

    /// Path of the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The starts before this one.
    pub fn starts(&self) -> &[Start] {
        &self.starts
    }

    /// Another start of the run, with the machine that came up first. Returns its number,
    /// from 1 on.
    pub fn add_start(&mut self, start: Start) -> Result<u32, ResultsError> {
        if let Some(machine) = start.machines.first() {
            self.keep_first(machine)?;
        }
        self.starts.push(start);
        write_json(&self.dir.join(files::STARTS), &self.starts)?;
        Ok(u32::try_from(self.starts.len()).unwrap_or(u32::MAX))
    }

    /// Another kernel of the last start came up.
    pub fn add_machine(&mut self, machine: Machine) -> Result<(), ResultsError> {
        self.keep_first(&machine)?;
        if let Some(start) = self.starts.last_mut() {
            start.machines.push(machine);
        }
        write_json(&self.dir.join(files::STARTS), &self.starts)
    }

    /// The first machine that came up is that of the run.
    fn keep_first(&self, machine: &Machine) -> Result<(), ResultsError> {
        let mut earlier = self.starts.iter().flat_map(|start| &start.machines);
        match earlier.next() {
            Some(_) => Ok(()),
            None => write_json(&self.dir.join(files::SYSTEM), &machine.system),
        }
    }

    /// Remove a directory in which nothing was measured, if this process made it: its own
    /// files by name, and nothing that somebody else put there.
    pub fn discard(&self) {
        let trials = self.dir.join(files::TRIALS);
        if !self.is_new || !is_empty(&trials).is_ok_and(|empty| empty) {
            return;
        }
        for name in files::OWN {
            let _ = fs::remove_file(self.dir.join(name));
        }
        for path in &self.searches {
            let _ = fs::remove_file(path);
        }
        // These fail, rightly, where something is left.
        let _ = fs::remove_dir(self.dir.join(files::SEARCHES));
        let _ = fs::remove_dir(&trials);
        let _ = fs::remove_dir(&self.dir);
    }

    /// Stores the calibrations so far, by cell name, in place of those stored before.
    pub fn write_calibrations(
        &self,
        calibrations: &BTreeMap<String, Calibration>,
    ) -> Result<(), ResultsError> {
        write_json(&self.dir.join(files::CALIBRATION), calibrations)
    }

    /// Stores the table of the rates that were tried for a workload before the first block.
    pub fn add_search(&mut self, workload: &str, table: &str) -> Result<(), ResultsError> {
        let name = format!("{}/{}.csv", files::SEARCHES, short(workload));
        self.searches
            .push(derived(&self.dir, &name, table.as_bytes())?);
        Ok(())
    }

    /// Stores a new state of the run in the manifest.
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
    pub fn add_trial(&self, trial: &Trial, trial_files: &TrialFiles) -> Result<(), ResultsError> {
        self.add(trial, |dir| write_files(dir, trial_files))
    }

    /// Stores a trial with the files beside its result in another directory of trials.
    pub(crate) fn copy_trial(&self, trial: &Trial, from: &Path) -> Result<(), ResultsError> {
        self.add(trial, |dir| copy_files(from, dir))
    }

    fn add(
        &self,
        trial: &Trial,
        write: impl FnOnce(&Path) -> Result<(), ResultsError>,
    ) -> Result<(), ResultsError> {
        let name = trial_dir_name(trial);
        let trials = self.dir.join(files::TRIALS);
        let partial = trials.join(format!("{}{name}", files::PARTIAL));
        let place = trials.join(&name);
        let written = write_trial_dir(&partial, trial, write).and_then(|()| {
            fs::rename(&partial, &place).map_err(io("renaming to", &place))?;
            sync_parent(&place)
        });
        if written.is_err() {
            // Best effort: what is left is ignored by readers and removed on resume.
            let _ = fs::remove_dir_all(&partial);
        }
        written
    }

    /// Removes the trace of a stored trial, since another one of its arm and cell has a worse
    /// latency. One that is gone is fine.
    pub fn remove_trace(&self, trial: &Trial) -> Result<(), ResultsError> {
        let trials = self.dir.join(files::TRIALS);
        let path = files::trace_in(&trials.join(trial_dir_name(trial)));
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io("removing", &path)(e)),
            _ => Ok(()),
        }
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

fn is_empty(dir: &Path) -> Result<bool, ResultsError> {
    let mut entries = fs::read_dir(dir).map_err(io("listing", dir))?;
    Ok(entries.next().is_none())
}

/// Is there nothing but what a run writes before its manifest?
pub(crate) fn never_began(dir: &Path) -> Result<bool, ResultsError> {
    for entry in fs::read_dir(dir).map_err(io("listing", dir))? {
        let name = entry.map_err(io("listing", dir))?.file_name();
        let name = name.to_string_lossy();
        let ours = match name.strip_prefix(files::PARTIAL).unwrap_or(&name) {
            files::EXPERIMENT_SOURCE | files::EXPERIMENT | files::PLAN => true,
            files::MANIFEST => name.starts_with(files::PARTIAL),
            files::TRIALS => is_empty(&dir.join(files::TRIALS))?,
            _ => false,
        };
        if !ours {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A file that is made from the results, below their directory: `report/report.txt`.
pub fn derived(dir: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, ResultsError> {
    let path = dir.join(name);
    if let Some(parent) = path.parent() {
        place::make(parent)?;
    }
    write_whole(&path, bytes)?;
    Ok(path)
}

fn write_trial_dir(
    dir: &Path,
    trial: &Trial,
    write: impl FnOnce(&Path) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    place::make_anew(dir)?;
    write(dir)?;
    let path = dir.join(files::TRIAL);
    write_synced(&path, &json(&path, trial)?)?;
    fs::File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(io("syncing", dir))
}

fn write_files(dir: &Path, trial_files: &TrialFiles) -> Result<(), ResultsError> {
    for file in &trial_files.texts {
        write_synced(&dir.join(short(&file.name)), file.text.as_bytes())?;
    }
    for (path, bytes) in &trial_files.kept {
        write_kept(&dir.join(files::KEPT), path, bytes)?;
    }
    Ok(())
}

/// Everything but the result of the trial, and links and pipes, which no trial has.
fn copy_files(from: &Path, dir: &Path) -> Result<(), ResultsError> {
    let found = Found::below(from)?;
    for name in found.files.iter().filter(|name| *name != files::TRIAL) {
        let (source, place) = (from.join(name), dir.join(name));
        let parent = place.parent().unwrap_or(dir);
        fs::create_dir_all(parent).map_err(io("making", parent))?;
        let (mut source_file, mut copy) = (files::open(&source)?, files::create(&place)?);
        std::io::copy(&mut source_file, &mut copy).map_err(io("copying", &source))?;
        copy.sync_all().map_err(io("syncing", &place))?;
    }
    Ok(())
}

/// Two names that are the same once they are plain get two files.
fn write_kept(dir: &Path, path: &str, bytes: &[u8]) -> Result<(), ResultsError> {
    let parts = path.split('/').map(short).filter(|part| !part.is_empty());
    let mut place = parts.fold(dir.to_owned(), |place, part| place.join(part));
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).map_err(io("making", parent))?;
    }
    while place.exists() {
        place.as_mut_os_string().push("-2");
    }
    write_synced(&place, bytes)
}

/// `00042-wakeup-100%-b7-bpfland`; a repeated attempt adds `-a2`.
fn trial_dir_name(trial: &Trial) -> String {
    let mut name = format!(
        "{:05}-{}-b{}-{}",
        trial.place.index,
        short(&trial.cell),
        trial.place.block,
        short(&trial.arm)
    );
    if trial.attempt > 1 {
        name.push_str(&format!("-a{}", trial.attempt));
    }
    name
}

/// A plain name with room for others beside it: names of files have at most 255 bytes.
fn short(name: &str) -> String {
    let mut name = files::plain(name);
    name.truncate(80);
    name
}
