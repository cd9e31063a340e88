//! Markdown for issues and chats: the answer, the verdict table, the warnings.
//!
//! Text of results is text here, too: it makes no link, no image, no mention of anyone and
//! no markup, and a report that is pasted somewhere calls nobody.

use super::sheet::{Moved, Sheet, make_sheets, moved_counters, of_sets};
use crate::quantity::{format_percent, with_unit};
use crate::render::arms;
use crate::table::{CellTable, Comparison, Notice, Table};
use crate::words;
use model::printable::one_line;

pub fn render(table: &Table) -> String {
    let mut out = Vec::new();
    let experiment = &table.experiment;
    let title = experiment.question.as_ref().unwrap_or(&experiment.name);
    out.push(format!("# {}", escape_markdown(title)));
    out.push(String::new());
    out.extend(table.serious_notices().map(notice));
    out.extend(bullets(words::summary_sentences(table)));
    out.extend(bullets(arms::define_arms(table)));
    out.extend(bullets(arms::in_all(table).into_iter().collect()));
    out.extend(not_measured(table));
    out.push(String::new());
    out.extend(verdicts(table, |cell| {
        cell.deciding_comparisons().collect()
    }));
    out.extend(make_sheets(table).iter().flat_map(sheet));
    out.extend(of_sets(table).iter().flat_map(sheet));
    out.extend(folded(
        "Metrics that do not decide, and what else moved",
        further(table),
    ));
    if let Some(certificate) = &table.across.certificate {
        out.push(fenced(&certificate.to_text()));
    }
    out.push(about(table));
    let lesser = |n: &&Notice| n.severity != model::Severity::Serious;
    out.extend(table.warnings.iter().filter(lesser).map(notice));
    let mut text = out.join("\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn bullets(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines
        .into_iter()
        .map(|line| format!("- {}", escape_markdown(&line)))
}

fn not_measured(table: &Table) -> impl Iterator<Item = String> {
    let missing = |cell: &CellTable| {
        let why = words::cell_not_measured(cell)?;
        Some(format!(
            "- **{}**: {}",
            escape_markdown(&cell.name),
            escape_markdown(&why)
        ))
    };
    table.cells.iter().filter_map(missing)
}

/// What nothing was decided by.
fn further(table: &Table) -> Vec<String> {
    let mut lines = verdicts(table, |cell| cell.further_comparisons().collect());
    lines.extend(moved_counters(table).iter().flat_map(beside));
    lines
}

/// Lines that are shown when somebody asks for them.
fn folded(title: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    // Markdown within HTML begins after an empty line.
    let head = format!("<details>\n<summary>{title}</summary>\n");
    let end = "</details>\n".to_owned();
    [head].into_iter().chain(lines).chain([end]).collect()
}

fn verdicts<'t>(
    table: &'t Table,
    which: impl Fn(&'t CellTable) -> Vec<&'t Comparison>,
) -> Vec<String> {
    let rows = table.cells.iter().flat_map(|cell| {
        let rows = which(cell).into_iter();
        rows.map(|c| row(cell, c)).collect::<Vec<_>>()
    });
    let rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        return rows;
    }
    let confidence = format_percent(table.experiment.confidence);
    let mut lines = vec![
        format!(
            "| cell | metric | arm | levels | change | {confidence} % interval | verdict | blocks | evidence |"
        ),
        "|---|---|---|---|---:|---|---|---:|---|".to_owned(),
    ];
    lines.extend(rows);
    lines.push(String::new());
    lines
}

fn sheet(sheet: &Sheet) -> Vec<String> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let heads = sheet.labels.iter().chain(&sheet.columns);
    let heads: Vec<String> = heads.map(|head| escape_markdown(head)).collect();
    let rule = heads.iter().map(|_| "---").collect::<Vec<_>>().join("|");
    let mut lines = vec![
        format!("**{}**", escape_markdown(&sheet.title)),
        String::new(),
        line(heads),
        format!("|{rule}|"),
    ];
    lines.extend(sheet.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| match cell.sure {
            true => format!("{} {}", cell.text, cell.detail),
            false => format!("({}) {}", cell.text, cell.detail),
        });
        let labels = row.labels.iter().cloned();
        line(
            labels
                .chain(cells)
                .map(|cell| escape_markdown(&cell))
                .collect(),
        )
    }));
    let caption = sheet.full_caption("In brackets");
    lines.extend([String::new(), escape_markdown(&caption), String::new()]);
    lines
}

fn beside(moved: &Moved) -> Vec<String> {
    let mut lines: Vec<String> = moved.together.iter().flat_map(sheet).collect();
    if !moved.alone.is_empty() {
        let others = escape_markdown(&moved.others.join("; "));
        lines.extend([
            format!("{}: {others}", escape_markdown(&moved.alone)),
            String::new(),
        ]);
    }
    lines
}

fn row(cell: &CellTable, c: &Comparison) -> String {
    let none = || "-".to_owned();
    let verdict = words::marked_verdict(c).replace('*', "\\*");
    let verdict = match c.verdict.is_call() {
        true => format!("**{verdict}**"),
        false => verdict.to_owned(),
    };
    let level = |level: f64| with_unit(level, &c.unit);
    let levels = c.baseline_level.map(level).zip(c.arm_level.map(level));
    let levels = levels.map(|(baseline, arm)| format!("{baseline} \u{2192} {arm}"));
    format!(
        "| {} | {} | {} | {} | {} | {} | {verdict} | {} | {} |",
        escape_markdown(&cell.title),
        escape_markdown(&c.metric),
        escape_markdown(&c.arm),
        levels.map_or_else(none, |levels| escape_markdown(&levels)),
        c.format_change().unwrap_or_else(none),
        c.format_interval().unwrap_or_else(none),
        words::blocks_word(c),
        words::strength_of(c),
    )
}

fn about(table: &Table) -> String {
    format!(
        "Baseline: {}. {}. {}. Measured {} with schedlab {}.\n",
        escape_markdown(table.baseline()),
        words::trials_and_time(table),
        escape_markdown(&words::machine_line(table)),
        escape_markdown(&words::created_time(&table.experiment)),
        escape_markdown(&table.experiment.tool_version)
    )
}

/// A notice, with the remedy on a line of its own.
fn notice(notice: &Notice) -> String {
    let remedy = match notice.remedy.as_str() {
        "" => String::new(),
        remedy => format!("\\\n> \u{2192} {}", escape_markdown(remedy)),
    };
    let severity = words::severity_word(notice.severity);
    format!(
        "> **{severity}**: {}{remedy}\n",
        escape_markdown(&notice.what)
    )
}

/// A block of code, whose fence is longer than any that is in it.
fn fenced(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    format!("{fence}text\n{text}{fence}\n")
}

/// Text that is nothing but itself. Characters that would end a table cell or start markup
/// get a backslash. What sites make links of after that (`@name`, `scheme://`, `www.`) is
/// broken up by code spans: a backslash does not keep them from it.
pub(crate) fn escape_markdown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let text = one_line(&text);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '@' => 1,
            ':' if rest.starts_with("://") => 3,
            'w' | 'W' if starts_alike(rest, "www.") => 4,
            _ => 0,
        };
        if length > 0 {
            let (linked, after) = rest.split_at(length);
            out.push_str(&format!("`{linked}`"));
            rest = after;
            continue;
        }
        if r"|*_`<>[]#\~&!$".contains(c) {
            out.push('\\');
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

fn starts_alike(text: &str, word: &str) -> bool {
    let start = text.get(..word.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(word))
}
