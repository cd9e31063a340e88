//! The terminal report, in plain ASCII: the answer first.
//!
//! Unless all is asked for it is short: the conclusion in sentences, what decides, what it
//! costs, what else differs, and warnings.

mod brief;
mod full;
mod verdicts;

use super::sheet::Sheet;
use crate::columns::{Align, Columns, plain_line, wrap_text, wrap_with_remedy};
use crate::render::{Options, arms, conclusion, machines};
use crate::table::{CellTable, Notice, Table};
use crate::words;
use model::Severity;
use results::ResultSet;

const INDENT: usize = 2;
/// Narrower than any terminal, and wider than a line that is pleasant to read.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=120;

/// Most arms beside each other: the number that fits the usual width.
const ARMS_ABREAST: usize = 4;

/// The whole report.
pub fn render(table: &Table, results: &ResultSet, options: &Options) -> String {
    let mut page = Page {
        lines: Vec::new(),
        color: options.color,
        width: options.width.clamp(*WIDTHS.start(), *WIDTHS.end()),
        scale: None,
    };
    page.head(table);
    page.conclusion(table);
    page.serious(table);
    match options.full {
        true => page.everything(table, results),
        false => page.write_answer(table),
    }
    let mut text = page.lines.join("\n");
    text.push('\n');
    text
}

struct Page {
    lines: Vec<String>,
    color: bool,
    width: usize,
    /// Meaning of the column of evidence, where a table has one.
    scale: Option<String>,
}

impl Page {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn wrapped(&mut self, text: &str, indent: usize, hang: usize) {
        self.lines.extend(wrap_text(text, self.width, indent, hang));
    }

    fn with_remedy(&mut self, text: &str, remedy: &str, indent: usize, hang: usize) {
        let lines = wrap_with_remedy(text, remedy, self.width, indent, hang);
        self.lines.extend(lines);
    }

    fn heading(&mut self, text: &str) {
        self.line("");
        for line in wrap_text(text, self.width, 0, 2) {
            let bold = self.paint("1", plain_line(&line));
            self.line(bold);
        }
    }

    fn paint(&self, code: &str, text: String) -> String {
        paint(self.color, code, text)
    }

    fn head(&mut self, table: &Table) {
        if let Some(question) = &table.experiment.question {
            self.wrapped(question, 0, 0);
        }
        let experiment = &table.experiment;
        let about = format!(
            "{}, {}; {}; {}",
            experiment.name,
            words::created_time(experiment),
            words::trials_and_time(table),
            words::machine_line(table)
        );
        self.wrapped(&about, 0, 0);
        for definition in arms::define_arms(table) {
            self.wrapped(&definition, 0, 2);
        }
        if let Some(all) = arms::in_all(table) {
            self.wrapped(&all, 0, 2);
        }
    }

    fn conclusion(&mut self, table: &Table) {
        self.line("");
        if let Some(nothing) = words::nothing_measured(table) {
            return self.wrapped(&nothing, 0, 2);
        }
        for tally in &table.tallies {
            self.sentence(&conclusion::sentence_parts(table, tally));
        }
        let over = machines::describe_over(table);
        for sentence in arms::describe_ranking(table).into_iter().chain(over) {
            self.wrapped(&sentence, 0, 2);
        }
        if let Some(sequential) = &table.across.sequential {
            for sentence in words::sequential_runs(table, sequential) {
                self.wrapped(&sentence, 0, 2);
            }
        } else if table.tallies.is_empty() {
            self.wrapped(words::ONE_ARM, 0, 2);
        }
    }

    /// A sentence that takes several lines has one for each of its parts.
    fn sentence(&mut self, parts: &[String]) {
        let whole = wrap_text(&parts.join(" "), self.width, 0, 2);
        if let [_one_line] = whole.as_slice() {
            return self.lines.extend(whole);
        }
        for (index, part) in parts.iter().enumerate() {
            let indent = if index == 0 { 0 } else { INDENT };
            self.wrapped(part, indent, 2 * INDENT);
        }
    }

