//! One series, run or alarm, and what keeps two runs apart.

use super::alarms::{alarm_lines, tracked_json};
use super::{count_series, open_store};
use crate::args::StoreArgs;
use crate::exit::CliError;
use crate::output::{self, Plain};
use history::words::{
    describe_ratio, describe_version, find_interval, format_time, list_differences, name_run,
    shorten_hash,
};
use history::{
    Contents, Figure, Run, Series, SeriesKey, Store, StoreError, Tracked, group_series,
    tell_runs_apart,
};
use model::printable::one_line;
use report::{format_count, table_lines, with_unit, wrap_text};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Shows what one hash is of, or compares two runs.
pub fn show(hashes: &[String], args: &StoreArgs) -> Result<ExitCode, CliError> {
    let store = open_store(&args.place)?;
    let contents = store.read_contents()?;
    match hashes {
        [a, b] => show_pair(&store, contents.find_run(a)?, contents.find_run(b)?, args)?,
        [one] => show_one(&contents, one, args)?,
        _ => unreachable!("one or two hashes"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Things that a hash may be of.
enum Shown<'a> {
    Series(Box<Series<'a>>),
    Run(&'a Run),
    Alarm(&'a Tracked),
}

fn find_shown<'a>(contents: &'a Contents, start: &str) -> Result<Shown<'a>, StoreError> {
    let series = group_series(&contents.runs).into_iter();
    let series = series
        .filter(|series| series.id.starts_with(start))
        .map(|series| Shown::Series(Box::new(series)));
    let runs = contents.runs.iter();
    let runs = runs.filter(|run| run.id.starts_with(start)).map(Shown::Run);
    let alarms = contents.alarms.iter();
    let alarms = alarms
        .filter(|known| known.alarm.id.starts_with(start))
        .map(Shown::Alarm);
    let mut all = series.chain(runs).chain(alarms);
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(StoreError::Unknown(format!(
            "the history has no series, run or alarm {start}"
        ))),
        (Some(_), Some(_)) => Err(StoreError::Unknown(format!(
            "{start} is the beginning of several hashes; give more of it"
        ))),
    }
}

fn show_one(contents: &Contents, start: &str, args: &StoreArgs) -> Result<(), CliError> {
    let shown = find_shown(contents, start)?;
    match (args.format, shown) {
        (Plain::Json, Shown::Series(series)) => output::json(&series_json(&series, contents)),
        (Plain::Json, Shown::Run(run)) => output::json(run),
        (Plain::Json, Shown::Alarm(known)) => output::json(&tracked_json(known, contents)),
        (Plain::Text, Shown::Series(series)) => print_lines(series_lines(&series, contents)),
        (Plain::Text, Shown::Run(run)) => print_lines(run_lines(run)),
        (Plain::Text, Shown::Alarm(known)) => {
            print_lines(alarm_lines(known, contents, output::width()))
        }
    }
}

fn print_lines(lines: Vec<String>) -> Result<(), CliError> {
    output::print_text(lines.join("\n") + "\n")
}

fn series_lines(series: &Series, contents: &Contents) -> Vec<String> {
    let width = output::width();
    let mut lines = wrap_text(
        &format!("{} {}", shorten_hash(&series.id), one_line(&series.title())),
        width,
        0,
        2,
    );
    lines.extend(wrap_text(
        &one_line(&series.key.class.in_words()),
        width,
        2,
        2,
    ));
    lines.push(String::new());
    let head = [
        "run",
        "began",
        "ratio to the anchor",
        "anchor",
        "blocks",
        "changed before it",
    ];
    let rows = series
        .points
        .iter()
        .enumerate()
        .map(|(index, (run, figure))| {
            let before = index.checked_sub(1).map(|before| series.points[before].0);
            point_row(before, run, figure)
        });
    lines.extend(table_lines(&head, rows.collect(), width));
    let alarms = contents
        .alarms
        .iter()
        .filter(|known| known.alarm.series == series.id);
    for known in alarms {
        lines.push(String::new());
        lines.extend(alarm_lines(known, contents, width));
    }
    lines
}

fn point_row(before: Option<&Run>, run: &Run, figure: &Figure) -> Vec<String> {
    let changed = before.map(|before| list_differences(before, run, [&figure.arm, &figure.anchor]));
    let anchor = figure
        .anchor_level
        .map(|level| with_unit(level, &figure.unit));
    vec![
        shorten_hash(&run.id).to_owned(),
        format_time(run.created),
        describe_ratio(figure),
        anchor.unwrap_or_default(),
        figure.blocks.to_string(),
        changed.unwrap_or_default().join("; "),
    ]
}

fn series_json(series: &Series, contents: &Contents) -> Value {
    let points = series.points.iter().map(|(run, figure)| {
        let (low, high) = find_interval(figure);
        json!({
            "run": run.id, "created": run.created, "machine": run.machine, "kernel": run.kernel,
            "version": run.arms.get(&figure.arm), "anchor": run.arms.get(&figure.anchor),
            "ratio": figure.log_ratio.exp(), "low": low, "high": high, "blocks": figure.blocks,
            "level": figure.level, "anchor_level": figure.anchor_level,
        })
    });
    let alarms = contents
        .alarms
        .iter()
        .filter(|known| known.alarm.series == series.id);
    json!({
        "series": series.id, "title": series.title(), "key": series.key,
        "points": points.collect::<Vec<Value>>(),
        "alarms": alarms.map(|known| tracked_json(known, contents)).collect::<Vec<Value>>(),
    })
}

fn run_lines(run: &Run) -> Vec<String> {
    let width = output::width();
    let about = format!("{} on {}", name_run(run), one_line(&run.machine));
    let mut lines = wrap_text(&about, width, 0, 2);
    lines.extend(wrap_text(&one_line(&run.class.in_words()), width, 2, 2));
    let version = format!(
        "kernel {}; schedlab {}; {}",
        run.kernel,
        run.tool,
        format_count(run.trials, "trial")
    );
    lines.extend(wrap_text(&one_line(&version), width, 2, 2));
    for arm in run.arms.keys() {
        lines.extend(wrap_text(
            &one_line(&format!("arm {arm}: {}", describe_version(run, arm))),
            width,
            2,
            4,
        ));
    }
    lines.push(String::new());
    let head = [
        "series",
        "cell",
        "metric",
        "arm",
        "ratio to the anchor",
        "blocks",
    ];
    let rows = run.figures.iter().map(|figure| {
        vec![
            shorten_hash(&SeriesKey::from_figure(run, figure).identify_series()).to_owned(),
            figure.cell.clone(),
            figure.metric.clone(),
            figure.arm.clone(),
            describe_ratio(figure),
            figure.blocks.to_string(),
        ]
    });
    lines.extend(table_lines(&head, rows.collect(), width));
    lines
}

fn show_pair(store: &Store, a: &Run, b: &Run, args: &StoreArgs) -> Result<(), CliError> {
    let experiments = [a, b].map(|run| store.read_experiment(&run.experiment));
    let [of_a, of_b] = experiments;
    let reasons = tell_runs_apart((a, &of_a?), (b, &of_b?));
    let keys = |run: &Run| -> Vec<SeriesKey> {
        let keys = run
            .figures
            .iter()
            .map(|figure| SeriesKey::from_figure(run, figure));
        keys.collect()
    };
    let of_b = keys(b);
    let mut shared = keys(a);
    shared.retain(|key| of_b.contains(key));
    if args.format == Plain::Json {
        let shared: Vec<String> = shared.iter().map(SeriesKey::identify_series).collect();
        return output::json(
            &json!({ "a": a.id, "b": b.id, "shared_series": shared, "apart": reasons }),
        );
    }
    let width = output::width();
    let head = format!(
        "A, {}, and B, {}, have {} in common",
        name_run(a),
        name_run(b),
        count_series(shared.len())
    );
    let mut lines = wrap_text(&head, width, 0, 2);
    for reason in &reasons {
        lines.extend(wrap_text(
            &one_line(&format!("- not together: {reason}")),
            width,
            2,
            4,
        ));
    }
    print_lines(lines)
}
