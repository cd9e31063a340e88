//! Lists of what a history has.

use super::{count_series, open_store, openmetrics};
use crate::args::{ListArgs, ListFormat};
use crate::exit::CliError;
use crate::output;
use doors::shown;
use history::words::{describe_ratio, find_interval, format_time, shorten_hash};
use history::{Contents, Outcome, Run, Series, Tracked, group_series};
use model::printable::one_line;
use report::{format_count, table_lines, wrap_text};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Lists all series, or all runs.
pub fn list(args: &ListArgs) -> Result<ExitCode, CliError> {
    let contents = open_store(&args.place)?.read_contents()?;
    let text = match (args.format, args.runs) {
        (ListFormat::Text, true) => runs_text(&contents.runs),
        (ListFormat::Text, false) => series_text(&contents),
        (ListFormat::Json, true) => output::json_text(&contents.runs)?,
        (ListFormat::Json, false) => output::json_text(&all_series_json(&contents))?,
        (ListFormat::Openmetrics, false) => openmetrics::write_figures(&contents)?,
        (ListFormat::Openmetrics, true) => {
            return Err(CliError::usage(
                "OpenMetrics is of series, not of runs",
                "leave --runs out, or use --format json",
            ));
        }
    };
    match &args.output {
        Some(file) => output::file(file, shown::clean_text(text).into_string().into_bytes())?,
        None => output::print_text(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// All runs, the newest last.
fn runs_text(runs: &[Run]) -> String {
    let head = ["run", "began", "experiment", "machine", "kernel", "figures"];
    let rows = runs.iter().map(run_row).collect();
    table_lines(&head, rows, output::width()).join("\n") + "\n"
}

fn run_row(run: &Run) -> Vec<String> {
    vec![
        shorten_hash(&run.id).to_owned(),
        format_time(run.created),
        run.name.clone(),
        run.machine.clone(),
        run.kernel.clone(),
        run.figures.len().to_string(),
    ]
}

/// All series with their last figures, two lines for each: a table of them is wider than a terminal.
fn series_text(contents: &Contents) -> String {
    let series = group_series(&contents.runs);
    let counts = format!(
        "{} of {}; each with the ratio of its last run to the anchor, and the interval at 95 % by the blocks of that run",
        count_series(series.len()),
        format_count(contents.runs.len(), "run")
    );
    let width = output::width();
    let mut lines = wrap_text(&counts, width, 0, 0);
    for series in &series {
        lines.push(String::new());
        lines.extend(series_lines(series, &contents.alarms, width));
    }
    lines.join("\n") + "\n"
}

fn all_series_json(contents: &Contents) -> Vec<Value> {
    let series = group_series(&contents.runs);
    let all = series.iter().map(|s| series_json(s, &contents.alarms));
    all.collect()
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

fn series_lines(series: &Series, alarms: &[Tracked], width: usize) -> Vec<String> {
    let title = one_line(&series.title()).into_owned();
    let head = format!("{} {title}", shorten_hash(&series.id));
    let mut lines = wrap_text(&head, width, 0, 2);
    let runs = format_count(series.points.len(), "run");
    let alarms = match count_alarms(series, alarms) {
        [_, 0] => String::new(),
        [open, all] => format!("; {}, {open} open", format_count(all, "alarm")),
    };
    let last = series.points.last();
    let last = last.map_or_else(String::new, |(_, figure)| describe_ratio(figure));
    lines.extend(wrap_text(&format!("{last} in {runs}{alarms}"), width, 2, 4));
    lines
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
