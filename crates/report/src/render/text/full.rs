//! The full report: every comparison, median, and trial that does not count.

use super::super::latencies;
use super::super::sheet::{Moved, make_sheets, moved_counters, of_sets};
use super::verdicts::Shape;
use super::{INDENT, Page, notices};
use crate::columns::{Align, Columns, clip_text};
use crate::quantity::with_unit;
use crate::table::{CellTable, Comparison, Excluded, MetricRow, Notice, Table};
use crate::words;
use model::Severity;
use results::ResultSet;

impl Page {
    pub(super) fn everything(&mut self, table: &Table, results: &ResultSet) {
        self.verdicts(table);
        self.not_measured(table);
        let sheets = make_sheets(table).into_iter().chain(of_sets(table));
        for sheet in sheets.chain(latencies::sheets(results)) {
            self.sheet(&sheet);
        }
        self.moved(table);
        self.certificate(table);
        self.further(table);
        self.meanings(table);
        self.medians(table);
        self.trials(table);
        for (title, severity) in [("Warnings", Severity::Caution), ("Notes", Severity::Note)] {
            let notices = notices(table, severity);
            if !notices.is_empty() {
                self.heading(title);
            }
            notices.into_iter().for_each(|notice| self.notice(notice));
        }
    }

    fn moved(&mut self, table: &Table) {
        let moved = moved_counters(table);
        let together = moved.iter().filter_map(|moved| moved.together.as_ref());
        together.for_each(|sheet| self.sheet(sheet));
        let mut alone = moved.iter().filter(|moved| !moved.alone.is_empty());
        if let Some(first) = alone.next() {
            self.heading("What changed beside a call");
            for Moved { alone, others, .. } in [first].into_iter().chain(alone) {
                let text = format!("{alone}: {}", others.join("; "));
                self.wrapped(&text, INDENT, 2 * INDENT);
            }
        }
    }

    fn notice(&mut self, notice: &Notice) {
        let label = words::severity_word(notice.severity).to_uppercase();
        let text = format!("{label}: {}", words::notice_line(notice));
        self.with_remedy(&text, &notice.remedy, 0, 2);
    }

    fn verdicts(&mut self, table: &Table) {
        for cell in &table.cells {
            let title = format!("{} (against {})", cell.title, table.baseline());
            let shown: Vec<&Comparison> = cell.deciding_comparisons().collect();
            self.titled(&title, table, &shown);
        }
    }

    fn titled(&mut self, title: &str, table: &Table, shown: &[&Comparison]) {
        if !shown.is_empty() {
            self.heading(title);
            self.write_comparisons(table, shown, Shape::FULL);
        }
    }

    fn certificate(&mut self, table: &Table) {
        if let Some(certificate) = &table.across.certificate {
            self.line("");
            let text = certificate.text_within(self.width);
            text.lines().for_each(|line| self.line(line));
        }
    }

    /// Metrics that do not decide.
    fn further(&mut self, table: &Table) {
        for cell in &table.cells {
            let shown: Vec<&Comparison> = cell.further_comparisons().collect();
            self.titled(&format!("{}, further metrics", cell.title), table, &shown);
        }
    }

    fn meanings(&mut self, table: &Table) {
        let Some(error_rate) = words::error_rate(table) else {
            return;
        };
        self.line("");
        let mut said = vec![error_rate];
        said.extend(self.scale.take());
        self.wrapped(&said.join(" "), 2, 2);
        self.star(table);
    }

    fn medians(&mut self, table: &Table) {
        let names: Vec<&str> = table.arms.iter().map(|arm| arm.name.as_str()).collect();
        for cell in table.cells.iter().filter(|cell| !cell.is_empty()) {
            if let [_alone] = names.as_slice() {
                self.spread(cell, usize::MAX);
                continue;
            }
            let (none, shown): (Vec<&MetricRow>, Vec<&MetricRow>) =
                cell.metrics.iter().partition(|row| row.is_nothing());
            self.heading(&format!("{}, medians of all trials", cell.title));
            let abreast = self.abreast();
            for start in (0..names.len()).step_by(abreast) {
                let end = names.len().min(start + abreast);
                self.median_columns(&names[start..end], start, &shown);
            }
            if !none.is_empty() {
                let names: Vec<&str> = none.iter().map(|row| row.metric.as_str()).collect();
                self.wrapped(&format!("0 in all: {}", names.join(", ")), 2, 4);
            }
        }
    }

    fn median_columns(&mut self, names: &[&str], start: usize, metrics: &[&MetricRow]) {
        let mut head = vec![("metric", Align::Left)];
        let clipped: Vec<String> = names.iter().map(|name| clip_text(name, 16)).collect();
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
        self.heading(&words::count_trials(&table.trials));
        for trial in &table.excluded {
            self.wrapped(&excluded(trial), 2, 4);
        }
    }
}

/// The metrics of the only arm, at most so many.
pub(super) fn spread_columns(cell: &CellTable, most: usize) -> Columns {
    let mut columns = Columns::new(&[
        ("metric", Align::Left),
        ("median", Align::Right),
        ("middle half of the trials", Align::Left),
        ("trials", Align::Right),
    ]);
    for row in cell.metrics.iter().take(most) {
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
        trial.first_line()
    )
}