    fn serious(&mut self, table: &Table) {
        for notice in table.serious_notices() {
            self.line("");
            let text = format!("SERIOUS: {}", notice.what);
            for line in wrap_with_remedy(&text, &notice.remedy, self.width, 0, 2) {
                let red = self.paint("1;31", line);
                self.line(red);
            }
        }
    }

    /// Cells, and arms of cells, of which no trial counts.
    fn not_measured(&mut self, table: &Table) {
        let lines: Vec<String> = table.cells.iter().flat_map(lost).collect();
        if !lines.is_empty() {
            self.heading("Not measured");
        }
        for line in lines {
            self.wrapped(&line, INDENT, 2 * INDENT);
        }
    }

    /// One arm alone has room for what its trials vary by.
    fn spread(&mut self, cell: &CellTable, most: usize) {
        self.heading(&cell.title);
        self.columns(&full::spread_columns(cell, most));
        let more = cell.metrics.len().saturating_sub(most);
        if more > 0 {
            self.line(format!("  and {more} more"));
        }
    }

    fn sheet(&mut self, sheet: &Sheet) {
        self.heading(&sheet.title);
        let arms = sheet.columns.len();
        let whole = sheet_columns(sheet, 0..arms).natural_width(INDENT);
        let abreast = match sheet.together && whole <= self.width {
            true => arms.max(1),
            false => self.abreast(),
        };
        for start in (0..arms).step_by(abreast) {
            self.columns(&sheet_columns(sheet, start..arms.min(start + abreast)));
        }
        self.wrapped(&sheet.full_caption("In brackets"), INDENT, INDENT);
    }

    /// Columns of arms beside a column of names.
    fn abreast(&self) -> usize {
        const NAMES: usize = 20;
        const ARM: usize = 18;
        (self.width.saturating_sub(NAMES) / ARM).clamp(1, ARMS_ABREAST)
    }

    fn columns(&mut self, columns: &Columns) {
        let all: Vec<usize> = (0..columns.count_columns()).collect();
        let widths = columns.fit_widths(INDENT, self.width, &all);
        self.line(self.paint("2", columns.head_line(INDENT, &widths)));
        let rows: Vec<String> = columns.row_lines(INDENT, &widths, |_, text| text).collect();
        self.lines.extend(rows);
    }

    /// Meaning of the star, where there is one on the page: of many differences only the first are named.
    fn star(&mut self, table: &Table) {
        let is_there = table
            .all_comparisons()
            .any(|c| c.survives_ebh == Some(false));
        if is_there && self.lines.iter().any(|line| line.contains('*')) {
            let meaning = words::not_surviving(&table.experiment);
            self.wrapped(&format!("* {meaning}"), 2, 4);
        }
    }
}

/// Labels, then some of the columns; what is in doubt is in brackets.
fn sheet_columns(sheet: &Sheet, shown: std::ops::Range<usize>) -> Columns {
    let labels = sheet.labels.iter().map(|name| (name.as_str(), Align::Left));
    let heads = sheet.columns[shown.clone()].iter();
    let heads = heads.map(|name| (name.as_str(), Align::Right));
    let mut columns = Columns::new(&labels.chain(heads).collect::<Vec<_>>());
    for row in &sheet.rows {
        let cells = row.cells[shown.clone()].iter().map(|cell| match cell.sure {
            true => cell.text.clone(),
            false if cell.text == "-" => cell.text.clone(),
            false => format!("({})", cell.text),
        });
        columns.push(row.labels.iter().cloned().chain(cells).collect());
    }
    columns
}

fn lost(cell: &CellTable) -> Vec<String> {
    let whole = words::cell_not_measured(cell);
    match whole {
        Some(whole) => vec![format!("{}: {whole}", cell.name)],
        None => {
            let arms = cell.not_measured.iter();
            arms.map(|lost| format!("{}: {}", cell.name, words::arm_not_measured(lost)))
                .collect()
        }
    }
}

/// Notices of one severity. Serious ones are said above, and notes warn of nothing.
fn notices(table: &Table, severity: Severity) -> Vec<&Notice> {
    let notices = table.warnings.iter();
    notices
        .filter(|notice| notice.severity == severity)
        .collect()
}

/// SGR codes of ECMA-48; they take no width.
fn paint(color: bool, code: &str, text: String) -> String {
    if color {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text
    }
}
