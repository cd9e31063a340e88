//! `[stop]`: when a run has enough trials.

use load::units::{Duration, Fraction};
use model::{DecidedBy, StopRule};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct FileStop {
    budget: Option<Duration>,
    confidence: Option<f64>,
    smallest_effect: Option<Fraction>,
    min_blocks: Option<u32>,
    max_blocks: Option<u32>,
    max_attempts: Option<u32>,
    decided_by: Option<DecidedBy>,
}

impl FileStop {
    /// Puts the keys that are there in place of those of the rule.
    pub(crate) fn lay_over(self, rule: &mut StopRule) {
        rule.budget_ns = self.budget.map(|d| d.0).or(rule.budget_ns);
        rule.confidence = self.confidence.unwrap_or(rule.confidence);
        rule.smallest_effect = self.smallest_effect.map_or(rule.smallest_effect, |f| f.0);
        rule.max_blocks = self.max_blocks.unwrap_or(rule.max_blocks);
        let least = rule.min_blocks.min(rule.max_blocks);
        rule.min_blocks = self.min_blocks.unwrap_or(least);
        rule.max_attempts = self.max_attempts.unwrap_or(rule.max_attempts);
        rule.decided_by = self.decided_by.unwrap_or(rule.decided_by);
    }
}
