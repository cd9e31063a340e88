//! Markdown for the summary of a job or a merge request.

use super::text::format_move;
use super::{Check, FailOn, Gate};
use crate::quantity::format_percent;
use crate::render::markdown::escape_markdown;

impl Gate {
    /// Answer as a heading, its conditions and a table.
    pub fn to_markdown(&self, fail_on: FailOn) -> String {
        let mut lines = vec![
            format!(
                "# {}: {}",
                escape_markdown(&self.experiment),
                self.answer_words(fail_on).to_lowercase()
            ),
            String::new(),
            format!("- {}", self.summary_line()),
            format!(
                "- {} against {}, by {}; smallest effect {} %; {}",
                escape_markdown(&self.new),
                escape_markdown(&self.stored),
                self.by.as_str(),
                format_percent(self.smallest_effect),
                self.error_rate()
            ),
        ];
        let notes = self
            .lacks
            .iter()
            .chain(&self.notes)
            .map(|note| format!("- {}", escape_markdown(note)));
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
    let call = match fail_on.is_failure(check.call) {
        true => format!("**{}**", check.call.as_str()),
        false => check.call.as_str().to_owned(),
    };
    format!(
        "| {} | {} | {} | {call} | {} | {} |",
        escape_markdown(&check.cell),
        escape_markdown(&check.metric),
        escape_markdown(&check.arm),
        format_move(check),
        escape_markdown(&check.figures)
    )
}
