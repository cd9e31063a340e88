//! One run: every trial of the plan that is still wanted.

mod blocks;
mod budget;
mod calibration;
mod capacity;
mod options;
mod pilot;
mod snapshot;
mod sustained;
mod turns;

pub use budget::{says_budget_ended, says_of_budget};
pub use options::{Options, Outcome};

use crate::apart::Apart;
use crate::cells::{CellState, Decisions, GivenUp, OpenComparison, never_worked};
use crate::check::{has_loads_apart, needed_boot, only_arms_of};
use crate::connection::{Connection, with_last_lines};
use crate::mixing;
use crate::pool::Member;
use crate::trial::{TrialEnd, UnderWay, add_hidden, add_out_of_memory, by_our_clock, void_result};
use crate::{Event, Progress, RunError};
use machines::{Boot, Saved, Target, TargetError};
use model::trace::WORST_FILE;
use model::{
    Build, Calibration, Experiment, Fact, Machine, Place, Plan, PlannedTrial, Problem, Reset,
    Severity, Side, Start, Trial, TrialFile, TrialResult, TrialSpec, TrialState, Warning, Workload,
};
use results::{TrialFiles, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Longest rest of a machine that was put back to its snapshot, unless its arm takes longer.
const MOST_REST_NS: u64 = 10_000_000_000;

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
        half_done: mixing::half_done(&options.done, experiment),
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
        given_up: never_worked(&options.done, experiment.stop.max_attempts),
        open_comparisons: Vec::new(),
        is_stretched: false,
        pool: options.pool,
        left_out: options.left_out,
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
    /// Does it take a little more than its budget, for the least number of blocks?
    is_stretched: bool,
    pool: Option<Member<'a>>,
}

/// Results of one attempt, one for each arm that it measured, with their files.
type Attempt = Vec<(TrialResult, TrialFiles)>;

