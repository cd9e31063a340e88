//! From what was typed to what it means: an experiment and its source.

use crate::args::ExperimentArgs;
use crate::exit::CliError;
use crate::{complete, sources, targets};
use doors::started::Agreed;
use model::{Calibration, Experiment, TargetSpec};
use plan::{CommandLine, PlanError};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment.
pub struct Wanted {
    pub experiment: Experiment,
    /// The text of its file; one that says the same where it came from a command line.
    pub source: Option<String>,
    /// Calibrations of an earlier run that is to be repeated with the very same work.
    pub calibrations: BTreeMap<String, Calibration>,
}

pub fn wanted(args: &ExperimentArgs) -> Result<Wanted, CliError> {
    let (mut experiment, line, mut source) = match &args.file {
        Some(path) if args.arms.is_empty() => {
            let (experiment, text) = from_file(path)?;
            (experiment, None, Some(text))
        }
        Some(path) => (with_arms(path, &args.arms)?, None, None),
        None => {
            let line = words(args)?;
            (plan::parse_command_line(&line)?, Some(line), None)
        }
    };
    args.cells.narrow(&mut experiment)?;
    experiment.trace = args.trace.clone().or(experiment.trace);
    if args.aa {
        experiment = plan::with_aa(experiment)?;
    }
    // A guest of the command line sees them already.
    if args.vm.is_none() {
        expose(&mut experiment, &args.expose)?;
    }
    override_stop(&mut experiment, args)?;
    plan::check(&experiment)?;
    if let Some(line) = line {
        source = plan::experiment_file(&line, &experiment);
        if source.is_none() {
            tracing::warn!(
                "no experiment file says the same as this command line, so the results have none"
            );
        }
    }
    let cpus = targets::cpus(&experiment.target);
    complete::complete(&mut experiment, &cpus);
    Ok(Wanted {
        experiment,
        source,
        calibrations: BTreeMap::new(),
    })
}

/// An experiment that the user measures, and so agrees to: what its arms name by a commit is built.
pub fn measurable(args: &ExperimentArgs) -> Result<Wanted, CliError> {
    let mut wanted = wanted(args)?;
    sources::build(&mut wanted.experiment, Agreed::by_command())?;
    sources::require_installed(&wanted.experiment)?;
    Ok(wanted)
}

/// On the command line as in the file.
pub fn expose(experiment: &mut Experiment, paths: &[String]) -> Result<(), CliError> {
    if paths.is_empty() {
        return Ok(());
    }
    let def = target::def(&experiment.target).map_err(PlanError::from)?;
    let Some(expose) = def.expose else {
        return Err(CliError::usage(
            format!(
                "`--expose` is for guests, and this experiment runs on {} itself",
                def.summary
            ),
            "leave it out, or run in a guest: `--vm debian:sid`",
        ));
    };
    Ok(expose(&mut experiment.target, paths).map_err(PlanError::from)?)
}

/// Extension of the files of schedbench.
const CLASSIC: &str = "bench";

pub fn from_file(path: &Path) -> Result<(Experiment, String), CliError> {
    let is_classic = path.extension().is_some_and(|end| end == CLASSIC);
    let text = match is_classic {
        true => import::bench_file::experiment(path)
            .map_err(|e| CliError::usage(e.to_string(), e.remedy))?,
        false => read_text(path).map_err(|e| {
            CliError::usage(
                format!("reading {}: {e}", path.display()),
                "give the path of an experiment file, or arms and workloads: -a default -a batch -w \
                 wakeup",
            )
        })?,
    };
    let name = path.display().to_string();
    let experiment = plan::parse_experiment(&name, &text)?;
    let collectors = agent::COLLECTORS.map(|def| def.name);
    plan::check_collectors(&experiment, &collectors, (&name, &text))?;
    Ok((experiment, text))
}

