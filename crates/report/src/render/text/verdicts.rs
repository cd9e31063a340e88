//! The table of comparisons, with as many columns as there is room for.

use super::{INDENT, Page, paint};
use crate::columns::{Align, Columns};
use crate::quantity::{format_e_value, format_percent, with_unit};
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
    /// Steps that take something from it, for narrower and narrower terminals.
    loses: &'static [fn(&mut Shape)],
}

const LEVELS_FOR_EVIDENCE: fn(&mut Shape) = |shape| {
    shape.levels = false;
    shape.evidence = true;
};
const LEVELS: fn(&mut Shape) = |shape| shape.levels = false;
const WORDS: fn(&mut Shape) = |shape| shape.in_words = false;
const BLOCKS: fn(&mut Shape) = |shape| shape.blocks = false;
const EVIDENCE: fn(&mut Shape) = |shape| shape.evidence = false;

impl Shape {
    pub fn short_form(table: &Table) -> Shape {
        Shape {
            arms: table.tallies.iter().filter(|tally| !tally.aa).count() > 1,
            levels: true,
            blocks: false,
            evidence: true,
            in_words: true,
            // The verdict says what the evidence comes to, and nothing else says `1.20 ms -> 800 us`.
            loses: &[WORDS, EVIDENCE, LEVELS_FOR_EVIDENCE, EVIDENCE],
        }
    }

    pub const FULL: Shape = Shape {
        arms: true,
        levels: true,
        blocks: true,
        evidence: true,
        in_words: true,
        // Medians are below.
        loses: &[LEVELS, WORDS, BLOCKS, EVIDENCE],
    };

    /// The shapes that are left of it in narrower and narrower terminals, itself first.
    fn narrower(self) -> Vec<Shape> {
        let mut shapes = vec![self];
        let mut shape = self;
        for lose in self.loses {
            lose(&mut shape);
            shapes.push(shape);
        }
        shapes
    }
}

impl Page {
    pub(super) fn write_comparisons(&mut self, table: &Table, shown: &[&Comparison], shape: Shape) {
        if shown.is_empty() {
            return;
        }
        let shape = self.fitting(table, shown, shape);
        if shape.evidence {
            self.scale = Some(words::scale_of_evidence(&table.experiment, shape.in_words));
        }
        let (columns, verdict) = columns(table, shown, shape);
        let widths = columns.fit_widths(INDENT, self.width, &[0, 1]);
        let head = columns.head_line(INDENT, &widths);
        self.line(self.paint("2", head));
        let rows: Vec<String> = columns
            .row_lines(INDENT, &widths, |column, text| match column == verdict {
                true => paint_verdict(self.color, text),
                false => text,
            })
            .collect();
        for (row, notes) in rows.into_iter().zip(words::row_notes(shown)) {
            self.line(row);
            notes.iter().for_each(|note| self.wrapped(note, 6, 6));
        }
    }

    /// The shape with the most columns that fit.
    fn fitting(&self, table: &Table, shown: &[&Comparison], shape: Shape) -> Shape {
        let shapes = shape.narrower();
        let fits = |shape: &Shape| {
            let (columns, _) = columns(table, shown, *shape);
            columns.natural_width(INDENT) <= self.width
        };
        let narrowest = shapes.last().copied().unwrap_or(shape);
        shapes.into_iter().find(fits).unwrap_or(narrowest)
    }
}

/// Columns of a table, and which of them has the verdict.
fn columns(table: &Table, shown: &[&Comparison], shape: Shape) -> (Columns, usize) {
    let interval_head = format!("{} % interval", format_percent(table.experiment.confidence));
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
    row.push(c.format_change().unwrap_or_else(none));
    row.push(c.format_interval().unwrap_or_else(none));
    row.push(words::marked_verdict(c));
    row.extend(shape.blocks.then(|| words::blocks_word(c)));
    row.extend(shape.evidence.then(|| match shape.in_words {
        true => words::strength_of(c),
        false => c.e_value.map_or_else(none, format_e_value),
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
