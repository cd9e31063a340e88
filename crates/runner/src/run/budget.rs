//! Time of a run: what has passed, what a block takes, and the end of the budget.

use super::Run;
use crate::{Event, RunError};
use model::{Severity, Trial, Warning, Windows, format_duration_ns};
use std::time::Duration;

/// First words of the warning that the budget ended the run.
const BUDGET_ENDED: &str = "The budget of";
/// First words of the note that the run took a little more than its budget.
const STRETCHED: &str = "The run may take";
/// More blocks than anyone will run.
const MANY_BLOCKS: u32 = 1000;

/// Is it the warning that the budget ended the run?
pub fn says_budget_ended(warning: &Warning) -> bool {
    warning.what.starts_with(BUDGET_ENDED)
}

/// Is it a warning about a budget, which is outdated once the run goes on?
pub fn says_of_budget(warning: &Warning) -> bool {
    says_budget_ended(warning) || warning.what.starts_with(STRETCHED)
}

/// A time that was measured and that nobody needs to a millisecond: up to the next tenth of a second, and from
/// ten seconds on to the next second.
fn about_ns(ns: u64) -> u64 {
    let step = match ns {
        0..10_000_000_000 => 100_000_000,
        10_000_000_000.. => 1_000_000_000,
    };
    ns.div_ceil(step).saturating_mul(step)
}

/// Time that the blocks of a run took so far, and that each further one takes.
struct BlockLengths {
    spent_ns: u64,
    blocks: u32,
    /// The next ones, as long as they are shorter than those after them, where arms take turns.
    short_ns: Vec<u64>,
    usual_ns: u64,
}

impl BlockLengths {
    /// Time of so many blocks in all.
    fn of(&self, blocks: u32) -> u64 {
        let further = blocks.saturating_sub(self.blocks) as usize;
        let short = self.short_ns.iter().take(further);
        let usual = further.saturating_sub(self.short_ns.len()) as u64;
        short.fold(
            self.spent_ns
                .saturating_add(self.usual_ns.saturating_mul(usual)),
            |sum, block| sum.saturating_add(*block),
        )
    }

    fn next_ns(&self) -> u64 {
        self.short_ns.first().copied().unwrap_or(self.usual_ns)
    }

    /// Budget that is advised for so many blocks: a tenth more, since blocks differ.
    fn budget_for(&self, blocks: u32) -> String {
        let ns = schedule::longest_time_ns(self.of(blocks));
        format_duration_ns(schedule::rounded_budget(ns))
    }

    /// Blocks that a budget has room for.
    fn within(&self, budget_ns: u64) -> u32 {
        let of_short = |short: usize| self.of(self.blocks.saturating_add(in_u32(short)));
        let short = (1..=self.short_ns.len()).take_while(|short| of_short(*short) <= budget_ns);
        let short = short.count();
        let usual = match short < self.short_ns.len() {
            true => 0,
            false => budget_ns.saturating_sub(of_short(short)) / self.usual_ns.max(1),
        };
        let further = in_u32(short).saturating_add(u32::try_from(usual).unwrap_or(u32::MAX));
        self.blocks.saturating_add(further)
    }

    /// Says that a budget does not hold the least number of blocks; none where it does, stretched
    /// if need be, or where it holds no second block, which is said after the first trial.
    fn too_few(&self, budget_ns: u64, least: u32) -> Option<String> {
        let holds_one = self.spent_ns.max(self.next_ns()) > budget_ns;
        if holds_one || self.of(least) <= schedule::longest_time_ns(budget_ns) {
            return None;
        }
        let [block, budget] = [about_ns(self.usual_ns), budget_ns].map(format_duration_ns);
        Some(format!(
            "a block takes about {block}, so the budget of {budget} holds {}, and {least} are the least \
             for an answer: `--budget {}` has room for them",
            self.within(budget_ns),
            self.budget_for(least)
        ))
    }
}

fn in_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Time of blocks over that of their trials, at least 1. The first block has what is done once, such as the boot of
/// a guest, so it counts only while there is no other.
fn time_around(lengths: &[[u64; 2]]) -> f64 {
    let usual = lengths.get(1..).filter(|usual| !usual.is_empty());
    let [took, trials] = usual
        .unwrap_or(lengths)
        .iter()
        .fold([0.0, 0.0], |sum, length| {
            [sum[0] + length[0] as f64, sum[1] + length[1] as f64]
        });
    match trials > 0.0 {
        true => (took / trials).max(1.0),
        false => 1.0,
    }
}

