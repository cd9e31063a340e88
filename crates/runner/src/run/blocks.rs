//! The blocks of a run, one after the other, and those of them that another machine takes.

use super::{Outcome, Run};
use crate::Event;
use crate::RunError;
use crate::pool::Taken;
use model::{PlannedTrial, Severity, Trial, Warning, format_duration_ns};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two looks for a block that another machine gives back.
const LOOK_UP: Duration = Duration::from_millis(200);

/// End of a way through all blocks of the plan.
enum Pass {
    /// Nothing more is wanted.
    Whole,
    /// The budget, or others, ended it, or all is decided.
    Ended,
    Interrupted,
}

impl Run<'_> {
    pub(super) fn all_blocks(&mut self) -> Result<Outcome, RunError> {
        loop {
            match self.go_through_plan()? {
                Pass::Interrupted => return Ok(self.interrupt()),
                // What others left of the budget may be enough for a cell that was set aside.
                Pass::Whole if self.take_up_again()? => {}
                Pass::Whole | Pass::Ended => break,
            }
        }
        self.forget_what_was_decided()?;
        self.connection = None;
        self.beside = None;
        Ok(Outcome::Done)
    }

    /// The blocks of the plan that are wanted.
    fn go_through_plan(&mut self) -> Result<Pass, RunError> {
        let plan = self.plan;
        for block in plan.trials.chunk_by(|a, b| a.block == b.block) {
            if self.decided.len() == plan.cells.len() {
                return Ok(Pass::Ended);
            }
            if self.pool.is_some() && !self.can_compare() {
                self.warn_of_idleness()?;
                return Ok(Pass::Ended);
            }
            if !block.iter().any(|place| self.is_wanted(place)) {
                continue;
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(Pass::Interrupted);
            }
            if self.out_of_budget()? {
                self.warn_of_budget()?;
                return Ok(Pass::Ended);
            }
            let number = block[0].block;
            if !self.takes(number) {
                return Ok(Pass::Ended);
            }
            let (before, began) = (self.trials.len(), Instant::now());
            let whole = self.block(block);
            if matches!(whole, Ok(true)) {
                self.keep_length(before, began.elapsed());
            }
            if let Some(pool) = self.pool {
                let has_good = self.trials[before..].iter().any(Trial::is_ok);
                match matches!(whole, Ok(true)) && has_good {
                    true => pool.end_block(number),
                    false => pool.give_back_block(number),
                }
            }
            if !whole? {
                return Ok(Pass::Interrupted);
            }
            self.look_at_cells();
            self.set_hopeless_aside()?;
            self.report_progress(number);
        }
        Ok(Pass::Whole)
    }

    /// Takes a block from those of all machines, where there are others. The last ones are waited
    /// for: a machine may be lost in the middle of one.
    fn takes(&mut self, block: u32) -> bool {
        let Some(pool) = self.pool else {
            return true;
        };
        loop {
            match pool.take_block(block) {
                Taken::Yes => return true,
                Taken::No => return false,
                Taken::NotYet if self.interrupted.load(Ordering::Relaxed) => return false,
                Taken::NotYet => std::thread::sleep(LOOK_UP),
            }
            self.look_at_cells();
            if self.decided.len() == self.plan.cells.len() {
                return false;
            }
        }
    }

    /// Is there an open cell in which this machine could compare arms? One on which the baseline, or
    /// everything else, never works must not take blocks from the others.
    fn can_compare(&self) -> bool {
        let (arms, baseline) = (self.experiment.arms.len(), self.experiment.baseline);
        let works = |cell, arm| !self.given_up.contains(&(cell, arm));
        let others = |cell| (0..arms).any(|arm| arm != baseline && works(cell, arm));
        let mut open = (0..self.plan.cells.len()).filter(|cell| !self.decided.contains(cell));
        open.any(|cell| works(cell, baseline) && (arms == 1 || others(cell)))
    }

    /// The trials of a block that are wanted; `false` when interrupted or ended by a rail.
    fn block(&mut self, block: &[PlannedTrial]) -> Result<bool, RunError> {
        for place in block {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if !self.is_wanted(place) {
                continue;
            }
            let is_other = self.last_cell.is_some_and(|last| last != place.cell);
            if is_other && !self.pause() {
                return Ok(false);
            }
            self.last_cell = Some(place.cell);
            if !self.attempts(place)? || self.is_railed()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Leaves the machine alone for as long as the experiment says; `false` when interrupted.
    fn pause(&mut self) -> bool {
        let pause_ns = self.experiment.pause_ns;
        let step = format!(
            "pausing for {} before the next cell",
            format_duration_ns(pause_ns)
        );
        self.rest_for(Duration::from_nanos(pause_ns), &step)
    }

    /// Leaves the machine alone for so long; `false` when interrupted.
    pub(super) fn rest_for(&mut self, rest: Duration, step: &str) -> bool {
        if rest.is_zero() {
            return true;
        }
        (self.sink)(Event::Step { step });
        let until = Instant::now() + rest;
        while !self.interrupted.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK_UP));
        }
        false
    }

    /// Says in the results that a machine left the blocks to the others.
    fn warn_of_idleness(&mut self) -> Result<(), RunError> {
        let warning = Warning {
            severity: Severity::Serious,
            what: "A machine took no more blocks: in the cells that are open the baseline, or all other \
                   arms, never worked there."
                .to_owned(),
            remedy: "See why its trials failed, in nodes/.".to_owned(),
        };
        Ok(self.writer.add_warnings(vec![warning])?)
    }
}
