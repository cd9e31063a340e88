//! Places of a plan that a run would have measured and that nobody has.
//!
//! A run goes through its plan in order and leaves out a place for two reasons only: its
//! cell is decided, or its arm, or the baseline, never once worked there. So every other
//! place before the last one that was tried must have a trial; where it has none, somebody
//! took it away.

use crate::cells::{CellState, Decisions, never_worked};
use model::{Experiment, Plan, PlannedTrial, Trial};
use std::collections::{BTreeMap, BTreeSet};

/// Ends of blocks that are looked at again for one cell. The first one says it, unless a
/// run was interrupted twice within a few blocks.
const MOST_LOOKS: usize = 100;

/// The places without a trial, before the last one that has one, that no rule of a run
/// explains. `trials` in the order of the plan. `together`: the cells were decided by the blocks of
/// other machines, too. Then a cell may have ended anywhere, and stays so.
pub fn find_unexplained<'a>(
    experiment: &Experiment,
    plan: &'a Plan,
    trials: &[Trial],
    together: bool,
) -> Vec<&'a PlannedTrial> {
    let Some(last) = trials.iter().map(|t| t.place.index).max() else {
        return Vec::new();
    };
    let missing = before(experiment, plan, trials, last).into_iter();
    missing
        .filter(|place| !together || is_resumed(place, trials))
        .collect()
}

/// The same for all places of the plan: those that a run still had to measure when it ended. None
/// where it was done and its budget had not ended it.
pub fn find_unmeasured<'a>(
    experiment: &Experiment,
    plan: &'a Plan,
    trials: &[Trial],
) -> Vec<&'a PlannedTrial> {
    before(experiment, plan, trials, u32::MAX)
}

fn before<'a>(
    experiment: &Experiment,
    plan: &'a Plan,
    trials: &[Trial],
    end: u32,
) -> Vec<&'a PlannedTrial> {
    let tried: BTreeSet<u32> = trials.iter().map(|t| t.place.index).collect();
    let mut replay = Replay {
        experiment,
        decisions: Decisions::new(experiment, plan),
        trials,
        decided: BTreeSet::new(),
        looked: BTreeMap::new(),
    };
    plan.trials
        .iter()
        .take_while(|place| place.index < end)
        .filter(|place| !tried.contains(&place.index) && !replay.explains(place))
        .collect()
}

/// Was its cell measured in a later block?
fn is_resumed(place: &PlannedTrial, trials: &[Trial]) -> bool {
    let mut of_cell = trials.iter().filter(|t| t.place.cell == place.cell);
    of_cell.any(|trial| trial.place.block > place.block)
}

struct Replay<'a> {
    experiment: &'a Experiment,
    decisions: Decisions<'a>,
    trials: &'a [Trial],
    /// Cells that are known to have been decided at some place before.
    decided: BTreeSet<usize>,
    /// The cells that are decided by so many first trials.
    looked: BTreeMap<usize, Vec<bool>>,
}

impl Replay<'_> {
    fn explains(&mut self, place: &PlannedTrial) -> bool {
        self.given_up(place.cell, place.arm, place.index)
            || self.given_up(place.cell, self.experiment.baseline, place.index)
            || self.was_decided(place)
    }

    /// Was it tried before, and did it never work?
    fn given_up(&self, cell: usize, arm: usize, before: u32) -> bool {
        let earlier = self.before(|t| t.place.index < before);
        let mut here = self.trials[..earlier]
            .iter()
            .filter(|t| t.place.cell == cell && t.place.arm == arm)
            .peekable();
        here.peek().is_some() && here.all(|t| !t.is_ok())
    }

    /// A cell that was decided once stays so. A run looks after each block, and, where it
    /// was resumed, at the place where it goes on.
    fn was_decided(&mut self, place: &PlannedTrial) -> bool {
        if self.decided.contains(&place.cell) {
            return true;
        }
        let here = self.before(|t| t.place.index < place.index);
        let ends = (1..place.block).rev().take(MOST_LOOKS);
        let ends: Vec<usize> = ends
            .map(|block| self.before(|t| t.place.block <= block))
            .collect();
        let decided = [here]
            .into_iter()
            .chain(ends)
            .any(|count| self.decided_by(count)[place.cell]);
        if decided {
            self.decided.insert(place.cell);
        }
        decided
    }

    fn before(&self, is_before: impl Fn(&Trial) -> bool) -> usize {
        self.trials.partition_point(is_before)
    }

    fn decided_by(&mut self, count: usize) -> &[bool] {
        if !self.looked.contains_key(&count) {
            let trials = &self.trials[..count];
            let states = self.decisions.cell_states(trials, &never_worked(trials, 1));
            let decided = states.iter().map(|s| *s == CellState::Decided).collect();
            self.looked.insert(count, decided);
        }
        &self.looked[&count]
    }
}
