//! Runs that come into a history.

use super::{find_place, take_run};
use crate::args::{StoreArgs, UnpackArgs};
use crate::exit::CliError;
use crate::output::{self, Plain, note, say};
use crate::results_argument::Opened;
use history::words::shorten_hash;
use history::{Added, Run, Store};
use miette::Diagnostic;
use model::printable::one_line;
use results::ResultSet;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A run that was added, was there, or cannot be added.
#[derive(Debug, Serialize)]
struct Addition {
    path: String,
    run: Option<String>,
    outcome: &'static str,
    figures: usize,
    left_out: usize,
    notes: Vec<String>,
}

/// Adds one run after the other. One that cannot be added keeps none of the others out.
pub fn add_runs(
    runs: &[PathBuf],
    unpack: &UnpackArgs,
    args: &StoreArgs,
) -> Result<ExitCode, CliError> {
    let place = find_place(&args.place)?;
    let (mut additions, mut errors) = (Vec::new(), Vec::new());
    for path in runs {
        let addition = match add_run(path, unpack, &place) {
            Ok(addition) => addition,
            Err(CliError::Interrupted) => return Err(CliError::Interrupted),
            // There is nothing beside it to go on with.
            Err(error) if runs.len() == 1 => return Err(error),
            Err(error) => {
                let refused = describe_refusal(path, &error);
                errors.push(error);
                refused
            }
        };
        if args.format == Plain::Text {
            print(&addition);
        }
        additions.push(addition);
    }
    match args.format {
        Plain::Text => note!("History  {}", place.display()),
        Plain::Json => output::json(&additions)?,
    }
    refuse_some(&errors, runs.len())
}

fn add_run(path: &Path, unpack: &UnpackArgs, place: &Path) -> Result<Addition, CliError> {
    let opened = Opened::open(path, unpack)?;
    let results = ResultSet::read(opened.dir())?;
    let run = take_run(path, &results)?;
    // What is no run makes no store.
    let store = Store::make(place)?;
    let added = store.add_run(&run, &results.experiment)?;
    Ok(describe(path, &run, &added))
}

/// An error where runs were not added: that of the machine, where one was.
fn refuse_some(errors: &[CliError], all: usize) -> Result<ExitCode, CliError> {
    let message = format!("{} of {all} runs were not added", errors.len());
    let help = "mend what is said of each, and add it again: one that is there is not added twice";
    let is_of_machine = |error: &CliError| matches!(error, CliError::Internal { .. });
    match errors.iter().any(is_of_machine) {
        _ if errors.is_empty() => Ok(ExitCode::SUCCESS),
        true => Err(CliError::Internal {
            message,
            help: Some(help.to_owned()),
        }),
        false => Err(CliError::usage(message, help)),
    }
}

fn print(addition: &Addition) {
    let what = match &addition.run {
        Some(run) => format!(
            "run {}, {} ({})",
            shorten_hash(run),
            addition.outcome,
            report::format_count(addition.figures, "figure")
        ),
        None => addition.outcome.to_owned(),
    };
    say!("{}: {what}", addition.path);
    for note in &addition.notes {
        say!("  {}", one_line(note));
    }
}

fn describe_refusal(path: &Path, error: &CliError) -> Addition {
    let help = error.help().map(|help| help.to_string());
    Addition {
        path: path.display().to_string(),
        run: None,
        outcome: "not added",
        figures: 0,
        left_out: 0,
        notes: [Some(error.to_string()), help]
            .into_iter()
            .flatten()
            .collect(),
    }
}

fn describe(path: &Path, run: &Run, added: &Added) -> Addition {
    let mut notes = Vec::new();
    let outcome = match added {
        Added::Known => "was there already: nothing is added",
        Added::Longer { before } => {
            notes.push(format!(
                "it had {before} trials, and went on to {}",
                run.trials
            ));
            "is there with more trials now"
        }
        Added::New {
            began_before,
            is_first_of_class,
        } => {
            notes.extend(order_note(*began_before));
            notes.extend(is_first_of_class.then(|| class_note(run)));
            "added"
        }
    };
    if run.left_out > 0 {
        notes.push(format!(
            "{} cannot be followed: differences in a unit, or fewer than three blocks",
            report::format_count(run.left_out, "comparison")
        ));
    }
    Addition {
        path: path.display().to_string(),
        run: Some(run.id.clone()),
        outcome,
        figures: run.figures.len(),
        left_out: run.left_out,
        notes,
    }
}

fn order_note(began_before: usize) -> Option<String> {
    let runs = report::format_count(began_before, "run");
    (began_before > 0).then(|| {
        format!(
            "it began before {runs} of the history and takes its place by its time; if it is a new one, the clock \
             of its machine was set back"
        )
    })
}

fn class_note(run: &Run) -> String {
    format!(
        "the first of such a machine, so its series begin here: {}",
        run.class.in_words()
    )
}
