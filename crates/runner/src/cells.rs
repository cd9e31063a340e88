//! Which cells are decided: the rule of stopping.
//!
//! A cell is decided when each arm's comparison with the baseline has a verdict
//! for every deciding metric, and each call among them (better, worse) survives
//! e-BH over all deciding comparisons of the run. A cell that stopped at its own
//! verdict alone would have just enough evidence for one comparison and never
//! enough for many; going on until the call survives costs about 5 % more blocks
//! (docs/statistics-simulation.md). The A/A arm is judged but never waited for.
//! Where a load is too much for an arm, goodput decides instead of latency.

use model::{Better, Experiment, Plan, Trial};
use results::Overload;
use stats::{Judgement, Params, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A comparison that needs more blocks.
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

/// Pairs of cell and arm that never worked: nothing waits for them.
pub type GivenUp = BTreeSet<(usize, usize)>;

/// Blocks that one arm alone is measured for: enough to see its spread.
const BLOCKS_ALONE: u32 = 5;

struct Comparison<'a> {
    cell: usize,
    metric: &'a str,
    arm: usize,
    judgement: Judgement,
}

impl<'a> Decisions<'a> {
    pub fn new(experiment: &'a Experiment, plan: &'a Plan) -> Self {
        Decisions { experiment, plan }
    }

    /// The state of every cell of the plan.
    pub fn cells(&self, trials: &[Trial], given_up: &GivenUp) -> Vec<CellState> {
        let comparisons = self.comparisons(trials, given_up);
        let e_values: Vec<f64> = comparisons.iter().map(|c| c.judgement.e_value).collect();
        let survives = stats::ebh::survivors(&e_values, self.alpha());
        let mut open = vec![Vec::new(); self.plan.cells.len()];
        for (comparison, survives) in comparisons.iter().zip(survives) {
            if let Some(blocks_needed) = wanted(&comparison.judgement, survives) {
                open[comparison.cell].push(self.open(comparison, blocks_needed));
            }
        }
        let state = |(cell, open)| self.state(cell, open, trials, given_up);
        open.into_iter().enumerate().map(state).collect()
    }

    fn state(
        &self,
        cell: usize,
        open: Vec<OpenComparison>,
        trials: &[Trial],
        given_up: &GivenUp,
    ) -> CellState {
        let lost = given_up.iter().filter(|(c, _)| *c == cell).count();
        let arms = self.experiment.arms.len() - lost;
        let alone = self.judged_arms(cell, given_up).is_empty();
        let least = match alone {
            true => self.experiment.stop.min_blocks.max(BLOCKS_ALONE),
            false => self.experiment.stop.min_blocks,
        };
        let hopeless = given_up.contains(&(cell, self.experiment.baseline));
        if hopeless || open.is_empty() && complete_blocks(cell, trials, arms) >= least {
            CellState::Decided
        } else {
            CellState::Open(open)
        }
    }

    fn comparisons(&self, trials: &[Trial], given_up: &GivenUp) -> Vec<Comparison<'a>> {
        let mut comparisons = Vec::new();
        for (cell, c) in self.plan.cells.iter().enumerate() {
            let named = &self.experiment.workloads[c.workload].metrics;
            let here: Vec<&Trial> = trials.iter().filter(|t| t.place.cell == cell).collect();
            for arm in self.judged_arms(cell, given_up) {
                let baseline = self.experiment.baseline;
                let overload = Overload::of(here.iter().copied(), cell, arm, baseline);
                for metric in overload.deciding(named, &here) {
                    comparisons.push(Comparison {
                        cell,
                        metric,
                        arm,
                        judgement: self.judge(trials, cell, metric, arm),
                    });
                }
            }
        }
        comparisons
    }

    fn judged_arms(&self, cell: usize, given_up: &GivenUp) -> Vec<usize> {
        let experiment = self.experiment;
        let only_aa = experiment.arms.len() == 2;
        let is_aa = |arm: &usize| experiment.aa_arm.as_ref() == Some(&experiment.arms[*arm].name);
        (0..experiment.arms.len())
            .filter(|arm| *arm != experiment.baseline && (only_aa || !is_aa(arm)))
            .filter(|arm| !given_up.contains(&(cell, *arm)))
            .collect()
    }

    fn judge(&self, trials: &[Trial], cell: usize, metric: &str, arm: usize) -> Judgement {
        let baseline = self.experiment.baseline;
        let ratios = results::sample::log_ratios(trials, cell, metric, arm, baseline);
        let xs: Vec<f64> = ratios.iter().map(|r| r.x).collect();
        let params = Params {
            alpha: self.alpha(),
            smallest_effect: self.experiment.stop.smallest_effect,
            better: direction(trials, metric),
        };
        stats::judge(&xs, &params)
    }

    fn alpha(&self) -> f64 {
        1.0 - self.experiment.stop.confidence
    }

    fn open(&self, comparison: &Comparison, blocks_needed: Option<u32>) -> OpenComparison {
        OpenComparison {
            cell: self.plan.cells[comparison.cell].name.clone(),
            metric: comparison.metric.to_owned(),
            arm: self.experiment.arms[comparison.arm].name.clone(),
            blocks_needed,
        }
    }
}

/// `Some` while a comparison wants more blocks: how many in all, if that can be told.
fn wanted(judgement: &Judgement, survives: bool) -> Option<Option<u32>> {
    match judgement.verdict {
        Verdict::Unknown { blocks_needed } => Some(blocks_needed),
        Verdict::Better | Verdict::Worse if !survives => Some(None),
        Verdict::Better | Verdict::Worse | Verdict::Same => None,
    }
}

/// Blocks of a cell in which every one of `arms` has a trial that counts.
fn complete_blocks(cell: usize, trials: &[Trial], arms: usize) -> u32 {
    let mut counts = BTreeMap::<u32, usize>::new();
    for trial in trials.iter().filter(|t| t.place.cell == cell && t.is_ok()) {
        *counts.entry(trial.place.block).or_default() += 1;
    }
    counts.values().filter(|&&n| n >= arms).count() as u32
}

/// For stopping, the direction only names the verdict.
fn direction(trials: &[Trial], metric: &str) -> stats::Better {
    let measured = trials.iter().find_map(|t| t.metric(metric));
    match measured.map(|m| m.better) {
        Some(Better::Higher) => stats::Better::Higher,
        _ => stats::Better::Lower,
    }
}
