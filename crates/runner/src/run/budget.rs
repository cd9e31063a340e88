//! Time of a run: what has passed, what a block takes, and the end of the budget.

use super::Run;
use crate::{Event, RunError};
use model::{Severity, Warning, format_duration_ns};
use std::time::Duration;

/// First words of the warning that the budget ended the run.
const BUDGET_ENDED: &str = "The budget of";

/// Is it the warning that the budget ended the run? It is outdated once the run goes on.
pub fn says_budget_ended(warning: &Warning) -> bool {
    warning.what.starts_with(BUDGET_ENDED)
}

/// Warning about a budget that does not hold the least number of blocks, of which the first took one time
/// and each further one takes the other; none where it does, or where it holds no second block, which
/// is said after the first trial.
fn too_few(budget: u64, [first, next]: [u64; 2], least: u64) -> Option<String> {
    const SECOND: u64 = 1_000_000_000;
    let holds = 1 + budget.saturating_sub(first) / next.max(1);
    if holds >= least || first > budget {
        return None;
    }
    let wanted = first.saturating_add(next.saturating_mul(least.saturating_sub(1)));
    // A tenth for blocks that take longer.
    let wanted = (wanted + wanted / 10).div_ceil(SECOND) * SECOND;
    let [block, budget, wanted] = [next, budget, wanted].map(format_duration_ns);
    Some(format!(
        "a block takes about {block}, so the budget of {budget} holds {holds}, and {least} are the least \
         for an answer: `--budget {wanted}` has room for them"
    ))
}

