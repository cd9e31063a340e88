//! Markdown for the summary of a job or a merge request.

use super::text::moved;
use super::{Check, FailOn, Gate};
use crate::quantity::percent;
use crate::render::markdown::escape;

impl Gate {
    /// Answer as a heading, its conditions and a table.
    pub fn markdown(&self, fail_on: FailOn) -> String {
        let mut lines = vec![
            format!(
                "# {}: {}",
                escape(&self.experiment),
                self.answer(fail_on).to_lowercase()
            ),
            String::new(),
            format!("- {}", self.summary()),
            format!(
                "- {} against {}, by {}; smallest effect {} %; {}",
                escape(&self.new),
                escape(&self.stored),
                self.by.as_str(),
                percent(self.smallest_effect),
                self.error_rate()
            ),
        ];
        let notes = self
            .lacks
            .iter()
            .chain(&self.notes)
            .map(|note| format!("- {}", escape(note)));
        lines.extend(notes);
        lines.extend([
            String::new(),
            "| cell | metric | arm | call | change | stored, now |".to_owned(),
            "|---|---|---|---|---:|---|".to_owned(),
        ]);
        lines.extend(self.checks.iter().map(|check| row(check, fail_on)));
        lines.join("\n") + "\n"
    }
}

fn row(check: &Check, fail_on: FailOn) -> String {
    let call = match fail_on.fails(check.call) {
        true => format!("**{}**", check.call.as_str()),
        false => check.call.as_str().to_owned(),
    };
    format!(
        "| {} | {} | {} | {call} | {} | {} |",
        escape(&check.cell),
        escape(&check.metric),
        escape(&check.arm),
        moved(check),
        escape(&check.figures)
    )
}
