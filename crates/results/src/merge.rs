//! Several runs of one experiment as one set of results: of several machines, or of several nights.
//!
//! Each block keeps its trials, and so its machine: arms are compared within it, as in one run. The
//! evidence of the runs adds up, since each of them stopped by what it knew itself, and a test that
//! holds at every look (`stats::safe_test`, `stats::randomization`) holds at the end of the last.

use crate::{Manifest, ResultSet, ResultsError, RunState, Source, StoredTrial, Writer};
use model::{Experiment, Invalid, Plan, PlannedTrial, StopRule, Trial, check};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::Path;

/// One of the runs that are merged.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// Name of its machine. Parts of the same name are of the same machine.
    pub machine: String,
    /// Results of the run.
    pub results: &'a ResultSet,
}

impl Part<'_> {
    /// Blocks that were begun.
    fn blocks(&self) -> u32 {
        let trials = self.results.trials.iter();
        trials.map(|t| t.trial.place.block).max().unwrap_or(0)
    }

    /// Places of these blocks in the plan, which has them first.
    fn places(&self) -> impl Iterator<Item = &PlannedTrial> {
        let blocks = self.blocks();
        let places = self.results.plan.trials.iter();
        places.take_while(move |place| place.block <= blocks)
    }
}

/// What the blocks of merged results are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Machines, each of which may have several runs.
    Machine,
    /// Runs of one machine: nights, or boots.
    Run,
}

impl Level {
    /// Word for one of them.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Machine => "machine",
            Level::Run => "run",
        }
    }
}

/// Numbers of the first part's places, blocks and starts that come before those of a part.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    places: u32,
    blocks: u32,
    starts: u32,
}

impl Before {
    fn place(self, place: &PlannedTrial) -> PlannedTrial {
        PlannedTrial {
            index: place.index.saturating_add(self.places),
            block: place.block.saturating_add(self.blocks),
            ..*place
        }
    }

    fn trial(self, trial: &Trial) -> Trial {
        Trial {
            place: self.place(&trial.place),
            start: trial.start.saturating_add(self.starts),
            ..trial.clone()
        }
    }

    fn after(self, part: &Part) -> Before {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Before {
            places: self.places.saturating_add(count(part.places().count())),
            blocks: self.blocks.saturating_add(part.blocks()),
            starts: self.starts.saturating_add(count(part.results.starts.len())),
        }
    }
}

/// Writes the trials of all parts, with their files, into a new directory. An error where the
/// experiments are not the same but for seed, name, question, host and length, and where something
/// cannot be copied; then nothing is left. Calibrations are those of all parts, or none where they differ.
pub fn merge_runs(parts: &[Part], dir: &Path, manifest: Manifest) -> Result<(), ResultsError> {
    let Some(first) = parts.first().map(|part| part.results) else {
        return Ok(());
    };
    parts.iter().try_for_each(|part| is_alike(first, part))?;
    let sources = parts.iter().map(|part| Source {
        machine: part.machine.clone(),
        created: part.results.manifest.created.clone(),
        seed: part.results.manifest.seed,
        blocks: part.blocks(),
        together: part.results.manifest.together,
    });
    let manifest = Manifest {
        sources: sources.collect(),
        state: RunState::Running,
        ..manifest
    };
    let (experiment, plan) = planned(first, parts)?;
    let mut writer = Writer::create(dir, manifest, None, &experiment, &plan)?;
    let written = write(&mut writer, first, parts);
    if written.is_err() {
        writer.discard_all();
    }
    written
}

fn write(writer: &mut Writer, first: &ResultSet, parts: &[Part]) -> Result<(), ResultsError> {
    let mut rest = parts.iter().map(|part| &part.results.calibrations);
    if rest.all(|other| *other == first.calibrations) && !first.calibrations.is_empty() {
        writer.write_calibrations(&first.calibrations)?;
    }
    for start in parts.iter().flat_map(|part| &part.results.starts) {
        writer.add_start(start.clone())?;
    }
    let mut before = Before::default();
    for part in parts {
        for stored in &part.results.trials {
            writer.copy_trial(&before.trial(&stored.trial), &stored.dir)?;
        }
        before = before.after(part);
    }
    writer.set_state(RunState::Done)
}

