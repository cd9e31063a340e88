//! Text for a mailing list: under 78 columns, fixed width, what a maintainer asks
//! for first (machine, method, baseline), the classic table, then each cell; no colours.

mod classic;

use crate::columns::{Align, Columns, plain_line, wrap_text, wrap_with_remedy};
use crate::quantity::{format_percent, with_unit};
use crate::render::arms;
use crate::table::{CellTable, Comparison, Table};
use crate::words;

const WIDTH: usize = 77;
const INDENT: usize = 2;

pub fn render(table: &Table) -> String {
    let mut lines = Vec::new();
    if let Some(question) = &table.experiment.question {
        lines.extend(wrap_text(question, WIDTH, 0, 0));
        lines.push(String::new());
    }
    lines.extend(head(table));
    lines.push(String::new());
    for sentence in words::summary_sentences(table) {
        lines.extend(wrap_text(&sentence, WIDTH, 0, 2));
    }
    match &table.across.sequential {
        Some(sequential) => lines.extend(super::schedtests_table::benchmark_tables(
            table, sequential, WIDTH,
        )),
        None => {
            lines.extend(classic::table_lines(table, WIDTH));
            lines.extend(table.cells.iter().flat_map(|c| cell(table, c)));
        }
    }
    if let Some(certificate) = &table.across.certificate {
        lines.push(String::new());
        lines.extend(certificate.to_text().lines().map(str::to_owned));
    }
    lines.extend(foot(table));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn head(table: &Table) -> Vec<String> {
    let experiment = &table.experiment;
    let mut entries = vec![("Machine", words::machine_line(table))];
    for arm in &table.arms {
        let label = if arm.baseline { "Baseline" } else { "Arm" };
        let named = match arms::define_arm(table, arm) {
            None => arm.name.clone(),
            Some(what) => format!("{}: {what}", arm.name),
        };
        entries.push((label, named));
    }
    entries.extend(arms::in_all(table).map(|all| ("Arms", all)));
    entries.push(("Run", words::trials_and_time(table)));
    let method = match &table.across.sequential {
        Some(_) => super::schedtests_table::METHOD.to_owned(),
        None => format!(
            "every arm once in each block, in random order (seed {}); c/b: geometric mean over \
             the blocks, with an anytime-valid {} % interval; schedlab {}",
            experiment.seed,
            format_percent(experiment.confidence),
            experiment.tool_version
        ),
    };
    entries.push(("Method", method));
    let entry = |(label, text): (&str, String)| wrap_text(&format!("{label}: {text}"), WIDTH, 0, 2);
    entries.into_iter().flat_map(entry).collect()
}

/// Lines about a cell that the tables above do not have.
fn cell(table: &Table, cell: &CellTable) -> Vec<String> {
    let mut lines = vec![String::new(), plain_line(&cell.name)];
    if let Some(missing) = words::cell_not_measured(cell) {
        lines.extend(wrap_text(&missing, WIDTH, INDENT, 2 * INDENT));
    } else if cell.comparisons.is_empty() {
        let columns = medians(cell);
        let widths = columns.fit_widths(INDENT, WIDTH, &[0]);
        lines.push(columns.head_line(INDENT, &widths));
        lines.extend(columns.row_lines(INDENT, &widths, |_, text| text));
    } else {
        match verdicts(table, cell) {
            rows if rows.is_empty() => return Vec::new(),
            rows => lines.extend(rows),
        }
    }
    lines
}

/// Metrics that do not decide and differ: a line for each, and its arms below it.
fn verdicts(table: &Table, cell: &CellTable) -> Vec<String> {
    let differing = cell
        .further_comparisons()
        .filter(|c| c.verdict.is_call() && !c.aa);
    let shown: Vec<&Comparison> = differing.collect();
    if shown.is_empty() {
        return Vec::new();
    }
    let interval_head = format!("{} % interval", format_percent(table.experiment.confidence));
    let mut columns = Columns::new(&[
        ("", Align::Left),
        ("gain", Align::Right),
        (&interval_head, Align::Left),
        ("verdict", Align::Left),
        ("n", Align::Right),
    ]);
    shown.iter().for_each(|c| columns.push(row(c)));
    let widths = columns.fit_widths(2 * INDENT, WIDTH, &[0]);
    let mut lines = vec![columns.head_line(2 * INDENT, &widths)];
    let mut metric = "";
    for (row, c) in columns
        .row_lines(2 * INDENT, &widths, |_, text| text)
        .zip(shown)
    {
        if c.metric != metric {
            lines.push(metric_line(c));
            metric = &c.metric;
        }
        lines.push(row);
    }
    lines
}

/// `  wakeup_p99 (lower is better), default 130 us`.
fn metric_line(c: &Comparison) -> String {
    let direction = words::direction_word(c.better);
    let level = c.baseline_level.map(|level| with_unit(level, &c.unit));
    let level = level.unwrap_or_else(|| "without figures".to_owned());
    let line = format!("{} ({direction}), {} {level}", c.metric, c.baseline);
    format!("  {}", plain_line(&line))
}

fn row(c: &Comparison) -> Vec<String> {
    let none = || "-".to_owned();
    vec![
        c.arm.clone(),
        classic::format_gain(c).unwrap_or_else(none),
        classic::gain_interval(c).unwrap_or_else(none),
        words::marked_verdict(c),
        c.blocks.to_string(),
    ]
}

fn medians(cell: &CellTable) -> Columns {
    let mut columns = Columns::new(&[
        ("metric", Align::Left),
        ("median", Align::Right),
        ("trials", Align::Right),
    ]);
    for metric in &cell.metrics {
        let summary = metric.arms.first().copied().flatten();
        columns.push(vec![
            metric.metric.clone(),
            summary.map_or("-".to_owned(), |s| with_unit(s.median, &metric.unit)),
            summary.map_or(0, |s| s.trials).to_string(),
        ]);
    }
    columns
}

fn foot(table: &Table) -> Vec<String> {
    let mut lines = Vec::new();
    if table
        .all_comparisons()
        .any(|c| c.survives_ebh == Some(false))
    {
        let meaning = words::not_surviving(&table.experiment);
        lines.push(String::new());
        lines.extend(wrap_text(&format!("* {meaning}"), WIDTH, 0, 2));
    }
    if !table.warnings.is_empty() {
        lines.push(String::new());
    }
    for notice in &table.warnings {
        let severity = words::severity_word(notice.severity);
        let text = format!("{severity}: {}", notice.what);
        lines.extend(wrap_with_remedy(&text, &notice.remedy, WIDTH, 0, 2));
    }
    lines
}
