//! The answer of a gate for the terminal.

use super::{Check, FailOn, Gate};
use crate::columns::{table_lines, wrap_text};
use crate::quantity::{format_change, format_interval, format_percent};

const INDENT: usize = 2;
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=120;

impl Gate {
    /// Answer for a terminal of so many columns: what fails first.
    pub fn to_text(&self, fail_on: FailOn, width: usize) -> String {
        let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
        let failing: Vec<&Check> = self.failing_checks(fail_on).collect();
        let answer = format!("{}: {}", self.answer_words(fail_on), self.summary_line());
        let mut lines = wrap_text(&answer, width, 0, INDENT);
        let about = format!(
            "{}: {} against {}, by {}; smallest effect {} %; {}",
            self.experiment,
            self.new,
            self.stored,
            self.by.as_str(),
            format_percent(self.smallest_effect),
            self.error_rate()
        );
        lines.extend(wrap_text(&about, width, 0, INDENT));
        for note in self.lacks.iter().chain(&self.notes) {
            lines.extend(wrap_text(&format!("- {note}"), width, 0, INDENT));
        }
        lines.push(String::new());
        let others = self.checks.iter().filter(|c| !fail_on.is_failure(c.call));
        let ordered: Vec<&Check> = failing.iter().copied().chain(others).collect();
        lines.extend(table(&ordered, width));
        lines.join("\n") + "\n"
    }
}

fn table(checks: &[&Check], width: usize) -> Vec<String> {
    let row = |check: &&Check| {
        vec![
            check.call.as_str().to_owned(),
            check.cell.clone(),
            check.metric.clone(),
            check.arm.clone(),
            format_move(check),
            check.figures.clone(),
        ]
    };
    let head = ["call", "cell", "metric", "arm", "change", "stored, now"];
    table_lines(&head, checks.iter().map(row).collect(), width)
}

/// `+3.2% [+1.0%, +5.4%]`.
pub(super) fn format_move(check: &Check) -> String {
    if let Some(difference) = &check.difference {
        return difference.in_words();
    }
    let bounds = check.low.zip(check.high);
    match (check.ratio, bounds) {
        (Some(ratio), Some((low, high))) => {
            format!("{} {}", format_change(ratio), format_interval(low, high))
        }
        (Some(ratio), None) => format_change(ratio),
        (None, _) => "-".to_owned(),
    }
}