/// A file with other arms than its own, if it has some.
fn with_arms(path: &Path, arms: &[String]) -> Result<Experiment, CliError> {
    let name = path.display().to_string();
    let experiment = from_file(path).map(|(experiment, _)| experiment);
    let experiment = experiment.or_else(|error| {
        let text = read_text(path).map_err(CliError::internal)?;
        let text = text + "\n[[arm]]\nname = \"default\"\n";
        plan::parse_experiment(&name, &text).map_err(|_| error)
    })?;
    Ok(plan::with_arms(experiment, arms)?)
}

/// The most that an experiment file has: there is much room for comments.
const MOST_FILE_BYTES: u64 = 4 << 20;

/// Text of a file, or of a pipe that somebody writes to.
fn read_text(path: &Path) -> std::io::Result<String> {
    doors::read::text_of_file_or_pipe(path, MOST_FILE_BYTES)
}

fn words(args: &ExperimentArgs) -> Result<CommandLine, CliError> {
    Ok(CommandLine {
        arms: arms(args)?,
        workloads: args.workloads.clone(),
        command: args.command.clone(),
        prepare: prepare(args)?,
        metrics: args.metrics.clone(),
        server: args.server.clone(),
        beside: args.beside.clone(),
        duration: args.duration.clone(),
        in_place: args.in_place.clone(),
        turn: args.turn.clone(),
        washout: args.washout.clone(),
        perf: args.perf.clone(),
        target: target_keys(args)?,
        seed: args.seed,
        aa: args.aa,
        trace: args.trace.clone(),
    })
}

/// The arms as they were typed, and one for each profile. Without any that was typed, profiles
/// are compared with the machine as it is.
fn arms(args: &ExperimentArgs) -> Result<Vec<String>, CliError> {
    let mut arms = args.arms.clone();
    let Some(directory) = &args.profiles else {
        return Ok(arms);
    };
    if arms.is_empty() {
        // A profile may be called `default`.
        arms.push("unchanged:=default".to_owned());
    }
    arms.extend(profiles(directory)?);
    Ok(arms)
}

/// An arm for each file of a directory, named after it.
fn profiles(directory: &Path) -> Result<Vec<String>, CliError> {
    let refuse = |what: String| {
        let remedy = "a profile is a file of NAME=VALUE lines, such as low_latency.conf with \
                      SCHED_MIGRATION_COST_NS=100000";
        CliError::usage(what, remedy)
    };
    let unreadable = |e| refuse(format!("reading the profiles {}: {e}", directory.display()));
    let mut arms = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let Some(name) = name.filter(|name| !name.starts_with('.') && path.is_file()) else {
            continue;
        };
        let path = path.to_string_lossy();
        if path.contains('+') {
            return Err(refuse(format!(
                "`{path}`: a `+` in the path would join two changes of an arm"
            )));
        }
        arms.push(format!("{name}:=profile={path}"));
    }
    if arms.is_empty() {
        let what = format!("there are no profiles in {}", directory.display());
        return Err(refuse(what));
    }
    arms.sort();
    Ok(arms)
}

/// The words of `--prepare`, as a shell would cut them.
fn prepare(args: &ExperimentArgs) -> Result<Vec<String>, CliError> {
    let text = args.prepare.as_deref().unwrap_or_default();
    shlex::split(text).ok_or_else(|| {
        CliError::usage(
            format!("`{text}` has an open quotation mark"),
            "--prepare 'make clean'",
        )
    })
}

/// The keys of `[target]` that the arguments mean; none is this machine.
fn target_keys(args: &ExperimentArgs) -> Result<Map<String, Value>, CliError> {
    if let Some(text) = &args.target {
        return short_form(text);
    }
    let Some(kernel) = &args.vm else {
        return Ok(Map::new());
    };
    plan::parse_size(&args.memory).map_err(|e| CliError::usage(e, "--memory 2G"))?;
    let mut keys = Map::new();
    keys.insert("kind".to_owned(), "vm".into());
    keys.insert("kernel".to_owned(), kernel.as_str().into());
    if let Some(cpus) = args.cpus {
        keys.insert("cpus".to_owned(), cpus.into());
    }
    if let Some(clock) = &args.clock {
        keys.insert("clock".to_owned(), clock.as_str().into());
    }
    keys.insert("memory".to_owned(), args.memory.as_str().into());
    if !args.expose.is_empty() {
        keys.insert("expose".to_owned(), args.expose.as_slice().into());
    }
    Ok(keys)
}