impl Run<'_> {
    /// Says in the results why they are no more.
    pub(super) fn warn_of_budget(&mut self) -> Result<(), RunError> {
        let least = schedule::least_blocks(self.experiment);
        let blocks = self.trials.iter().map(|t| t.place.block).max().unwrap_or(0);
        let blocks = self.pool.map_or(blocks, |pool| pool.blocks());
        let (severity, of) = match blocks < least {
            true => (Severity::Caution, format!("{blocks} of at least {least}")),
            false => (Severity::Note, blocks.to_string()),
        };
        let budget_ns = self.experiment.stop.budget_ns.unwrap_or_default();
        let budget = format_duration_ns(budget_ns);
        let warning = Warning {
            severity,
            what: format!("{BUDGET_ENDED} {budget} ended the run after {of} blocks."),
            remedy: self.how_to_extend(budget_ns, self.spent_on_a_block(blocks)),
        };
        Ok(self.writer.warn(vec![warning])?)
    }

    /// Says after the first trial that counts, and not when the budget has long passed, that
    /// one block takes more than all of it.
    pub(super) fn say_if_too_long(&mut self) -> Result<(), RunError> {
        // A block of each machine is as long, and who waits for all of them sees one warning.
        let Some(budget) = self
            .experiment
            .stop
            .budget_ns
            .filter(|_| self.pool.is_none())
        else {
            return Ok(());
        };
        let mut counting = self.trials.iter().filter(|trial| trial.is_ok());
        let (Some(first), None) = (counting.next(), counting.next()) else {
            return Ok(());
        };
        let trial = first.result.elapsed_ns;
        let trials = self.plan.cells.len() * self.experiment.arms.len();
        let block = trial.saturating_mul(trials as u64);
        if block <= budget {
            return Ok(());
        }
        let remedy = self.how_to_extend(budget, block);
        let [trial, block, budget] = [trial, block, budget].map(format_duration_ns);
        let warning = Warning {
            severity: Severity::Caution,
            what: format!(
                "One trial takes {trial}, so a block takes about {block}, and the budget is \
                 {budget}: the run ends after its first block."
            ),
            remedy,
        };
        (self.sink)(Event::TooLong {
            what: &warning.what,
        });
        Ok(self.writer.warn(vec![warning])?)
    }

    /// Says after the first block, whose length is known then, that the budget holds fewer than the
    /// least number of blocks.
    pub(super) fn say_if_too_few(&mut self, block: u32) {
        let budget = self.experiment.stop.budget_ns;
        let is_over = self.decided.len() == self.plan.cells.len();
        let Some(budget) = budget.filter(|_| block == 1 && self.pool.is_none() && !is_over) else {
            return;
        };
        let least = u64::from(schedule::least_blocks(self.experiment));
        let first = self.spent_on_a_block(1);
        let next = self.block_ns().unwrap_or(first);
        if let Some(what) = too_few(budget, [first, next], least) {
            (self.sink)(Event::TooLong { what: &what });
        }
    }

    /// The command that gives a run twice its budget, or enough for its least number of blocks
    /// and one more, where a block takes so long.
    fn how_to_extend(&self, budget_ns: u64, block_ns: u64) -> String {
        let least = u64::from(schedule::least_blocks(self.experiment)) + 1;
        let wanted_ns = budget_ns
            .saturating_mul(2)
            .max(block_ns.saturating_mul(least));
        let minutes = wanted_ns.div_ceil(60_000_000_000);
        let blocks = minutes.saturating_mul(60_000_000_000) / block_ns.max(1);
        format!(
            "Go on with `schedlab run --resume {} --budget {minutes}m` (about {blocks} blocks in all). \
             Or take fewer loads, arms or workloads.",
            self.writer.dir().display(),
        )
    }

    /// Mean time of the blocks so far, with all that is between trials.
    fn spent_on_a_block(&self, blocks: u32) -> u64 {
        model::nanos(self.elapsed()) / u64::from(blocks.max(1))
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.earlier.saturating_add(self.started.elapsed())
    }

    /// At most: to the last block, or to the end of the budget.
    pub(super) fn time_left(&self, block: u32) -> Option<u64> {
        let blocks = u64::from(self.experiment.stop.max_blocks.saturating_sub(block));
        let by_blocks = self.block_ns().map(|ns| ns.saturating_mul(blocks));
        let by_budget = self
            .experiment
            .stop
            .budget_ns
            .map(|budget| budget.saturating_sub(model::nanos(self.elapsed())));
        match (by_blocks, by_budget) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Time that the next block takes: the mean trial of every open cell, by its arms.
    fn block_ns(&self) -> Option<u64> {
        let arms = self.experiment.arms.len() as u64;
        let open = (0..self.plan.cells.len()).filter(|c| !self.decided.contains(c));
        let means: Option<Vec<u64>> = open.map(|c| self.mean_trial_ns(c)).collect();
        let once = means?.into_iter().fold(0, u64::saturating_add);
        Some(once.saturating_mul(arms))
    }

    fn mean_trial_ns(&self, cell: usize) -> Option<u64> {
        let here = self.trials.iter().filter(|t| t.place.cell == cell);
        let times: Vec<u64> = here.map(|t| t.result.elapsed_ns).collect();
        let count = times.len() as u64;
        let sum = times.into_iter().fold(0, u64::saturating_add);
        sum.checked_div(count)
    }

    /// Nothing is repeated any more.
    pub(super) fn budget_is_spent(&self) -> bool {
        let budget = self.experiment.stop.budget_ns;
        budget.is_some_and(|budget| model::nanos(self.elapsed()) >= budget)
    }

    /// The next block would not end within the budget. The first one always runs.
    pub(super) fn out_of_budget(&self) -> bool {
        let (Some(budget), Some(block)) = (self.experiment.stop.budget_ns, self.block_ns()) else {
            return false;
        };
        model::nanos(self.elapsed()).saturating_add(block) > budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_budget_without_room_for_the_least_blocks_is_said_with_one_that_has() {
        let said = too_few(120 * SECOND, [40 * SECOND, 35 * SECOND], 5).unwrap();
        assert!(
            said.contains("the budget of 2m holds 3, and 5 are"),
            "{said}"
        );
        assert!(said.contains("`--budget 3m18s`"), "{said}");
        assert_eq!(too_few(180 * SECOND, [40 * SECOND, 35 * SECOND], 5), None);
        assert_eq!(too_few(30 * SECOND, [40 * SECOND, 35 * SECOND], 5), None);
    }
}
