//! The recommendation as Markdown, for an issue or a merge request.

use super::Recommendation;
use crate::render::markdown::escape_markdown;

impl Recommendation {
    /// The answer as a heading's paragraph, the table, and what it hangs on as lists.
    pub fn to_markdown(&self) -> String {
        let share = self.interval_words();
        let baseline = self.baseline().map_or("", |arm| arm.arm.as_str());
        let mut lines = vec![
            format!("**{}**", escape_markdown(&self.answer)),
            String::new(),
            format!(
                "| arm | best | behind the best | {share} | over {} | {share} |",
                escape_markdown(baseline)
            ),
            "|---|---:|---:|---|---:|---|".to_owned(),
        ];
        for arm in &self.arms {
            let cells = self.row(arm);
            let cells: Vec<String> = cells.iter().map(|cell| escape_markdown(cell)).collect();
            lines.push(format!("| {} |", cells.join(" | ")));
        }
        for (heading, said) in self.sections() {
            lines.extend([String::new(), format!("### {heading}"), String::new()]);
            let items = said.iter();
            lines.extend(items.map(|item| format!("- {}", escape_markdown(item))));
        }
        lines.join("\n") + "\n"
    }
}
