//! A history that is made smaller.

use super::open_store;
use crate::args::StoreArgs;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use doors::started::{Agreed, Answer};
use history::words::format_time;
use history::{Contents, Pruning, Run, plan_pruning};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use report::format_count;
use serde_json::json;
use std::process::ExitCode;

/// Says what goes, and removes it unless that is only to be said.
pub fn prune(
    older_than: &str,
    dry_run: bool,
    yes: bool,
    args: &StoreArgs,
) -> Result<ExitCode, CliError> {
    let before = find_moment(older_than)?;
    let store = open_store(&args.place)?;
    let contents = store.read_contents()?;
    let planned = plan_pruning(&contents, before);
    let words = describe_pruning(&planned, &contents, before);
    if dry_run || planned.runs.is_empty() {
        show(&planned, None, &words, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    ask_user(&words, yes)?;
    let (gone, experiments) = store.prune(&planned, before)?;
    let done = format!(
        "{} removed, {} left",
        format_count(gone.runs.len(), "run"),
        store.read_contents()?.runs.len()
    );
    show(&gone, Some(experiments), &done, args)?;
    Ok(ExitCode::SUCCESS)
}

fn find_moment(age: &str) -> Result<Timestamp, CliError> {
    let wrong = || {
        let help = "write a number with its unit: --older-than 2y, 18mo, 400d";
        CliError::usage(format!("`--older-than {age}` is no age"), help)
    };
    let span: Span = age.parse().map_err(|_| wrong())?;
    if !span.is_positive() {
        return Err(wrong());
    }
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let then = now.checked_sub(span).map_err(|_| wrong())?;
    Ok(then.timestamp())
}

fn describe_pruning(planned: &Pruning, contents: &Contents, before: Timestamp) -> String {
    let gone = || {
        contents
            .runs
            .iter()
            .filter(|run| planned.runs.contains(&run.id))
    };
    let mut lines = vec![match (gone().next(), gone().next_back()) {
        (Some(first), Some(last)) => {
            let [first, last] = [first, last].map(|run: &Run| format_time(run.created));
            format!(
                "{} of {} go, those of {first} to {last}",
                planned.runs.len(),
                format_count(contents.runs.len(), "run")
            )
        }
        _ if planned.kept_for_alarms > 0 => "No run goes".to_owned(),
        _ => format!("No run goes: none began before {}", format_time(before)),
    }];
    if !planned.alarms.is_empty() {
        lines.push(format!(
            "With them go {} that ended",
            format_count(planned.alarms.len(), "alarm")
        ));
    }
    if planned.kept_for_alarms > 0 {
        lines.push(format!(
            "{} stay because of open alarms",
            format_count(planned.kept_for_alarms, "older run")
        ));
    }
    lines.join("\n")
}

fn ask_user(words: &str, yes: bool) -> Result<(), CliError> {
    let answer = Agreed::ask_user(&format!("{words}\n"), "Remove them?", yes);
    match answer.map_err(CliError::internal)? {
        Answer::Yes(_) => Ok(()),
        Answer::Nobody => Err(CliError::usage(
            "nobody is here to agree to what is removed",
            "read what goes, above, and add --yes",
        )),
        Answer::No => Err(CliError::usage(
            "nothing was removed",
            "`--dry-run` says what would go without asking",
        )),
    }
}

fn show(
    pruning: &Pruning,
    experiments: Option<usize>,
    words: &str,
    args: &StoreArgs,
) -> Result<(), CliError> {
    match args.format {
        Plain::Json => output::json(&json!({
            "removed": experiments.is_some(),
            "runs": pruning.runs, "alarms": pruning.alarms, "kept_for_alarms": pruning.kept_for_alarms,
            "experiments": experiments,
        })),
        Plain::Text => {
            say!("{words}");
            Ok(())
        }
    }
}
