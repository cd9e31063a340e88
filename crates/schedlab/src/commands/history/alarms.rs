//! Alarms: those that are found, and how each stands.

use super::{count_series, open_store};
use crate::args::{CheckLimits, FailOnAlarm, StoreArgs};
use crate::exit::{self, CliError};
use crate::output::{self, Plain, say};
use history::words::{
    describe_attempts, describe_cause, draw_series, find_differences_at, format_time, name_run,
    shorten_hash,
};
use history::{Contents, End, Found, Outcome, Settings, Tracked, Turn};
use jiff::Timestamp;
use model::printable::one_line;
use report::{format_change, format_count, format_interval, wrap_text};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Looks for alarms, keeps the new ones, and prints all that are open.
pub fn check(
    limits: &CheckLimits,
    fail_on: Option<FailOnAlarm>,
    args: &StoreArgs,
) -> Result<ExitCode, CliError> {
    let settings = read_settings(limits)?;
    let store = open_store(&args.place)?;
    let now = Timestamp::now();
    let (found, contents) = store.look_for_alarms(settings, now)?;
    match args.format {
        Plain::Json => output::json(&check_json(&found, &contents, settings))?,
        Plain::Text => output::print_text(check_text(&found, &contents, settings))?,
    }
    let fails = contents
        .alarms
        .iter()
        .any(|known| is_failure(known, fail_on));
    Ok(match fails {
        true => ExitCode::from(exit::REGRESSION),
        false => ExitCode::SUCCESS,
    })
}

fn is_failure(known: &Tracked, fail_on: Option<FailOnAlarm>) -> bool {
    let is_named = match fail_on {
        None => false,
        Some(FailOnAlarm::Any) => true,
        Some(FailOnAlarm::Worse) => known.alarm.turn == Turn::Worse,
    };
    is_named && known.outcome == Outcome::Open
}

fn read_settings(limits: &CheckLimits) -> Result<Settings, CliError> {
    if !(limits.effect > 0.0 && limits.effect < 1.0) {
        let what = format!("`--effect` is {:.0} %", 100.0 * limits.effect);
        return Err(CliError::usage(
            what,
            "give more than 0 % and less than 100 %, such as 3%",
        ));
    }
    if !(limits.false_alarms > 0.0 && limits.false_alarms <= 365.0) {
        let what = format!("`--false-alarms` is {}", limits.false_alarms);
        let help = "give how many a year are bearable, more than 0 and at most 365: 1, 0.5";
        return Err(CliError::usage(what, help));
    }
    Ok(Settings {
        effect: limits.effect,
        false_alarms_per_year: limits.false_alarms,
    })
}

fn check_text(found: &Found, contents: &Contents, settings: Settings) -> String {
    let width = output::width();
    let is_new = |known: &Tracked| found.alarms.iter().any(|alarm| alarm.id == known.alarm.id);
    let (new, others): (Vec<&Tracked>, Vec<&Tracked>) =
        contents.alarms.iter().partition(|known| is_new(known));
    let open = others.iter().filter(|known| known.outcome == Outcome::Open);
    let open: Vec<&Tracked> = open.copied().collect();
    let counts = format!(
        "{}, {} open before, {} ended; {} of {}",
        format_count(new.len(), "new alarm"),
        open.len(),
        others.len() - open.len(),
        count_series(found.series),
        format_count(contents.runs.len(), "run")
    );
    let mut lines = wrap_text(&counts, width, 0, 2);
    lines.extend(wrap_text(&limits_words(found, settings), width, 0, 2));
    if found.too_short > 0 {
        let short = format!(
            "{} of the series have fewer than seven runs, too few for an alarm",
            found.too_short
        );
        lines.extend(wrap_text(&short, width, 0, 2));
    }
    for known in new.iter().chain(&open) {
        lines.push(String::new());
        lines.extend(alarm_lines(known, contents, width));
    }
    lines.join("\n") + "\n"
}

