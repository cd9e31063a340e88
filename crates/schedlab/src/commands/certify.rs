//! `schedlab certify`: the baseline against itself, in every cell of an experiment.

use crate::args::{CertifyArgs, ExperimentArgs};
use crate::exit::{self, CliError};
use crate::measure::{Measured, measure_anew};
use crate::output::{self, Plain, note};
use crate::request::{Wanted, read_measurable};
use model::{Arm, Experiment};
use report::Table;
use report::certificate::{self, Certificate};
use runner::Outcome;
use std::process::ExitCode;

pub fn certify(args: &CertifyArgs) -> Result<ExitCode, CliError> {
    let asked = read_measurable(&of_one_arm(&args.experiment))?;
    let wanted = Wanted {
        experiment: repeated_baseline(asked.experiment, args.copies),
        // The file describes another experiment than the one that is measured.
        source: None,
        ..asked
    };
    let Measured { results, outcome } =
        measure_anew(args.output.as_deref(), wanted, args.wait, args.quiet)?;
    let table = Table::from_results(&results);
    super::report::write_report_files(&table, &results)?;
    let certificate = Certificate::from_results(&results).ok_or_else(|| match outcome {
        Outcome::Interrupted | Outcome::Railed(_) | Outcome::Restarts(_) => CliError::Interrupted,
        Outcome::Done => CliError::internal(format!(
            "no block of two arms was measured; the reasons are in {}",
            results.dir.display()
        )),
    })?;
    let json = output::json_text(&certificate)?;
    results::write::write_derived(&results.dir, certificate::FILE, json.as_bytes())?;
    match args.format {
        Plain::Json => output::print_text(&json)?,
        Plain::Text => output::print_text(certificate.to_text())?,
    }
    if !args.quiet {
        note!("\nResults  {}", results.dir.display());
    }
    Ok(match outcome {
        Outcome::Interrupted | Outcome::Railed(_) | Outcome::Restarts(_) => {
            ExitCode::from(exit::INTERRUPTED)
        }
        Outcome::Done => super::report::verdict_code(&table, &results, None),
    })
}

/// Nothing but the baseline is measured, so the command line need not name it.
fn of_one_arm(args: &ExperimentArgs) -> ExperimentArgs {
    let mut args = args.clone();
    if args.file.is_none() && args.words.arms.is_empty() {
        args.words.arms.push("default".to_owned());
    }
    args
}

/// The cells of the experiment, with nothing in them but the baseline and its
/// copies. No verdict ends a cell early: what would be called is the question.
fn repeated_baseline(experiment: Experiment, copies: u32) -> Experiment {
    let baseline = experiment.arms[experiment.baseline].clone();
    let names = (1..).map(|n| format!("A/A {n}"));
    let names = names.filter(|name| *name != baseline.name);
    let copies = names.take(copies as usize).map(|name| Arm {
        name,
        ..baseline.clone()
    });
    let mut stop = experiment.stop;
    stop.min_blocks = stop.max_blocks;
    Experiment {
        name: format!("{}-certificate", experiment.name),
        question: Some("What is called where nothing differs?".to_owned()),
        arms: std::iter::once(baseline.clone()).chain(copies).collect(),
        baseline: 0,
        aa_arm: None,
        stop,
        ..experiment
    }
}
