//! Cells that are set aside: the blocks that the run still has are not likely to decide them.
//!
//! Nothing is claimed of such a cell. It is *unknown*, as it is at the end of a budget, and what it would have
//! taken of the budget goes to the others.

use super::Run;
use crate::cells::{OpenComparison, complete_blocks};
use crate::{Event, RunError};
use model::{Plan, Severity, Warning};
use std::collections::BTreeMap;

/// Chance of a decision below which no more blocks are spent on a cell.
const LEAST_CHANCE: f64 = 0.05;
/// Words of the warning that a cell was set aside, behind its name.
const SET_ASIDE: &str = " was set aside after ";

/// The blocks after which cells were set aside, by the warnings of a run. Later ones of them may be missing.
pub fn find_set_aside(plan: &Plan, warnings: &[Warning]) -> BTreeMap<usize, u32> {
    let cells = plan.cells.iter().enumerate();
    let after = cells.filter_map(|(index, cell)| {
        let said = warnings.iter().filter_map(|w| blocks_before(w, &cell.name));
        Some((index, said.min()?))
    });
    after.collect()
}

/// The blocks after which this cell was set aside, if the warning says that it was.
fn blocks_before(warning: &Warning, cell: &str) -> Option<u32> {
    let rest = warning.what.strip_prefix(cell)?;
    let rest = rest.strip_prefix(SET_ASIDE)?;
    rest.split(' ').next()?.parse().ok()
}

