//! Markdown for issues and chats: the answer, the verdict table, the warnings.

use super::sheet::{Sheet, sheets};
use crate::quantity::{change, evidence, interval, percent};
use crate::table::{CellTable, Comparison, Notice, Table};
use crate::words;

pub fn render(table: &Table) -> String {
    let mut out = Vec::new();
    let experiment = &table.experiment;
    let title = experiment.question.as_ref().unwrap_or(&experiment.name);
    out.push(format!("# {}", escape(title)));
    out.push(String::new());
    out.extend(table.serious().map(notice));
    out.extend(bullets(words::summary(table)));
    out.extend(not_measured(table));
    out.push(String::new());
    out.extend(verdicts(table));
    out.extend(sheets(table).iter().flat_map(sheet));
    if let Some(certificate) = &table.across.certificate {
        out.push(format!("```text\n{}```\n", certificate.text()));
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
    lines.into_iter().map(|line| format!("- {}", escape(&line)))
}

fn not_measured(table: &Table) -> impl Iterator<Item = String> {
    let missing = |cell: &CellTable| {
        let why = words::cell_not_measured(cell)?;
        Some(format!("- **{}**: {}", escape(&cell.name), escape(&why)))
    };
    table.cells.iter().filter_map(missing)
}

fn verdicts(table: &Table) -> Vec<String> {
    if table.comparisons().next().is_none() {
        return Vec::new();
    }
    let confidence = percent(table.experiment.confidence);
    let mut lines = vec![
        format!(
            "| cell | metric | arm | change | {confidence} % interval | verdict | blocks | e-value |"
        ),
        "|---|---|---|---:|---|---|---:|---:|".to_owned(),
    ];
    for cell in &table.cells {
        let ordered = cell.deciding().chain(cell.further());
        lines.extend(ordered.map(|c| row(cell, c)));
    }
    lines.push(String::new());
    lines
}

fn sheet(sheet: &Sheet) -> Vec<String> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let heads = sheet.labels.iter().chain(&sheet.columns);
    let heads: Vec<String> = heads.map(|head| escape(head)).collect();
    let rule = heads.iter().map(|_| "---").collect::<Vec<_>>().join("|");
    let mut lines = vec![
        format!("**{}**", escape(&sheet.title)),
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
        line(labels.chain(cells).map(|cell| escape(&cell)).collect())
    }));
    let caption = sheet.caption("In brackets");
    lines.extend([String::new(), escape(&caption), String::new()]);
    lines
}

fn row(cell: &CellTable, c: &Comparison) -> String {
    let verdict = words::marked_verdict(c).replace('*', "\\*");
    let verdict = match c.verdict.is_call() {
        true => format!("**{verdict}**"),
        false => verdict.to_owned(),
    };
    format!(
        "| {} | {} | {} | {} | {} | {verdict} | {} | {} |",
        escape(&cell.name),
        escape(&c.metric),
        escape(&c.arm),
        c.ratio.map_or("-".to_owned(), change),
        c.low
            .zip(c.high)
            .map_or("-".to_owned(), |(l, h)| interval(l, h)),
        words::blocks(c),
        c.e_value.map_or("-".to_owned(), evidence),
    )
}

fn about(table: &Table) -> String {
    format!(
        "Baseline: {}. {}. {}. Measured {} with schedlab {}.\n",
        escape(table.baseline()),
        words::trials(&table.trials),
        escape(&words::machine(table)),
        words::created(&table.experiment),
        table.experiment.tool_version
    )
}

fn notice(notice: &Notice) -> String {
    format!(
        "> **{}**: {} {}\n",
        words::severity(notice.severity),
        escape(&notice.what),
        escape(&notice.remedy)
    )
}

/// Characters that would end a table cell or start markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#' | '\\' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
