//! Writing a results directory.

use crate::capsule::Found;
use crate::files::{self, io_error, to_json, write_synced, write_whole};
use crate::fleet::{self, is_fleet};
use crate::read::{read_experiment, read_manifest, read_starts};
use crate::{Manifest, ResultsError, RunState};
use doors::written::{self, Holds, Marked, Patience};
use model::{Calibration, Experiment, Machine, Plan, Start, Trial, TrialFile, Warning};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files of a trial besides its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialFiles {
    /// Histograms, tables and logs, by name.
    pub texts: Vec<TrialFile>,
    /// Files that the services and the load left, by path: `load/report/index.html`.
    pub kept: BTreeMap<String, Vec<u8>>,
}

/// Name of a file whose own has no character that is kept.
const NAMELESS: &str = "unnamed";

/// The right to write into a results directory, which one process has at a time.
#[derive(Debug)]
pub struct Held(Marked);

impl Held {
    /// Takes results that are there, before anything of them is read. `wait` is asked while another
    /// process has them; `false` gives up.
    pub fn take_results(dir: &Path, wait: Patience) -> Result<Held, ResultsError> {
        if !dir.join(files::MANIFEST).exists() && !is_fleet(dir) {
            // It says what the directory is instead.
            read_manifest(dir)?;
        }
        is_directory(dir)?;
        let taken = Marked::adopt_dir(dir, wait).map_err(not_taken(dir));
        taken.map(Held)
    }

    /// Takes a new directory, or one with nothing but what a killed run left.
    pub(crate) fn take_new(dir: &Path) -> Result<Held, ResultsError> {
        let taken = Marked::claim_dir(dir);
        let mut taken = taken.map_err(not_taken(dir))?;
        is_directory(dir)?;
        let is_begun = dir.join(files::MANIFEST).exists() || is_fleet(dir);
        if is_begun || taken.remove_listed().map_err(io_error("clearing", dir))? == Holds::More {
            return Err(ResultsError::Occupied(dir.to_owned()));
        }
        Ok(Held(taken))
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.0.dir()
    }

    /// Writes a file that is not there.
    pub(crate) fn write_new(&mut self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        let written = self.0.write_new(name, bytes);
        written.map_err(io_error("writing", &self.dir().join(name)))
    }

    /// Makes a directory that is not there.
    pub(crate) fn make_directory(&mut self, name: &str) -> Result<(), ResultsError> {
        let made = self.0.make_directory(name);
        made.map_err(io_error("creating", &self.dir().join(name)))
    }

    /// Removes what this process made there.
    pub(crate) fn remove_made(&self) {
        self.0.remove_made();
    }

    /// Removes what a run made below the directory.
    pub(crate) fn remove_below(&self, place: &Path) -> Result<(), ResultsError> {
        self.0
            .remove_below(place)
            .map_err(io_error("removing", place))
    }

    /// True where the run was begun at this place, by this user: nobody else wrote what it starts.
    pub fn was_begun_here(&self) -> bool {
        self.0.has_listed(&self.experiment_file())
    }

    /// Takes a run that was begun elsewhere for one that was begun here.
    pub fn adopt_run(&mut self) -> Result<(), ResultsError> {
        let name = self.experiment_file();
        self.0
            .adopt_file(&name)
            .map_err(io_error("listing", &self.dir().join(name)))
    }

    /// The experiment of the run, or of all machines.
    pub fn read_experiment(&self) -> Result<Experiment, ResultsError> {
        read_experiment(&self.dir().join(self.experiment_file()))
    }

    /// Replaces the experiment by the same one with another end.
    pub(crate) fn extend_experiment(
        &mut self,
        experiment: &Experiment,
    ) -> Result<(), ResultsError> {
        let name = self.experiment_file();
        let path = self.dir().join(&name);
        let written = self.0.replace_file(&name, &to_json(&path, experiment)?);
        written.map_err(io_error("writing", &path))
    }

    fn experiment_file(&self) -> String {
        match is_fleet(self.dir()) {
            true => fleet::experiment_file(),
            false => files::EXPERIMENT.to_owned(),
        }
    }

    fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), ResultsError> {
        let path = self.dir().join(name);
        let written = self.0.write_file(name, &to_json(&path, value)?);
        written.map_err(io_error("writing", &path))
    }
}

