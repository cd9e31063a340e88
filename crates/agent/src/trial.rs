//! One trial: set up what stands under its arm, measure, prove, undo.

use crate::arm::changes::InForce;
use crate::arm::hypervisor;
use crate::bell::{self, Life, Messages, Phases};
use crate::co_runners::CoRunner;
use crate::collectors::{rare, trace};
use crate::context::Context;
use crate::error::AgentError;
use crate::load_files::Files;
use crate::load_process::Purpose;
use crate::processes::KILL_LIMIT;
use crate::stage::{LeftStage, Stage};
use crate::stop::Stop;
use crate::turn::{Counted, Counting};
use crate::turns::{self, Known, OfArm};
use crate::{counters, kept_files};
use load::{Driver, Job, Launch, Output, Parsed, Worst};
use model::printable::last_lines;
use model::trace::WORST_FILE;
use model::{
    Evidence, Happened, Measurement, Part, RailHit, Reply, Severity, TrialResult, TrialSpec,
    TrialState, Warning, WorstTrace,
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Runs one trial, on what an earlier one left. Afterwards the machine is as before, or the
/// journal and a serious warning say what is not; a trial that stays leaves its processes. There is a
/// result for each arm that took turns, or one where the trial does not count.
pub fn run(
    context: &mut Context,
    spec: &TrialSpec,
    left: Option<LeftStage>,
) -> Result<(Vec<TrialResult>, Option<LeftStage>), AgentError> {
    let mut trial = Trial::new(context, spec, left)?;
    let measured = trial.measure();
    if measured.is_err() {
        trial.tell_no_window();
    }
    let mut outcome = measured.or_else(|stop| trial.count_early_end(stop));
    if spec.stays && outcome.is_ok() {
        outcome = trial.stage.settle(trial.context, spec);
    }
    let (undone, left) = match spec.stays && outcome.is_ok() {
        true => {
            let (ended, left) = trial.stage.leave(trial.context, &mut trial.in_force);
            (ended, Some(left))
        }
        false => (trial.undo(), None),
    };
    let of_arms = std::mem::take(&mut trial.of_arms);
    let result = trial.into_result(outcome, undone);
    let results = match (&result.state, of_arms.is_empty()) {
        (TrialState::Ok, false) => turns::results(&result, of_arms),
        _ => vec![result],
    };
    Ok((results, left))
}

pub struct Trial<'a, 'c> {
    pub context: &'a mut Context<'c>,
    pub spec: &'a TrialSpec,
    /// Processes and collectors that stand while the arm is measured.
    pub stage: Stage,
    /// Loads beside that of the trial.
    pub co_runners: Vec<CoRunner>,
    /// The arm of the spec, or the one whose turn it is.
    pub in_force: InForce<'a>,
    pub start: Instant,
    /// The time limit of the process under way.
    pub until: Instant,
    /// Since `start`.
    pub window_ns: (u64, u64),
    pub evidence: Evidence,
    pub warnings: Vec<Warning>,
    /// Counters of the window under way.
    pub counting: Option<Counting>,
    /// Counters of the window that has closed.
    pub counted: Option<Counted>,
    started_unix_ns: u64,
    metrics: Vec<Measurement>,
    trace: Option<WorstTrace>,
    pub happened: Vec<Happened>,
    /// The rail that was hit.
    pub rail: Option<RailHit>,
    /// Parts of the result, where arms take turns.
    pub of_arms: Vec<OfArm>,
    /// Figures of windows while they do.
    pub so_far: Known,
}

impl<'a, 'c> Trial<'a, 'c> {
    fn new(
        context: &'a mut Context<'c>,
        spec: &'a TrialSpec,
        left: Option<LeftStage>,
    ) -> Result<Self, AgentError> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let stage = Stage::new(context, spec, left)?;
        Ok(Trial {
            stage,
            co_runners: Vec::new(),
            in_force: InForce::new(&spec.arm, &spec.workload),
            start: Instant::now(),
            until: Instant::now() + Duration::from_nanos(spec.workload.time_limit_ns),
            window_ns: (0, 0),
            evidence: Evidence::default(),
            warnings: context.guard.take_warnings(),
            counting: None,
            counted: None,
            started_unix_ns: model::whole_nanos(since_epoch.unwrap_or_default()),
            metrics: Vec::new(),
            trace: None,
            happened: Vec::new(),
            rail: None,
            of_arms: Vec::new(),
            so_far: Known::default(),
            context,
            spec,
        })
    }

    fn measure(&mut self) -> Result<(), Stop> {
        match self.spec.part {
            Part::Whole | Part::Load { .. } => self.measure_load(),
            Part::Beside { .. } => self.measure_beside(),
        }
    }

    fn measure_load(&mut self) -> Result<(), Stop> {
        let spec = self.spec;
        let mut job = job(spec);
        let services = &spec.workload.services;
        if services.is_empty() {
            self.stage.lay_out(self.context, spec)?;
            job.workload.kind = self.stage.roles.named_in(services, &spec.workload.kind);
            let driver = load::driver(&job.workload.kind).map_err(Stop::Failed)?;
            self.prepare(&driver.launch(&job))?;
        }
        self.apply()?;
        self.rest()?;
        if !services.is_empty() {
            // Only now, since nobody holds the ports until the services listen, and a scheduler
            // may take minutes to attach.
            self.stage.lay_out(self.context, spec)?;
        }
        self.stage.start_roles(self.context, spec, &self.in_force)?;
        job.server = self.stage.roles.server;
        job.workload.kind = self.stage.roles.named_in(services, &spec.workload.kind);
        let driver = load::driver(&job.workload.kind).map_err(Stop::Failed)?;
        job.groups = self.stage.groups_of_load(self.context, &*driver)?;
        let launch = driver.launch(&job);
        if !services.is_empty() {
            // It may ask them.
            self.prepare(&launch)?;
        }
        self.prepare_co_runners(&job)?;
        match &spec.turns {
            Some(taking) => self.measure_turns(&*driver, &job, &launch, taking),
            None => self.measure_whole(&*driver, &job, &launch),
        }
    }

    /// The one turn of an arm that has the trial for itself.
    fn measure_whole(
        &mut self,
        driver: &dyn Driver,
        job: &Job,
        launch: &Launch,
    ) -> Result<(), Stop> {
        let files = Files::before_launch(launch);
        self.start_collectors();
        self.stage.limit_load(self.context, &self.in_force)?;
        self.start_co_runners()?;
        let (mut output, counters) = match launch.phased {
            true => self.measure_phases(launch)?,
            false => self.measure_life(launch)?,
        };
        output.files = files.texts();
        self.prove()?;
        let parsed = self.read_output(driver, job, &output)?;
        let beside = self.read_co_runners()?;
        self.count_events(&parsed);
        if let Some(log) = &job.watch {
            self.keep_trace(parsed.worst.as_ref(), log);
        }
        let mut collected = self.collect(&counters);
        collected.extend(self.stage.collectors.with_load(&parsed.metrics));
        self.metrics = counters::merge(parsed.metrics, [beside, counters, collected].concat());
        Ok(())
    }

    fn measure_phases(&mut self, launch: &Launch) -> Result<(Output, Vec<Measurement>), Stop> {
        let mut process = self.start_process(launch, Purpose::Load)?;
        let taken = self.take_turn(&mut Phases::new(&mut process));
        let taken = taken.and_then(|()| bell::wait_for_exit(self, &mut process));
        let taken = taken.and_then(|()| self.wait_for_co_runners());
        let (output, usage) = self.end_process(process, taken)?;
        let counts = self.counted.take().map(|Counted { first, last }| {
            let last = last.with_switches_of(usage);
            last.counts_since(&first)
        });
        Ok((output, counts.unwrap_or_default()))
    }

    fn measure_life(&mut self, launch: &Launch) -> Result<(Output, Vec<Measurement>), Stop> {
        let mut life = Life::new(launch);
        let taken = self.take_turn(&mut life);
        let taken = taken.and_then(|()| self.wait_for_co_runners());
        let Some(process) = life.into_process() else {
            let early = || Stop::Failed("the workload was not started".to_owned());
            return Err(taken.err().unwrap_or_else(early));
        };
        let (output, usage) = self.end_process(process, taken)?;
        let counts = self
            .counted
            .take()
            .map(|Counted { first, last }| last.with_usage(usage).counts_since(&first));
        Ok((output, counts.unwrap_or_default()))
    }

    /// All but the load, which runs on the controller.
    fn measure_beside(&mut self) -> Result<(), Stop> {
        let spec = self.spec;
        self.apply()?;
        self.rest()?;
        self.stage.lay_out(self.context, spec)?;
        self.stage.start_roles(self.context, spec, &self.in_force)?;
        self.start_collectors();
        self.take_turn(&mut Messages)?;
        let counted = self.counted.take();
        let counters = counted.map(|Counted { first, last }| last.of_machine_since(&first));
        let counters = counters.unwrap_or_default();
        self.prove()?;
        let collected = self.collect(&counters);
        self.count_events(&Parsed::default());
        self.metrics = counters::merge(counters, collected);
        Ok(())
    }

    /// Runs the command that comes before the trial and is not measured.
    pub fn prepare(&mut self, launch: &Launch) -> Result<(), Stop> {
        if launch.prepare.is_empty() {
            return Ok(());
        }
        let limit = Duration::from_nanos(self.spec.workload.time_limit_ns);
        self.context.progress("preparing", limit + KILL_LIMIT);
        self.until = Instant::now() + limit;
        let launch = Launch {
            directory: launch.directory.clone(),
            ..Launch::new(launch.prepare.clone())
        };
        let mut process = self.start_process(&launch, Purpose::Preparation)?;
        let ended = bell::wait_for_exit(self, &mut process);
        let (output, _) = self.end_process(process, ended)?;
        if output.success {
            return Ok(());
        }
        Err(failed_with("the preparation", &output))
    }

    /// Waits as long as another arm took to be put in force, where the machine must have rested as
    /// long in all trials.
    fn rest(&mut self) -> Result<(), Stop> {
        self.evidence.applied_ns = self.since_start(Instant::now());
        let left_ns = self.spec.rest_ns.saturating_sub(self.evidence.applied_ns);
        let left = Duration::from_nanos(left_ns);
        if left.is_zero() {
            return Ok(());
        }
        self.context
            .progress("waiting as long as another arm took", left + KILL_LIMIT);
        match self.context.interrupt.wait(left) {
            true => Err(Stop::interrupted()),
            false => Ok(()),
        }
    }

    /// From here on the time limit of the load holds. A load on the controller is prepared
    /// within that time too.
    fn start_collectors(&mut self) {
        let limit = Duration::from_nanos(self.spec.workload.time_limit_ns);
        let limit = match self.spec.part {
            Part::Beside { .. } => (limit + KILL_LIMIT) * 2,
            _ => limit,
        };
        self.stage
            .start_collectors(self.context, self.spec, &self.in_force, limit);
        self.until = Instant::now() + limit;
    }

    /// The figures of a load that has ended; its files and warnings go their ways.
    pub fn read_output(
        &mut self,
        driver: &dyn Driver,
        job: &Job,
        output: &Output,
    ) -> Result<Parsed, Stop> {
        if !output.success {
            return Err(failed_with("the workload", output));
        }
        let parsed = driver.parse(job, output).map_err(Stop::Failed)?;
        self.accept(parsed)
    }

    /// Figures that count, whose files and warnings go their ways.
    pub fn accept(&mut self, mut parsed: Parsed) -> Result<Parsed, Stop> {
        for file in std::mem::take(&mut parsed.files) {
            (self.context.say)(Reply::File { file });
        }
        self.warnings.append(&mut parsed.warnings);
        match parsed.void.take() {
            Some(why) => Err(Stop::Void(why)),
            None => Ok(parsed),
        }
    }

    pub fn count_events(&mut self, parsed: &Parsed) {
        let times = self.times();
        let (happened, warning) = self.stage.collectors.find_happened(parsed, &times);
        self.happened = happened;
        self.warnings.extend(warning);
    }

    fn keep_trace(&mut self, worst: Option<&Worst>, log: &str) {
        let collectors = &mut self.stage.collectors;
        let kept = collectors.keep_trace(worst, &self.spec.label, log);
        if let Some((trace, bytes)) = kept {
            kept_files::send(self.context.say, WORST_FILE, &bytes);
            self.trace = Some(trace);
        }
    }

    /// The figures of the collectors, whose files and warnings go their ways.
    fn collect(&mut self, counters: &[Measurement]) -> Vec<Measurement> {
        let elsewhere = hypervisor::has_guests(&self.spec.workload);
        let root = self.context.root;
        let stage = &self.stage;
        let mut collected = stage.collectors.collected_results(counters, elsewhere);
        let driver = load::driver(&self.spec.workload.kind);
        if driver.is_ok_and(|driver| driver.may_work_elsewhere()) {
            let reached = self.in_force.reached_processes(root);
            stage
                .collectors
                .mark_work_elsewhere(root, &reached, &mut collected);
        }
        // The controller is not what is measured, and a guest of its own keeps it busy.
        if !matches!(self.spec.part, Part::Load { .. }) {
            self.warnings.extend(collected.warnings);
            self.warnings.extend(stage.events.warnings());
        }
        for file in collected.files {
            (self.context.say)(Reply::File { file });
        }
        let peaks = stage.roles.peaks_of_memory(root);
        [collected.metrics, stage.events.figures(), peaks].concat()
    }

    /// Ends everything that the trial started and takes back what is in force; the errors say what
    /// could not be.
    fn undo(&mut self) -> Result<(), String> {
        let (stage, warnings) = (&mut self.stage, &mut self.warnings);
        stage.clear(self.context, self.spec, &mut self.in_force, warnings)
    }

    pub fn since_start(&self, time: Instant) -> u64 {
        model::whole_nanos(time.saturating_duration_since(self.start))
    }

    pub fn check_time(&self) -> Result<(), Stop> {
        if Instant::now() < self.until {
            return Ok(());
        }
        let limit = model::format_duration_ns(self.spec.workload.time_limit_ns);
        Err(Stop::Failed(format!(
            "the workload had not ended after its time limit of {limit}"
        )))
    }

    fn into_result(mut self, outcome: Result<(), Stop>, undone: Result<(), String>) -> TrialResult {
        self.evidence.merge_facts();
        let mut warnings = self.warnings;
        if let Err(what) = &undone {
            warnings.push(Warning {
                severity: Severity::Serious,
                what: format!("the machine is not as it was before the trial: {what}"),
                remedy: "run: `schedlab restore`".to_owned(),
            });
        }
        let for_good = outcome.as_ref().is_err_and(Stop::is_for_good);
        let state = match (outcome, undone) {
            (Ok(()), Ok(())) => TrialState::Ok,
            (Ok(()), Err(what)) => TrialState::Void {
                why: format!("the arm could not be undone: {what}"),
            },
            (Err(stop), _) => stop.into(),
        };
        let counts = state == TrialState::Ok;
        TrialResult {
            state,
            started_unix_ns: self.started_unix_ns,
            elapsed_ns: model::whole_nanos(self.start.elapsed()),
            window_start_ns: self.window_ns.0,
            window_end_ns: self.window_ns.1.max(self.window_ns.0),
            evidence: self.evidence,
            metrics: if counts { self.metrics } else { Vec::new() },
            warnings,
            for_good,
            trace: self.trace.filter(|_| counts),
            windows: None,
            events: if counts { self.happened } else { Vec::new() },
            rail: self.rail,
        }
    }
}

