//! Reading a results directory: whatever it holds, what comes of it fits together.
//!
//! Only regular files are read, none beyond its limit (at most [`files::MOST_BYTES`]), and every index, name
//! and number that others calculate with is checked here ([`model::check`]).

use crate::files::{self, io_error, read_json, read_json_and_size};
use crate::fleet::is_fleet;
use crate::{FORMAT, Format, Manifest, ResultsError};
use doors::written;
use model::{
    Calibration, Cell, Experiment, Invalid, Load, Plan, Start, System, Trial, format_rate,
};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// Everything that a results directory says.
#[derive(Debug, Clone)]
pub struct ResultSet {
    /// Path of the results directory.
    pub dir: PathBuf,
    /// Head of the directory: format, version, seed and state.
    pub manifest: Manifest,
    /// Experiment as it was understood when the run began.
    pub experiment: Experiment,
    /// Order in which the trials were to run.
    pub plan: Plan,
    /// Values that were found before the first block, by the name of the cell.
    pub calibrations: BTreeMap<String, Calibration>,
    /// The machine with the baseline's kernel, as it first came up.
    pub system: System,
    /// The starts of the run, in order; at least one.
    pub starts: Vec<Start>,
    /// By place in the plan, then by attempt; void and failed ones included.
    pub trials: Vec<StoredTrial>,
    /// Names in `trials/` that hold no trial, sorted: they are left alone.
    pub strays: Vec<String>,
}

/// A trial and the directory with its files.
#[derive(Debug, Clone)]
pub struct StoredTrial {
    /// Result of the trial.
    pub trial: Trial,
    /// Path of the trial's directory, with its histograms, tables and logs.
    pub dir: PathBuf,
}

impl ResultSet {
    /// Reads and checks the directory `dir`. An error where it is too new, or where one of its
    /// files is missing, not valid, or in contradiction to the others.
    pub fn read(dir: &Path) -> Result<ResultSet, ResultsError> {
        let manifest = read_manifest(dir)?;
        let (experiment, plan) = read_plan(dir)?;
        check_sources(&manifest, &plan).map_err(invalid(&dir.join(files::MANIFEST)))?;
        let (trials, strays) = trials(dir, &experiment, &plan)?;
        let starts = read_starts(dir)?;
        check_starts(&trials, &starts)?;
        Ok(ResultSet {
            dir: dir.to_owned(),
            calibrations: read_calibrations(dir)?,
            system: system(dir, &experiment, &starts)?,
            starts,
            manifest,
            experiment,
            plan,
            trials,
            strays,
        })
    }

    /// Rate that the trials of a cell offer, in requests a second; `None` where its load is none.
    pub fn rate_per_sec(&self, cell: &Cell) -> Option<f64> {
        let load = match self.calibrations.get(&cell.name) {
            Some(found) => cell.load.offered_load(found),
            None => cell.load,
        };
        match load {
            Load::RatePerSec(rate) => Some(rate),
            _ => None,
        }
    }

    /// Load of a cell in words; a share with the rate that it means: `80% of max (96/s)`.
    pub fn load_in_words(&self, cell: &Cell) -> String {
        cell.load.to_string() + &self.meant_rate(cell)
    }

    /// Name of a cell, and the rate that a share means: `bank 80% of max (96/s)`.
    pub fn cell_title(&self, cell: &Cell) -> String {
        cell.name.clone() + &self.meant_rate(cell)
    }

    /// Rate in brackets, where the load is a share and does not say it.
    fn meant_rate(&self, cell: &Cell) -> String {
        match (cell.load, self.rate_per_sec(cell)) {
            (Load::ShareOfMax(_), Some(rate)) => format!(" ({})", format_rate(rate)),
            _ => String::new(),
        }
    }
}