/// The keys of `[target]` that `KIND:TEXT` means.
fn short_form(text: &str) -> Result<Map<String, Value>, CliError> {
    let (kind, value) = match text.split_once(':') {
        Some((kind, value)) => (kind, Some(value)),
        None => (text, None),
    };
    let def = target::find(kind).filter(|def| def.short.is_some() == value.is_some());
    let def = def.ok_or_else(|| {
        let forms = target::TARGETS.iter().map(|def| match def.short {
            Some(key) => format!("{}:{}", def.name, key.to_uppercase()),
            None => def.name.to_owned(),
        });
        let forms: Vec<String> = forms.collect();
        CliError::usage(
            format!("`{text}` is no target"),
            format!("a target is one of: {}", forms.join(", ")),
        )
    })?;
    let mut keys = Map::from_iter([("kind".to_owned(), def.name.into())]);
    keys.extend(
        def.short
            .zip(value)
            .map(|(key, value)| (key.to_owned(), value.into())),
    );
    Ok(keys)
}

/// The target that `KIND:TEXT` means, or the file of an experiment names, and whether it was typed.
pub fn target_of(text: &str) -> Result<(TargetSpec, bool), CliError> {
    let path = Path::new(text);
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return Ok((from_file(path)?.0.target, false));
    }
    // An experiment is read as from any command line; its target is all that is wanted.
    let line = CommandLine {
        arms: vec!["default".to_owned()],
        workloads: vec!["wakeup".to_owned()],
        target: short_form(text)?,
        ..CommandLine::default()
    };
    Ok((plan::parse_command_line(&line)?.target, true))
}

pub fn override_stop(experiment: &mut Experiment, args: &ExperimentArgs) -> Result<(), CliError> {
    let stop = &mut experiment.stop;
    if let Some(text) = &args.budget {
        let budget = plan::parse_duration(text).map_err(|e| CliError::usage(e, "--budget 5m"))?;
        stop.budget_ns = Some(budget);
    }
    if let Some(text) = &args.smallest_effect {
        let fraction = plan::parse_fraction(text);
        stop.smallest_effect = fraction.map_err(|e| CliError::usage(e, "--smallest-effect 2%"))?;
    }
    if let Some(blocks) = args.max_blocks {
        stop.max_blocks = blocks;
        stop.min_blocks = stop.min_blocks.min(blocks);
    }
    stop.confidence = args.confidence.unwrap_or(stop.confidence);
    if let Some(seed) = args.seed {
        experiment.seed = seed;
    }
    let checked = experiment.stop.check();
    Ok(checked.map_err(PlanError::from)?)
}

/// The experiment of a run that goes on. It may get more time or more blocks: its verdicts hold
/// whenever it stops. All else would make the trials so far those of another experiment.
pub fn extended(before: &Experiment, args: &ExperimentArgs) -> Result<Experiment, CliError> {
    let fixed = [
        ("--seed", args.seed.is_some()),
        ("--smallest-effect", args.smallest_effect.is_some()),
        ("--confidence", args.confidence.is_some()),
        ("--aa", args.aa && args.is_empty()),
        ("--trace", args.trace.is_some()),
    ];
    if let Some((option, _)) = fixed.iter().find(|(_, is_given)| *is_given) {
        return Err(CliError::usage(
            format!("`{option}` cannot be changed in a run that goes on"),
            "leave it out, or start a new run without --resume; --budget and --max-blocks may be \
             given",
        ));
    }
    let blocks = before.stop.max_blocks;
    if args.max_blocks.is_some_and(|wanted| wanted < blocks) {
        return Err(CliError::usage(
            format!("`--max-blocks` is less than the {blocks} of the run so far"),
            "give more, or give a shorter --budget",
        ));
    }
    let mut after = before.clone();
    override_stop(&mut after, args)?;
    Ok(after)
}
