//! From what was typed to what it means: an experiment and its source.

use crate::args::ExperimentArgs;
use crate::exit::CliError;
use crate::opened::Opened;
use model::{Calibration, Experiment, TargetSpec, VmSpec};
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment, and the text of its file if it came from one.
pub struct Wanted {
    pub experiment: Experiment,
    pub source: Option<String>,
    /// Of an earlier run that is to be repeated with the very same work.
    pub calibrations: BTreeMap<String, Calibration>,
}

pub fn wanted(args: &ExperimentArgs) -> Result<Wanted, CliError> {
    let (mut experiment, source) = match &args.file {
        Some(path) => from_file(path)?,
        None => (from_words(args)?, None),
    };
    override_stop(&mut experiment, args)?;
    complete_metrics(&mut experiment)?;
    complete_schedulers(&mut experiment)?;
    Ok(Wanted {
        experiment,
        source,
        calibrations: BTreeMap::new(),
    })
}

/// The experiment of an earlier run, to be repeated. Its calibrations come along,
/// so that a trial is the same work here as it was there.
pub fn wanted_like(earlier: &Path, args: &ExperimentArgs) -> Result<Wanted, CliError> {
    let opened = Opened::open(earlier)?;
    let (mut experiment, _) = results::read::read_plan(opened.dir())?;
    let source = std::fs::read_to_string(opened.dir().join("experiment.toml")).ok();
    override_stop(&mut experiment, args)?;
    Ok(Wanted {
        experiment,
        source,
        calibrations: results::read::read_calibrations(opened.dir())?,
    })
}

fn from_file(path: &Path) -> Result<(Experiment, Option<String>), CliError> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        CliError::usage(
            format!("reading {}: {e}", path.display()),
            "give the path of an experiment file, or arms and workloads: -a default -a batch -w wakeup",
        )
    })?;
    let experiment = plan::parse_experiment(&path.display().to_string(), &text)?;
    Ok((experiment, Some(text)))
}

fn from_words(args: &ExperimentArgs) -> Result<Experiment, CliError> {
    let target = match &args.vm {
        Some(kernel) => Some(TargetSpec::Vm(vm(args, kernel)?)),
        None => None,
    };
    let request = plan::Request {
        arms: args.arms.clone(),
        workloads: args.workloads.clone(),
        command: args.command.clone(),
        target,
        seed: args.seed,
        aa: args.aa,
    };
    Ok(plan::experiment_from_request(&request)?)
}

fn vm(args: &ExperimentArgs, kernel: &str) -> Result<VmSpec, CliError> {
    let memory_bytes =
        plan::parse_size(&args.memory).map_err(|e| CliError::usage(e, "--memory 2G"))?;
    Ok(VmSpec::new(kernel, args.cpus, memory_bytes))
}

pub fn override_stop(experiment: &mut Experiment, args: &ExperimentArgs) -> Result<(), CliError> {
    let stop = &mut experiment.stop;
    if let Some(text) = &args.budget {
        let budget = plan::parse_duration(text).map_err(|e| CliError::usage(e, "--budget 5m"))?;
        stop.budget_ns = Some(budget);
    }
    if let Some(text) = &args.smallest_effect {
        let percent =
            plan::parse_percent(text).map_err(|e| CliError::usage(e, "--smallest-effect 2%"))?;
        stop.smallest_effect = percent / 100.0;
    }
    if let Some(blocks) = args.max_blocks {
        stop.max_blocks = blocks;
        stop.min_blocks = stop.min_blocks.min(blocks);
    }
    stop.confidence = args.confidence.unwrap_or(stop.confidence);
    if let Some(seed) = args.seed {
        experiment.seed = seed;
    }
    Ok(plan::check_stop(&experiment.stop)?)
}

/// Metrics that decide when a cell stops: the workload's own unless the file names some.
fn complete_metrics(experiment: &mut Experiment) -> Result<(), CliError> {
    for workload in &mut experiment.workloads {
        let driver = load::driver(&workload.kind);
        if workload.metrics.is_empty() {
            workload.metrics = load::deciding(workload);
            continue;
        }
        let known: Vec<&str> = driver.metrics().iter().map(|m| m.name).collect();
        for metric in &workload.metrics {
            if !known.contains(&metric.as_str()) {
                let help = match plan::nearest(metric, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`? `schedlab list metrics` has all"),
                    None => "`schedlab list metrics` has all".to_owned(),
                };
                let message = format!("the workload `{}` has no metric `{metric}`", workload.name);
                return Err(CliError::usage(message, help));
            }
        }
    }
    Ok(())
}

/// scx_layered gets the shipped layers and scx_microquanta the measured tasks where the
/// arm names none.
fn complete_schedulers(experiment: &mut Experiment) -> Result<(), CliError> {
    let cache = schedulers::Cache::from_env()?;
    for scheduler in experiment
        .arms
        .iter_mut()
        .filter_map(|a| a.scheduler.as_mut())
    {
        scheduler.args = schedulers::default_args(&cache, &scheduler.program, &scheduler.args)?;
    }
    Ok(())
}
