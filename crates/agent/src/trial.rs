//! One trial: require, journal, apply the arm, run the workload, prove, undo.

use crate::arm::hypervisor;
use crate::arm::ingredient::{self, Change};
use crate::collectors::def::Start;
use crate::collectors::events::RoleEvents;
use crate::collectors::{self, Collectors, rare, trace};
use crate::error::AgentError;
use crate::fence::Fence;
use crate::guard::GuardKeeper;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::judge::judge;
use crate::kept_files::{self, Kept};
use crate::process::Origin;
use crate::processes::{self, KILL_LIMIT};
use crate::roles::{Ground, Roles, stack};
use crate::stop::Stop;
use crate::turns::{self, OfArm};
use crate::window::interrupted_stop;
use crate::written::Files;
use crate::{counters, files, settle};
use collect::tasks::Pid;
use load::{Driver, GroupAt, Job, Launch, Output, Parsed, Worst};
use model::printable::last_lines;
use model::stack::LOAD;
use model::trace::WORST_FILE;
use model::{
    Arm, Evidence, Happened, KEEP_LIMIT_BYTES, Measurement, Part, Reply, Request, Severity,
    TrialResult, TrialSpec, TrialState, Warning, WorstTrace,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Parts of the agent that a trial needs.
pub struct Context<'a> {
    pub root: &'a Path,
    pub executable: &'a Path,
    pub journal: &'a mut Journal,
    pub interrupt: &'a Interrupt,
    /// Directory of the folders of services.
    pub folders: PathBuf,
    /// Names the trial on its processes; no other trial has it.
    pub mark: String,
    /// Its guard, the one child of the agent that belongs to no trial.
    pub guard: &'a mut GuardKeeper,
    pub say: &'a mut dyn FnMut(Reply),
    /// Waits for a request that belongs to the trial under way; `None` when the time has
    /// passed, or when the trial is interrupted.
    pub hear: &'a mut dyn FnMut(Duration) -> Option<Request>,
}

impl Context<'_> {
    /// The step under way, and how long it may take.
    pub fn progress(&mut self, step: impl Into<String>, limit: Duration) {
        (self.say)(Reply::Progress {
            step: step.into(),
            limit_ns: model::whole_nanos(limit),
        });
    }
}

/// The processes that a trial left running, for the next one to be measured on.
#[derive(Debug)]
pub struct Stage {
    /// Length of the journal before the trial that left them.
    began: u64,
    fence: Fence,
    roles: Roles,
    events: RoleEvents,
}

/// Run one trial, on what an earlier one left. Afterwards the machine is as before, or the
/// journal and a serious warning say what is not; a trial that stays leaves its processes.
pub fn run(
    context: &mut Context,
    spec: &TrialSpec,
    stage: Option<Stage>,
) -> Result<(TrialResult, Option<Stage>), AgentError> {
    let began = match &stage {
        Some(stage) => stage.began,
        None => context.journal.length()?,
    };
    let mut trial = Trial::new(context, spec, stage)?;
    let mut outcome = trial.measure();
    if spec.stays && outcome.is_ok() {
        outcome = trial.settle();
    }
    if spec.stays && outcome.is_ok() {
        let (left, stage) = trial.leave(began);
        return Ok((trial.into_result(outcome, left), Some(stage)));
    }
    let undone = trial.undo(began);
    Ok((trial.into_result(outcome, undone), None))
}

/// Run one trial in which arms take turns: a result for each of them, or the one of a trial that
/// does not count. Afterwards the machine is as before, as after any trial.
pub fn run_in_turns(
    context: &mut Context,
    spec: &TrialSpec,
) -> Result<Vec<TrialResult>, AgentError> {
    let began = context.journal.length()?;
    let mut trial = Trial::new(context, spec, None)?;
    let outcome = trial.measure();
    let undone = trial.undo(began);
    let arms = std::mem::take(&mut trial.of_arms);
    let result = trial.into_result(outcome, undone);
    Ok(match result.state {
        TrialState::Ok => turns::results(&result, arms),
        _ => vec![result],
    })
}

