//! The table that schedtests prints and people post: `case load baseline(std%) compare%(std%)`,
//! with its signs and its rounding, and an interval and the runs beside it.

use crate::columns::{plain_line, wrap_text};
use crate::quantity::format_percent;
use crate::table::Table;
use crate::table::across::Sequential;
use crate::table::across::sequential::{Apart, Level, Row};

/// How the figures came about, in place of blocks and verdicts.
pub const METHOD: &str = "runs of one arm one after the other, in the classic layout: compare% is the \
                          change of the arithmetic means, positive where it improves; std% with ddof \
                          = 0. No verdict: the arm and the time are mixed.";

/// A table for each benchmark, under `width` columns.
pub fn benchmark_tables(table: &Table, sequential: &Sequential, width: usize) -> Vec<String> {
    let others = table.arms.iter().filter(|arm| !arm.baseline);
    let several = table.arms.len() > 2;
    let mut lines = Vec::new();
    for arm in others {
        let rows = sequential.rows.iter().filter_map(|row| {
            let change = row.changes.iter().find(|change| change.arm == arm.name)?;
            Some((row, change))
        });
        let rows: Vec<(&Row, &Apart)> = rows.collect();
        for of_one in rows.chunk_by(|(a, _), (b, _)| heading(a) == heading(b)) {
            let mut title = heading(of_one[0].0);
            if several {
                title = format!("{title}: {} beside {}", arm.name, table.baseline());
            }
            lines.push(String::new());
            let title = wrap_text(&title, width, 0, 2);
            let longest = title.iter().map(String::len).max().unwrap_or(0);
            lines.extend(title);
            lines.push("=".repeat(longest));
            lines.extend(benchmark(table, of_one, &arm.name));
        }
    }
    lines
}

/// `hackbench: hackbench_time`.
fn heading(row: &Row) -> String {
    format!("{}: {}", row.benchmark_name(), row.measured.metric)
}

fn benchmark(table: &Table, rows: &[(&Row, &Apart)], arm: &str) -> Vec<String> {
    let place = |name: &str| table.arms.iter().position(|arm| arm.name == name);
    let (baseline, arm) = (place(table.baseline()), place(arm));
    let level = |row: &Row, arm: Option<usize>| row.arms.get(arm?).copied().flatten();
    let interval = format!("{} % interval", format_percent(table.experiment.confidence));
    let mut lines = vec![format!(
        "{:<16} {:<9} {:<14} {:<17} {interval}",
        "case", "load", "baseline(std%)", "compare%( std%)"
    )];
    for (row, change) in rows {
        let (b, c) = (level(row, baseline), level(row, arm));
        let (Some(b), Some(c)) = (b, c) else { continue };
        let (case, load) = case_and_load(row);
        let compare = compare_percent(row, &b, &c).map_or("-".to_owned(), |p| format!("{p:+.2}"));
        let ends = change.low.zip(change.high);
        let ends = ends.map(|(low, high)| improvements(row, low, high));
        let ends = ends.map_or("-".to_owned(), |(low, high)| {
            format!("{low:+.1} to {high:+.1}")
        });
        lines.push(format!(
            "{:<16} {:<9} {:>5.2} ({:>6}) {compare:>8} ({:>6}) {ends}",
            cut(&case, 16),
            cut(&load, 9),
            1.0,
            std(&b),
            std(&c),
        ));
    }
    lines
}

/// The words of the workload behind the benchmark, and of the cell behind the workload.
fn case_and_load(row: &Row) -> (String, String) {
    let case = row
        .workload
        .strip_prefix(row.benchmark_name())
        .unwrap_or(&row.workload);
    let load = row.cell.strip_prefix(&row.workload).unwrap_or_default();
    let shown = |text: &str, other: &str| match text.trim_matches([',', ' ']) {
        "" => other.to_owned(),
        text => plain_line(text),
    };
    (shown(case, &plain_line(&row.workload)), shown(load, "-"))
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// schedtests rounds the means to four decimals before it divides them.
fn rounded(mean: f64) -> f64 {
    match (mean * 1e4).round_ties_even() / 1e4 {
        0.0 => mean,
        rounded => rounded,
    }
}

fn compare_percent(row: &Row, baseline: &Level, arm: &Level) -> Option<f64> {
    let change = rounded(arm.mean) / rounded(baseline.mean);
    let percent = match row.measured.better {
        model::Better::Lower => (1.0 - change) * 100.0,
        _ => (change - 1.0) * 100.0,
    };
    percent.is_finite().then_some(percent)
}

fn std(level: &Level) -> String {
    let std = level
        .std_percent
        .map(|std| std * level.mean / rounded(level.mean));
    std.map_or("-".to_owned(), |std| format!("{std:.2}"))
}

/// Ends of the interval in percent, positive where it improves, the smaller one first.
fn improvements(row: &Row, low: f64, high: f64) -> (f64, f64) {
    match row.measured.better {
        model::Better::Lower => ((1.0 - high) * 100.0, (1.0 - low) * 100.0),
        _ => ((low - 1.0) * 100.0, (high - 1.0) * 100.0),
    }
}