fn limits_words(found: &Found, settings: Settings) -> String {
    format!(
        "changes from {} % on; false alarms if nothing changes: at most {} a year on average over all series, which is \
         one in {:.0} runs of a series",
        100.0 * settings.effect,
        settings.false_alarms_per_year,
        found.runs_to_false_alarm
    )
}

fn check_json(found: &Found, contents: &Contents, settings: Settings) -> Value {
    let new: Vec<&String> = found.alarms.iter().map(|alarm| &alarm.id).collect();
    let alarms = contents.alarms.iter();
    json!({
        "runs": contents.runs.len(),
        "series": found.series,
        "too_short": found.too_short,
        "effect": settings.effect,
        "false_alarms_per_year": settings.false_alarms_per_year,
        "runs_to_false_alarm": found.runs_to_false_alarm,
        "new": new,
        "alarms": alarms.map(|known| tracked_json(known, contents)).collect::<Vec<Value>>(),
    })
}

/// An alarm with what changed at it.
pub fn tracked_json(known: &Tracked, contents: &Contents) -> Value {
    let differences = find_differences_at(&known.alarm, contents);
    json!({ "alarm": known, "changed": differences })
}

/// An alarm as a paragraph.
pub fn alarm_lines(known: &Tracked, contents: &Contents, width: usize) -> Vec<String> {
    let alarm = &known.alarm;
    let run = |id: &str| match contents.find_run(id) {
        Ok(run) => name_run(run),
        Err(_) => format!("{}, which is gone", shorten_hash(id)),
    };
    let came = if alarm.is_drift {
        "little by little since"
    } else {
        "since"
    };
    let head = format!(
        "{} {}: {}, {} {}, {came} run {}",
        shorten_hash(&alarm.id),
        known.outcome.as_str(),
        alarm.turn.as_str(),
        format_change(alarm.change),
        format_interval(alarm.low, alarm.high),
        run(&alarm.first)
    );
    let mut lines = wrap_text(&head, width, 0, 2);
    let title = format!(
        "{} (series {})",
        one_line(&alarm.title),
        shorten_hash(&alarm.series)
    );
    lines.extend(wrap_text(&title, width, 2, 4));
    lines.extend(draw_series(alarm, contents).map(|picture| format!("  {picture}")));
    let seen = format!(
        "the run before it: {}; seen with {}",
        run(&alarm.before),
        run(&alarm.seen)
    );
    lines.extend(wrap_text(&seen, width, 2, 4));
    lines.extend(wrap_text(&describe_cause(alarm, contents), width, 2, 4));
    lines.extend(describe_attempts(known).map(|measured| format!("  {measured}")));
    if let Some(end) = &known.end {
        let words = format!(
            "{} on {}: {}",
            end.outcome.as_str(),
            format_time(end.at),
            one_line(&end.why)
        );
        lines.extend(wrap_text(&words, width, 2, 4));
    }
    lines
}

/// Closes an alarm that is open, for a reason.
pub fn close(start: &str, because: &str, args: &StoreArgs) -> Result<ExitCode, CliError> {
    let store = open_store(&args.place)?;
    let contents = store.read_contents()?;
    let known = contents.find_alarm(start)?;
    refuse_ended(known)?;
    let end = End {
        alarm: known.alarm.id.clone(),
        outcome: Outcome::Closed,
        at: Timestamp::now(),
        why: because.to_owned(),
        results: None,
    };
    store.end_alarm(end.clone())?;
    match args.format {
        Plain::Json => output::json(&end)?,
        Plain::Text => say!("{} is closed: {because}", shorten_hash(&known.alarm.id)),
    }
    Ok(ExitCode::SUCCESS)
}

/// An alarm ends once.
pub fn refuse_ended(known: &Tracked) -> Result<(), CliError> {
    let Some(end) = &known.end else {
        return Ok(());
    };
    Err(CliError::usage(
        format!(
            "alarm {} is {} since {}",
            shorten_hash(&known.alarm.id),
            end.outcome.as_str(),
            format_time(end.at)
        ),
        "`schedlab history show` has its reason; an alarm ends once",
    ))
}
