//! Which cells are decided: the rule of stopping.
//!
//! A cell is decided when each arm's comparison with the baseline has a verdict
//! for every deciding metric. The A/A arm is judged but never waited for.

use model::{Better, Experiment, Plan, Trial};
use stats::{Params, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A comparison without a verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenComparison {
    pub cell: String,
    pub metric: String,
    pub arm: String,
    /// Blocks that it would take in all, if that can be told.
    pub blocks_needed: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CellState {
    Decided,
    Open(Vec<OpenComparison>),
}

/// Judges cells from the trials so far.
#[derive(Debug)]
pub struct Decisions<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
}

/// Blocks that one arm alone is measured for: enough to see its spread.
const BLOCKS_ALONE: u32 = 5;

impl<'a> Decisions<'a> {
    pub fn new(experiment: &'a Experiment, plan: &'a Plan) -> Self {
        Decisions { experiment, plan }
    }

    /// `given_up` names pairs of cell and arm that never worked: nothing waits for them.
    pub fn cell(
        &self,
        cell: usize,
        trials: &[Trial],
        given_up: &BTreeSet<(usize, usize)>,
    ) -> CellState {
        if given_up.contains(&(cell, self.experiment.baseline)) {
            return CellState::Decided;
        }
        let lost = given_up.iter().filter(|(c, _)| *c == cell).count();
        let blocks = self.complete_blocks(cell, trials, self.experiment.arms.len() - lost);
        let judged = self.judged_arms();
        let arms: Vec<usize> = judged.filter(|a| !given_up.contains(&(cell, *a))).collect();
        let least = self.experiment.stop.min_blocks;
        if arms.is_empty() && blocks >= least.max(BLOCKS_ALONE) {
            return CellState::Decided;
        }
        let mut open = Vec::new();
        for metric in self.deciding_metrics(cell) {
            for &arm in &arms {
                if let Some(comparison) = self.open_comparison(cell, metric, arm, trials) {
                    open.push(comparison);
                }
            }
        }
        if open.is_empty() && !arms.is_empty() && blocks >= least {
            CellState::Decided
        } else {
            CellState::Open(open)
        }
    }

    fn judged_arms(&self) -> impl Iterator<Item = usize> {
        let experiment = self.experiment;
        let only_aa = experiment.arms.len() == 2;
        (0..experiment.arms.len()).filter(move |&arm| {
            let is_aa = experiment.aa_arm.as_deref() == Some(&experiment.arms[arm].name);
            arm != experiment.baseline && (only_aa || !is_aa)
        })
    }

    fn deciding_metrics(&self, cell: usize) -> &'a [String] {
        &self.experiment.workloads[self.plan.cells[cell].workload].metrics
    }

    fn open_comparison(
        &self,
        cell: usize,
        metric: &str,
        arm: usize,
        trials: &[Trial],
    ) -> Option<OpenComparison> {
        let baseline = self.experiment.baseline;
        let ratios = results::sample::log_ratios(trials, cell, metric, arm, baseline);
        let xs: Vec<f64> = ratios.iter().map(|r| r.x).collect();
        let params = Params {
            alpha: 1.0 - self.experiment.stop.confidence,
            smallest_effect: self.experiment.stop.smallest_effect,
            better: direction(trials, metric),
        };
        match stats::judge(&xs, &params).verdict {
            Verdict::Unknown { blocks_needed } => Some(OpenComparison {
                cell: self.plan.cells[cell].name.clone(),
                metric: metric.to_owned(),
                arm: self.experiment.arms[arm].name.clone(),
                blocks_needed,
            }),
            _ => None,
        }
    }

    /// Blocks of a cell in which every arm has a trial that counts.
    fn complete_blocks(&self, cell: usize, trials: &[Trial], arms: usize) -> u32 {
        let mut counts = BTreeMap::<u32, usize>::new();
        for trial in trials.iter().filter(|t| t.place.cell == cell && t.is_ok()) {
            *counts.entry(trial.place.block).or_default() += 1;
        }
        counts.values().filter(|&&n| n >= arms).count() as u32
    }
}

/// For stopping, the direction only names the verdict.
fn direction(trials: &[Trial], metric: &str) -> stats::Better {
    let measured = trials.iter().find_map(|t| t.metric(metric));
    match measured.map(|m| m.better) {
        Some(Better::Higher) => stats::Better::Higher,
        _ => stats::Better::Lower,
    }
}
