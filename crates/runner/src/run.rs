//! One run: every trial of the plan that is still wanted.

mod attempts;
mod blocks;
mod boots;
mod bounds;
mod budget;
mod calibration;
mod capacity;
mod endings;
mod futility;
mod options;
mod pilot;
mod rails;
mod snapshot;
mod steady_rate;
mod turns;

pub use budget::{says_budget_ended, says_of_budget};
pub use futility::find_set_aside;
pub use options::{Options, Outcome};

use crate::cells::{CellState, Decisions, GivenUp, OpenComparison};
use crate::check::{has_loads_apart, needed_boot};
use crate::connection::Connection;
use crate::pool::Member;
use crate::same_machine;
use crate::{Event, Progress, RunError};
use machines::{Boot, Saved, Target, TargetError};
use model::{Build, Calibration, Experiment, Plan, PlannedTrial, RailHit, Side, Trial};
use results::Writer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Run what is left of the plan.
pub fn run_plan(
    experiment: &Experiment,
    plan: &Plan,
    target: &mut dyn Target,
    writer: &mut Writer,
    options: Options,
    sink: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    let mut run = Run {
        decisions: Decisions::new(experiment, plan),
        half_done: same_machine::half_done(&options.done, experiment),
        start: match options.continues {
            true => u32::try_from(writer.earlier_starts().len()).unwrap_or(u32::MAX),
            false => 0,
        },
        began: options.began,
        looked_at: BTreeSet::new(),
        anyway: options.anyway,
        build: options.build.clone(),
        decided: BTreeSet::new(),
        started: Instant::now(),
        earlier: earlier(&options.done).saturating_add(options.away),
        connection: None,
        saved: BTreeMap::new(),
        controller: match options.controller {
            Some(controller) if target.abilities().apart => Some(controller),
            _ => None,
        },
        beside: None,
        in_use: None,
        last_cell: None,
        given_up: endings::find_given_up(experiment, &options.done),
        open_comparisons: Vec::new(),
        set_aside: BTreeSet::new(),
        lengths: Vec::new(),
        is_stretched: false,
        pool: options.pool,
        left_out: options.left_out,
        railed: None,
        experiment,
        plan,
        target,
        writer,
        interrupted: options.interrupted,
        trials: options.done,
        calibrations: options.calibrations,
        sink,
    };
    let outcome = run.prepare().and_then(|()| run.measure_all());
    match outcome {
        Err(RunError::Target(TargetError::Restarts(restart))) => {
            run.interrupt();
            Ok(Outcome::Restarts(restart))
        }
        Ok(Outcome::Done) => {
            if let Err(error) = run.target.leave_machine() {
                tracing::warn!("the machine is not as it was found: {error}");
            }
            Ok(Outcome::Done)
        }
        // What was being started or fetched was ended with it.
        Err(RunError::Target(_) | RunError::Unmet(_))
            if run.interrupted.load(Ordering::Relaxed) =>
        {
            Ok(run.interrupt())
        }
        outcome => outcome,
    }
}

fn earlier(done: &[Trial]) -> Duration {
    let times = done.iter().map(|t| t.result.elapsed_ns);
    Duration::from_nanos(times.fold(0, u64::saturating_add))
}

struct Run<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    target: &'a mut dyn Target,
    writer: &'a mut Writer,
    interrupted: &'a AtomicBool,
    sink: &'a mut dyn FnMut(Event),
    decisions: Decisions<'a>,
    /// Cells that need no more blocks.
    decided: BTreeSet<usize>,
    /// Finished trials, of earlier runs too.
    trials: Vec<Trial>,
    calibrations: BTreeMap<String, Calibration>,
    /// Number of this start; 0 until its first machine is on record.
    start: u32,
    began: String,
    /// Boots that have come up since this start.
    looked_at: BTreeSet<Boot>,
    /// Cell and block.
    half_done: BTreeSet<(usize, u32)>,
    anyway: bool,
    build: Build,
    started: Instant,
    /// Time that earlier runs of this plan spent.
    earlier: Duration,
    connection: Option<Connection>,
    /// Machines to go on from, by boot and workload.
    saved: BTreeMap<(Boot, usize), (u32, Saved)>,
    controller: Option<&'a mut dyn Target>,
    /// The agent on the controller, which runs loads.
    beside: Option<Connection>,
    /// Boot and turn (block, workload or trial, where the target resets) of the connection.
    in_use: Option<(Boot, u32)>,
    /// The cell of the trial before.
    last_cell: Option<usize>,
    /// Cells that this start leaves as they are.
    left_out: BTreeSet<usize>,
    /// Cell and arm that never once worked.
    given_up: GivenUp,
    open_comparisons: Vec<OpenComparison>,
    /// Cells that get no blocks, since those that are left would hardly decide them.
    set_aside: BTreeSet<usize>,
    /// Time of whole blocks of this start, each with that of those of its trials that count.
    lengths: Vec<[u64; 2]>,
    /// Does it take a little more than its budget, for the least number of blocks?
    is_stretched: bool,
    pool: Option<Member<'a>>,
    /// The rail that ends the run.
    railed: Option<RailHit>,
}

