//! Which cells are decided: the rule of stopping.
//!
//! A cell is decided when each arm's comparison with the baseline has a verdict
//! for every deciding metric, and each call among them (better, worse) survives
//! e-BH over all deciding comparisons of the run. A cell that stopped at its own
//! verdict alone would have just enough evidence for one comparison and never
//! enough for many; going on until the call survives costs about 5 % more blocks
//! (docs/statistics-simulation.md). The A/A arm is judged but never waited for.
//! Where a load is too much for an arm, goodput decides instead of latency. In a hunt only events decide.

use judge::events::{judge_events, pair_events};
use judge::{Judged, Judgement, Looks, Verdict, is_aa, judge_deciding};
use model::{DecidedBy, Experiment, Plan, Trial};
use results::sample::find_unit;
use std::collections::{BTreeMap, BTreeSet};

/// A comparison that needs more blocks, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenComparison {
    /// Name of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Name of the arm that is compared with the baseline.
    pub arm: String,
    /// Number of blocks that were judged.
    pub blocks: u32,
    /// Blocks that it would take in all, if that can be told.
    pub blocks_needed: Option<u32>,
    /// Arm over baseline so far.
    pub ratio: Option<f64>,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// Arm minus baseline so far, where a ratio has no meaning.
    pub difference: Option<OpenDifference>,
    /// What was judged; none of events, and of a call that does not hold among the others.
    pub judged: Option<Judgement>,
    /// Evidence against "no difference", on its way to 1 / (1 - confidence).
    pub e_value: f64,
}

/// A difference in the unit of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenDifference {
    /// Centre of the blocks.
    pub value: f64,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// Unit of all of them.
    pub unit: String,
}

/// State of a cell after the trials so far.
#[derive(Debug, Clone, PartialEq)]
pub enum CellState {
    /// No more blocks are needed, or there is nothing left to compare.
    Decided,
    /// More blocks are needed for these comparisons, or for the least number of blocks.
    Open(Vec<OpenComparison>),
}

/// Judges cells from the trials so far.
#[derive(Debug)]
pub struct Decisions<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    looks: Looks,
}

/// Pairs of cell and arm that never worked: nothing waits for them.
pub type GivenUp = BTreeSet<(usize, usize)>;

/// Arms that were tried so often, or more, and never worked.
pub(crate) fn never_worked(trials: &[Trial], attempts: u32) -> GivenUp {
    let mut tried: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    let mut worked = BTreeSet::new();
    for trial in trials {
        let pair = (trial.place.cell, trial.place.arm);
        *tried.entry(pair).or_default() += 1;
        if trial.is_ok() {
            worked.insert(pair);
        }
    }
    let hopeless =
        |(pair, count): &((usize, usize), u32)| *count >= attempts && !worked.contains(pair);
    tried
        .into_iter()
        .filter(hopeless)
        .map(|(pair, _)| pair)
        .collect()
}

/// Blocks that one arm alone is measured for: enough to see its spread.
const BLOCKS_ALONE: u32 = 5;

impl<'a> Decisions<'a> {
    /// Rule for the cells of a plan of this experiment.
    pub fn new(experiment: &'a Experiment, plan: &'a Plan) -> Self {
        Decisions {
            experiment,
            plan,
            looks: Looks::AfterEach,
        }
    }

    /// The same for blocks of several machines, which have no order.
    pub fn of_machines(experiment: &'a Experiment, plan: &'a Plan) -> Self {
        Decisions {
            looks: Looks::AtAll,
            ..Decisions::new(experiment, plan)
        }
    }

    /// Trials of a whole block.
    pub(crate) fn places_per_block(&self) -> usize {
        self.plan.cells.len() * self.experiment.arms.len()
    }

