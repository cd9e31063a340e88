//! The measured part of a trial: a workload's process from its start to its end,
//! with evidence and counters.
//!
//! Inside the window the agent sleeps in poll(2) and wakes once a second.

use crate::arm::{cpus, env, policy, uclamp};
use crate::collectors::def::At;
use crate::collectors::switches;
use crate::counters::Reading;
use crate::evidence::{self, Look};
use crate::files;
use crate::process::{Event, Origin, Process};
use crate::spawn::SpawnError;
use crate::stop::Stop;
use crate::trial::Trial;
use collect::rusage::Usage;
use collect::tasks::Pid;
use load::{Launch, Output, phase};
use model::{
    Class, Edge, EvidencePoint, Measurement, Part, Phase, Policy, Reply, Role, Severity, Warning,
};
use std::time::{Duration, Instant};

/// Time between two collections of evidence inside the window.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// The first time after the window opened, so that short trials have one.
pub const FIRST_SAMPLE: Duration = Duration::from_millis(250);
/// Time between two looks for new threads, which are given a policy that they cannot inherit.
const FOLLOW_EVERY: Duration = Duration::from_millis(20);

impl<'a> Trial<'a, '_> {
    pub fn start(&mut self, launch: &Launch, policy: Option<&Policy>) -> Result<Process, Stop> {
        let origin = Origin {
            executable: self.context.executable,
            fence: &self.fence,
        };
        let (journal, collectors) = (&mut *self.context.journal, &mut self.collectors);
        let events = &mut self.events;
        let root = self.context.root;
        // A load with phases is kept to its CPUs later, when it has made its threads as many as
        // the machine's CPUs ask for.
        let cpus = cpus::of_role(self.arm, &Role::Load).filter(|_| !launch.phased);
        let uclamp = uclamp::of_role(self.arm, &Role::Load).filter(|_| !launch.phased);
        let group = self.roles.load_group();
        let launch = &env::with_variables(launch, self.arm, &Role::Load);
        let started = Process::start(launch, origin, journal, |pid| {
            collectors.before_exec(pid);
            events.open(root, &Role::Load, pid)?;
            if let Some(cpus) = cpus {
                cpus::keep_tree(root, pid, cpus)?;
            }
            if let Some(group) = group {
                group.add_process(pid).map_err(|e| e.to_string())?;
            }
            if let Some(policy) = policy {
                policy::apply_before_exec(pid, policy).map_err(with_remedy)?;
            }
            match uclamp {
                Some(clamps) => uclamp::apply_to_tree(root, pid, clamps),
                None => Ok(()),
            }
        });
        let mut process = started.map_err(|error| match error {
            SpawnError::Refused(why) => Stop::Void(why),
            error => Stop::Failed(error.to_string()),
        })?;
        if !self.collectors.is_wanted(&switches::DEF) {
            process.counters = None;
        }
        self.roles.load_environment.clone_from(&process.environment);
        Ok(process)
    }

    /// The window is the life of the process, which inherits its policy.
    pub fn run_whole(&mut self, launch: &Launch) -> Result<(Output, Vec<Measurement>), Stop> {
        let policy = self.policy_of_load();
        self.follow_roles()?;
        self.roles.begin_window(self.context.root);
        self.events.begin_window();
        let beside: Vec<(Role, Pid)> = self.roles.leaders().collect();
        self.collectors.begin_window(&At {
            root: self.context.root,
            leaders: &beside,
            interrupt: self.context.interrupt,
        });
        let first = Reading::at_start(self.context.root);
        let mut process = self.start(launch, policy)?;
        self.window_ns.0 = self.since_start(process.started);
        self.tell(Edge::Opened);
        self.observe(Phase::Before, Some(process.pid));
        let ended = self.sample_until_exit(&mut process);
        if ended.is_ok() {
            self.window_ns.1 = self.since_start(Instant::now());
            self.tell(Edge::Closed);
            self.events.end_window();
            self.collectors.end_window(&At {
                root: self.context.root,
                leaders: &beside,
                interrupt: self.context.interrupt,
            });
            self.observe(Phase::After, Some(process.pid));
        }
        let ended = ended.and_then(|()| self.prove_roles());
        let mut counters = process.counters.take();
        let (output, usage) = self.end_process(process, ended)?;
        let last = Reading::at_end(self.context.root, counters.as_mut(), usage);
        Ok((output, last.counts_since(&first)))
    }

    /// The process says when its window opens and closes.
    pub fn run_phased(&mut self, launch: &Launch) -> Result<(Output, Vec<Measurement>), Stop> {
        let mut process = self.start(launch, None)?;
        let read = self.phases(&mut process).and_then(|readings| {
            self.wait_for_exit(&mut process)?;
            Ok(readings)
        });
        let (readings, ended) = match read {
            Ok(readings) => (Some(readings), Ok(())),
            Err(stop) => (None, Err(stop)),
        };
        let (output, usage) = self.end_process(process, ended)?;
        let counters =
            readings.map(|(first, last)| last.with_switches_of(usage).counts_since(&first));
        Ok((output, counters.unwrap_or_default()))
    }

    /// The counters at both ends of the window.
    fn phases(&mut self, process: &mut Process) -> Result<(Reading, Reading), Stop> {
        let root = self.context.root;
        self.expect(process, phase::READY)?;
        if let Some(policy) = self.policy_of_load() {
            self.follow(process.pid, policy)?;
        }
        if let Some(cpus) = cpus::of_role(self.arm, &Role::Load) {
            cpus::keep_tree(root, process.pid, cpus).map_err(Stop::Void)?;
        }
        self.clamp(&Role::Load, process.pid)?;
        self.follow_roles()?;
        self.observe(Phase::Before, Some(process.pid));
        // A process that is gone is noticed while waiting for its next line.
        let _ = process.send(&format!("{}\n", phase::GO));
        self.expect(process, phase::BEGIN)?;
        self.window_ns.0 = self.since_start(Instant::now());
        self.tell(Edge::Opened);
        let first = Reading::of_tree(root, process.pid, process.counters.as_mut());
        let leaders = self.leaders(Some(process.pid));
        let at = At {
            root,
            leaders: &leaders,
            interrupt: self.context.interrupt,
        };
        self.collectors.begin_window(&at);
        self.roles.begin_window(root);
        self.events.begin_window();
        self.expect(process, phase::END)?;
        self.window_ns.1 = self.since_start(Instant::now());
        self.tell(Edge::Closed);
        let last = Reading::of_tree(root, process.pid, process.counters.as_mut());
        self.events.end_window();
        self.collectors.end_window(&at);
        self.observe(Phase::After, Some(process.pid));
        self.prove_roles()?;
        let _ = process.send(&format!("{}\n", phase::SEEN));
        Ok((first, last))
    }

    /// Wait for one phase line; inside the window, take samples meanwhile.
    pub fn expect(&mut self, process: &mut Process, line: &str) -> Result<(), Stop> {
        let in_window = line == phase::END;
        let mut next_sample = Instant::now() + FIRST_SAMPLE;
        loop {
            match process.wait(self.context.interrupt, self.until.min(next_sample)) {
                Event::Line(found) if found == line => return Ok(()),
                Event::Line(other) => self.collectors.hear_line(&other),
                Event::Interrupted => return Err(interrupted_stop()),
                Event::Exited => return Err(ended_early(process, line)),
                Event::Timeout => {
                    self.check_time()?;
                    self.check_alive(process)?;
                    if in_window {
                        self.observe(Phase::During, Some(process.pid));
                    }
                    next_sample = Instant::now() + SAMPLE_EVERY;
                }
            }
        }
    }

    fn sample_until_exit(&mut self, process: &mut Process) -> Result<(), Stop> {
        let deadline = self.policy_of_load().filter(|p| p.class == Class::Deadline);
        let mut next_sample = Instant::now() + FIRST_SAMPLE;
        loop {
            let wake = match deadline {
                Some(_) => next_sample.min(Instant::now() + FOLLOW_EVERY),
                None => next_sample,
            };
            match process.wait(self.context.interrupt, self.until.min(wake)) {
                Event::Exited => return Ok(()),
                Event::Line(_) => {}
                Event::Interrupted => return Err(interrupted_stop()),
                Event::Timeout => {
                    self.check_time()?;
                    if let Some(policy) = deadline {
                        self.follow(process.pid, policy)?;
                    }
                    if Instant::now() >= next_sample {
                        self.check_alive(process)?;
                        self.observe(Phase::During, Some(process.pid));
                        next_sample = Instant::now() + SAMPLE_EVERY;
                    }
                }
            }
        }
    }

    /// Wait for the end of a process without looking at it.
    pub fn wait_for_exit(&mut self, process: &mut Process) -> Result<(), Stop> {
        loop {
            let wake = self.until.min(Instant::now() + SAMPLE_EVERY);
            match process.wait(self.context.interrupt, wake) {
                Event::Exited => return Ok(()),
                Event::Line(_) => {}
                Event::Interrupted => return Err(interrupted_stop()),
                Event::Timeout => {
                    self.check_time()?;
                    self.check_alive(process)?;
                }
            }
        }
    }

    /// Give the policy to all threads that are there.
    pub fn follow(&mut self, pid: Pid, policy: &Policy) -> Result<(), Stop> {
        policy::apply_to_tree(self.context.root, pid, policy)
            .map(drop)
            .map_err(|e| Stop::Void(with_remedy(e)))
    }

    /// The arm's policy, where it is for the load.
    pub fn policy_of_load(&self) -> Option<&'a Policy> {
        let arm = self.arm;
        arm.policy.as_ref().filter(|_| arm.to == Role::Load)
    }

    /// Give the arm's policy and utilization clamps to the role that they are for, unless that is
    /// the load.
    pub fn follow_roles(&mut self) -> Result<(), Stop> {
        let arm = self.arm;
        let leaders: Vec<Pid> = self
            .roles
            .leaders()
            .filter_map(|(role, pid)| (role == arm.to).then_some(pid))
            .collect();
        for pid in leaders {
            if let Some(policy) = &arm.policy {
                self.follow(pid, policy)?;
            }
            self.clamp(&arm.to, pid)?;
        }
        Ok(())
    }

    /// Gives the arm's utilization clamps to all threads of a role that are there.
    pub fn clamp(&self, role: &Role, pid: Pid) -> Result<(), Stop> {
        match uclamp::of_role(self.arm, role) {
            Some(clamps) => {
                uclamp::apply_to_tree(self.context.root, pid, clamps).map_err(Stop::Void)
            }
            None => Ok(()),
        }
    }

    pub fn prove_roles(&mut self) -> Result<(), Stop> {
        self.roles.prove(self.context.root, self.context.interrupt)
    }

    /// The processes that lead the roles, the load first.
    pub fn leaders(&self, load: Option<Pid>) -> Vec<(Role, Pid)> {
        let load = load.map(|pid| (Role::Load, pid));
        load.into_iter().chain(self.roles.leaders()).collect()
    }

    /// Another agent, which runs the rest of the trial, must know.
    fn tell(&mut self, edge: Edge) {
        if matches!(self.spec.part, Part::Load { .. }) {
            (self.context.say)(Reply::Window { edge });
        }
    }

    pub fn observe(&mut self, phase: Phase, load: Option<Pid>) {
        let point = self.read_evidence(phase, load);
        self.evidence.points.push(point);
    }

    /// Reads what is in force now.
    pub fn read_evidence(&self, phase: Phase, load: Option<Pid>) -> EvidencePoint {
        let at_ns = self.since_start(Instant::now());
        let leaders = self.leaders(load);
        let look = Look {
            root: self.context.root,
            arm: self.arm,
            leaders: &leaders,
            changes: &self.changes,
            roles: &self.roles,
            kernel_release: &self.kernel_release,
        };
        evidence::point(&look, phase, at_ns)
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

    /// Ends a trial that cannot count any more.
    fn check_alive(&mut self, process: &Process) -> Result<(), Stop> {
        if process.prints_too_much() {
            return Err(Stop::Failed(
                "the workload printed more than 64 MiB".to_owned(),
            ));
        }
        self.check_beside()
    }

    /// Everything that stands beside the load is still there.
    pub fn check_beside(&mut self) -> Result<(), Stop> {
        self.roles.check_alive(self.context.interrupt)?;
        self.check_arm()
    }

    /// Kill what is left of a process, and reap it. What has left its session and taken
    /// off its mark voids the trial: nothing is proven of it, and nobody can say what
    /// it did within the window.
    pub fn end_process(
        &mut self,
        process: Process,
        ended: Result<(), Stop>,
    ) -> Result<(Output, Usage), Stop> {
        let left = process.kill_rest(&self.fence);
        let strays = match &left {
            Ok(_) => self.fence.kill_strays(&self.others()),
            // They would only be waited for once more.
            Err(_) => Ok(Vec::new()),
        };
        let reaped = process.reap();
        for error in [left.as_ref().err(), strays.as_ref().err()]
            .into_iter()
            .flatten()
        {
            self.unended.push(error.clone());
        }
        let (output, usage) = reaped.map_err(|e| {
            self.unended.push(e.to_string());
            Stop::Failed(format!("wait for the workload: {e}"))
        })?;
        files::send_output(self.context.say, &output);
        ended?;
        self.warn_of_leftovers(left.map_err(Stop::Failed)?);
        match strays.map_err(Stop::Failed)?.as_slice() {
            [] => Ok((output, usage)),
            strays => Err(Stop::Void(format!(
                "something that the workload started outlived it: {} had left its session and \
                 environment; it was killed. Let the workload wait for what it starts",
                strays.join(", ")
            ))),
        }
    }

    fn warn_of_leftovers(&mut self, left: usize) {
        if left > 0 {
            self.warnings.push(Warning {
                severity: Severity::Note,
                what: format!(
                    "{left} processes were still running when the workload had ended; they were killed"
                ),
                remedy: "let the workload wait for what it starts".to_owned(),
            });
        }
    }
}

fn with_remedy(error: policy::PolicyError) -> String {
    format!("{error}; {}", error.remedy())
}

pub fn interrupted_stop() -> Stop {
    Stop::Failed("interrupted".to_owned())
}

pub fn ended_early(process: &mut Process, line: &str) -> Stop {
    let errors = process.last_errors();
    Stop::Failed(format!(
        "the workload ended{} before it said `{line}`: {errors}",
        process.end_in_words()
    ))
}
