//! Lists of what a history has.

use super::figures::{find_interval, ratio_words, time_words};
use super::{count_series, open_store, short};
use crate::args::StoreArgs;
use crate::exit::CliError;
use crate::output::{self, Plain};
use history::{Outcome, Run, Series, Tracked, group_series};
use report::{format_count, table_lines, wrap_text};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prints all runs, the newest last.
pub fn list_runs(args: &StoreArgs) -> Result<ExitCode, CliError> {
    let store = open_store(args)?;
    let contents = store.read_contents()?;
    match args.format {
        Plain::Json => output::json(&contents.runs)?,
        Plain::Text => {
            let head = ["run", "began", "experiment", "machine", "kernel", "figures"];
            let rows = contents.runs.iter().map(run_row).collect();
            output::print_text(table_lines(&head, rows, output::width()).join("\n") + "\n")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_row(run: &Run) -> Vec<String> {
    vec![
        short(&run.id).to_owned(),
        time_words(run.created),
        run.name.clone(),
        run.machine.clone(),
        run.kernel.clone(),
        run.figures.len().to_string(),
    ]
}

/// Prints all series with their last figures.
pub fn list_series(args: &StoreArgs) -> Result<ExitCode, CliError> {
    let store = open_store(args)?;
    let contents = store.read_contents()?;
    let series = group_series(&contents.runs);
    if args.format == Plain::Json {
        let all: Vec<Value> = series
            .iter()
            .map(|s| series_json(s, &contents.alarms))
            .collect();
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let head = [
        "series",
        "cell",
        "metric",
        "arm",
        "runs",
        "last ratio to the anchor",
        "alarms",
    ];
    let rows = series
        .iter()
        .map(|series| series_row(series, &contents.alarms));
    let counts = format!(
        "{} of {}; the ratio is that of the last run, with its interval at 95 % by the blocks of that run",
        count_series(series.len()),
        format_count(contents.runs.len(), "run")
    );
    let width = output::width();
    let mut lines = wrap_text(&counts, width, 0, 0);
    lines.push(String::new());
    lines.extend(table_lines(&head, rows.collect(), width));
    output::print_text(lines.join("\n") + "\n")?;
    Ok(ExitCode::SUCCESS)
}

fn count_alarms(series: &Series, alarms: &[Tracked]) -> [usize; 2] {
    let of_series = alarms
        .iter()
        .filter(|known| known.alarm.series == series.id);
    let open = of_series
        .clone()
        .filter(|known| known.outcome == Outcome::Open);
    [open.count(), of_series.count()]
}

fn series_row(series: &Series, alarms: &[Tracked]) -> Vec<String> {
    let key = &series.key;
    let last = series.points.last();
    let alarms = match count_alarms(series, alarms) {
        [_, 0] => "-".to_owned(),
        [0, all] => all.to_string(),
        [open, all] => format!("{all}, {open} open"),
    };
    vec![
        short(&series.id).to_owned(),
        key.cell.clone(),
        key.metric.clone(),
        key.arm.clone(),
        series.points.len().to_string(),
        last.map_or_else(String::new, |(_, figure)| ratio_words(figure)),
        alarms,
    ]
}

fn series_json(series: &Series, alarms: &[Tracked]) -> Value {
    let [open, all] = count_alarms(series, alarms);
    let last = series.points.last().map(|(run, figure)| {
        let (low, high) = find_interval(figure);
        json!({
            "run": run.id, "created": run.created, "ratio": figure.log_ratio.exp(),
            "low": low, "high": high, "level": figure.level, "anchor_level": figure.anchor_level,
            "unit": figure.unit, "better": figure.better, "anchor": figure.anchor,
        })
    });
    json!({
        "series": series.id, "title": series.title(), "key": series.key, "runs": series.points.len(),
        "last": last, "alarms": all, "open_alarms": open,
    })
}
