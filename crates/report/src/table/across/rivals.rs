//! Comparisons of the arms with each other: which of several that beat the baseline is to be taken.
//!
//! They are looked at together as a family of their own (e-BH), so that they make neither the question
//! of the experiment harder to answer nor one another unsure.

use crate::table::build::Effort;
use crate::table::cell;
use crate::table::{Comparison, Verdict};
use judge::{Family, is_aa};
use results::ResultSet;

/// Arms beside the baseline beyond which nobody reads all pairs of them.
const MOST_ARMS: usize = 6;

/// Deciding comparisons between the arms, those of a cell together; none with more arms than can be read.
pub(in crate::table) fn compare_arms(results: &ResultSet, effort: Effort) -> Vec<Comparison> {
    let experiment = &results.experiment;
    let arms = (0..experiment.arms.len())
        .filter(|arm| *arm != experiment.baseline && !is_aa(experiment, *arm))
        .count();
    if experiment.import_source().is_some() || !(2..=MOST_ARMS).contains(&arms) {
        return Vec::new();
    }
    let by_cell = effort.map_cells(results, |cell| cell::compare_cell_arms(results, cell));
    let mut all: Vec<Comparison> = by_cell.into_iter().flatten().collect();
    let members: Vec<(Option<Family>, f64)> = all
        .iter()
        .map(|c| {
            let family = Family::for_comparison(true, false, c.blocks);
            (family, c.e_value.unwrap_or(1.0))
        })
        .collect();
    let survive = judge::find_survivors(&members, &experiment.stop);
    for (comparison, survives) in all.iter_mut().zip(survive) {
        comparison.survives_ebh = survives.filter(|_| comparison.verdict.is_call());
    }
    all
}

/// The verdict on a pair that holds among all pairs: a call that does not is unknown.
pub fn verdict_among_all(c: &Comparison) -> Verdict {
    match c.survives_ebh {
        Some(false) => Verdict::Unknown,
        _ => c.verdict,
    }
}