pub struct Trial<'a, 'c> {
    pub context: &'a mut Context<'c>,
    pub spec: &'a TrialSpec,
    /// The arm in force: that of the spec, or the one whose turn it is.
    pub arm: &'a Arm,
    /// Around the load, and what prepares for it.
    pub fence: Fence,
    /// Around all others, which the end of the load does not end.
    beside: Fence,
    /// Processes that could not be ended, and so run still.
    pub unended: Vec<String>,
    pub start: Instant,
    /// The time limit of the process under way.
    pub until: Instant,
    /// Since `start`.
    pub window_ns: (u64, u64),
    pub evidence: Evidence,
    pub kernel_release: String,
    /// The changes of the arm, and what it leaves alone.
    pub changes: Vec<Box<dyn Change + 'a>>,
    /// The processes beside the load.
    pub roles: Roles,
    /// An earlier trial started them.
    on_a_stage: bool,
    pub warnings: Vec<Warning>,
    pub collectors: Collectors,
    /// Counters of the processes of all roles.
    pub events: RoleEvents,
    started_unix_ns: u64,
    metrics: Vec<Measurement>,
    trace: Option<WorstTrace>,
    happened: Vec<Happened>,
    /// Parts of the result, where arms take turns.
    pub of_arms: Vec<OfArm>,
}

impl<'a, 'c> Trial<'a, 'c> {
    fn new(
        context: &'a mut Context<'c>,
        spec: &'a TrialSpec,
        stage: Option<Stage>,
    ) -> Result<Self, AgentError> {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let started_unix_ns = model::whole_nanos(since_epoch);
        let mut fence = |mark| Fence::set_up(context.root, mark, context.journal);
        let on_a_stage = stage.is_some();
        let own = fence(context.mark.clone())?;
        let (beside, roles, events) = match stage {
            Some(stage) => (stage.fence, stage.roles, stage.events),
            None => (
                fence(format!("{}-beside", context.mark))?,
                Roles::default(),
                RoleEvents::new(&spec.observe.perf),
            ),
        };
        let warnings = context.guard.take_warnings();
        Ok(Trial {
            fence: own,
            beside,
            unended: Vec::new(),
            context,
            spec,
            arm: &spec.arm,
            start: Instant::now(),
            until: Instant::now() + Duration::from_nanos(spec.workload.time_limit_ns),
            started_unix_ns,
            window_ns: (0, 0),
            evidence: Evidence::default(),
            kernel_release: collect::machine::kernel_release(),
            changes: ingredient::make_changes(&spec.arm, &spec.workload),
            metrics: Vec::new(),
            trace: None,
            happened: Vec::new(),
            of_arms: Vec::new(),
            warnings,
            collectors: Collectors::default(),
            events,
            roles,
            on_a_stage,
        })
    }

    fn measure(&mut self) -> Result<(), Stop> {
        match self.spec.part {
            Part::Whole | Part::Load { .. } => self.measure_load(),
            Part::Beside => self.measure_beside(),
        }
    }

    fn measure_load(&mut self) -> Result<(), Stop> {
        let spec = self.spec;
        let cpus = collect::machine::usable_cpus();
        let mut job = Job {
            calibration: spec.calibration.clone(),
            seed: spec.seed,
            handicap_percent: spec.arm.handicap_percent,
            watch: trace::watched_log(spec),
            bounds: rare::bounds(&spec.observe.events),
            turns: spec.turns.as_ref().map(|taking| taking.turns.clone()),
            handicaps: handicaps(spec),
            guests: hypervisor::place(&spec.arm),
            ..Job::new(&spec.workload, spec.load, cpus)
        };
        let services = &spec.workload.services;
        if services.is_empty() {
            self.lay_out()?;
            job.workload.kind = self.roles.named_in(services, &spec.workload.kind);
            let driver = load::driver(&job.workload.kind).map_err(Stop::Failed)?;
            self.prepare(&driver.launch(&job))?;
        }
        self.apply()?;
        self.rest()?;
        if !services.is_empty() {
            // Only now, since nobody holds the ports until the services listen, and a scheduler
            // may take minutes to attach.
            self.lay_out()?;
        }
        self.start_roles()?;
        job.server = self.roles.server;
        job.workload.kind = self.roles.named_in(services, &spec.workload.kind);
        let driver = load::driver(&job.workload.kind).map_err(Stop::Failed)?;
        job.groups = self.groups_of_load(&*driver)?;
        let launch = driver.launch(&job);
        if !services.is_empty() {
            // It may ask them.
            self.prepare(&launch)?;
        }
        if let Some(taking) = &spec.turns {
            return self.measure_turns(&*driver, &job, &launch, taking);
        }
        let files = Files::before_launch(&launch);
        let (mut output, counters) = self.run_workload(&launch)?;
        output.files = files.texts();
        self.prove()?;
        self.figures(&*driver, &job, &output, counters)
    }

