//! `[stop]`: when a run has enough trials.

use load::units::{Duration, Percent};
use model::Stop;
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

pub(crate) fn stop(file: &FileStop) -> Stop {
    let max_blocks = file.max_blocks.unwrap_or(40);
    Stop {
        budget_ns: file.budget.map(|d| d.0),
        confidence: file.confidence.unwrap_or(0.95),
        smallest_effect: file.smallest_effect.map_or(0.02, |p| p.0 / 100.0),
        min_blocks: file.min_blocks.unwrap_or(3.min(max_blocks)),
        max_blocks,
        max_attempts: file.max_attempts.unwrap_or(3),
    }
}
