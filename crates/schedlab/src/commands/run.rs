//! `schedlab run`: measure, judge, report.

use crate::args::{FailOn, RunArgs};
use crate::exit::{self, CliError};
use crate::progress::Progress;
use crate::request::{Wanted, wanted};
use crate::targets;
use model::{Calibration, Experiment, Plan, Trial};
use report::{Comparison, Table, Verdict};
use results::{FORMAT, Manifest, ResultSet, RunState, Writer, read};
use runner::{Options, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A run that is about to start, new or resumed.
struct Job {
    experiment: Experiment,
    plan: Plan,
    writer: Writer,
    done: Vec<Trial>,
    calibrations: BTreeMap<String, Calibration>,
}

pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let interrupted = interrupt_flag()?;
    let wanted = match &args.resume {
        Some(_) if args.experiment.is_empty() => None,
        _ => Some(wanted(&args.experiment)?),
    };
    let _lock = targets::machine_lock()?;
    targets::restore_leftovers()?;
    let mut job = match (&args.resume, wanted) {
        (Some(dir), wanted) => resume(dir, wanted)?,
        (None, Some(wanted)) => start(args.output.as_deref(), wanted)?,
        (None, None) => unreachable!("only a resume can do without an experiment"),
    };
    let outcome = measure(&mut job, &interrupted, args.quiet)?;
    finish(args, &job, outcome)
}

/// The first signal asks for an orderly end, the second one ends at once.
fn interrupt_flag() -> Result<Arc<AtomicBool>, CliError> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let code = i32::from(exit::INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(CliError::internal)?;
    }
    Ok(flag)
}

fn start(output: Option<&Path>, wanted: Wanted) -> Result<Job, CliError> {
    let Wanted { experiment, source } = wanted;
    let plan = plan::plan(&experiment);
    let dir = output.map_or_else(|| default_dir(&experiment.name), Path::to_owned);
    let manifest = Manifest {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        tool_commit: env!("SCHEDLAB_COMMIT").to_owned(),
        name: experiment.name.clone(),
        seed: experiment.seed,
        created: jiff::Timestamp::now().to_string(),
        state: RunState::Running,
        warnings: Vec::new(),
    };
    let writer = Writer::create(&dir, manifest, source.as_deref(), &experiment, &plan)?;
    Ok(Job {
        experiment,
        plan,
        writer,
        done: Vec::new(),
        calibrations: BTreeMap::new(),
    })
}

fn default_dir(name: &str) -> PathBuf {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let plain = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "-");
    Path::new("results").join(format!("{plain}-{stamp}"))
}

fn resume(dir: &Path, wanted: Option<Wanted>) -> Result<Job, CliError> {
    let (experiment, plan) = read::read_plan(dir)?;
    if wanted.is_some_and(|w| w.experiment != experiment) {
        return Err(CliError::usage(
            format!(
                "{} holds another experiment than the one given",
                dir.display()
            ),
            "resume without naming the experiment, or start a new run without --resume",
        ));
    }
    let done = read::read_trials(dir)?;
    Ok(Job {
        experiment,
        plan,
        calibrations: read::read_calibrations(dir)?,
        done: done.into_iter().map(|t| t.trial).collect(),
        writer: Writer::reopen(dir)?,
    })
}

fn measure(job: &mut Job, interrupted: &AtomicBool, quiet: bool) -> Result<Outcome, CliError> {
    let mut target = targets::target(&job.experiment)?;
    let mut progress = Progress::new(&job.experiment, &job.plan, quiet);
    let options = Options {
        interrupted,
        done: std::mem::take(&mut job.done),
        calibrations: std::mem::take(&mut job.calibrations),
    };
    let outcome = runner::run(
        &job.experiment,
        &job.plan,
        target.as_mut(),
        &mut job.writer,
        options,
        &mut |event| progress.show(&event),
    );
    progress.end();
    let state = match &outcome {
        Ok(Outcome::Done) => RunState::Done,
        Ok(Outcome::Interrupted) => RunState::Interrupted,
        Err(_) => RunState::Aborted,
    };
    let kept = job.writer.set_state(state);
    let outcome = outcome.map_err(|e| with_directory(e.into(), &job.writer))?;
    kept?;
    Ok(outcome)
}

/// After an error: what was measured is not lost, and how to go on.
fn with_directory(error: CliError, writer: &Writer) -> CliError {
    let dir = writer.dir();
    if !dir
        .join("trials")
        .read_dir()
        .is_ok_and(|mut d| d.next().is_some())
    {
        // Nothing was measured: leave no empty directory behind.
        let _ = std::fs::remove_dir_all(dir);
        return error;
    }
    match error {
        CliError::Internal { message, .. } => CliError::Internal {
            message,
            help: Some(format!(
                "what was measured is in {0}; go on with: schedlab run --resume {0}",
                dir.display()
            )),
        },
        error => error,
    }
}

fn finish(args: &RunArgs, job: &Job, outcome: Outcome) -> Result<ExitCode, CliError> {
    let dir = job.writer.dir();
    let results = ResultSet::read(dir)?;
    let table = Table::from_results(&results);
    let html = super::report::write_report_files(&table, &results)?;
    super::report::print(args.format, &table, &results, false)?;
    if !args.quiet {
        eprintln!("\nResults  {}\nReport   {}", dir.display(), html.display());
    }
    if outcome == Outcome::Interrupted {
        eprintln!(
            "Interrupted; go on with: schedlab run --resume {}",
            dir.display()
        );
        return Ok(ExitCode::from(exit::INTERRUPTED));
    }
    Ok(verdict_code(&table, &results, args.fail_on))
}

/// A regression weighs more than a lost trial.
pub fn verdict_code(table: &Table, results: &ResultSet, fail_on: Option<FailOn>) -> ExitCode {
    if fail_on.is_some() && has_regression(table) {
        return ExitCode::from(exit::REGRESSION);
    }
    if results.trials.iter().any(|t| !t.trial.is_ok()) {
        return ExitCode::from(exit::TRIALS_LOST);
    }
    ExitCode::from(exit::DONE)
}

fn has_regression(table: &Table) -> bool {
    let worse = |c: &Comparison| c.deciding && c.verdict == Verdict::Worse;
    table.comparisons().any(worse)
}
