//! From what was read to an experiment, a plan and trials, and into a results directory.

use crate::{ImportError, Imported, ImportedArm, Run};
use model::imported::ImportedFrom;
use model::{
    Arm, Better, Build, Cell, Evidence, Experiment, Kind, Machine, Observe, Plan, PlannedTrial,
    Start, StopRule, System, Trial, TrialFile, TrialResult, TrialState, Workload,
};
use results::{FORMAT, Manifest, ResultsError, RunState, TrialFiles, Writer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Choices of an import.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the tool.
    pub tool: String,
    /// Name of the experiment.
    pub name: String,
    /// Name of the arm that the others are put beside; `None`: the first.
    pub baseline: Option<String>,
    /// Confidence of the intervals; `None`: the usual one.
    pub confidence: Option<f64>,
    /// Build of the schedlab that imports.
    pub build: Build,
}

/// An import as a results directory has it.
#[derive(Debug, Clone)]
pub struct Converted {
    /// Experiment: arms, workloads and loads as the tool has them.
    pub experiment: Experiment,
    /// Plan in which every run is in a block of its own.
    pub plan: Plan,
    /// Trials in the order of the plan.
    pub trials: Vec<(Trial, TrialFiles)>,
    options: Options,
    arms: Vec<ImportedArm>,
    warnings: Vec<model::Warning>,
}

impl Converted {
    /// Converts what was read at `path`. An error where there is no run, no such baseline, or
    /// more than results can hold.
    pub fn from_imported(
        imported: Imported,
        path: &Path,
        options: Options,
    ) -> Result<Self, ImportError> {
        if imported.runs.is_empty() {
            return Err(ImportError::in_file(
                path,
                "there is no run in it",
                "`schedlab import --help` says what is read of each tool",
            ));
        }
        let baseline = baseline(&imported.arms, options.baseline.as_deref(), path)?;
        let cells = Cells::of(&imported.runs);
        let experiment = cells.experiment(&imported.arms, baseline, &options);
        let too_much = |e: model::Invalid| {
            let remedy = "import fewer arms or benchmarks at a time";
            ImportError::in_file(path, e.to_string(), remedy)
        };
        experiment.check().map_err(too_much)?;
        let (plan, runs) = cells.plan(&imported.arms);
        plan.check(&experiment).map_err(too_much)?;
        let trials = plan.trials.iter().zip(runs);
        let trials = trials.map(|(place, run)| trial(place, run, &cells.cells[place.cell].name));
        Ok(Converted {
            trials: trials.collect(),
            experiment,
            plan,
            options,
            arms: imported.arms,
            warnings: imported.warnings,
        })
    }

    /// Writes a new results directory.
    pub fn write(&self, dir: &Path) -> Result<(), ResultsError> {
        let now = jiff::Timestamp::now().to_string();
        let build = self.options.build.clone();
        let manifest = Manifest {
            format: FORMAT,
            tool_version: build.version.clone(),
            tool_commit: build.commit.clone(),
            name: self.experiment.name.clone(),
            seed: self.experiment.seed,
            created: now.clone(),
            state: RunState::Running,
            warnings: self.warnings.clone(),
            sources: Vec::new(),
            together: false,
        };
        let mut writer = Writer::create(dir, manifest, None, &self.experiment, &self.plan)?;
        let start = Start {
            began: now,
            build,
            machines: vec![Machine {
                kernel: None,
                system: self.system(),
            }],
        };
        let written = self.write_trials(&mut writer, start);
        if written.is_err() {
            writer.discard_all();
        }
        written
    }

    fn write_trials(&self, writer: &mut Writer, start: Start) -> Result<(), ResultsError> {
        writer.add_start(start)?;
        for (trial, files) in &self.trials {
            writer.add_trial(trial, files)?;
        }
        writer.set_state(RunState::Done)
    }

    /// The machine as far as the tool recorded it: of the baseline, and of every arm by its name.
    fn system(&self) -> System {
        let known = |name: &str| {
            let baseline = self.arms.get(self.experiment.baseline)?;
            baseline.facts.get(name).cloned()
        };
        let facts = self.arms.iter().flat_map(|arm| {
            let facts = arm.facts.iter();
            facts.map(|(fact, value)| (format!("{}: {fact}", arm.name), value.clone()))
        });
        System {
            hostname: known("host").unwrap_or_default(),
            kernel_release: known("kernel").unwrap_or_default(),
            cpu_model: known("hardware").unwrap_or_default(),
            facts: facts.collect(),
            ..System::default()
        }
    }
}

fn baseline(arms: &[ImportedArm], wanted: Option<&str>, path: &Path) -> Result<usize, ImportError> {
    let Some(wanted) = wanted else {
        return Ok(0);
    };
    let found = arms.iter().position(|arm| arm.name == wanted);
    found.ok_or_else(|| {
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let what = format!("there is no arm `{wanted}` in it");
        ImportError::in_file(path, what, format!("its arms are: {}", names.join(", ")))
    })
}

