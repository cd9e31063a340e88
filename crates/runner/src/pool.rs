//! Runs of one experiment on several machines at the same time, which stop when all of their blocks
//! together have decided.
//!
//! Each machine has a run of its own: its own order of arms, calibrations and results. What they share
//! is here: the trials, by which a cell is decided, and the number of blocks that are left. A block is
//! taken by whichever machine is free. The test of a comparison holds at every look and does not
//! depend on the order of the blocks, so it holds where they come from many machines
//! (`docs/statistics.md`).

use crate::cells::{CellState, Decisions, GivenUp};
use model::{Experiment, Plan, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Trials of all machines, and the blocks that are left for them.
#[derive(Debug)]
pub struct Pool<'a> {
    decisions: Decisions<'a>,
    most: usize,
    grace: Duration,
    shared: Mutex<Shared>,
}

/// A block may take this much longer than twice the longest one before others measure it: its machine
/// may wait for its place in the queue of a cluster.
const GRACE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Shared {
    /// Machines that have or had a part, and those of them that are there.
    members: usize,
    present: usize,
    /// Number here of a block, by the machine that has it and its number there.
    blocks: BTreeMap<(usize, u32), u32>,
    /// With the numbers of blocks here, and without what only one trial's reader needs.
    trials: Vec<Trial>,
    /// Blocks under way, by machine and number there, with their beginnings.
    open: BTreeMap<(usize, u32), Instant>,
    /// The longest block that came to its end.
    longest: Option<Duration>,
    /// The machines that have given up an arm in a cell.
    given_up: BTreeMap<(usize, usize), BTreeSet<usize>>,
    last: u32,
    /// The last look, and the number of trials at it.
    looked: Option<(usize, Vec<CellState>)>,
}

/// A look is made when the trials are more by this part: many machines end many blocks, each look is
/// at all of them, and none of them tells much more than the one before.
const BETWEEN_LOOKS: usize = 64;

/// Answer to a machine that asks for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The block is its own.
    Yes,
    /// None is left, but one that is under way elsewhere may come back.
    NotYet,
    /// There will be none.
    No,
}

/// A machine in the pool.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    pool: &'a Pool<'a>,
    index: usize,
}

impl<'a> Pool<'a> {
    /// An empty pool. All members have this experiment but for its seed and its machine, and plans
    /// with the cells of this one.
    pub fn new(experiment: &'a Experiment, plan: &'a Plan) -> Self {
        Pool {
            decisions: Decisions::of_machines(experiment, plan),
            most: experiment.stop.max_blocks as usize,
            grace: GRACE,
            shared: Mutex::default(),
        }
    }

    /// The same with another time that a block may take beyond twice the longest.
    pub fn with_grace(self, grace: Duration) -> Self {
        Pool { grace, ..self }
    }