/// An error of the one who wanted a directory for results.
fn not_taken(dir: &Path) -> impl Fn(std::io::Error) -> ResultsError {
    let dir = dir.to_owned();
    move |error| match error.kind() {
        ErrorKind::AlreadyExists => ResultsError::Occupied(dir.clone()),
        ErrorKind::WouldBlock => ResultsError::InUse(dir.clone()),
        ErrorKind::NotADirectory => ResultsError::NotADirectory(dir.clone()),
        _ => io_error("taking", &dir)(error),
    }
}

/// Refuses a directory for a new run that [`Writer::create`] would refuse, before anything else is
/// done.
pub fn check_place(dir: &Path) -> Result<(), ResultsError> {
    if !dir.exists() || (is_empty(dir)? && dir.is_dir()) {
        return Ok(());
    }
    match written::has_mark(dir) && !dir.join(files::MANIFEST).exists() && !is_fleet(dir) {
        true => Ok(()),
        false => Err(ResultsError::Occupied(dir.to_owned())),
    }
}

/// A directory, and no link to one.
pub(crate) fn is_directory(dir: &Path) -> Result<(), ResultsError> {
    let found = dir
        .symlink_metadata()
        .map_err(io_error("looking at", dir))?;
    match found.is_dir() {
        true => Ok(()),
        false => Err(ResultsError::NotADirectory(dir.to_owned())),
    }
}

