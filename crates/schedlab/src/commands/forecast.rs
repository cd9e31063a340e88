//! `schedlab plan` with a pilot or earlier results: what will a time show, and what
//! time does a change take?

use crate::args::{PlanArgs, UnpackArgs, WaitArgs};
use crate::exit::{self, CliError};
use crate::measure::{Measured, measure_anew};
use crate::output;
use crate::output::{Plain, note};
use crate::request::{Wanted, keys, read_measurable, read_wanted};
use crate::results_argument::Opened;
use model::{Experiment, Workload};
use report::forecast::{Forecast, Question, Source};
use results::ResultSet;
use runner::Outcome;
use std::path::Path;
use std::process::ExitCode;

const MINUTE_NS: u64 = 60_000_000_000;
/// Most blocks that an experiment can have.
const MOST_BLOCKS: u32 = 10_000;
/// Times that are answered where no budget was given.
const USUAL_TIMES_NS: [u64; 3] = [5 * MINUTE_NS, 30 * MINUTE_NS, 120 * MINUTE_NS];

pub fn forecast(args: &PlanArgs) -> Result<ExitCode, CliError> {
    let effect = effect(args)?;
    let (experiment, runs) = match args.pilot {
        Some(blocks) => {
            let wanted = read_measurable(&args.experiment)?;
            let experiment = wanted.experiment.clone();
            match pilots(wanted, blocks, args.wait)? {
                Some(runs) => (experiment, runs),
                None => return Ok(ExitCode::from(exit::INTERRUPTED)),
            }
        }
        None => earlier(args)?,
    };
    if experiment.arms.len() < 2 {
        return Err(CliError::usage(
            "one arm alone is compared with nothing, so there is nothing to plan",
            "add an arm; --aa repeats the baseline",
        ));
    }
    let question = Question {
        times_ns: match experiment.stop.budget_ns {
            Some(budget) => vec![budget],
            None => USUAL_TIMES_NS.to_vec(),
        },
        effect,
    };
    let sources: Vec<Source> = runs.iter().map(Run::source).collect();
    let forecast = Forecast::new(&experiment, &sources, &question);
    match args.format {
        Plain::Text => output::print_text(forecast.to_text())?,
        Plain::Json => output::json(&forecast)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn effect(args: &PlanArgs) -> Result<Option<f64>, CliError> {
    let Some(text) = &args.effect else {
        return Ok(None);
    };
    let fraction = plan::parse_fraction(text).map_err(|e| CliError::usage(e, "--effect 3%"))?;
    if fraction <= 0.0 {
        return Err(CliError::usage(
            "no effect takes for ever to see",
            "--effect 3%",
        ));
    }
    Ok(Some(fraction))
}

/// The pilot, and where arms may take turns a second one of whole trials, so that both can be told;
/// `None` when interrupted.
fn pilots(wanted: Wanted, blocks: u32, wait: WaitArgs) -> Result<Option<Vec<Run>>, CliError> {
    let mut whole = wanted.experiment.clone();
    let may_turn = |workload: &Workload| workload.in_place.is_some();
    if !whole.workloads.iter().any(may_turn) {
        return Ok(pilot(wanted, "pilot", blocks, wait)?.map(|run| vec![run]));
    }
    for workload in &mut whole.workloads {
        workload.in_place = None;
    }
    let whole = Wanted {
        experiment: whole,
        source: None,
        calibrations: wanted.calibrations.clone(),
    };
    let Some(turned) = pilot(wanted, "pilot", blocks, wait)? else {
        return Ok(None);
    };
    let mut trials = turned.results.trials.iter();
    if trials.all(|stored| stored.trial.result.windows.is_none()) {
        return Ok(Some(vec![turned]));
    }
    let whole = pilot(whole, "pilot-whole-trials", blocks, wait)?;
    Ok(whole.map(|whole| vec![turned, whole]))
}

/// The first blocks of the experiment, all of them; `None` when interrupted.
fn pilot(wanted: Wanted, name: &str, blocks: u32, wait: WaitArgs) -> Result<Option<Run>, CliError> {
    let mut experiment = wanted.experiment;
    experiment.name = format!("{}-{name}", experiment.name);
    experiment.stop.budget_ns = None;
    experiment.stop.max_blocks = blocks;
    experiment.stop.min_blocks = blocks;
    let wanted = Wanted {
        experiment,
        ..wanted
    };
    let Measured { results, outcome } = measure_anew(None, wanted, wait, false)?;
    let dir = results.dir.display().to_string();
    note!("Pilot    {dir}; ask again with --from {dir}\n");
    Ok((outcome == Outcome::Done).then(|| Run::measured(results)))
}

/// Results whose histograms are read while the run lives.
struct Run {
    results: ResultSet,
    /// An unpacked capsule: its files go with this.
    _opened: Option<Opened>,
}

impl Run {
    fn measured(results: ResultSet) -> Run {
        Run {
            results,
            _opened: None,
        }
    }

    fn earlier(path: &Path, limits: &UnpackArgs) -> Result<Run, CliError> {
        let opened = Opened::open(path, limits)?;
        Ok(Run {
            results: ResultSet::read(opened.dir())?,
            _opened: Some(opened),
        })
    }

    fn source(&self) -> Source<'_> {
        Source {
            results: &self.results,
            setup_ns: setup_ns(&self.results).unwrap_or(0),
        }
    }
}

/// Earlier results, and the experiment that was given or else theirs.
fn earlier(args: &PlanArgs) -> Result<(Experiment, Vec<Run>), CliError> {
    let from = args.from.iter();
    let runs = from.map(|path| Run::earlier(path, &args.unpack));
    let runs = runs.collect::<Result<Vec<Run>, CliError>>()?;
    let experiment = match args.experiment.is_empty() {
        false => read_wanted(&args.experiment)?.experiment,
        true => {
            let mut experiment = runs[0].results.experiment.clone();
            // A pilot ended early, and a run may have; the question is what time buys.
            experiment.stop.max_blocks = MOST_BLOCKS;
            let mut keys = keys(&args.experiment);
            keys.retain(|key| key.name == "seed" || key.name.starts_with("stop."));
            plan::lay_over(experiment, &keys)?
        }
    };
    Ok((experiment, runs))
}

/// From the start of a run to its first trial: checks, and boots of guests.
fn setup_ns(results: &ResultSet) -> Option<u64> {
    let created: jiff::Timestamp = results.manifest.created.parse().ok()?;
    let trials = results
        .trials
        .iter()
        .map(|t| t.trial.result.started_unix_ns);
    let first = i128::from(trials.min()?);
    u64::try_from(first - created.as_nanosecond()).ok()
}