/// The baseline's machine. A run that was ended early may know other kernels only; then,
/// and in directories that name no kernels, it is the first machine of all.
fn system(dir: &Path, experiment: &Experiment, starts: &[Start]) -> Result<System, ResultsError> {
    let first: System = read_json(&dir.join(files::SYSTEM))?;
    let kernel = &experiment.arms[experiment.baseline].kernel;
    let mut machines = starts.iter().flat_map(|start| &start.machines);
    let of_baseline = machines.find(|machine| machine.kernel == *kernel);
    Ok(of_baseline.map_or(first, |machine| machine.system.clone()))
}

/// Experiment and plan of a directory in a format that this version knows.
pub fn read_plan(dir: &Path) -> Result<(Experiment, Plan), ResultsError> {
    read_manifest(dir)?;
    let experiment = read_experiment(&dir.join(files::EXPERIMENT))?;
    let place = dir.join(files::PLAN);
    let plan: Plan = read_json(&place)?;
    plan.check(&experiment).map_err(invalid(&place))?;
    Ok((experiment, plan))
}

/// The experiment of a file, which is checked.
pub(crate) fn read_experiment(file: &Path) -> Result<Experiment, ResultsError> {
    let experiment: Experiment = read_json(file)?;
    experiment.check().map_err(invalid(file))?;
    Ok(experiment)
}

fn invalid(path: &Path) -> impl Fn(Invalid) -> ResultsError {
    |source| ResultsError::Invalid {
        path: path.to_owned(),
        source,
    }
}