impl Run<'_> {
    /// Is it measured in the next block?
    pub(super) fn goes_on(&self, cell: usize) -> bool {
        !self.decided.contains(&cell)
            && !self.left_out.contains(&cell)
            && !self.set_aside.contains(&cell)
    }

    pub(super) fn is_set_aside(&self, cell: &str) -> bool {
        let mut all = self.set_aside.iter();
        all.any(|index| self.plan.cells[*index].name == cell)
    }

    /// Sets cells aside that are not likely to be decided any more. The worst goes first: its share of the
    /// budget may be what the others need.
    pub(super) fn set_hopeless_aside(&mut self) -> Result<(), RunError> {
        // Machines that share their blocks have no common budget to look at.
        while self.pool.is_none() {
            let going_on = (0..self.plan.cells.len()).filter(|cell| self.goes_on(*cell));
            let chances = going_on.map(|cell| (cell, self.chance_of(cell, 0)));
            let worst = chances.min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((cell, _)) = worst.filter(|(_, chance)| *chance < LEAST_CHANCE) else {
                break;
            };
            self.set_aside.insert(cell);
            self.say_set_aside(cell)?;
        }
        Ok(())
    }

    /// Takes the likeliest of the cells up again that were set aside, where all that is left makes it likely
    /// enough; `false` where there is none.
    pub(super) fn take_up_again(&mut self) -> Result<bool, RunError> {
        let aside = self.set_aside.iter();
        let chances = aside.map(|cell| {
            let further_ns = self.cell_of_block_ns(*cell, u32::MAX).unwrap_or(0);
            (*cell, self.chance_of(*cell, further_ns))
        });
        let best = chances.max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((cell, _)) = best.filter(|(_, chance)| *chance >= LEAST_CHANCE) else {
            return Ok(false);
        };
        self.set_aside.remove(&cell);
        let what = "taken up again: the other cells left enough time";
        self.say_of(cell, what);
        Ok(true)
    }

    /// Warnings of cells that were decided in the end are outdated.
    pub(super) fn forget_what_was_decided(&mut self) -> Result<(), RunError> {
        let (plan, decided) = (self.plan, &self.decided);
        let names = decided.iter().map(|cell| plan.cells[*cell].name.as_str());
        Ok(self.writer.drop_warnings(|warning| {
            names
                .clone()
                .any(|name| blocks_before(warning, name).is_some())
        })?)
    }

    /// Chance, at most, that anything which is open in a cell is decided, if a block takes so much longer than the
    /// cells that go on; 1 before its least number of blocks, and with
    /// no block to save.
    fn chance_of(&self, cell: usize, further_ns: u64) -> f64 {
        let blocks = self.blocks_of(cell);
        let open: Vec<&OpenComparison> = self.open_in(cell).collect();
        if open.is_empty() || blocks < schedule::least_blocks(self.experiment) {
            return 1.0;
        }
        let more = self.blocks_left(blocks, further_ns);
        if more == 0 {
            // The run ends by its budget or its last block, and says so.
            return 1.0;
        }
        let more_alike = self.units_in(cell, blocks, blocks.saturating_add(more));
        let chance = |open: &OpenComparison| match &open.judged {
            Some(judged) => judge::chance_to_decide(judged, &self.experiment.stop, more_alike),
            None => 1.0,
        };
        open.into_iter().map(chance).sum::<f64>().min(1.0)
    }

    fn blocks_of(&self, cell: usize) -> u32 {
        let lost = self.given_up.iter().filter(|(c, _)| *c == cell).count();
        complete_blocks(cell, &self.trials, self.experiment.arms.len() - lost)
    }

    fn open_in(&self, cell: usize) -> impl Iterator<Item = &OpenComparison> {
        let name = &self.plan.cells[cell].name;
        let open = self.open_comparisons.iter();
        open.filter(move |open| open.cell == *name)
    }

    /// Blocks after those so far up to the last of these, in blocks that are like those so far: the first processes in
    /// which arms take turns are shorter than later ones.
    fn units_in(&self, cell: usize, blocks: u32, last: u32) -> u32 {
        let Some(mean) = self.mean_turns(cell, blocks) else {
            return last.saturating_sub(blocks);
        };
        let further = blocks.saturating_add(1)..=last;
        let further = further.map(|block| self.turns_ns(cell, block) as f64);
        let units = (further.sum::<f64>() / mean).round();
        u32::try_from(model::truncate_to_u64(units)).unwrap_or(u32::MAX)
    }

    /// Mean length of the turns of the first blocks; none where each trial has a process of its own.
    fn mean_turns(&self, cell: usize, blocks: u32) -> Option<f64> {
        let turns = (1..=blocks).map(|block| self.turns_ns(cell, block) as f64);
        Some(turns.sum::<f64>() / f64::from(blocks)).filter(|mean| *mean > 0.0)
    }

    /// Blocks in all where so many like those so far are needed.
    fn blocks_for(&self, cell: usize, blocks: u32, needed: u32) -> u32 {
        let Some(mean) = self.mean_turns(cell, blocks) else {
            return needed.max(blocks);
        };
        let usual = self.turns_ns(cell, u32::MAX) as f64;
        let more = f64::from(needed.saturating_sub(blocks)) * mean / usual;
        let more = model::truncate_to_u64(more.ceil());
        blocks.saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
    }

    /// Blocks that a cell with so many can still have.
    fn blocks_left(&self, blocks: u32, further_ns: u64) -> u32 {
        let by_plan = self.experiment.stop.max_blocks.saturating_sub(blocks);
        let (Some(left_ns), Some(block_ns)) = (self.budget_left(), self.block_ns(u32::MAX)) else {
            return by_plan;
        };
        let by_budget = left_ns / block_ns.saturating_add(further_ns).max(1);
        u32::try_from(by_budget).map_or(by_plan, |by_budget| by_budget.min(by_plan))
    }

    /// Says in the results why a cell has no further blocks, and what an answer would take.
    fn say_set_aside(&mut self, cell: usize) -> Result<(), RunError> {
        let (name, blocks) = (&self.plan.cells[cell].name, self.blocks_of(cell));
        let named = self.open_in(cell);
        let named: Vec<String> = named
            .map(|open| format!("{} of {}", open.metric, open.arm))
            .collect();
        let what = format!(
            "{blocks} blocks: the chance that those which are left decide {} is below 5 %; {}",
            named.join(", "),
            self.what_it_takes(cell, blocks)
        );
        self.say_of(cell, &format!("set aside after {what}"));
        let remedy = format!(
            "Go on with `schedlab run --resume {}` and a longer `--budget` or more `--max-blocks`.",
            self.writer.dir().display()
        );
        self.writer
            .drop_warnings(|warning| blocks_before(warning, name).is_some())?;
        Ok(self.writer.add_warnings(vec![Warning {
            severity: Severity::Note,
            what: format!("{name}{SET_ASIDE}{what}."),
            remedy,
        }])?)
    }

    /// `an answer would take about 90 blocks in all`.
    fn what_it_takes(&self, cell: usize, blocks: u32) -> String {
        let stop = &self.experiment.stop;
        let needed = self.open_in(cell).map(|open| {
            let needed = judge::units_needed(open.judged.as_ref()?, stop)?;
            Some(self.blocks_for(cell, blocks, needed))
        });
        let needed: Option<Vec<u32>> = needed.collect();
        match needed.and_then(|needed| needed.into_iter().max()) {
            Some(needed) => format!("an answer would take about {needed} blocks in all"),
            None => "an answer would take more blocks than can be told".to_owned(),
        }
    }

    fn say_of(&mut self, cell: usize, what: &str) {
        let cell = &self.plan.cells[cell].name;
        (self.sink)(Event::FoundOut { cell, what });
    }
}
