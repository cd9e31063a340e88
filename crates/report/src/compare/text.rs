//! Two results for the terminal, in plain ASCII: what may be concluded comes first.

use super::differences::Divergence;
use super::events::describe_side;
use super::{Effect, Estimate, Level, SideBySide, SideInfo};
use crate::columns::{Align, Columns, wrap_text};
use crate::quantity::{format_change, format_interval, with_unit};
use crate::shift::Shift;

const INDENT: usize = 2;
/// Narrower than any terminal, and wider than a line that is pleasant to read.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=120;

impl SideBySide {
    /// Comparison for a terminal of so many columns.
    pub fn to_text(&self, width: usize) -> String {
        let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
        let mut lines = Vec::new();
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            lines.extend(head(name, side, width));
        }
        lines.push(String::new());
        let mut said = self.conclusions.iter();
        let first = said.next().map_or("", String::as_str);
        lines.extend(wrap_text(first, width, 0, INDENT));
        for said in said {
            lines.extend(wrap_text(&format!("- {said}"), width, INDENT, INDENT + 2));
        }
        if !self.same_run {
            if !self.lacks.is_empty() {
                heading(&mut lines, "What was not measured");
            }
            for lack in &self.lacks {
                lines.extend(wrap_text(lack, width, INDENT, INDENT + 2));
            }
            heading(&mut lines, "What differs");
            lines.extend(self.differences(width));
            heading(
                &mut lines,
                "Effects: each arm against the baseline of its own side",
            );
            lines.extend(self.effects(width));
            if !self.events.is_empty() {
                heading(
                    &mut lines,
                    "Rare events: each arm against the baseline of its own side",
                );
                lines.extend(self.events(width));
            }
            heading(&mut lines, "Levels: B over A, not interleaved");
            lines.extend(self.levels(width));
        }
        lines.join("\n") + "\n"
    }

    fn differences(&self, width: usize) -> Vec<String> {
        let mut lines = divergences(&self.differs, width);
        let same = format!("the same: {}", self.same.join(", "));
        lines.extend(wrap_text(&same, width, INDENT, INDENT + 2));
        for unmatched in &self.unmatched {
            lines.extend(wrap_text(unmatched, width, INDENT, INDENT + 2));
        }
        lines
    }

    fn effects(&self, width: usize) -> Vec<String> {
        if self.effects.is_empty() {
            return vec!["  none that both sides have".to_owned()];
        }
        let of_cells = self.effects.chunk_by(|one, next| one.cell == next.cell);
        of_cells
            .flat_map(|effects| effects_of_cell(effects, width))
            .collect()
    }

    fn events(&self, width: usize) -> Vec<String> {
        let of_cells = self.events.chunk_by(|one, next| one.cell == next.cell);
        let tables = of_cells.flat_map(|events| {
            let mut columns = left(&[&events[0].cell, "arm", "A", "B", "effect"]);
            for event in events {
                columns.push(vec![
                    event.event.clone(),
                    event.arm.clone(),
                    describe_side(&event.a),
                    describe_side(&event.b),
                    event.agreement.as_str().to_owned(),
                ]);
            }
            table(&columns, width, &[1, 0])
        });
        tables.collect()
    }

    fn levels(&self, width: usize) -> Vec<String> {
        if self.levels.is_empty() {
            return vec!["  none that both sides have".to_owned()];
        }
        let of_cells = self.levels.chunk_by(|one, next| one.cell == next.cell);
        of_cells
            .flat_map(|levels| levels_of_cell(levels, width))
            .collect()
    }
}

fn levels_of_cell(levels: &[Level], width: usize) -> Vec<String> {
    let mut columns = Columns::new(&[
        (&levels[0].cell, Align::Left),
        ("arm", Align::Left),
        ("A", Align::Right),
        ("B", Align::Right),
        ("B over A", Align::Right),
        ("interval", Align::Left),
        ("trials", Align::Left),
    ]);
    for level in levels {
        columns.push(vec![
            level.metric.clone(),
            level.arm.clone(),
            with_unit(level.a_median, &level.unit),
            with_unit(level.b_median, &level.unit),
            moved(level),
            match &level.difference {
                Some(difference) => in_unit(difference),
                None => bounds(level.low, level.high),
            },
            format!("{}, {}", level.a_trials, level.b_trials),
        ]);
    }
    table(&columns, width, &[1, 0])
}

fn effects_of_cell(effects: &[Effect], width: usize) -> Vec<String> {
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
    table(&columns, width, &[1, 0])
}

/// A table; below it what is too long for one, so that nothing of either side is cut.
fn divergences(differs: &[Divergence], width: usize) -> Vec<String> {
    let longest = width / 3;
    let is_short = |d: &&Divergence| [&d.a, &d.b].iter().all(|t| t.chars().count() <= longest);
    let (short, long): (Vec<&Divergence>, Vec<&Divergence>) = differs.iter().partition(is_short);
    let mut lines = Vec::new();
    if !short.is_empty() {
        let mut columns = left(&["", "A", "B"]);
        for differs in short {
            columns.push(vec![
                differs.what.clone(),
                differs.a.clone(),
                differs.b.clone(),
            ]);
        }
        lines.extend(table(&columns, width, &[0]));
    }
    for differs in long {
        lines.extend(wrap_text(&differs.what, width, INDENT, INDENT + 2));
        for (name, value) in [("A", &differs.a), ("B", &differs.b)] {
            let said = format!("{name}: {value}");
            lines.extend(wrap_text(&said, width, INDENT + 2, INDENT + 5));
        }
    }
    lines
}

fn head(name: &str, side: &SideInfo, width: usize) -> Vec<String> {
    let about = format!(
        "{name}  {}: {}, {}; {}; schedlab {}",
        side.label, side.experiment, side.created, side.machine, side.tool
    );
    wrap_text(&about, width, 0, 3)
}

fn heading(lines: &mut Vec<String>, text: &str) {
    lines.extend([String::new(), text.to_owned()]);
}

fn left(names: &[&str]) -> Columns {
    let columns: Vec<(&str, Align)> = names.iter().map(|name| (*name, Align::Left)).collect();
    Columns::new(&columns)
}

/// The names may shrink, no figure; where that is not enough, a line for each column.
fn table(columns: &Columns, width: usize, shrink: &[usize]) -> Vec<String> {
    let widths = columns.fit_widths(INDENT, width, shrink);
    let needed = INDENT + widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
    if needed > width {
        return columns.stacked_lines(INDENT, width);
    }
    let mut lines = vec![columns.head_line(INDENT, &widths)];
    lines.extend(columns.row_lines(INDENT, &widths, |_, text| text));
    lines
}

/// The change on the scale of the metric.
fn moved(level: &Level) -> String {
    let difference = level.difference.as_ref().map(Shift::format_change);
    let change = difference.or_else(|| level.ratio.map(format_change));
    change.unwrap_or_else(|| "-".to_owned())
}

fn in_unit(difference: &Shift) -> String {
    difference
        .format_interval()
        .unwrap_or_else(|| "-".to_owned())
}

/// `better  [+30.2%, +42.7%]`.
fn estimate(estimate: &Estimate) -> String {
    let bounds = match &estimate.difference {
        Some(difference) => in_unit(difference),
        None => bounds(estimate.low, estimate.high),
    };
    format!("{:<7} {bounds}", estimate.verdict.as_str())
}

fn bounds(low: Option<f64>, high: Option<f64>) -> String {
    match low.zip(high) {
        Some((low, high)) => format_interval(low, high),
        None => "-".to_owned(),
    }
}