/// The manifest, after its format was found to be one that this version knows.
pub fn read_manifest(dir: &Path) -> Result<Manifest, ResultsError> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: Format,
    }
    let path = dir.join(files::MANIFEST);
    if !path.exists() {
        if is_fleet(dir) {
            return Err(ResultsError::NotMerged(dir.to_owned()));
        }
        let why = match written::has_mark(dir) {
            true => ResultsError::NeverBegan,
            false => ResultsError::NotResults,
        };
        return Err(why(dir.to_owned()));
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

/// The starts of a run; empty if its first has not looked at the machine yet.
pub fn read_starts(dir: &Path) -> Result<Vec<Start>, ResultsError> {
    let path = dir.join(files::STARTS);
    match path.exists() {
        true => read_json(&path),
        false => Ok(Vec::new()),
    }
}

/// Runs that were merged have all blocks of the plan, and a seed each.
fn check_sources(manifest: &Manifest, plan: &Plan) -> Result<(), Invalid> {
    let sources = &manifest.sources;
    if sources.is_empty() {
        return Ok(());
    }
    let mut blocks = sources.iter().map(|source| source.blocks);
    let all = blocks.try_fold(0_u32, u32::checked_add);
    if all != Some(plan.trials.last().map_or(0, |place| place.block)) {
        return Err(Invalid::new("sources", "have not the blocks of the plan"));
    }
    let seeds: HashSet<u64> = sources.iter().map(|source| source.seed).collect();
    match seeds.len() == sources.len() {
        true => Ok(()),
        false => Err(Invalid::new("sources", "have a seed twice")),
    }
}

/// Each trial names its start, from 1 on.
fn check_starts(trials: &[StoredTrial], starts: &[Start]) -> Result<(), ResultsError> {
    let has_start = |t: &&StoredTrial| (1..=starts.len()).contains(&(t.trial.start as usize));
    match trials.iter().find(|t| !has_start(t)) {
        None => Ok(()),
        Some(StoredTrial { trial, dir }) => {
            let what = format!(
                "is {}, but the run has {} starts",
                trial.start,
                starts.len()
            );
            Err(invalid(&dir.join(files::TRIAL))(Invalid::new(
                "start", what,
            )))
        }
    }
}

/// Calibrations by cell name; empty if there are none yet.
pub fn read_calibrations(dir: &Path) -> Result<BTreeMap<String, Calibration>, ResultsError> {
    let path = dir.join(files::CALIBRATION);
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let found: BTreeMap<String, Calibration> = read_json(&path)?;
    found
        .values()
        .try_for_each(Calibration::check)
        .map_err(invalid(&path))?;
    Ok(found)
}

/// All finished trials, in the order of the plan. Where a place was measured again, because
/// its block was half done when the run was interrupted, the last one counts and the others
/// are left out.
pub fn read_trials(dir: &Path) -> Result<Vec<StoredTrial>, ResultsError> {
    let (experiment, plan) = read_plan(dir)?;
    Ok(trials(dir, &experiment, &plan)?.0)
}

/// The trials, and the names of what is beside them.
fn trials(
    dir: &Path,
    experiment: &Experiment,
    plan: &Plan,
) -> Result<(Vec<StoredTrial>, Vec<String>), ResultsError> {
    let dir = &dir.join(files::TRIALS);
    let (mut places, mut strays) = (Vec::new(), Vec::new());
    if !is_directory(dir)? {
        return Err(ResultsError::NotADirectory(dir.to_owned()));
    }
    for entry in fs::read_dir(dir).map_err(io_error("listing", dir))? {
        let path = entry.map_err(io_error("listing", dir))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(files::PARTIAL) {
            continue;
        }
        let place = path.join(files::TRIAL);
        // Not by existence: a link that is a trial's file must be an error.
        if !is_directory(&path)? || place.symlink_metadata().is_err() {
            strays.push(name.into_owned());
            continue;
        }
        places.push(path);
    }
    let mut trials = read_each(&places, experiment, plan)?;
    trials.sort_by_key(|t| key(&t.trial));
    none_twice(&trials)?;
    let last_ok: BTreeMap<u32, u32> = trials
        .iter()
        .filter(|t| t.trial.is_ok())
        .map(|t| key(&t.trial))
        .collect();
    trials.retain(|t| !t.trial.is_ok() || last_ok[&t.trial.place.index] == t.trial.attempt);
    strays.sort();
    Ok((trials, strays))
}

/// Trials for which a thread more is worth its start.
const OF_A_THREAD: usize = 1000;

/// The trials in these directories. Tens of thousands of them are read by all CPUs.
fn read_each(
    places: &[PathBuf],
    experiment: &Experiment,
    plan: &Plan,
) -> Result<Vec<StoredTrial>, ResultsError> {
    let read = |path: &PathBuf| {
        let place = path.join(files::TRIAL);
        let (mut trial, bytes): (Trial, u64) = read_json_and_size(&place)?;
        if bytes > files::MOST_OF_A_TRIAL && trial.result.windows.is_none() {
            return Err(ResultsError::TooLarge {
                path: place,
                most_bytes: files::MOST_OF_A_TRIAL,
            });
        }
        trial.check(experiment, plan).map_err(invalid(&place))?;
        // A list that was read has room for as much again, and there are many trials.
        trial.result.metrics.shrink_to_fit();
        trial.result.evidence.facts.shrink_to_fit();
        trial.result.evidence.points.shrink_to_fit();
        let dir = path.clone();
        Ok(StoredTrial { trial, dir })
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = (places.len() / OF_A_THREAD).clamp(1, cpus);
    let share = places.len().div_ceil(threads).max(1);
    let parts: Vec<Result<Vec<StoredTrial>, ResultsError>> = thread::scope(|scope| {
        let read = &read;
        let threads: Vec<_> = places
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(read).collect()))
            .collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut trials = Vec::with_capacity(places.len());
    for part in parts {
        trials.extend(part?);
    }
    Ok(trials)
}

fn key(trial: &Trial) -> (u32, u32) {
    (trial.place.index, trial.attempt)
}

fn is_directory(path: &Path) -> Result<bool, ResultsError> {
    let found = path
        .symlink_metadata()
        .map_err(io_error("looking at", path))?;
    Ok(found.is_dir())
}

fn none_twice(trials: &[StoredTrial]) -> Result<(), ResultsError> {
    let mut seen = HashSet::new();
    match trials.iter().find(|t| !seen.insert(key(&t.trial))) {
        None => Ok(()),
        Some(StoredTrial { trial, dir }) => {
            let what = format!(
                "attempt {} at place {} is there twice",
                trial.attempt, trial.place.index
            );
            Err(invalid(&dir.join(files::TRIAL))(Invalid::new(
                "attempt", what,
            )))
        }
    }
}
