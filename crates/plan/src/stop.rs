//! `[stop]`: when a run has enough trials.

use load::units::{Duration, Percent};
use model::StopRule;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct FileStop {
    budget: Option<Duration>,
    confidence: Option<f64>,
    smallest_effect: Option<Percent>,
    min_blocks: Option<u32>,
    max_blocks: Option<u32>,
    max_attempts: Option<u32>,
}

pub(crate) fn stop(file: &FileStop) -> StopRule {
    let usual = StopRule::default();
    let max_blocks = file.max_blocks.unwrap_or(usual.max_blocks);
    let percent = file.smallest_effect;
    StopRule {
        budget_ns: file.budget.map(|d| d.0),
        confidence: file.confidence.unwrap_or(usual.confidence),
        smallest_effect: percent.map_or(usual.smallest_effect, |p| p.0 / 100.0),
        min_blocks: file.min_blocks.unwrap_or(usual.min_blocks.min(max_blocks)),
        max_blocks,
        max_attempts: file.max_attempts.unwrap_or(usual.max_attempts),
    }
}
