//! The attempts at a place of the plan: each measures, is proven, and is stored.

use super::turns::{SoFarLook, note_looks};
use super::{Run, bounds, turns};
use crate::connection::{Connection, with_last_lines};
use crate::controller_load::Apart;
use crate::death::OpenWindow;
use crate::network;
use crate::same_machine;
use crate::trial::{
    News, TrialEnd, UnderWay, add_hidden, add_out_of_memory, by_our_clock, void_result,
};
use crate::{Event, RunError};
use machines::TargetError;
use model::trace::WORST_FILE;
use model::{
    Fact, Place, PlannedTrial, Trial, TrialFile, TrialResult, TrialSpec, TrialState, Workload,
};
use results::TrialFiles;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

/// Longest rest of a machine that was put back to its snapshot, unless its arm takes longer.
const MOST_REST_NS: u64 = 10_000_000_000;

/// Results of one attempt, one for each arm that it measured, with their files.
pub(super) type Attempt = Vec<(TrialResult, TrialFiles)>;

impl<'a> Run<'a> {
    /// Tries a place of the plan until it counts; `false` when interrupted. Attempts that an
    /// interruption left over go on; a place that had all of them gets as many again.
    pub(super) fn attempts(&mut self, place: &PlannedTrial) -> Result<bool, RunError> {
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
                return self.follow_end(place);
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
        self.allow(same_machine::other_scheduler(&self.trials, &trial))?;
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
        let why = same_machine::other_unit(alike, trial);
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
                window: None,
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
            TrialEnd::Lost { why, files, window } => {
                (self.sink)(Event::Restarting { why: &why });
                // One that hangs left no last words of its own.
                let said = console.as_deref().filter(|_| !why.contains('\n'));
                let why = with_last_lines(why, said.unwrap_or_default());
                let void = void_result(why, started);
                (vec![self.count_death(place, window, void)], files)
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

    /// The trial of an agent that was lost: void, or the outcome of a guest that died within its window.
    fn count_death(
        &mut self,
        place: &PlannedTrial,
        window: Option<OpenWindow>,
        void: TrialResult,
    ) -> TrialResult {
        // The next trial gets a new machine.
        let lost = self.connection.take();
        let Some((window, mut lost)) = window.zip(lost) else {
            return void;
        };
        // Who ends the run may have ended the guest as well.
        let is_ending = self.interrupted.load(Ordering::Relaxed);
        if is_ending || !window.is_silent && !lost.is_machine_dead() {
            return void;
        }
        let workload = &self.experiment.workloads[self.plan.cells[place.cell].workload];
        let events = &self.experiment.observe.events;
        let mut result = window.into_outcome(void, events, workload.duration_ns);
        prove(&mut result, lost.machine_facts());
        result
    }

    fn measure(&mut self, place: &PlannedTrial) -> Result<TrialEnd, RunError> {
        if let Some(mut end) = self.connect(place)? {
            // It is that of another trial, whose state is saved for this one.
            if let TrialEnd::Lost { window, .. } = &mut end {
                *window = None;
            }
            return Ok(end);
        }
        let Some(spec) = self.spec(place)? else {
            return Ok(TrialEnd::Interrupted);
        };
        // From here on they are of this trial.
        connected(&mut self.connection)?.host_readings();
        let began = SystemTime::now();
        let mut end = self.trial_of(spec, self.places_of(place))?;
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
    pub(super) fn spec(&mut self, place: &PlannedTrial) -> Result<Option<TrialSpec>, RunError> {
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
        let observe = bounds::with_bounds(&self.experiment.observe, &calibration);
        Ok(Some(TrialSpec {
            calibration,
            label: format!("{} b{} {}", cell.name, place.block, arm.name),
            seed: schedule::trial_seed(self.plan.seed, place),
            observe,
            turns: self.turn_lengths(place.cell).and_then(|lengths| {
                schedule::plan_turns(self.experiment, self.plan, place, lengths)
            }),
            rest_ns: self.rest_ns(),
            is_watched: doors::watch::is_watched(self.writer.dir()),
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

    /// A trial that no block has.
    pub(super) fn trial(&mut self, spec: TrialSpec) -> Result<TrialEnd, RunError> {
        self.trial_of(spec, Vec::new())
    }

    /// The trial of these places of the plan.
    fn trial_of(
        &mut self,
        spec: TrialSpec,
        places: Vec<PlannedTrial>,
    ) -> Result<TrialEnd, RunError> {
        let is_apart = self.is_apart(&spec.workload);
        let metrics = spec.workload.metrics.clone();
        let mut look = SoFarLook::new(&self.decisions, &self.given_up, places, metrics);
        // Other machines have blocks of the same cells.
        let has_all = self.pool.is_none();
        let was_reached = self.trials.iter().any(network::has_round_trip);
        let (target, sink) = (connected(&mut self.connection)?, &mut self.sink);
        let trials = &mut self.trials;
        let mut on_news = |news: News| {
            match news {
                News::Step(step) => sink(Event::Step { step }),
                News::Pace(pace) => sink(Event::Pace { pace }),
                News::SoFar(arms) => {
                    return has_all && look.is_enough(trials, arms);
                }
            }
            false
        };
        let mut trial = UnderWay::new(self.interrupted, &mut on_news);
        if !is_apart {
            let ended = trial.run_whole(target, spec);
            let mut end = trial.finish_trial(ended)?;
            note_looks(&mut end, &look.into_not_enough());
            return Ok(end);
        }
        let mut apart = Apart {
            was_reached,
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
    pub(super) fn is_apart(&self, workload: &Workload) -> bool {
        self.controller.is_some() && workload.load_on == Place::Controller
    }
}

pub(super) fn connected(connection: &mut Option<Connection>) -> Result<&mut Connection, RunError> {
    connection.as_mut().ok_or_else(|| {
        RunError::Target(TargetError::Gone {
            why: "it was closed".to_owned(),
            tail: String::new(),
        })
    })
}

/// Adds what the target knows. A trial on a machine that its arm does not mean is void.
pub(super) fn prove(result: &mut TrialResult, facts: Vec<Fact>) {
    result.evidence.facts.extend(facts);
    let why = result.evidence.find_disagreement();
    if let (TrialState::Ok, Some(why)) = (&result.state, why) {
        result.state = TrialState::Void { why };
        result.metrics.clear();
    }
}
