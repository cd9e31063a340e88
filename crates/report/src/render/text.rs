//! The terminal report: the answer first, in at most 100 columns, plain ASCII.

use super::columns::{Align, Columns, clip, wrap};
use super::sheet::{Sheet, sheets};
use crate::Options;
use crate::quantity::{change, evidence, interval, with_unit};
use crate::table::{CellTable, Comparison, Excluded, MetricRow, Notice, Table, Verdict};
use crate::words;
use model::Severity;

const WIDTH: usize = 100;
const INDENT: usize = 2;
/// Reasons beyond these are counted, not listed.
const MOST_EXCLUDED: usize = 20;

/// As many arms as fit the width beside each other.
const ARMS_ABREAST: usize = 4;

/// The column of the verdict.
const VERDICT: usize = 4;

/// The whole report.
pub fn render(table: &Table, options: &Options) -> String {
    let mut page = Page {
        lines: Vec::new(),
        color: options.color,
        full: options.full,
    };
    page.head(table);
    page.serious(table);
    page.verdicts(table);
    page.sheets(table);
    page.certificate(table);
    page.further(table);
    page.star(table);
    page.medians(table);
    page.trials(table);
    page.other_warnings(table);
    let mut text = page.lines.join("\n");
    text.push('\n');
    text
}

struct Page {
    lines: Vec<String>,
    color: bool,
    full: bool,
}

impl Page {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn wrapped(&mut self, text: &str, indent: usize, hang: usize) {
        self.lines.extend(wrap(text, WIDTH, indent, hang));
    }