/// The one writer of a results directory.
#[derive(Debug)]
pub struct Writer {
    held: Held,
    manifest: Manifest,
    starts: Vec<Start>,
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
        let mut writer = Writer {
            held: Held::take_new(dir)?,
            manifest,
            starts: Vec::new(),
            is_new: true,
        };
        let written = writer.begin(source, experiment, plan);
        if written.is_err() {
            writer.held.remove_made();
        }
        written.map(|()| writer)
    }

    fn begin(
        &mut self,
        source: Option<&str>,
        experiment: &Experiment,
        plan: &Plan,
    ) -> Result<(), ResultsError> {
        let dir = self.dir().to_owned();
        self.held.make_directory(files::TRIALS)?;
        if let Some(text) = source {
            let name = files::EXPERIMENT_SOURCE;
            self.held.write_new(name, text.as_bytes())?;
        }
        let experiment = to_json(&dir.join(files::EXPERIMENT), experiment)?;
        self.held.write_new(files::EXPERIMENT, &experiment)?;
        let plan = to_json(&dir.join(files::PLAN), plan)?;
        self.held.write_new(files::PLAN, &plan)?;
        // Last: a directory with a manifest has everything else.
        let manifest = to_json(&dir.join(files::MANIFEST), &self.manifest)?;
        self.held.write_new(files::MANIFEST, &manifest)
    }

    /// Go on in a directory that an earlier run left.
    pub fn reopen(dir: &Path) -> Result<Writer, ResultsError> {
        Writer::go_on(Held::take_results(dir, &mut written::no_patience)?)
    }

    /// Goes on in a directory that an earlier run left, and that was taken before it was read.
    pub fn go_on(held: Held) -> Result<Writer, ResultsError> {
        let dir = held.dir().to_owned();
        let manifest = read_manifest(&dir)?;
        is_directory(&dir.join(files::TRIALS))?;
        let mut writer = Writer {
            starts: read_starts(&dir)?,
            held,
            manifest,
            is_new: false,
        };
        writer.remove_partial()?;
        writer.set_state(RunState::Running)?;
        Ok(writer)
    }

    /// Stores a longer plan of the same experiment, and drops the warnings about the shorter one.
    pub fn extend_plan(
        &mut self,
        experiment: &Experiment,
        plan: &Plan,
        is_outdated: impl Fn(&Warning) -> bool,
    ) -> Result<(), ResultsError> {
        // The plan first: a longer one than the experiment says does no harm.
        self.held.write_json(files::PLAN, plan)?;
        self.held.extend_experiment(experiment)?;
        self.manifest.warnings.retain(|w| !is_outdated(w));
        self.held.write_json(files::MANIFEST, &self.manifest)
    }

    /// Path of the directory.
    pub fn dir(&self) -> &Path {
        self.held.dir()
    }

    /// The starts before this one.
    pub fn earlier_starts(&self) -> &[Start] {
        &self.starts
    }

    /// Another start of the run, with the machine that came up first. Returns its number,
    /// from 1 on.
    pub fn add_start(&mut self, start: Start) -> Result<u32, ResultsError> {
        if let Some(machine) = start.machines.first() {
            self.keep_first(machine)?;
        }
        self.starts.push(start);
        self.held.write_json(files::STARTS, &self.starts)?;
        Ok(u32::try_from(self.starts.len()).unwrap_or(u32::MAX))
    }

    /// Another kernel of the last start came up.
    pub fn add_machine(&mut self, machine: Machine) -> Result<(), ResultsError> {
        self.keep_first(&machine)?;
        if let Some(start) = self.starts.last_mut() {
            start.machines.push(machine);
        }
        self.held.write_json(files::STARTS, &self.starts)
    }

    /// The first machine that came up is that of the run.
    fn keep_first(&self, machine: &Machine) -> Result<(), ResultsError> {
        let mut earlier = self.starts.iter().flat_map(|start| &start.machines);
        match earlier.next() {
            Some(_) => Ok(()),
            None => self.held.write_json(files::SYSTEM, &machine.system),
        }
    }

    /// Remove a directory in which nothing was measured, if this process made it: the files that it
    /// wrote, and nothing that somebody else put there.
    pub fn discard(&self) {
        let trials = self.dir().join(files::TRIALS);
        if self.is_new && is_empty(&trials).is_ok_and(|empty| empty) {
            self.held.remove_made();
        }
    }

    /// Removes all that was written since the directory was made, trials too: of what can be
    /// written again.
    pub fn discard_all(&self) {
        if self.is_new {
            self.held.remove_made();
        }
    }

    /// Stores the calibrations so far, by cell name, in place of those stored before.
    pub fn write_calibrations(
        &self,
        calibrations: &BTreeMap<String, Calibration>,
    ) -> Result<(), ResultsError> {
        self.held.write_json(files::CALIBRATION, calibrations)
    }

    /// Stores the table of the rates that were tried for a workload before the first block.
    pub fn add_search(&mut self, workload: &str, table: &str) -> Result<(), ResultsError> {
        let name = format!("{}/{}.csv", files::SEARCHES, short(workload));
        write_derived(self.dir(), &name, table.as_bytes())?;
        self.held.0.note_made(self.dir().join(files::SEARCHES));
        Ok(())
    }

    /// Stores a new state of the run in the manifest.
    pub fn set_state(&mut self, state: RunState) -> Result<(), ResultsError> {
        self.manifest.state = state;
        self.held.write_json(files::MANIFEST, &self.manifest)
    }

    /// Warnings about the whole run; each is kept once.
    pub fn add_warnings(&mut self, warnings: Vec<Warning>) -> Result<(), ResultsError> {
        for warning in warnings {
            if !self.manifest.warnings.contains(&warning) {
                self.manifest.warnings.push(warning);
            }
        }
        self.held.write_json(files::MANIFEST, &self.manifest)
    }

    /// Removes warnings about the whole run that hold no more.
    pub fn drop_warnings(
        &mut self,
        is_outdated: impl Fn(&Warning) -> bool,
    ) -> Result<(), ResultsError> {
        let before = self.manifest.warnings.len();
        self.manifest.warnings.retain(|w| !is_outdated(w));
        match self.manifest.warnings.len() == before {
            true => Ok(()),
            false => self.held.write_json(files::MANIFEST, &self.manifest),
        }
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
        let trials = self.dir().join(files::TRIALS);
        let partial = trials.join(format!("{}{name}", files::PARTIAL));
        let place = trials.join(&name);
        // What has its name was left by a kill, or put there as a trap.
        self.held.remove_below(&partial)?;
        let written = write_trial_dir(&partial, trial, write).and_then(|()| {
            written::move_durably(&partial, &place).map_err(io_error("renaming to", &place))
        });
        match written.is_ok() {
            true => self.held.0.note_made(place),
            // Best effort: what is left is ignored by readers and removed on resume.
            false => drop(self.held.remove_below(&partial)),
        }
        written
    }

    /// Removes the trace of a stored trial, since another one of its arm and cell has a worse
    /// latency. One that is gone is fine.
    pub fn remove_trace(&self, trial: &Trial) -> Result<(), ResultsError> {
        let trials = self.dir().join(files::TRIALS);
        let path = files::trace_in(&trials.join(trial_dir_name(trial)));
        self.held.remove_below(&path)
    }

    fn remove_partial(&self) -> Result<(), ResultsError> {
        let trials = self.dir().join(files::TRIALS);
        for entry in fs::read_dir(&trials).map_err(io_error("listing", &trials))? {
            let entry = entry.map_err(io_error("listing", &trials))?;
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with(files::PARTIAL)
            {
                self.held.remove_below(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn is_empty(dir: &Path) -> Result<bool, ResultsError> {
    let mut entries = fs::read_dir(dir).map_err(io_error("listing", dir))?;
    Ok(entries.next().is_none())
}

/// A file that is made from the results, below their directory: `report/report.txt`.
pub fn write_derived(dir: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, ResultsError> {
    let path = dir.join(name);
    if let Some(parent) = path.parent() {
        written::make_directory(parent).map_err(io_error("creating", parent))?;
    }
    write_whole(&path, bytes)?;
    Ok(path)
}

fn write_trial_dir(
    dir: &Path,
    trial: &Trial,
    write: impl FnOnce(&Path) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    written::make_new_directory(dir).map_err(io_error("creating", dir))?;
    write(dir)?;
    let path = dir.join(files::TRIAL);
    write_synced(&path, &to_json(&path, trial)?)?;
    fs::File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(io_error("syncing", dir))
}

fn write_files(dir: &Path, trial_files: &TrialFiles) -> Result<(), ResultsError> {
    for file in &trial_files.texts {
        let name = match short(&file.name) {
            name if name.is_empty() => NAMELESS.to_owned(),
            // Those are of the trial itself.
            name if [files::TRIAL, files::KEPT].contains(&name.as_str()) => format!("{name}-2"),
            name => name,
        };
        write_synced(&free(dir.join(name), |_| false), file.text.as_bytes())?;
    }
    for (path, bytes) in &trial_files.kept {
        write_kept(&dir.join(files::KEPT), path, bytes)?;
    }
    Ok(())
}

/// Everything but the result of the trial, and links and pipes, which no trial has.
fn copy_files(from: &Path, dir: &Path) -> Result<(), ResultsError> {
    let found = Found::read_below(from)?;
    for name in found.files.iter().filter(|name| *name != files::TRIAL) {
        let (source, place) = (from.join(name), dir.join(name));
        let parent = place.parent().unwrap_or(dir);
        written::make_directory(parent).map_err(io_error("making", parent))?;
        let (source_file, mut copy) = (files::open(&source)?, created(&place)?);
        doors::read::copy_within(source_file, &mut copy, u64::MAX)
            .map_err(io_error("copying", &source))?;
        copy.sync_all().map_err(io_error("syncing", &place))?;
    }
    Ok(())
}

fn created(place: &Path) -> Result<fs::File, ResultsError> {
    written::create_file(place).map_err(io_error("creating", place))
}

/// Writes a kept file below a directory, by its path in the trial.
fn write_kept(dir: &Path, path: &str, bytes: &[u8]) -> Result<(), ResultsError> {
    let parts = path.split('/').map(short).filter(|part| !part.is_empty());
    let mut folders: Vec<String> = parts.collect();
    let file = folders.pop().unwrap_or_else(|| NAMELESS.to_owned());
    let below = |place: PathBuf, folder| free(place.join(folder), Path::is_dir);
    let folder = folders.iter().fold(dir.to_owned(), below);
    written::make_directory(&folder).map_err(io_error("making", &folder))?;
    write_synced(&free(folder.join(file), |_| false), bytes)
}

/// The place, or one beside it where something is that does not fit: names may be the same once they
/// are plain, and one may be a file of another's folder.
fn free(mut place: PathBuf, fits: impl Fn(&Path) -> bool) -> PathBuf {
    while place.symlink_metadata().is_ok() && !fits(&place) {
        place.as_mut_os_string().push("-2");
    }
    place
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
    let mut name = files::plain_name(name);
    name.truncate(80);
    name
}
