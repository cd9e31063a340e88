//! `schedlab run`: measure, judge, report.

use crate::args::RunArgs;
use crate::exit::{self, CliError};
use crate::like::wanted_like;
use crate::measure::{Run, interrupt_flag};
use crate::output;
use crate::request::wanted;
use crate::targets;
use model::TargetSpec;
use report::Table;
use results::{ResultSet, read};
use runner::Outcome;
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let interrupted = interrupt_flag()?;
    let wanted = match &args.resume {
        Some(_) if args.experiment.is_empty() => None,
        _ => Some(match &args.like {
            Some(earlier) => wanted_like(earlier, args)?,
            None => wanted(&args.experiment)?,
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
    let outcome = run.measure(&interrupted, args.wait, args.quiet, args.anyway)?;
    finish(args, &run, outcome)
}

fn finish(args: &RunArgs, run: &Run, outcome: Outcome) -> Result<ExitCode, CliError> {
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
    Ok(super::report::verdict_code(&table, &results, args.fail_on))
}

fn interrupted(dir: &Path) -> ExitCode {
    eprintln!(
        "Interrupted; go on with: schedlab run --resume {}",
        dir.display()
    );
    ExitCode::from(exit::INTERRUPTED)
}