impl Run<'_> {
    /// Says in the results why they are no more.
    pub(super) fn warn_of_budget(&mut self) -> Result<(), RunError> {
        let least = schedule::least_blocks(self.experiment);
        let blocks = self.blocks();
        let (severity, of) = match blocks < least {
            true => (Severity::Caution, format!("{blocks} of at least {least}")),
            false => (Severity::Note, blocks.to_string()),
        };
        let budget_ns = self.experiment.stop.budget_ns.unwrap_or_default();
        let budget = format_duration_ns(budget_ns);
        let warning = Warning {
            severity,
            what: format!("{BUDGET_ENDED} {budget} ended the run after {of} blocks."),
            remedy: self.how_to_extend(&self.block_lengths()),
        };
        Ok(self.writer.add_warnings(vec![warning])?)
    }

    /// Says after the first trial that counts, and not when the budget has long passed, that
    /// one block takes more than all of it.
    pub(super) fn say_if_too_long(&mut self) {
        // A block of each machine is as long, and who waits for all of them sees one warning.
        let budget = self.experiment.stop.budget_ns;
        let Some(budget) = budget.filter(|_| self.pool.is_none()) else {
            return;
        };
        let mut counting = self.trials.iter().filter(|trial| trial.is_ok());
        let (Some(first), None) = (counting.next(), counting.next()) else {
            return;
        };
        let trial = first.result.elapsed_ns;
        let trials = self.plan.cells.len() * self.experiment.arms.len();
        let block = trial.saturating_mul(trials as u64);
        if block <= budget {
            return;
        }
        let lengths = self.lengths_after(block, 1);
        let least = schedule::least_blocks(self.experiment);
        let [trial, block] = [trial, block].map(|ns| format_duration_ns(about_ns(ns)));
        let budget = format_duration_ns(budget);
        let what = format!(
            "One trial takes {trial}, so a block takes about {block}, and the budget is {budget}: the run \
             ends after its first block. `--budget {}` has room for {least}, the least for an answer.",
            lengths.budget_for(least)
        );
        (self.sink)(Event::TooLong { what: &what });
    }

    /// Says after the first block, whose length is known then, that the budget holds fewer than the
    /// least number of blocks.
    pub(super) fn say_if_too_few(&mut self, block: u32) {
        let budget = self.experiment.stop.budget_ns;
        let is_over = self.decided.len() == self.plan.cells.len();
        let Some(budget) = budget.filter(|_| block == 1 && self.pool.is_none() && !is_over) else {
            return;
        };
        let least = schedule::least_blocks(self.experiment);
        if self.experiment.stop.max_blocks < least {
            return;
        }
        if let Some(what) = self.block_lengths().too_few(budget, least) {
            (self.sink)(Event::TooLong { what: &what });
        }
    }

    /// The command that gives a run room for its least number of blocks, for those that are likely to decide
    /// what is open, or, where that is not known, for as many again.
    fn how_to_extend(&self, lengths: &BlockLengths) -> String {
        let least = schedule::least_blocks(self.experiment);
        let open = self.open_comparisons.iter();
        let open = open.filter(|open| !self.is_set_aside(&open.cell));
        let needed = open.filter_map(|open| open.blocks_needed).max();
        let needed = needed.filter(|needed| (lengths.blocks..=MANY_BLOCKS).contains(needed));
        let blocks = match lengths.blocks < least {
            true => least,
            false => needed.unwrap_or(lengths.blocks.saturating_mul(2)),
        };
        format!(
            "Go on with `schedlab run --resume {} --budget {}` (about {blocks} blocks in all). Or take \
             fewer loads, arms or workloads.",
            self.writer.dir().display(),
            lengths.budget_for(blocks)
        )
    }

    /// Blocks that have begun.
    fn blocks(&self) -> u32 {
        let last = self.trials.iter().map(|t| t.place.block).max();
        self.pool
            .map_or(last.unwrap_or(0), |pool| pool.count_blocks())
    }

    fn block_lengths(&self) -> BlockLengths {
        self.lengths_after(model::whole_nanos(self.elapsed()), self.blocks())
    }

    /// Lengths where so many blocks took so long.
    fn lengths_after(&self, spent_ns: u64, blocks: u32) -> BlockLengths {
        let mean_ns = spent_ns / u64::from(blocks.max(1));
        let usual_ns = self.block_ns(u32::MAX).unwrap_or(mean_ns);
        let further = blocks.saturating_add(1)..=self.experiment.stop.max_blocks;
        let further = further.map_while(|block| self.block_ns(block));
        BlockLengths {
            spent_ns,
            blocks,
            short_ns: further.take_while(|ns| *ns < usual_ns).collect(),
            usual_ns,
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.earlier.saturating_add(self.started.elapsed())
    }

    /// At most: to the last block, or to the end of the budget.
    pub(super) fn time_left(&self, block: u32) -> Option<u64> {
        let by_blocks = self.block_ns(block).map(|_| {
            let lengths = self.lengths_after(0, block);
            lengths.of(self.experiment.stop.max_blocks)
        });
        let by_budget = self
            .end_of_budget()
            .map(|end| end.saturating_sub(model::whole_nanos(self.elapsed())));
        match (by_blocks, by_budget) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Time that a block of this number takes: the mean trial of every cell that goes on, by its arms.
    pub(super) fn block_ns(&self, block: u32) -> Option<u64> {
        let going_on = (0..self.plan.cells.len()).filter(|cell| self.goes_on(*cell));
        let times: Option<Vec<u64>> = going_on.map(|c| self.cell_of_block_ns(c, block)).collect();
        Some(times?.into_iter().fold(0, u64::saturating_add))
    }

    /// Time of a cell in a block: that of its trials, and what comes between them.
    pub(super) fn cell_of_block_ns(&self, cell: usize, block: u32) -> Option<u64> {
        let arms = self.experiment.arms.len() as u64;
        let trials = self.mean_trial_ns(cell, block)?.saturating_mul(arms);
        Some(model::truncate_to_u64(
            trials as f64 * time_around(&self.lengths),
        ))
    }

    /// Keeps how long a whole block took, with boots, restarts, pauses and what was repeated.
    pub(super) fn keep_length(&mut self, first: usize, took: Duration) {
        let counted = self.trials[first..].iter().filter(|trial| trial.is_ok());
        let trials = counted.map(|trial| trial.result.elapsed_ns);
        let trials = trials.fold(0, u64::saturating_add);
        self.lengths.push([model::whole_nanos(took), trials]);
    }

    /// Time to the end of the budget.
    pub(super) fn budget_left(&self) -> Option<u64> {
        let end = self.end_of_budget()?;
        Some(end.saturating_sub(model::whole_nanos(self.elapsed())))
    }

    /// Mean time of the trials of a cell so far. Where arms take turns the process of this block is as long as its
    /// turns, and what is around them is that of those so far.
    fn mean_trial_ns(&self, cell: usize, block: u32) -> Option<u64> {
        let here = || self.trials.iter().filter(|t| t.place.cell == cell);
        let count = here().count() as u64;
        let sum = |of: &dyn Fn(&Trial) -> u64| here().map(of).fold(0, u64::saturating_add);
        let turns_ns = |t: &Trial| {
            let of_turns = t.result.windows.as_ref().map(Windows::turns_ns);
            of_turns.unwrap_or_else(|| self.turns_ns(cell, t.place.block))
        };
        // The arms of a process have equal shares of its time, and the baseline has half of its turns.
        let around_ns = sum(&|t| t.result.elapsed_ns).saturating_sub(sum(&turns_ns));
        let around_ns = around_ns.checked_div(count)?;
        Some(around_ns.saturating_add(self.turns_ns(cell, block)))
    }

    /// Share of one arm in the turns of a block; 0 where each trial has a process of its own.
    pub(super) fn turns_ns(&self, cell: usize, block: u32) -> u64 {
        let workload = &self.experiment.workloads[self.plan.cells[cell].workload];
        let arms = self.experiment.arms.len().max(1) as u64;
        self.turn_lengths(cell).map_or(0, |lengths| {
            schedule::turns_ns(self.experiment, workload, block, lengths) / arms
        })
    }

    fn end_of_budget(&self) -> Option<u64> {
        let budget = self.experiment.stop.budget_ns?;
        Some(match self.is_stretched {
            true => schedule::longest_time_ns(budget),
            false => budget,
        })
    }

    /// Nothing is repeated any more: the time is over, or a rail was hit.
    pub(super) fn budget_is_spent(&self) -> bool {
        if self.trials.last().is_some_and(super::rails::has_hit) {
            return true;
        }
        let end = self.end_of_budget();
        end.is_some_and(|end| model::whole_nanos(self.elapsed()) >= end)
    }

    /// The next block would not end within the budget. The first one always runs, and a little more than the
    /// budget is taken where that is enough for the least number of blocks: without them there is no answer.
    pub(super) fn out_of_budget(&mut self) -> Result<bool, RunError> {
        let (Some(budget), Some(_)) = (self.experiment.stop.budget_ns, self.block_ns(u32::MAX))
        else {
            return Ok(false);
        };
        let lengths = self.block_lengths();
        let least = schedule::least_blocks(self.experiment);
        if lengths.of(lengths.blocks.saturating_add(1)) <= budget {
            return Ok(false);
        }
        if lengths.blocks >= least || lengths.of(least) > schedule::longest_time_ns(budget) {
            return Ok(true);
        }
        self.stretch(budget, least)?;
        Ok(false)
    }

    /// Says in the results, once, that the run takes more than its budget.
    fn stretch(&mut self, budget: u64, least: u32) -> Result<(), RunError> {
        if std::mem::replace(&mut self.is_stretched, true) {
            return Ok(());
        }
        let longest = schedule::longest_time_ns(budget);
        let [budget, longest] = [budget, longest].map(format_duration_ns);
        let what = format!(
            "{STRETCHED} up to {longest} in place of its budget of {budget}: {least} blocks are the least for an \
             answer, and they end within a tenth more."
        );
        (self.sink)(Event::TooLong { what: &what });
        let (severity, remedy) = (Severity::Note, String::new());
        Ok(self.writer.add_warnings(vec![Warning {
            severity,
            what,
            remedy,
        }])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_time_around_trials_is_that_of_the_blocks_after_the_first_one() {
        assert_eq!(time_around(&[]), 1.0);
        assert_eq!(time_around(&[[90, 30]]), 3.0);
        assert_eq!(time_around(&[[90, 30], [45, 30], [30, 20]]), 1.5);
        assert_eq!(
            time_around(&[[90, 30], [0, 30]]),
            1.0,
            "trials are in their block"
        );
        assert_eq!(time_around(&[[90, 0]]), 1.0);
    }

    #[test]
    fn a_budget_without_room_for_the_least_blocks_is_said_with_one_that_has() {
        let lengths = BlockLengths {
            spent_ns: 40 * SECOND,
            blocks: 1,
            short_ns: Vec::new(),
            usual_ns: 35 * SECOND,
        };
        let said = lengths.too_few(120 * SECOND, 5).unwrap();
        assert!(
            said.contains("the budget of 2m holds 3, and 5 are"),
            "{said}"
        );
        assert!(said.contains("`--budget 3m20s`"), "{said}");
        assert_eq!(lengths.too_few(180 * SECOND, 5), None);
        assert_eq!(lengths.too_few(165 * SECOND, 5), None, "it is stretched");
        assert_eq!(lengths.too_few(30 * SECOND, 5), None);
    }
    #[test]
    fn short_blocks_come_before_the_usual_ones() {
        let lengths = BlockLengths {
            spent_ns: SECOND,
            blocks: 1,
            short_ns: vec![2 * SECOND, 3 * SECOND],
            usual_ns: 4 * SECOND,
        };
        let times: Vec<u64> = (1..=5).map(|blocks| lengths.of(blocks) / SECOND).collect();
        assert_eq!(times, [1, 3, 6, 10, 14]);
        let held: Vec<u32> = [1, 3, 5, 6, 13, 14]
            .iter()
            .map(|s| lengths.within(s * SECOND))
            .collect();
        assert_eq!(held, [1, 2, 2, 3, 4, 5]);
    }
}
