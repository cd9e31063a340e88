//! The effects of arms against their baseline, on each side by itself.

use super::pairing::Matched;
use super::{Agreement, Effect, Estimate};
use crate::shift::Shift;
use crate::table::{CellTable, Comparison, Table};

pub fn compare_effects(matched: &Matched, a: &Table, b: &Table, full: bool) -> Vec<Effect> {
    if !matched.same_baseline {
        return Vec::new();
    }
    let mut effects = Vec::new();
    for &(a_cell, b_cell) in &matched.cells {
        let (a_cell, b_cell) = (&a.cells[a_cell], &b.cells[b_cell]);
        for comparison in a_cell.comparisons.iter().filter(|c| full || c.deciding) {
            let is_matched = matched
                .arms
                .iter()
                .any(|(i, _)| a.arms[*i].name == comparison.arm);
            let other = counterpart(b_cell, comparison).filter(|_| is_matched);
            effects.extend(other.map(|other| effect(&a_cell.name, comparison, other)));
        }
    }
    effects
}

fn counterpart<'a>(cell: &'a CellTable, of: &Comparison) -> Option<&'a Comparison> {
    let mut comparisons = cell.comparisons.iter();
    comparisons.find(|c| c.arm == of.arm && c.metric == of.metric)
}

fn effect(cell: &str, a: &Comparison, b: &Comparison) -> Effect {
    let in_unit = a.difference.is_some() || b.difference.is_some();
    let (estimate_a, estimate_b) = (estimate(a, in_unit), estimate(b, in_unit));
    Effect {
        cell: cell.to_owned(),
        metric: a.metric.clone(),
        better: a.better,
        arm: a.arm.clone(),
        baseline: a.baseline.clone(),
        agreement: Agreement::between(&estimate_a, &estimate_b),
        a: estimate_a,
        b: estimate_b,
    }
}

/// Both sides are on one scale: in the unit where one of them has no ratio.
fn estimate(comparison: &Comparison, in_unit: bool) -> Estimate {
    Estimate {
        ratio: comparison.ratio,
        low: comparison.low,
        high: comparison.high,
        difference: Shift::of_effect(comparison, 0.0).filter(|_| in_unit),
        verdict: comparison.verdict,
        blocks: comparison.blocks,
    }
}
