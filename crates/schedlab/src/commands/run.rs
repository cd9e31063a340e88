//! `schedlab run`: measure, judge, report.

use crate::args::RunArgs;
use crate::exit::{self, CliError};
use crate::like::wanted_like;
use crate::measure::{Run, interrupt_flag};
use crate::metrics::Metrics;
use crate::notify::Notices;
use crate::output;
use crate::request::measurable;
use crate::targets;
use model::TargetSpec;
use report::Table;
use results::{ResultSet, read};
use runner::{Event, Outcome};
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let mut notices = Notices::to(&args.notify)?;
    let mut metrics = Metrics::at(args.metrics_at.as_deref())?;
    let interrupted = interrupt_flag()?;
    let wanted = match &args.resume {
        Some(_) if args.experiment.is_empty() => None,
        _ => Some(match &args.like {
            Some(earlier) => wanted_like(earlier, args)?,
            None => measurable(&args.experiment)?,
        }),
    };
    let earlier = match (&args.resume, &wanted) {
        (Some(dir), None) => Some(read::read_plan(dir)?.0.target),
        _ => None,
    };
    let spec = earlier.or_else(|| wanted.as_ref().map(|w| w.experiment.target.clone()));
    let spec = spec.unwrap_or_else(TargetSpec::local);
    let _lock = targets::made_ready(&spec, args.wait, &interrupted)?;
    let mut run = match (&args.resume, wanted) {
        (Some(dir), wanted) => Run::resume(dir, wanted, &args.experiment)?,
        (None, Some(wanted)) => Run::start(args.output.as_deref(), wanted)?,
        (None, None) => unreachable!("only a resume can do without an experiment"),
    };
    notices.start(run.name(), run.dir());
    metrics.start(run.name(), run.dir());
    let mut see = |event: &Event| {
        notices.see(event);
        metrics.see(event);
    };
    let ended = run.measure(&interrupted, args.wait, args.quiet, args.anyway, &mut see);
    let ended = ended.and_then(|outcome| finish(args, &run, outcome));
    match &ended {
        Ok((_, text)) => notices.end(text),
        Err(error) => notices.end(&format!("The run ended with an error: {error}")),
    }
    ended.map(|(code, _)| code)
}

/// Reports on what was measured: the exit code, and the conclusion for who did not watch.
fn finish(args: &RunArgs, run: &Run, outcome: Outcome) -> Result<(ExitCode, String), CliError> {
    let dir = run.dir();
    if outcome == Outcome::Interrupted && run.is_empty() {
        return Ok(interrupted(dir));
    }
    let results = ResultSet::read(dir)?;
    let table = Table::from_results(&results);
    let html = super::report::write_report_files(&table, &results)?;
    super::report::print(args.format, &table, &results, false)?;
    if !args.quiet {
        eprintln!("\nResults  {}\nReport   {}", dir.display(), html.display());
    }
    if args.open {
        output::open(&html);
    }
    if outcome == Outcome::Interrupted {
        return Ok(interrupted(dir));
    }
    let code = super::report::verdict_code(&table, &results, args.fail_on);
    Ok((code, report::conclusion(&table).join("\n")))
}

fn interrupted(dir: &Path) -> (ExitCode, String) {
    let resume = format!("schedlab run --resume {}", dir.display());
    let text = format!("Interrupted; go on with: {resume}");
    eprintln!("{text}");
    (ExitCode::from(exit::INTERRUPTED), text)
}