    fn heading(&mut self, text: &str) {
        self.line("");
        let bold = self.paint("1", text.to_owned());
        self.line(bold);
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
            words::created(experiment),
            words::trials(&table.trials),
            words::machine(table)
        );
        self.wrapped(&about, 0, 0);
        self.line("");
        for sentence in words::summary(table) {
            self.wrapped(&sentence, 0, 2);
        }
    }

    fn serious(&mut self, table: &Table) {
        for notice in table.serious() {
            self.line("");
            self.notice(notice);
        }
    }

    fn notice(&mut self, notice: &Notice) {
        let label = words::severity(notice.severity).to_uppercase();
        let times = match words::notice_trials(notice) {
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        let first = self.lines.len();
        self.wrapped(&format!("{label}: {}{times}", notice.what), 0, 2);
        if notice.severity == Severity::Serious {
            for index in first..self.lines.len() {
                self.lines[index] = self.paint("1;31", self.lines[index].clone());
            }
        }
        if !notice.remedy.is_empty() {
            self.wrapped(&notice.remedy, 2, 2);
        }
    }

    fn verdicts(&mut self, table: &Table) {
        for cell in &table.cells {
            let title = format!("{} (against {})", cell.name, table.baseline());
            let shown: Vec<&Comparison> = cell.deciding().collect();
            self.comparisons(&title, table, &shown);
            if let Some(missing) = words::cell_not_measured(cell) {
                self.heading(&cell.name);
                self.wrapped(&missing, INDENT, 2 * INDENT);
            }
        }
    }

    fn certificate(&mut self, table: &Table) {
        if let Some(certificate) = &table.across.certificate {
            self.line("");
            let text = certificate.text();
            text.lines().for_each(|line| self.line(line));
        }
    }

    fn sheets(&mut self, table: &Table) {
        for sheet in sheets(table) {
            self.heading(&sheet.title);
            let arms = sheet.columns.len();
            for start in (0..arms).step_by(ARMS_ABREAST) {
                self.columns(&sheet_columns(
                    &sheet,
                    start..arms.min(start + ARMS_ABREAST),
                ));
            }
            self.wrapped(&sheet.caption("In brackets"), INDENT, INDENT);
        }
    }

    /// Metrics that do not decide: those that differ, unless all are asked for.
    fn further(&mut self, table: &Table) {
        for cell in &table.cells {
            let all = cell.further().count();
            let shown: Vec<&Comparison> = cell
                .further()
                .filter(|c| self.full || c.verdict.is_call())
                .collect();
            let title = match shown.len() == all {
                true => format!("{}, further metrics", cell.name),
                false => format!(
                    "{}, further metrics: {} of {all} comparisons differ",
                    cell.name,
                    shown.len()
                ),
            };
            self.comparisons(&title, table, &shown);
        }
    }

    fn star(&mut self, table: &Table) {
        if table.comparisons().any(|c| c.survives_ebh == Some(false)) {
            let meaning = words::not_surviving(&table.experiment);
            self.line("");
            self.wrapped(&format!("* {meaning}"), 2, 4);
        }
    }

    fn comparisons(&mut self, title: &str, table: &Table, shown: &[&Comparison]) {
        if shown.is_empty() {
            return;
        }
        self.heading(title);
        let columns = comparison_columns(shown, table.experiment.confidence);
        let widths = columns.widths(INDENT, WIDTH, &[0, 1]);
        let head = columns.head(INDENT, &widths);
        self.line(self.paint("2", head));
        let rows: Vec<String> = columns
            .rows(INDENT, &widths, |column, text| match column {
                VERDICT => paint_verdict(self.color, text),
                _ => text,
            })
            .collect();
        for (index, row) in rows.into_iter().enumerate() {
            self.line(row);
            // The same note under several rows is said once, below the last.
            let notes = &shown[index].notes;
            if shown.get(index + 1).is_none_or(|next| next.notes != *notes) {
                notes.iter().for_each(|note| self.wrapped(note, 6, 6));
            }
        }
    }

    /// What decides and what explains; the rest is in the other formats.
    fn medians(&mut self, table: &Table) {
        let names: Vec<&str> = table.arms.iter().map(|arm| arm.name.as_str()).collect();
        for cell in table.cells.iter().filter(|cell| !cell.metrics.is_empty()) {
            let further = |row: &&MetricRow| cell.further().any(|c| c.metric == row.metric);
            let shown: Vec<&MetricRow> = cell
                .metrics
                .iter()
                .filter(|row| self.full || !further(row))
                .collect();
            if let [_alone] = names.as_slice() {
                self.spread_columns(cell);
                continue;
            }
            self.heading(&format!("{}, medians", cell.name));
            for start in (0..names.len()).step_by(ARMS_ABREAST) {
                let end = names.len().min(start + ARMS_ABREAST);
                self.median_columns(&names[start..end], start, &shown);
            }
        }
    }

    /// One arm alone has room for what its trials vary by.
    fn spread_columns(&mut self, cell: &CellTable) {
        self.heading(&cell.name);
        let mut columns = Columns::new(&[
            ("metric", Align::Left),
            ("median", Align::Right),
            ("middle half of the trials", Align::Left),
            ("trials", Align::Right),
        ]);
        for row in &cell.metrics {
            let summary = row.arms.first().copied().flatten();
            let in_unit = |value| with_unit(value, &row.unit);
            columns.push(vec![
                row.metric.clone(),
                summary.map_or("-".to_owned(), |s| in_unit(s.median)),
                summary.map_or("-".to_owned(), |s| {
                    format!(
                        "{} to {}",
                        in_unit(s.lower_quartile),
                        in_unit(s.upper_quartile)
                    )
                }),
                summary.map_or(0, |s| s.trials).to_string(),
            ]);
        }
        self.columns(&columns);
    }

    fn columns(&mut self, columns: &Columns) {
        let widths = columns.widths(INDENT, WIDTH, &[0]);
        self.line(self.paint("2", columns.head(INDENT, &widths)));
        let rows: Vec<String> = columns.rows(INDENT, &widths, |_, text| text).collect();
        self.lines.extend(rows);
    }

    fn median_columns(&mut self, names: &[&str], start: usize, metrics: &[&MetricRow]) {
        let mut head = vec![("metric", Align::Left)];
        let clipped: Vec<String> = names.iter().map(|name| clip(name, 16)).collect();
        head.extend(clipped.iter().map(|name| (name.as_str(), Align::Right)));
        let mut columns = Columns::new(&head);
        for row in metrics {
            let mut cells = vec![row.metric.clone()];
            cells.extend(
                row.arms[start..start + names.len()].iter().map(|summary| {
                    summary.map_or("-".to_owned(), |s| with_unit(s.median, &row.unit))
                }),
            );
            columns.push(cells);
        }
        self.columns(&columns);
    }

    fn trials(&mut self, table: &Table) {
        self.heading(&words::trials(&table.trials));
        for trial in table.excluded.iter().take(MOST_EXCLUDED) {
            self.wrapped(&excluded(trial), 2, 4);
        }
        let more = table.excluded.len().saturating_sub(MOST_EXCLUDED);
        if more > 0 {
            self.line(format!("  and {more} more"));
        }
    }

    fn other_warnings(&mut self, table: &Table) {
        let others: Vec<&Notice> = table
            .warnings
            .iter()
            .filter(|notice| notice.severity != Severity::Serious)
            .collect();
        if !others.is_empty() {
            self.heading("Warnings");
        }
        for notice in others {
            self.notice(notice);
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

fn comparison_columns(comparisons: &[&Comparison], confidence: f64) -> Columns {
    let interval_head = format!("{} % interval", crate::quantity::percent(confidence));
    let mut columns = Columns::new(&[
        ("metric", Align::Left),
        ("arm", Align::Left),
        ("change", Align::Right),
        (&interval_head, Align::Left),
        ("verdict", Align::Left),
        ("blocks", Align::Left),
        ("e-value", Align::Right),
    ]);
    for c in comparisons {
        columns.push(vec![
            c.metric.clone(),
            c.arm.clone(),
            c.ratio.map_or("-".to_owned(), change),
            c.low
                .zip(c.high)
                .map_or("-".to_owned(), |(low, high)| interval(low, high)),
            words::marked_verdict(c),
            words::blocks(c),
            c.e_value.map_or("-".to_owned(), evidence),
        ]);
    }
    columns
}

/// `void: wakeup 100%, arm rusty, block 3, attempt 1: the scheduler was ejected`.
fn excluded(trial: &Excluded) -> String {
    let more = match trial.last_lines() {
        "" => "",
        _ => " (its last lines are in trial.json)",
    };
    format!(
        "{}: {}, arm {}, block {}, attempt {}: {}{more}",
        trial.state,
        trial.cell,
        trial.arm,
        trial.block,
        trial.attempt,
        trial.headline()
    )
}

fn paint_verdict(color: bool, padded: String) -> String {
    let code = match padded.trim_end_matches([' ', '*']) {
        word if word == Verdict::Better.as_str() => "1;32",
        word if word == Verdict::Worse.as_str() => "1;31",
        word if word == Verdict::Same.as_str() => "36",
        _ => "33",
    };
    paint(color, code, padded)
}

/// SGR codes of ECMA-48; they take no width.
fn paint(color: bool, code: &str, text: String) -> String {
    if color {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text
    }
}