impl<'a> Run<'a> {
    /// Checks what can be known without a boot, then the first agent that a trial needs. Other
    /// kernels are booted, and checked, when their first trial comes.
    fn prepare(&mut self) -> Result<(), RunError> {
        let problems = self.target.check(self.experiment);
        if !problems.is_empty() {
            return Err(RunError::Unmet(problems));
        }
        self.open_controller()?;
        self.look_at_cells();
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

    /// An agent on a kernel that comes up for the first time since the run was started: it must
    /// have what its arms need, and is put on record.
    fn open_and_look(&mut self, boot: &Boot) -> Result<(), RunError> {
        let side = self.side();
        let experiment = only_arms_of(self.experiment, boot);
        let ask =
            |connection: &mut Connection| match connection.check_experiment(&experiment, side)? {
                problems if problems.is_empty() => connection.probe_system(),
                problems => Err(RunError::Unmet(problems)),
            };
        let (connection, mut system) =
            Connection::open_and_ask(self.target, boot, &self.build, ask)?;
        self.connection = Some(connection);
        system.facts.extend(self.target.facts());
        self.record(Machine {
            kernel: boot.kernel.clone(),
            system,
        })?;
        Ok(self.writer.add_warnings(self.target.warnings())?)
    }

    /// The part of the checks that the target's agent makes.
    fn side(&self) -> Side {
        match self.controller {
            Some(_) => Side::Target,
            None => Side::Both,
        }
    }

    /// A machine is stored only if its trials may stand beside those that are there.
    fn record(&mut self, machine: Machine) -> Result<(), RunError> {
        let mut differences = Vec::new();
        if self.trials.iter().any(Trial::is_ok) {
            let earlier = self.writer.earlier_starts();
            if self.looked_at.is_empty() {
                differences.extend(mixing::other_build(earlier, &self.build));
            }
            differences.extend(mixing::other_machine(earlier, &machine));
        }
        self.allow(differences)?;
        if self.start > 0 {
            let starts = self.writer.earlier_starts();
            let of_start = starts.last().map(|start| &start.machines[..]);
            let mut known = of_start.unwrap_or_default().iter();
            return match known.any(|earlier| earlier.kernel == machine.kernel) {
                true => Ok(()),
                false => Ok(self.writer.add_machine(machine)?),
            };
        }
        self.begin(vec![machine])
    }

    fn begin(&mut self, machines: Vec<Machine>) -> Result<(), RunError> {
        self.start = self.writer.add_start(Start {
            began: self.began.clone(),
            build: self.build.clone(),
            machines,
        })?;
        Ok(())
    }

    /// Ends the run where it would mix what differs, unless that was asked for; then the
    /// results say it.
    fn allow(&mut self, differences: Vec<Problem>) -> Result<(), RunError> {
        if !differences.is_empty() && !self.anyway {
            return Err(RunError::Mixed(differences));
        }
        let warnings = differences.iter().map(|difference| Warning {
            severity: Severity::Serious,
            what: format!(
                "The run went on although {} {}.",
                difference.object, difference.what
            ),
            remedy: "Start a new run: trials before and after the change are no repetitions."
                .to_owned(),
        });
        Ok(self.writer.add_warnings(warnings.collect())?)
    }

    fn measure_all(&mut self) -> Result<Outcome, RunError> {
        match self.find_rates()? && self.run_pilots()? {
            true => self.all_blocks(),
            false => Ok(self.interrupt()),
        }
    }

    /// Closing the connection makes the agent undo what is in force.
    fn interrupt(&mut self) -> Outcome {
        self.connection = None;
        self.beside = None;
        Outcome::Interrupted
    }

    fn is_wanted(&self, place: &PlannedTrial) -> bool {
        let given_up = |arm| self.given_up.contains(&(place.cell, arm));
        !self.decided.contains(&place.cell)
            && !self.left_out.contains(&place.cell)
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

    /// Tries a place of the plan until it counts; `false` when interrupted. Attempts that an
    /// interruption left over go on; a place that had all of them gets as many again.
    fn attempts(&mut self, place: &PlannedTrial) -> Result<bool, RunError> {
        let (first, last) = self.attempts_left(place);
        for attempt in first..=last {
            if attempt > first && self.budget_is_spent() {
                return Ok(true);
            }
            let (cell, arm) = self.names(place);
            (self.sink)(Event::TrialStarted {
                place,
                cell,
                arm,
                attempt,
            });
            let Some(measured) = self.attempt(place)? else {
                return Ok(false);
            };
            let places = self.places_of(place);
            for (place, (result, files)) in places.iter().zip(measured) {
                self.store(place, attempt, result, files)?;
            }
            if self.trials.last().is_some_and(Trial::is_ok) {
                self.say_if_too_long();
                return Ok(true);
            }
            if self.is_hopeless(place) {
                break;
            }
        }
        for place in self.places_of(place) {
            self.give_up_what_never_worked(&place);
        }
        Ok(true)
    }

    fn store(
        &mut self,
        place: &PlannedTrial,
        attempt: u32,
        result: TrialResult,
        mut files: TrialFiles,
    ) -> Result<(), RunError> {
        if self.start == 0 {
            // A first kernel that did not come up is a trial of a start without a machine.
            self.begin(Vec::new())?;
        }
        let (cell, arm) = self.names(place);
        let mut trial = Trial {
            place: place.clone(),
            cell: cell.to_owned(),
            arm: arm.to_owned(),
            attempt,
            start: self.start,
            result,
        };
        self.hold_to_units(&mut trial);
        self.allow(mixing::other_scheduler(&self.trials, &trial))?;
        let lesser = self.keep_worst(&trial, &mut files);
        self.writer.add_trial(&trial, &files)?;
        if let Some(lesser) = lesser {
            self.writer.remove_trace(&self.trials[lesser])?;
        }
        (self.sink)(Event::TrialEnded { trial: &trial });
        if let Some(pool) = self.pool {
            pool.add_trial(&trial);
        }
        self.trials.push(trial);
        Ok(())
    }

    /// Fails a trial whose figures have another unit than those of the trials so far.
    fn hold_to_units(&self, trial: &mut Trial) {
        let workload = |trial: &Trial| self.plan.cells[trial.place.cell].workload;
        let alike = self
            .trials
            .iter()
            .filter(|t| workload(t) == workload(trial));
        let why = mixing::other_unit(alike, trial);
        if let (Some(why), TrialState::Ok) = (why, &trial.result.state) {
            trial.result.state = TrialState::Failed { why };
        }
    }

    /// Traces of an arm in a cell: the one of the worst latency is kept. Takes the new one
    /// away if it is not that, or gives the trial whose trace was until now.
    fn keep_worst(&self, trial: &Trial, files: &mut TrialFiles) -> Option<usize> {
        let place = |t: &Trial| (t.place.cell, t.place.arm);
        let took = |t: &Trial| t.result.trace.as_ref().map(|trace| trace.took_ns);
        if took(trial).is_none() {
            // It was sent before the trial came to nothing.
            files.kept.remove(WORST_FILE);
            return None;
        }
        let earlier = self.trials.iter().enumerate();
        let earlier = earlier.filter(|(_, t)| place(t) == place(trial) && took(t).is_some());
        let worst = earlier.max_by_key(|(index, t)| (took(t), std::cmp::Reverse(*index)));
        match worst {
            Some((_, worst)) if took(trial) <= took(worst) => {
                files.kept.remove(WORST_FILE);
                None
            }
            worst => worst.map(|(index, _)| index),
        }
    }

    /// Numbers of the first and the last attempt at a place.
    fn attempts_left(&self, place: &PlannedTrial) -> (u32, u32) {
        let most = self.experiment.stop.max_attempts;
        // One process is a trial of all arms that take turns in it, and a kill can come when only
        // the first of them is on disk.
        let places = self.places_of(place);
        let of_process = |t: &&Trial| places.iter().any(|p| p.index == t.place.index);
        let attempts = self.trials.iter().filter(of_process).map(|t| t.attempt);
        let tried = attempts.max().unwrap_or(0);
        let before = self.trials.iter().filter(|t| t.place.index == place.index);
        // One that counted may stand in a block that is measured again.
        let failed = before.fold(0, |failed: u32, trial| match trial.is_ok() {
            true => 0,
            false => failed + 1,
        });
        (tried + 1, tried + most - failed % most)
    }

    /// Did the last trial say that another attempt would end in the same way, where none has
    /// ended otherwise?
    fn is_hopeless(&self, place: &PlannedTrial) -> bool {
        let worked =
            |t: &Trial| (t.place.cell, t.place.arm) == (place.cell, place.arm) && t.is_ok();
        let last = self.trials.last();
        last.is_some_and(|trial| trial.result.for_good) && !self.trials.iter().any(worked)
    }

    fn names(&self, place: &PlannedTrial) -> (&'a str, &'a str) {
        let cell = &self.plan.cells[place.cell].name;
        (cell, &self.experiment.arms[place.arm].name)
    }

    /// An arm that never once worked in a cell is not tried all night.
    fn give_up_what_never_worked(&mut self, place: &PlannedTrial) {
        let (at, arm) = (place.cell, place.arm);
        let mut here = self.trials.iter().rev();
        let here = here
            .by_ref()
            .filter(|t| t.place.cell == at && t.place.arm == arm);
        let tried: Vec<&Trial> = here.collect();
        if tried.iter().any(|t| t.is_ok()) {
            return;
        }
        let why = tried.first().and_then(|t| t.result.state.why());
        let (cell, arm_name) = self.names(place);
        (self.sink)(Event::GaveUp {
            cell,
            arm: arm_name,
            why: why.unwrap_or_default(),
        });
        self.given_up.insert((at, arm));
    }

    /// One trial; `None` when interrupted.
    fn attempt(&mut self, place: &PlannedTrial) -> Result<Option<Attempt>, RunError> {
        let started = (Instant::now(), SystemTime::now());
        let end = match self.measure(place) {
            Err(RunError::Target(TargetError::Gone { why, tail })) => TrialEnd::Lost {
                why: with_last_lines(why, &tail),
                files: TrialFiles::default(),
            },
            end => end?,
        };
        let console = self.connection.as_mut().and_then(Connection::read_console);
        let (results, mut files) = match end {
            TrialEnd::Interrupted => return Ok(None),
            TrialEnd::Result {
                mut result,
                arms,
                files,
            } => match arms.is_empty() {
                true => {
                    add_out_of_memory(&mut result.state, console.as_deref().unwrap_or_default());
                    add_hidden(&mut result.state, |words| self.target.hidden_in(words));
                    (vec![*result], files)
                }
                false => (arms, files),
            },
            TrialEnd::Lost { why, files } => {
                (self.sink)(Event::Restarting { why: &why });
                // One that hangs left no last words of its own.
                let said = console.as_deref().filter(|_| !why.contains('\n'));
                let why = with_last_lines(why, said.unwrap_or_default());
                (vec![void_result(why, started)], files)
            }
        };
        if let Some(text) = console {
            files.texts.push(TrialFile {
                name: "console.log".to_owned(),
                text,
            });
        }
        let is_nothing =
            |result: &TrialResult| result.metrics.is_empty() && result.evidence.points.is_empty();
        if results.iter().all(is_nothing) {
            // Nothing was proven of this machine: the next trial gets a new agent.
            self.connection = None;
        }
        Ok(Some(turns::of_arms(
            results,
            files,
            self.places_of(place).len(),
        )))
    }

    fn measure(&mut self, place: &PlannedTrial) -> Result<TrialEnd, RunError> {
        if let Some(end) = self.connect(place)? {
            return Ok(end);
        }
        let Some(spec) = self.spec(place)? else {
            return Ok(TrialEnd::Interrupted);
        };
        // From here on they are of this trial.
        connected(&mut self.connection)?.host_readings();
        let began = SystemTime::now();
        let mut end = self.trial(spec)?;
        let connection = connected(&mut self.connection)?;
        if let TrialEnd::Result { result, arms, .. } = &mut end {
            by_our_clock(result, arms, began);
            result.metrics.extend(connection.host_readings());
            let facts = connection.machine_facts();
            arms.iter_mut().for_each(|arm| prove(arm, facts.clone()));
            prove(result, facts);
        }
        Ok(end)
    }

    /// All that the agent needs for a place of the plan; `None` when interrupted.
    fn spec(&mut self, place: &PlannedTrial) -> Result<Option<TrialSpec>, RunError> {
        let cell = &self.plan.cells[place.cell];
        let workload = &self.experiment.workloads[cell.workload];
        if self.is_apart(workload) && self.beside.is_none() {
            self.open_controller()?;
        }
        let Some(calibration) = self.find_calibration(place.cell)? else {
            return Ok(None);
        };
        let arm = &self.experiment.arms[place.arm];
        let load = cell.load.offered_load(&calibration);
        Ok(Some(TrialSpec {
            calibration,
            label: format!("{} b{} {}", cell.name, place.block, arm.name),
            seed: schedule::trial_seed(self.plan.seed, place),
            observe: self.experiment.observe.clone(),
            turns: self.turn_lengths(place.cell).and_then(|lengths| {
                schedule::plan_turns(self.experiment, self.plan, place, lengths)
            }),
            rest_ns: self.rest_ns(),
            ..TrialSpec::new(arm.clone(), workload.clone(), load)
        }))
    }

    /// Longest time that an arm took to be put in force so far, up to a limit, where every trial goes on
    /// from a snapshot: timers that are overdue come meanwhile, which would be an advantage of the arms
    /// that take long. The machine was at rest when it was saved, so that more than the limit adds nothing.
    fn rest_ns(&self) -> u64 {
        if !self.target.abilities().reset.has_snapshot() {
            return 0;
        }
        let counted = self.trials.iter().filter(|trial| trial.is_ok());
        let applied = counted.map(|trial| trial.result.evidence.applied_ns);
        applied.max().unwrap_or_default().min(MOST_REST_NS)
    }

    fn trial(&mut self, spec: TrialSpec) -> Result<TrialEnd, RunError> {
        let is_apart = self.is_apart(&spec.workload);
        let (target, sink) = (connected(&mut self.connection)?, &mut self.sink);
        let mut on_step = |step: &str| sink(Event::Step { step });
        let mut trial = UnderWay::new(self.interrupted, &mut on_step);
        if !is_apart {
            let ended = trial.run_whole(target, spec);
            return trial.finish_trial(ended);
        }
        let mut apart = Apart {
            trial: &mut trial,
            target,
            controller: connected(&mut self.beside)?,
            load_is_left: false,
        };
        let ended = apart.run_both(spec);
        if apart.load_is_left {
            // The end of the connection ends the load.
            self.beside = None;
        }
        trial.finish_trial(ended)
    }

    /// Does the load run on the controller?
    fn is_apart(&self, workload: &Workload) -> bool {
        self.controller.is_some() && workload.load_on == Place::Controller
    }

    /// An agent on the kernel that the place needs, fresh where the target resets. The end of
    /// the trial where its machine could not be made ready.
    fn connect(&mut self, place: &PlannedTrial) -> Result<Option<TrialEnd>, RunError> {
        let boot = needed_boot(&self.experiment.arms[place.arm]);
        let turn = match self.target.abilities().reset {
            Reset::None => 0,
            Reset::Block => place.block,
            Reset::Workload => self.first_of_workload(place) + 1,
            Reset::Trial => place.index + 1,
            Reset::Snapshot | Reset::BlockSnapshot => return self.go_on(place, boot),
        };
        let fits = self.in_use.as_ref() == Some(&(boot.clone(), turn));
        if fits && self.connection.is_some() {
            return Ok(None);
        }
        self.open(&boot, turn)?;
        Ok(None)
    }

    /// Index of the first trial of those that are neighbours of this one in its block and have the
    /// same workload and the same boot.
    fn first_of_workload(&self, place: &PlannedTrial) -> u32 {
        let workload = |at: &PlannedTrial| self.plan.cells[at.cell].workload;
        let kernel = |at: &PlannedTrial| &self.experiment.arms[at.arm].kernel;
        let is_alike = |at: &&PlannedTrial| {
            at.block == place.block
                && workload(at) == workload(place)
                && kernel(at) == kernel(place)
        };
        let before = self.plan.trials.iter().rev();
        let before = before.skip_while(|at| at.index > place.index);
        before
            .take_while(is_alike)
            .last()
            .map_or(place.index, |first| first.index)
    }

    fn open(&mut self, boot: &Boot, turn: u32) -> Result<(), RunError> {
        // The old one first: two must never share the machine.
        self.connection = None;
        (self.sink)(Event::Step {
            step: &self.target.opening_step(boot),
        });
        if self.looked_at.contains(boot) {
            self.connection = Some(Connection::open(self.target, boot, &self.build)?);
        } else {
            self.open_and_look(boot)?;
            self.looked_at.insert(boot.clone());
        }
        self.in_use = Some((boot.clone(), turn));
        Ok(())
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
            cells: self.plan.cells.len() - self.left_out.len(),
            open: self.open_comparisons.clone(),
            elapsed_ns: model::whole_nanos(self.elapsed()),
            left_ns: self.time_left(block),
        };
        (self.sink)(Event::BlockEnded { state: &state });
        self.say_if_too_few(block);
    }
}

fn connected(connection: &mut Option<Connection>) -> Result<&mut Connection, RunError> {
    connection.as_mut().ok_or_else(|| {
        RunError::Target(TargetError::Gone {
            why: "it was closed".to_owned(),
            tail: String::new(),
        })
    })
}

/// Adds what the target knows. A trial on a machine that its arm does not mean is void.
fn prove(result: &mut TrialResult, facts: Vec<Fact>) {
    result.evidence.facts.extend(facts);
    let why = result.evidence.find_disagreement();
    if let (TrialState::Ok, Some(why)) = (&result.state, why) {
        result.state = TrialState::Void { why };
        result.metrics.clear();
    }
}
