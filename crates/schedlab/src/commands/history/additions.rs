//! Runs that come into a history.

use super::{find_place, take_run};
use crate::args::{StoreArgs, UnpackArgs};
use crate::exit::CliError;
use crate::output::{self, Plain, note, say};
use crate::results_argument::Opened;
use history::words::shorten_hash;
use history::{Added, Run, Store};
use model::printable::one_line;
use results::ResultSet;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A run that was added, or was there.
#[derive(Debug, Serialize)]
struct Addition {
    path: String,
    run: String,
    outcome: &'static str,
    figures: usize,
    left_out: usize,
    notes: Vec<String>,
}

/// Adds one run after the other. Those before one that cannot be added stay.
pub fn add_runs(
    runs: &[PathBuf],
    unpack: &UnpackArgs,
    args: &StoreArgs,
) -> Result<ExitCode, CliError> {
    let place = find_place(&args.place)?;
    let mut store = None;
    let mut additions = Vec::new();
    for path in runs {
        let opened = Opened::open(path, unpack)?;
        let results = ResultSet::read(opened.dir())?;
        let run = take_run(path, &results)?;
        // What is no run makes no store.
        let store = match &mut store {
            Some(store) => store,
            none => none.insert(Store::make(&place)?),
        };
        let added = store.add_run(&run, &results.experiment)?;
        let addition = describe(path, &run, &added);
        if args.format == Plain::Text {
            print(&addition);
        }
        additions.push(addition);
    }
    match args.format {
        Plain::Text => note!("History  {}", place.display()),
        Plain::Json => output::json(&additions)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(addition: &Addition) {
    say!(
        "{}: run {}, {} ({})",
        addition.path,
        shorten_hash(&addition.run),
        addition.outcome,
        report::format_count(addition.figures, "figure")
    );
    for note in &addition.notes {
        say!("  {}", one_line(note));
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
        run: run.id.clone(),
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