/// The cells of the runs, each once, in the order in which they come.
struct Cells<'a> {
    workloads: Vec<Workload>,
    cells: Vec<Cell>,
    /// Runs of each cell.
    runs: Vec<Vec<&'a Run>>,
}

impl<'a> Cells<'a> {
    fn of(runs: &'a [Run]) -> Self {
        let mut cells = Cells {
            workloads: Vec::new(),
            cells: Vec::new(),
            runs: Vec::new(),
        };
        let mut known = BTreeMap::new();
        for run in runs {
            let name = run.place.cell_name();
            let at = *known.entry(name.clone()).or_insert_with(|| {
                cells.add(run, name);
                cells.cells.len() - 1
            });
            cells.runs[at].push(run);
        }
        cells
    }

    fn add(&mut self, run: &Run, name: String) {
        let place = &run.place;
        let known = self.workloads.iter().position(|w| w.name == place.workload);
        let workload = known.unwrap_or_else(|| {
            let kind = Kind::new("imported").with_param("benchmark", place.benchmark.as_str());
            let judged = run.metrics.iter().filter(|m| m.better != Better::Neither);
            self.workloads.push(Workload {
                name: place.workload.clone(),
                loads: Vec::new(),
                metrics: judged.map(|m| m.metric.clone()).collect(),
                ..Workload::new(kind)
            });
            self.workloads.len() - 1
        });
        self.workloads[workload].loads.push(place.load);
        self.cells.push(Cell {
            workload,
            load: place.load,
            name,
        });
        self.runs.push(Vec::new());
    }

    fn experiment(&self, arms: &[ImportedArm], baseline: usize, options: &Options) -> Experiment {
        let usual = StopRule::default();
        let most = self.runs.iter().map(Vec::len).max().unwrap_or(1);
        let arms = arms.iter().map(|arm| Arm {
            ingredients: [("imported".to_owned(), Value::from(arm.name.as_str()))].into(),
            ..Arm::unchanged(&arm.name)
        });
        Experiment {
            name: options.name.clone(),
            question: None,
            seed: 0,
            target: ImportedFrom::target_spec(&options.tool),
            arms: arms.collect(),
            baseline,
            workloads: self.workloads.clone(),
            stop: StopRule {
                confidence: options.confidence.unwrap_or(usual.confidence),
                min_blocks: 1,
                max_blocks: u32::try_from(most).unwrap_or(u32::MAX),
                ..usual
            },
            pause_ns: 0,
            observe: Observe::default(),
            aa_arm: None,
        }
    }

    /// Every run in a block of its own: those of the first arm, then those of the second.
    fn plan(&self, arms: &[ImportedArm]) -> (Plan, Vec<&'a Run>) {
        let mut places: Vec<(PlannedTrial, &Run)> = Vec::new();
        for (cell, runs) in self.runs.iter().enumerate() {
            let mut block = 0;
            for (arm, named) in arms.iter().enumerate() {
                for run in runs.iter().filter(|run| run.arm == named.name) {
                    block += 1;
                    let index = 0;
                    let place = PlannedTrial {
                        index,
                        block,
                        cell,
                        arm,
                    };
                    places.push((place, run));
                }
            }
        }
        places.sort_by_key(|(place, _)| (place.block, place.cell));
        for (index, (place, _)) in (0..).zip(&mut places) {
            place.index = index;
        }
        let (trials, runs) = places.into_iter().unzip();
        let plan = Plan {
            seed: 0,
            cells: self.cells.clone(),
            trials,
        };
        (plan, runs)
    }
}

fn trial(place: &PlannedTrial, run: &Run, cell: &str) -> (Trial, TrialFiles) {
    let trial = Trial {
        place: place.clone(),
        cell: cell.to_owned(),
        arm: run.arm.clone(),
        attempt: 1,
        start: 1,
        result: TrialResult {
            state: TrialState::Ok,
            started_unix_ns: run.started_unix_ns.min(i64::MAX.unsigned_abs()),
            elapsed_ns: run.elapsed_ns.min(model::check::LONGEST_NS),
            window_start_ns: 0,
            window_end_ns: run.elapsed_ns.min(model::check::LONGEST_NS),
            evidence: Evidence::default(),
            metrics: run.metrics.clone(),
            warnings: Vec::new(),
            for_good: false,
            trace: None,
            windows: None,
            events: Vec::new(),
            rail: None,
        },
    };
    let mut texts = vec![TrialFile {
        name: "source.txt".to_owned(),
        text: format!("{}\n", run.source),
    }];
    texts.extend(run.files.iter().cloned());
    let files = TrialFiles {
        texts,
        ..TrialFiles::default()
    };
    (trial, files)
}