    /// All but the load, which runs on the controller.
    fn measure_beside(&mut self) -> Result<(), Stop> {
        self.apply()?;
        self.rest()?;
        self.lay_out()?;
        self.start_roles()?;
        self.start_collectors();
        let counters = self.attend_load()?;
        self.prove()?;
        let collected = self.collect(&counters);
        self.count_events(&Parsed::default());
        self.metrics = counters::merge(counters, collected);
        Ok(())
    }

    /// Runs the command that comes before the trial and is not measured.
    fn prepare(&mut self, launch: &Launch) -> Result<(), Stop> {
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
        let mut process = self.start(&launch, None)?;
        let ended = self.wait_for_exit(&mut process);
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
            true => Err(interrupted_stop()),
            false => Ok(()),
        }
    }

    /// Waits until what the load left to do is done, as the machine is to be saved.
    fn settle(&mut self) -> Result<(), Stop> {
        let workload = &self.spec.workload;
        let load_ns = workload.warmup_ns.saturating_add(workload.duration_ns);
        let limit = settle::limit(Duration::from_nanos(load_ns));
        self.context
            .progress("waiting until the machine is at rest", limit + KILL_LIMIT);
        match settle::wait_for_rest(self.context.root, self.context.interrupt, limit) {
            true => Err(interrupted_stop()),
            false => Ok(()),
        }
    }

    pub fn apply(&mut self) -> Result<(), Stop> {
        for change in &mut self.changes {
            if let Some((step, limit)) = change.step() {
                self.context.progress(step, limit);
            }
            change.apply(ingredient::Ground {
                root: self.context.root,
                fence: &self.beside,
                journal: self.context.journal,
                interrupt: self.context.interrupt,
            })?;
            self.evidence.scheduler_binary = change
                .program()
                .cloned()
                .or(self.evidence.scheduler_binary.take());
            for warning in change.warnings(self.context.root) {
                // An arm that takes turns is applied many times.
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
            }
        }
        Ok(())
    }

    fn start_roles(&mut self) -> Result<(), Stop> {
        let workload = &self.spec.workload;
        if self.on_a_stage || matches!(self.spec.part, Part::Load { .. }) {
            return Ok(());
        }
        self.start_services()?;
        if let Some(server) = &workload.server {
            let limit = Duration::from_nanos(server.ready_limit_ns);
            self.context
                .progress("starting the server", limit + KILL_LIMIT);
        }
        let calibration = &self.spec.calibration;
        let (roles, ground) = self.ground();
        roles.start(workload, calibration, ground)
    }

    /// The roles, and what starting one needs.
    fn ground(&mut self) -> (&mut Roles, Ground<'_>) {
        let ground = Ground {
            root: self.context.root,
            executable: self.context.executable,
            arm: self.arm,
            fence: &self.beside,
            journal: self.context.journal,
            interrupt: self.context.interrupt,
            events: &mut self.events,
        };
        (&mut self.roles, ground)
    }

    /// Makes the folders of what runs here, with their files.
    fn lay_out(&mut self) -> Result<(), Stop> {
        if self.on_a_stage {
            return Ok(());
        }
        let workload = &self.spec.workload;
        let services = match self.spec.part {
            Part::Load { .. } => &[],
            Part::Whole | Part::Beside => workload.services.as_slice(),
        };
        let driver = load::driver(&workload.kind);
        if workload.has_folders() || driver.is_ok_and(|driver| driver.needs_folder()) {
            let folder = self.context.folders.join(&self.context.mark);
            self.roles
                .lay_out(services, &folder, self.context.journal)?;
        }
        match &self.spec.part {
            Part::Beside => Ok(()),
            Part::Whole => self.roles.write_files_of_load(workload),
            Part::Load { services } => {
                self.roles.run_elsewhere(services);
                self.roles.write_files_of_load(workload)
            }
        }
    }

    fn start_services(&mut self) -> Result<(), Stop> {
        let services = &self.spec.workload.services;
        for service in services {
            let limit = stack::start_limit(service) + KILL_LIMIT;
            self.context
                .progress(format!("starting {}", service.name), limit);
            let (roles, ground) = self.ground();
            roles.start_service(services, service, ground)?;
        }
        Ok(())
    }

    /// Processes of the trial that the end of the load does not end.
    pub fn others(&self) -> Vec<Pid> {
        let mut others = self.context.guard.processes();
        others.extend(self.processes());
        others.extend(self.roles.leaders().map(|(_, pid)| pid));
        others.extend(self.collectors.processes());
        others.extend(self.beside.members());
        others
    }

    /// Ends the roles; gives the errors of those that could not be ended.
    fn end_roles(&mut self) -> Vec<String> {
        let (outputs, errors) = self.roles.end_all(&self.beside);
        for (name, output) in outputs {
            let text = output.stdout + &output.stderr;
            files::send(self.context.say, &format!("{name}.log"), &text);
        }
        errors
    }

    /// The processes of the arm itself.
    fn processes(&self) -> impl Iterator<Item = Pid> {
        self.changes.iter().filter_map(|change| change.process())
    }

    fn run_workload(&mut self, launch: &Launch) -> Result<(Output, Vec<Measurement>), Stop> {
        self.start_collectors();
        self.limit_load()?;
        if launch.phased {
            self.run_phased(launch)
        } else {
            self.run_whole(launch)
        }
    }

    /// Makes the cgroup of a load that the arm limits.
    pub fn limit_load(&mut self) -> Result<(), Stop> {
        let name = format!("{}-load", self.fence.name());
        let (root, journal) = (self.context.root, &mut *self.context.journal);
        let limited = self.roles.limit_load(root, &name, self.arm, journal);
        limited.map_err(|e| Stop::Void(format!("the load: {e}")))
    }

    /// Makes the cgroups that parts of the load are to be in.
    fn groups_of_load(&mut self, driver: &dyn Driver) -> Result<Vec<GroupAt>, Stop> {
        let (root, journal) = (self.context.root, &mut *self.context.journal);
        let made = self
            .roles
            .make_parts(root, &self.fence.name(), driver.groups(), journal);
        made.map_err(|e| Stop::Void(format!("the load: {e}")))
    }

    /// From here on the time limit of the load holds. A load on the controller is prepared
    /// within that time too.
    fn start_collectors(&mut self) {
        let wanted = collectors::wanted_collectors(self.spec);
        let limit = Duration::from_nanos(self.spec.workload.time_limit_ns);
        let limit = match self.spec.part {
            Part::Beside => (limit + KILL_LIMIT) * 2,
            _ => limit,
        };
        let longest = limit + collectors::limit(&wanted) + KILL_LIMIT;
        self.context.progress("measuring", longest);
        let scheduler = self.processes().next();
        let start = Start {
            root: self.context.root,
            origin: Origin {
                executable: self.context.executable,
                fence: &self.beside,
            },
            journal: self.context.journal,
            interrupt: self.context.interrupt,
        };
        self.collectors.prepare(&wanted, scheduler, start);
        self.collectors.count_events(&self.spec.observe.events);
        self.until = Instant::now() + limit;
    }

    /// Is it proven that the arm was in force?
    fn prove(&mut self) -> Result<(), Stop> {
        self.check_arm()?;
        self.roles.prove_parts()?;
        self.evidence.merge_facts();
        judge(self.arm, &self.evidence).map_err(|why| {
            let reason = self.changes.iter_mut().find_map(|change| change.reason());
            Stop::Void(match reason {
                Some(reason) => format!("{why} ({reason})"),
                None => why,
            })
        })
    }

    /// An arm that is not in force any more ends the trial.
    pub fn check_arm(&mut self) -> Result<(), Stop> {
        for change in &mut self.changes {
            change.check_alive()?;
            let warning = change.keep_up(ingredient::Ground {
                root: self.context.root,
                fence: &self.beside,
                journal: self.context.journal,
                interrupt: self.context.interrupt,
            })?;
            let new = warning.filter(|warning| !self.warnings.contains(warning));
            self.warnings.extend(new);
        }
        Ok(())
    }

    fn figures(
        &mut self,
        driver: &dyn Driver,
        job: &Job,
        output: &Output,
        counters: Vec<Measurement>,
    ) -> Result<(), Stop> {
        if !output.success {
            return Err(failed_with("the workload", output));
        }
        let parsed = driver.parse(job, output).map_err(Stop::Failed)?;
        self.count_events(&parsed);
        for file in parsed.files {
            (self.context.say)(Reply::File { file });
        }
        self.warnings.extend(parsed.warnings);
        if let Some(why) = parsed.void {
            return Err(Stop::Void(why));
        }
        if let Some(log) = &job.watch {
            self.keep_trace(parsed.worst.as_ref(), log);
        }
        let mut collected = self.collect(&counters);
        collected.extend(self.collectors.with_load(&parsed.metrics));
        self.metrics = counters::merge(parsed.metrics, [counters, collected].concat());
        Ok(())
    }

    fn count_events(&mut self, parsed: &Parsed) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let [seconds, ns] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
        let times = rare::Times {
            began_ns: (seconds * 1_000_000_000 + ns)
                .saturating_sub(self.since_start(Instant::now())),
            window_ns: [self.window_ns.0, self.window_ns.1],
            load_ns: self.spec.workload.duration_ns,
        };
        let (happened, warning) = self.collectors.find_happened(parsed, &times);
        self.happened = happened;
        self.warnings.extend(warning);
    }

    fn keep_trace(&mut self, worst: Option<&Worst>, log: &str) {
        let kept = self.collectors.keep_trace(worst, &self.spec.label, log);
        if let Some((trace, bytes)) = kept {
            kept_files::send(self.context.say, WORST_FILE, &bytes);
            self.trace = Some(trace);
        }
    }

    /// The figures of the collectors, whose files and warnings go their ways.
    fn collect(&mut self, counters: &[Measurement]) -> Vec<Measurement> {
        let elsewhere = hypervisor::has_guests(&self.spec.workload);
        let mut collected = self.collectors.collected_results(counters, elsewhere);
        let driver = load::driver(&self.spec.workload.kind);
        if driver.is_ok_and(|driver| driver.may_work_elsewhere()) {
            let root = self.context.root;
            let reached: Vec<Pid> = self
                .changes
                .iter()
                .flat_map(|c| c.reached_processes(root))
                .collect();
            self.collectors
                .mark_work_elsewhere(root, &reached, &mut collected);
        }
        // The controller is not what is measured, and a guest of its own keeps it busy.
        if !matches!(self.spec.part, Part::Load { .. }) {
            self.warnings.extend(collected.warnings);
            self.warnings.extend(self.events.warnings());
        }
        for file in collected.files {
            (self.context.say)(Reply::File { file });
        }
        let peaks = self.roles.peaks_of_memory(self.context.root);
        [collected.metrics, self.events.figures(), peaks].concat()
    }

    /// Ends the load's part and leaves the rest as it is.
    fn leave(&mut self, began: u64) -> (Result<(), String>, Stage) {
        let mut errors = std::mem::take(&mut self.unended);
        errors.extend(self.collectors.stop());
        for change in self.changes.iter_mut().rev() {
            errors.extend(change.undo(self.context.root).errors);
        }
        errors.extend(self.fence.remove().err());
        let stage = Stage {
            began,
            fence: self.beside.clone(),
            roles: std::mem::take(&mut self.roles),
            events: std::mem::take(&mut self.events),
        };
        let left = match errors.is_empty() {
            true => Ok(()),
            false => Err(errors.join("; ")),
        };
        (left, stage)
    }

    /// Undo everything in force; the errors say what could not be. The journal began
    /// with `began` when the trial did.
    fn undo(&mut self, began: u64) -> Result<(), String> {
        let ending = KILL_LIMIT * self.kills() + self.roles.farewell_limit();
        self.context.progress("ending its processes", ending);
        let mut errors = std::mem::take(&mut self.unended);
        errors.extend(self.collectors.stop());
        errors.extend(self.end_roles());
        let changes: Duration = self.changes.iter().map(|c| c.undo_limit()).sum();
        self.context
            .progress("undoing the arm", changes + KILL_LIMIT);
        for change in self.changes.iter_mut().rev() {
            let undone = change.undo(self.context.root);
            errors.extend(undone.errors);
            if let Some(log) = undone.log {
                files::send(self.context.say, &log.name, &log.text);
            }
        }
        if errors.is_empty() {
            errors.extend(self.end_all().err());
            self.keep_files();
            errors.extend(self.roles.remove_folders().err());
        }
        processes::reap_orphans(&self.context.guard.processes());
        if errors.is_empty() {
            let forgotten = self.context.journal.forget_from(began);
            return forgotten.map_err(|e| e.to_string());
        }
        // The journal says what is left, and the next trial begins with that.
        Err(errors.join("; "))
    }

    /// Sends the files that the trial is to keep. Nobody writes to them any more.
    fn keep_files(&mut self) {
        let workload = &self.spec.workload;
        // Each part keeps what is on its machine.
        let (services, load) = match self.spec.part {
            Part::Whole => (&workload.services[..], Some(&workload.keep)),
            Part::Beside => (&workload.services[..], None),
            Part::Load { .. } => (&[][..], Some(&workload.keep)),
        };
        let of_services = services.iter().map(|s| (s.name.as_str(), &s.keep));
        let of_load = load.map(|keep| (LOAD, keep));
        let limit = workload.keep_limit_bytes.unwrap_or(KEEP_LIMIT_BYTES);
        let mut kept = Kept::new(limit, self.context.say);
        for (name, keep) in of_services.chain(of_load) {
            let Some(folder) = self.roles.folder_of(name) else {
                continue;
            };
            keep.iter()
                .for_each(|path| kept.keep_files(name, &folder, path));
        }
        let warning = kept.warning();
        self.warnings.extend(warning);
    }

    /// Nothing that the trial started runs on.
    fn end_all(&self) -> Result<(), String> {
        let keep = self.context.guard.processes();
        processes::kill_until_gone(|| processes::descendants(&keep))?;
        self.fence.remove()?;
        self.beside.remove()
    }

    /// Each role, and what has left them.
    fn kills(&self) -> u32 {
        u32::try_from(self.roles.leaders().count() + 2).unwrap_or(u32::MAX)
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
        }
    }
}

/// Extra work of each arm that takes turns.
fn handicaps(spec: &TrialSpec) -> Vec<f64> {
    let arms = spec.turns.iter().flat_map(|taking| &taking.arms);
    arms.map(|arm| arm.handicap_percent).collect()
}

pub fn failed_with(what: &str, output: &Output) -> Stop {
    let lines = [&output.stderr, &output.stdout].map(|text| last_lines(text, 3, " | "));
    let lines = lines.into_iter().find(|lines| !lines.is_empty());
    let lines = lines.unwrap_or_default();
    let colon = if lines.is_empty() { "" } else { ": " };
    Stop::Failed(format!("{what} ended with {}{colon}{lines}", output.status)).by_exit(output.code)
}
