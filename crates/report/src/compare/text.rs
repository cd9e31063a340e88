//! Two results for the terminal: at most 100 columns, plain ASCII.

use super::{Estimate, SideBySide, SideInfo};
use crate::columns::{Align, Columns, wrap};
use crate::quantity::{change, interval, with_unit};

const WIDTH: usize = 100;
const INDENT: usize = 2;

impl SideBySide {
    /// Comparison for the terminal.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            lines.extend(head(name, side));
        }
        heading(&mut lines, "What differs");
        lines.extend(self.differences());
        heading(
            &mut lines,
            "Effects: each arm against the baseline of its own side",
        );
        lines.extend(self.effects());
        heading(&mut lines, "Levels: B over A, not interleaved");
        lines.extend(self.levels());
        heading(&mut lines, "What may be concluded");
        for said in &self.conclusions {
            lines.extend(wrap(&format!("- {said}"), WIDTH, INDENT, INDENT + 2));
        }
        lines.join("\n") + "\n"
    }

    fn differences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.differs.is_empty() {
            let mut columns = left(&["", "A", "B"]);
            for differs in &self.differs {
                columns.push(vec![
                    differs.what.clone(),
                    differs.a.clone(),
                    differs.b.clone(),
                ]);
            }
            lines.extend(table(&columns, &[1, 2, 1, 2]));
        }
        let same = format!("the same: {}", self.same.join(", "));
        lines.extend(wrap(&same, WIDTH, INDENT, INDENT + 2));
        for unmatched in &self.unmatched {
            lines.extend(wrap(unmatched, WIDTH, INDENT, INDENT + 2));
        }
        lines
    }

    fn effects(&self) -> Vec<String> {
        if self.effects.is_empty() {
            return vec!["  none that both sides have".to_owned()];
        }
        let of_cells = self.effects.chunk_by(|one, next| one.cell == next.cell);
        let mut lines = Vec::new();
        for effects in of_cells {
            let mut columns = left(&[&effects[0].cell, "arm", "A", "B", "effect"]);
            for effect in effects {
                columns.push(vec![
                    effect.metric.clone(),
                    effect.arm.clone(),
                    estimate(&effect.a),
                    estimate(&effect.b),
                    effect.agreement.as_str().to_owned(),
                ]);
            }
            lines.extend(table(&columns, &[1, 0]));
        }
        lines
    }

    fn levels(&self) -> Vec<String> {
        if self.levels.is_empty() {
            return vec!["  none that both sides have".to_owned()];
        }
        let mut columns = Columns::new(&[
            ("cell", Align::Left),
            ("metric", Align::Left),
            ("arm", Align::Left),
            ("A", Align::Right),
            ("B", Align::Right),
            ("B over A", Align::Right),
            ("interval", Align::Left),
            ("trials", Align::Left),
        ]);
        for level in &self.levels {
            columns.push(vec![
                level.cell.clone(),
                level.metric.clone(),
                level.arm.clone(),
                with_unit(level.a_median, &level.unit),
                with_unit(level.b_median, &level.unit),
                level.ratio.map_or("-".to_owned(), change),
                bounds(level.low, level.high),
                format!("{}, {}", level.a_trials, level.b_trials),
            ]);
        }
        table(&columns, &[0, 2, 1])
    }
}

fn head(name: &str, side: &SideInfo) -> Vec<String> {
    let about = format!(
        "{name}  {}: {}, {}; {}; schedlab {}",
        side.label, side.experiment, side.created, side.machine, side.tool
    );
    wrap(&about, WIDTH, 0, 3)
}

fn heading(lines: &mut Vec<String>, text: &str) {
    lines.extend([String::new(), text.to_owned()]);
}

fn left(names: &[&str]) -> Columns {
    let columns: Vec<(&str, Align)> = names.iter().map(|name| (*name, Align::Left)).collect();
    Columns::new(&columns)
}

fn table(columns: &Columns, shrink: &[usize]) -> Vec<String> {
    let widths = columns.widths(INDENT, WIDTH, shrink);
    let mut lines = vec![columns.head(INDENT, &widths)];
    lines.extend(columns.rows(INDENT, &widths, |_, text| text));
    lines
}

/// `better  [+30.2%, +42.7%]`.
fn estimate(estimate: &Estimate) -> String {
    let bounds = bounds(estimate.low, estimate.high);
    format!("{:<7} {bounds}", estimate.verdict.as_str())
}

fn bounds(low: Option<f64>, high: Option<f64>) -> String {
    match low.zip(high) {
        Some((low, high)) => interval(low, high),
        None => "-".to_owned(),
    }
}