fn is_alike(first: &ResultSet, part: &Part) -> Result<(), ResultsError> {
    let other = part.results;
    let wrong = |key: &str| {
        let what = format!("not as in {}", first.dir.display());
        Err(invalid(&other.dir, Invalid::new(key, what)))
    };
    let (a, b) = (&first.experiment, &other.experiment);
    let stop = |of: &Experiment| StopRule {
        budget_ns: None,
        max_blocks: 0,
        ..of.stop.clone()
    };
    let observed = |of: &Experiment| of.observe.clone().without_trace();
    let ways = |of: &ResultSet| -> Vec<_> {
        let cells = of.plan.cells.iter();
        cells
            .map(|cell| {
                of.calibrations
                    .get(&cell.name)
                    .and_then(|found| found.piloted)
            })
            .collect()
    };
    // Machines of a kind have names and addresses of their own.
    let place = |target: &model::TargetSpec| target.without_key("host").without_key("address");
    let same = [
        (
            "arms",
            a.arms == b.arms && a.baseline == b.baseline && a.aa_arm == b.aa_arm,
        ),
        ("workloads", a.workloads == b.workloads),
        ("cells", first.plan.cells == other.plan.cells),
        ("stop", stop(a) == stop(b)),
        ("target", place(&a.target) == place(&b.target)),
        ("collect", observed(a) == observed(b)),
        ("in-place", ways(first) == ways(other)),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        Some((key, _)) => wrong(key),
        None => Ok(()),
    }
}

/// The experiment with the blocks of all parts, and the plan of these.
fn planned(first: &ResultSet, parts: &[Part]) -> Result<(Experiment, Plan), ResultsError> {
    let mut before = Before::default();
    let mut trials = Vec::new();
    for part in parts {
        trials.extend(part.places().map(|place| before.place(place)));
        before = before.after(part);
    }
    if before.blocks > check::MOST_BLOCKS {
        let what = format!("{} in all, more than {}", before.blocks, check::MOST_BLOCKS);
        return Err(invalid(&first.dir, Invalid::new("blocks", what)));
    }
    let mut experiment = first.experiment.clone();
    experiment.stop.max_blocks = before.blocks.max(experiment.stop.min_blocks);
    let plan = Plan {
        trials,
        ..first.plan.clone()
    };
    let checked = experiment.check().and_then(|()| plan.check(&experiment));
    checked.map_err(|source| invalid(&first.dir, source))?;
    Ok((experiment, plan))
}

fn invalid(dir: &Path, source: Invalid) -> ResultsError {
    ResultsError::Invalid {
        path: dir.to_owned(),
        source,
    }
}

/// True where the host name of the target is that of the machine: guests have all the same.
pub fn has_name_of_machine(experiment: &Experiment) -> bool {
    matches!(experiment.target.kind(), "local" | "ssh" | "slurm")
}

impl ResultSet {
    /// Runs that these results were merged from, with the numbers that their blocks and places had
    /// in them; the results themselves where they are of one run.
    pub fn merged_runs(&self) -> Vec<ResultSet> {
        if self.manifest.sources.is_empty() {
            return vec![self.clone()];
        }
        let runs = self.manifest.sources.iter().zip(self.blocks_of_sources());
        runs.map(|(source, blocks)| self.run(source, &blocks))
            .collect()
    }

    /// Machines that measured at once, in one run of all of them.
    pub fn count_at_once(&self) -> usize {
        let sources = self.manifest.sources.iter();
        sources.filter(|source| source.together).count().max(1)
    }