    /// The state of every cell of the plan.
    pub fn cell_states(&self, trials: &[Trial], given_up: &GivenUp) -> Vec<CellState> {
        let mut open = vec![Vec::new(); self.plan.cells.len()];
        let judged = match self.experiment.stop.decided_by {
            DecidedBy::Metrics => judge_deciding(self.experiment, self.plan, trials, self.looks),
            DecidedBy::Events => Vec::new(),
        };
        for judged in judged {
            let waited = self
                .judged_arms(judged.cell, given_up)
                .contains(&judged.arm);
            if waited && judged.is_open() {
                open[judged.cell].push(self.open(&judged, trials));
            }
        }
        for (cell, open) in open.iter_mut().enumerate() {
            open.extend(self.open_events(cell, trials, given_up));
        }
        let state = |(cell, open)| self.state(cell, open, trials, given_up);
        open.into_iter().enumerate().map(state).collect()
    }

    /// The events of a cell that decide and are not decided.
    fn open_events(
        &self,
        cell: usize,
        trials: &[Trial],
        given_up: &GivenUp,
    ) -> Vec<OpenComparison> {
        let experiment = self.experiment;
        let events = &experiment.observe.events;
        let all_decide = experiment.stop.decided_by == DecidedBy::Events;
        let deciding = events.iter().filter(|event| event.decides || all_decide);
        let arms = self.judged_arms(cell, given_up);
        let compared = deciding.flat_map(|event| arms.iter().map(move |arm| (event, *arm)));
        let open = compared.filter_map(|(event, arm)| {
            let blocks = pair_events(trials, cell, event, [arm, experiment.baseline]);
            let at_all = self.looks == Looks::AtAll;
            let judged = judge_events(&blocks, event, &experiment.stop, at_all);
            let is_open = judged.supported_verdict() == Verdict::Unknown;
            is_open.then(|| OpenComparison {
                cell: self.plan.cells[cell].name.clone(),
                metric: event.name.clone(),
                arm: experiment.arms[arm].name.clone(),
                blocks: judged.blocks,
                blocks_needed: judged.blocks_needed,
                ratio: judged.ratio,
                interval: judged.low.zip(judged.high),
                difference: None,
                judged: None,
                e_value: judged.e_value,
            })
        });
        open.collect()
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
        // No arm is left that could be compared.
        let hopeless = given_up.contains(&(cell, self.experiment.baseline)) || alone && lost > 0;
        if hopeless || open.is_empty() && complete_blocks(cell, trials, arms) >= least {
            CellState::Decided
        } else {
            CellState::Open(open)
        }
    }

    fn judged_arms(&self, cell: usize, given_up: &GivenUp) -> Vec<usize> {
        let experiment = self.experiment;
        let only_aa = experiment.arms.len() == 2;
        (0..experiment.arms.len())
            .filter(|arm| *arm != experiment.baseline && (only_aa || !is_aa(experiment, *arm)))
            .filter(|arm| !given_up.contains(&(cell, *arm)))
            .collect()
    }

    fn open(&self, judged: &Judged, trials: &[Trial]) -> OpenComparison {
        let judgement = &judged.judgement;
        let here = || trials.iter().filter(|t| t.place.cell == judged.cell);
        let difference = judgement.difference.map(|found| OpenDifference {
            value: found.value,
            interval: found.interval.map(|i| (i.low, i.high)),
            unit: find_unit(here(), &judged.metric)
                .unwrap_or_default()
                .to_owned(),
        });
        OpenComparison {
            cell: self.plan.cells[judged.cell].name.clone(),
            metric: judged.metric.to_string(),
            arm: self.experiment.arms[judged.arm].name.clone(),
            blocks: judgement.blocks,
            blocks_needed: judgement.blocks_needed,
            ratio: judgement.known_ratio(),
            interval: judgement.lower_end().zip(judgement.upper_end()),
            difference,
            judged: (judgement.supported_verdict() == Verdict::Unknown).then_some(*judgement),
            e_value: judgement.e_value,
        }
    }
}

/// Blocks of a cell in which every one of `arms` has a trial that counts.
pub(crate) fn complete_blocks(cell: usize, trials: &[Trial], arms: usize) -> u32 {
    let mut counts = BTreeMap::<u32, usize>::new();
    for trial in trials.iter().filter(|t| t.place.cell == cell && t.is_ok()) {
        *counts.entry(trial.place.block).or_default() += 1;
    }
    let complete = counts.values().filter(|&&n| n >= arms).count();
    u32::try_from(complete).unwrap_or(u32::MAX)
}
