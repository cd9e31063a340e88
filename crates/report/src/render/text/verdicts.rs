//! The table of comparisons, with as many columns as there is room for.

use super::{INDENT, Page, paint};
use crate::columns::{Align, Columns};
use crate::quantity::{evidence, percent, with_unit};
use crate::table::{Comparison, Table, Verdict};
use crate::words;

/// Columns of a table of comparisons beside change, interval and verdict.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// None where there is only one that is compared.
    arms: bool,
    levels: bool,
    blocks: bool,
    evidence: bool,
    /// The evidence in words too.
    in_words: bool,
}

impl Shape {
    pub fn short(table: &Table) -> Shape {
        Shape {
            arms: table.tallies.iter().filter(|tally| !tally.aa).count() > 1,
            levels: true,
            blocks: false,
            evidence: true,
            in_words: true,
        }
    }

    pub const FULL: Shape = Shape {
        arms: true,
        levels: true,
        blocks: true,
        evidence: true,
        in_words: true,
    };

    /// The text that is left of it in narrower and narrower terminals.
    fn narrower(self) -> [Shape; 5] {
        let mut shape = self;
        let mut less = |lose: fn(&mut Shape)| {
            lose(&mut shape);
            shape
        };
        [
            self,
            less(|shape| shape.levels = false),
            less(|shape| shape.in_words = false),
            less(|shape| shape.blocks = false),
            less(|shape| shape.evidence = false),
        ]
    }
}

impl Page {
    pub(super) fn comparisons(&mut self, table: &Table, shown: &[&Comparison], shape: Shape) {
        if shown.is_empty() {
            return;
        }
        let (columns, verdict) = self.fitting(table, shown, shape);
        let widths = columns.widths(INDENT, self.width, &[0, 1]);
        let head = columns.head(INDENT, &widths);
        self.line(self.paint("2", head));
        let rows: Vec<String> = columns
            .rows(INDENT, &widths, |column, text| match column == verdict {
                true => paint_verdict(self.color, text),
                false => text,
            })
            .collect();
        for (row, notes) in rows.into_iter().zip(words::notes(shown)) {
            self.line(row);
            notes.iter().for_each(|note| self.wrapped(note, 6, 6));
        }
    }

    /// The most columns that fit, and which of them has the verdict.
    fn fitting(&self, table: &Table, shown: &[&Comparison], shape: Shape) -> (Columns, usize) {
        let shapes = shape.narrower();
        let fits = |columns: &Columns| columns.natural_width(INDENT) <= self.width;
        let all = shapes.iter().map(|shape| columns(table, shown, *shape));
        let mut all: Vec<(Columns, usize)> = all.collect();
        let first = all.iter().position(|(columns, _)| fits(columns));
        all.swap_remove(first.unwrap_or(shapes.len() - 1))
    }
}

fn columns(table: &Table, shown: &[&Comparison], shape: Shape) -> (Columns, usize) {
    let interval_head = format!("{} % interval", percent(table.experiment.confidence));
    let one = (!shape.arms).then(|| shown[0].arm.as_str());
    let mut heads = vec![("metric", Align::Left)];
    heads.extend(shape.arms.then_some(("arm", Align::Left)));
    if shape.levels {
        heads.push((table.baseline(), Align::Right));
        heads.push((one.unwrap_or("arm's"), Align::Right));
    }
    heads.push(("change", Align::Right));
    heads.push((&interval_head, Align::Left));
    let verdict = heads.len();
    heads.push(("verdict", Align::Left));
    heads.extend(shape.blocks.then_some(("blocks", Align::Left)));
    let evidence = match shape.in_words {
        true => ("evidence", Align::Left),
        false => ("e-value", Align::Right),
    };
    heads.extend(shape.evidence.then_some(evidence));
    let mut columns = Columns::new(&heads);
    shown.iter().for_each(|c| columns.push(row(c, shape)));
    (columns, verdict)
}

fn row(c: &Comparison, shape: Shape) -> Vec<String> {
    let none = || "-".to_owned();
    let mut row = vec![c.metric.clone()];
    row.extend(shape.arms.then(|| c.arm.clone()));
    if shape.levels {
        let levels = [c.baseline_level, c.arm_level];
        row.extend(levels.map(|level| level.map_or_else(none, |l| with_unit(l, &c.unit))));
    }
    row.push(c.change().unwrap_or_else(none));
    row.push(c.interval().unwrap_or_else(none));
    row.push(words::marked_verdict(c));
    row.extend(shape.blocks.then(|| words::blocks(c)));
    row.extend(shape.evidence.then(|| match shape.in_words {
        true => words::strength_of(c),
        false => c.e_value.map_or_else(none, evidence),
    }));
    row
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