    /// What the blocks of merged results are told apart by. Runs of guests say nothing of other machines.
    pub fn find_level(&self) -> Level {
        if !has_name_of_machine(&self.experiment) {
            return Level::Run;
        }
        let sources = &self.manifest.sources;
        let is_another = |source: &Source| source.machine != sources[0].machine;
        match sources.iter().any(is_another) {
            true => Level::Machine,
            false => Level::Run,
        }
    }

    /// Results of each machine alone, or of each run where all are of one machine, by name and without the plan, one
    /// after the other: all at once would be all trials a second time. Empty where they are of one run.
    pub fn split_by_part(&self) -> impl Iterator<Item = (String, ResultSet)> {
        type Run<'a> = (&'a Source, RangeInclusive<u32>);
        let level = self.find_level();
        let mut parts: Vec<(String, Vec<Run>)> = Vec::new();
        for (source, blocks) in self.manifest.sources.iter().zip(self.blocks_of_sources()) {
            let name = match level {
                Level::Machine => source.machine.clone(),
                // The guests of one run have names.
                Level::Run if source.together => source.machine.clone(),
                // No two of merged runs have one seed.
                Level::Run => {
                    let day = source.created.get(..10).unwrap_or(&source.created);
                    format!("{day} seed {}", source.seed)
                }
            };
            match parts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.push((source, blocks)),
                None => parts.push((name, vec![(source, blocks)])),
            }
        }
        if parts.len() < 2 {
            parts.clear();
        }
        let alone = |(name, runs): (_, Vec<Run>)| {
            let is_its = |t: &&StoredTrial| {
                let block = t.trial.place.block;
                runs.iter().any(|(_, blocks)| blocks.contains(&block))
            };
            let trials = self.trials.iter().filter(is_its).cloned().collect();
            let mut results = self.with(Vec::new(), trials);
            results.manifest.sources = runs.iter().map(|(source, _)| (*source).clone()).collect();
            (name, results)
        };
        parts.into_iter().map(alone)
    }

    /// The same, with another plan and other trials.
    fn with(&self, places: Vec<PlannedTrial>, trials: Vec<StoredTrial>) -> ResultSet {
        ResultSet {
            dir: self.dir.clone(),
            manifest: self.manifest.clone(),
            experiment: self.experiment.clone(),
            plan: Plan {
                seed: self.plan.seed,
                cells: self.plan.cells.clone(),
                trials: places,
            },
            calibrations: self.calibrations.clone(),
            system: self.system.clone(),
            starts: self.starts.clone(),
            trials,
            strays: Vec::new(),
        }
    }

    /// Numbers of the blocks of each source.
    fn blocks_of_sources(&self) -> impl Iterator<Item = RangeInclusive<u32>> {
        let sources = self.manifest.sources.iter();
        sources.scan(0_u32, |before, source| {
            let first = before.saturating_add(1);
            *before = before.saturating_add(source.blocks);
            Some(first..=*before)
        })
    }

    fn run(&self, source: &Source, blocks: &RangeInclusive<u32>) -> ResultSet {
        let is_its = |place: &PlannedTrial| blocks.contains(&place.block);
        let first = self.plan.trials.iter().find(|place| is_its(place));
        let first = first.map_or(0, |place| place.index);
        let in_run = |place: &PlannedTrial| PlannedTrial {
            index: place.index - first,
            block: place.block - (blocks.start() - 1),
            ..*place
        };
        let stored = self.trials.iter().filter(|t| is_its(&t.trial.place));
        let trials = stored.map(|stored| StoredTrial {
            trial: Trial {
                place: in_run(&stored.trial.place),
                ..stored.trial.clone()
            },
            dir: stored.dir.clone(),
        });
        let places = self.plan.trials.iter().filter(|place| is_its(place));
        let mut run = self.with(places.map(in_run).collect(), trials.collect());
        run.plan.seed = source.seed;
        run.manifest.sources.clear();
        run.manifest.together = source.together;
        run.experiment.seed = source.seed;
        run.experiment.stop.max_blocks = source.blocks;
        run
    }
}