impl<'a> Run<'a> {
    /// Checks what can be known without a boot, then the first agent that a trial needs. Other
    /// kernels are booted, and checked, when their first trial comes.
    fn prepare(&mut self) -> Result<(), RunError> {
        let problems = self.target.check(self.experiment);
        if !problems.is_empty() {
            return Err(RunError::Unmet(problems));
        }
        self.take_calibrations()?;
        self.open_controller()?;
        self.look_at_cells();
        self.set_hopeless_aside()?;
        let plan = self.plan;
        let first = plan.trials.iter().find(|place| self.is_wanted(place));
        match (first, self.boot_of_search()) {
            (Some(_), Some(boot)) => self.open(&boot, 0)?,
            (Some(first), None) if self.target.abilities().reset.has_snapshot() => {
                self.open(&needed_boot(&self.experiment.arms[first.arm]), 0)?;
            }
            // A kernel that does not come up is for its trials to say.
            (Some(_), None) if self.target.abilities().reboots => {}
            (Some(first), None) => drop(self.connect(first)?),
            (None, _) => {}
        }
        let cpus = machines::known_cpus(&self.experiment.target);
        let mut warnings = schedule::lasting_warnings(self.experiment, cpus);
        warnings.extend(self.target.warnings());
        self.writer.add_warnings(warnings.clone())?;
        warnings.extend(schedule::short_budget(self.experiment, plan));
        (self.sink)(Event::Ready {
            warnings: &warnings,
        });
        Ok(())
    }

    /// The agent that runs loads here, where there are such loads: a new one must have what
    /// they need.
    fn open_controller(&mut self) -> Result<(), RunError> {
        let is_wanted = has_loads_apart(self.experiment, self.target);
        let Some(controller) = self.controller.as_mut().filter(|_| is_wanted) else {
            return Ok(());
        };
        let mut connection = Connection::open(*controller, &Boot::default(), &self.build)?;
        let problems = connection.check_experiment(self.experiment, Side::Controller)?;
        if !problems.is_empty() {
            return Err(RunError::Unmet(problems));
        }
        self.beside = Some(connection);
        Ok(())
    }

    fn measure_all(&mut self) -> Result<Outcome, RunError> {
        match self.find_rates()? && self.run_pilots()? && self.find_bounds()? {
            true => self.all_blocks(),
            false => Ok(self.interrupt()),
        }
    }

    /// Closing the connection makes the agent undo what is in force.
    fn interrupt(&mut self) -> Outcome {
        self.connection = None;
        self.beside = None;
        match self.railed.take() {
            Some(hit) => Outcome::Railed(hit),
            None => Outcome::Interrupted,
        }
    }

    fn is_wanted(&self, place: &PlannedTrial) -> bool {
        let given_up = |arm| self.given_up.contains(&(place.cell, arm));
        !self.decided.contains(&place.cell)
            && !self.left_out.contains(&place.cell)
            && !self.set_aside.contains(&place.cell)
            && !given_up(place.arm)
            && !given_up(self.experiment.baseline)
            && !self.is_done(place)
            && !self.is_spent(place)
    }

    /// Were all its attempts made in this start, over the boots in it?
    fn is_spent(&self, place: &PlannedTrial) -> bool {
        let mut here = self.trials.iter().rev();
        let here = here.by_ref().filter(|t| t.place.index == place.index);
        let failed = here.take_while(|t| !t.is_ok() && t.start == self.start);
        failed.count() >= self.experiment.stop.max_attempts as usize
    }

    fn is_done(&self, place: &PlannedTrial) -> bool {
        let again = self.half_done.contains(&(place.cell, place.block));
        let mut here = self.trials.iter().filter(|t| t.place.index == place.index);
        here.any(|t| t.is_ok() && (!again || t.start == self.start))
    }

    fn look_at_cells(&mut self) {
        self.open_comparisons.clear();
        let states = match self.pool {
            Some(pool) => {
                pool.gave_up(&self.given_up);
                pool.cell_states()
            }
            None => self.decisions.cell_states(&self.trials, &self.given_up),
        };
        let states = states.into_iter().enumerate();
        let left_out = &self.left_out;
        for (cell, state) in states.filter(|(cell, _)| !left_out.contains(cell)) {
            match state {
                CellState::Decided => {
                    self.decided.insert(cell);
                }
                CellState::Open(open) => self.open_comparisons.extend(open),
            }
        }
    }

    fn report_progress(&mut self, block: u32) {
        let block = self.pool.map_or(block, |pool| pool.count_blocks());
        let state = Progress {
            block,
            decided: self.decided.len(),
            set_aside: self.set_aside.len(),
            cells: self.plan.cells.len() - self.left_out.len(),
            open: self.open_comparisons.clone(),
            elapsed_ns: model::whole_nanos(self.elapsed()),
            left_ns: self.time_left(block),
        };
        (self.sink)(Event::BlockEnded { state: &state });
        self.say_if_too_few(block);
    }
}