/// The load of a trial. Nothing of it is started yet.
fn job(spec: &TrialSpec) -> Job {
    let cpus = collect::machine::usable_cpus();
    let arms = spec.turns.iter().flat_map(|taking| &taking.arms);
    Job {
        calibration: spec.calibration.clone(),
        seed: spec.seed,
        handicap_percent: spec.arm.handicap_percent,
        watch: trace::watched_log(spec),
        bounds: rare::bounds(&spec.observe.events),
        turns: spec.turns.as_ref().map(|taking| taking.turns.clone()),
        tells: spec.turns.as_ref().is_some_and(|taking| taking.is_watched),
        handicaps: arms.map(|arm| arm.handicap_percent).collect(),
        guests: hypervisor::place(&spec.arm),
        ..Job::new(&spec.workload, spec.load, cpus)
    }
}

pub fn failed_with(what: &str, output: &Output) -> Stop {
    let lines = [&output.stderr, &output.stdout].map(|text| last_lines(text, 3, " | "));
    let lines = lines.into_iter().find(|lines| !lines.is_empty());
    let lines = lines.unwrap_or_default();
    let colon = if lines.is_empty() { "" } else { ": " };
    Stop::Failed(format!("{what} ended with {}{colon}{lines}", output.status)).by_exit(output.code)
}