    /// A machine, with the trials that it has already.
    pub fn add_member(&'a self, done: &[Trial]) -> Member<'a> {
        self.shared().present += 1;
        self.with(done, |_| true)
    }

    /// A machine that was part of the run and is not there now: a block that it has not ended is
    /// another's.
    pub fn add_absent(&'a self, done: &[Trial]) {
        let good = |block: u32| {
            let of_block = done.iter().filter(|t| t.is_ok() && t.place.block == block);
            of_block.count()
        };
        let last = done.iter().map(|t| t.place.block).max().unwrap_or(0);
        let whole = match last {
            0 | 1 => self.decisions.places_per_block(),
            last => good(last - 1),
        };
        let is_whole = good(last) >= whole;
        self.with(done, |block| block < last || is_whole);
    }

    fn with(&'a self, done: &[Trial], counts: impl Fn(u32) -> bool) -> Member<'a> {
        let index = {
            let mut shared = self.shared();
            shared.members += 1;
            shared.members - 1
        };
        let member = Member { pool: self, index };
        // One without a trial that counts was given back.
        let good: BTreeSet<u32> = done
            .iter()
            .filter(|trial| trial.is_ok() && counts(trial.place.block))
            .map(|trial| trial.place.block)
            .collect();
        for trial in done.iter().filter(|t| good.contains(&t.place.block)) {
            member.add_trial(trial);
        }
        member
    }

    /// Time after which a block under way is late; `None` until one has come to its end.
    pub fn patience(&self) -> Option<Duration> {
        self.shared().patience(self.grace)
    }

    /// True when there is nothing left to begin.
    pub fn is_over(&self) -> bool {
        let is_left = self.shared().blocks.len() < self.most;
        !is_left || self.is_decided()
    }

    /// True when no more blocks are needed.
    pub fn is_decided(&self) -> bool {
        let shared = self.shared();
        let states = self
            .decisions
            .cell_states(&shared.trials, &shared.given_up());
        states.iter().all(|state| *state == CellState::Decided)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Number of a machine's block within the whole pool.
    fn number(&mut self, member: usize, block: u32) -> u32 {
        if let Some(number) = self.blocks.get(&(member, block)) {
            return *number;
        }
        self.last += 1;
        self.blocks.insert((member, block), self.last);
        self.last
    }

    fn patience(&self, grace: Duration) -> Option<Duration> {
        Some(self.longest?.saturating_mul(2).saturating_add(grace))
    }

    /// Blocks that are late are no longer their machines'. One that ends all the same is one more.
    fn give_back_late(&mut self, grace: Duration) {
        let Some(patience) = self.patience(grace) else {
            return;
        };
        let open = self.open.iter();
        let late = open.filter(|(_, since)| since.elapsed() > patience);
        let late: Vec<(usize, u32)> = late.map(|(place, _)| *place).collect();
        for place in late {
            self.give_back(place);
        }
    }

    fn give_back(&mut self, place: (usize, u32)) {
        self.open.remove(&place);
        if let Some(number) = self.blocks.remove(&place) {
            self.trials.retain(|trial| trial.place.block != number);
        }
    }

    /// Given up by all machines that are there. Another one may yet find that it works.
    fn given_up(&self) -> GivenUp {
        let given_up = self.given_up.iter();
        let by_all = given_up.filter(|(_, members)| members.len() >= self.present);
        by_all.map(|(pair, _)| *pair).collect()
    }
}

impl Member<'_> {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.pool.shared()
    }

    /// Takes a block for this machine. A block that it has begun is its own.
    pub(crate) fn take_block(&self, block: u32) -> Taken {
        let mut shared = self.shared();
        let place = (self.index, block);
        if shared.blocks.len() >= self.pool.most {
            shared.give_back_late(self.pool.grace);
        }
        let is_left = shared.blocks.len() < self.pool.most;
        if is_left || shared.blocks.contains_key(&place) {
            shared.number(self.index, block);
            shared.open.insert(place, Instant::now());
            return Taken::Yes;
        }
        match shared.open.is_empty() {
            true => Taken::No,
            false => Taken::NotYet,
        }
    }

    /// The block has come to its end.
    pub(crate) fn end_block(&self, block: u32) {
        let mut shared = self.shared();
        let since = shared.open.remove(&(self.index, block));
        shared.longest = shared.longest.max(since.map(|since| since.elapsed()));
    }

    /// Gives a block back that came to no end, for another machine.
    pub(crate) fn give_back_block(&self, block: u32) {
        self.shared().give_back((self.index, block));
    }

    /// A trial has ended.
    pub(crate) fn add_trial(&self, trial: &Trial) {
        let mut shared = self.shared();
        let block = shared.number(self.index, trial.place.block);
        let mut slim = trial.clone();
        slim.place.block = block;
        // The rest is in the results of the machine, and there may be many machines.
        slim.result.evidence = Default::default();
        shared.trials.push(slim);
    }

    /// An arm that never worked on this machine.
    pub(crate) fn gave_up(&self, given_up: &GivenUp) {
        let mut shared = self.shared();
        for pair in given_up {
            shared.given_up.entry(*pair).or_default().insert(self.index);
        }
    }

    /// The state of every cell after the blocks of all machines, or nearly all.
    pub(crate) fn cell_states(&self) -> Vec<CellState> {
        let mut shared = self.shared();
        let count = shared.trials.len();
        match &shared.looked {
            Some((at, states)) if count.saturating_sub(*at) < at / BETWEEN_LOOKS => states.clone(),
            _ => {
                let states = self
                    .pool
                    .decisions
                    .cell_states(&shared.trials, &shared.given_up());
                shared.looked = Some((count, states.clone()));
                states
            }
        }
    }

    /// Blocks that were begun, on all machines.
    pub(crate) fn count_blocks(&self) -> u32 {
        u32::try_from(self.shared().blocks.len()).unwrap_or(u32::MAX)
    }
}
