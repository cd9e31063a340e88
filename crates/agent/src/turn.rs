//! One turn: an arm in force for one window.
//!
//! The steps around a window are written here, once. A [`Bell`] says when it opens and closes: the
//! load in its phases, the life of its process, another agent, or a clock.

use crate::arm::ingredient::Ground;
use crate::bell::Bell;
use crate::collectors::def::At;
use crate::context::announce;
use crate::counters::Reading;
use crate::evidence::{self, Look};
use crate::judge::{judge, judge_until_end};
use crate::stop::Stop;
use crate::trial::Trial;
use collect::tasks::Pid;
use model::{Edge, EvidencePoint, Opened, Part, Phase, Reply, Role, When};
use std::time::Instant;

/// Counters of a window that is open.
pub struct Counting {
    first: Reading,
    /// Processes that lead the roles, as the collectors know them.
    leaders: Vec<(Role, Pid)>,
}

/// Counters at both ends of a window.
pub struct Counted {
    pub first: Reading,
    pub last: Reading,
}

impl Trial<'_, '_> {
    /// Measures the arm in force for one window. An error ends the trial.
    pub fn take_turn(&mut self, bell: &mut dyn Bell) -> Result<(), Stop> {
        bell.open(self)?;
        self.tell_opened();
        bell.wait_for_close(self)?;
        self.end_window(bell);
        self.close_co_runners()?;
        self.look_at_arm(Phase::After, bell.load());
        bell.release(self)?;
        self.release_co_runners()
    }

    /// Puts the arm in force.
    pub fn apply(&mut self) -> Result<(), Stop> {
        let mut ground = Ground {
            root: self.context.root,
            fence: &self.stage.beside,
            journal: self.context.journal,
            interrupt: self.context.interrupt,
        };
        let say = &mut *self.context.say;
        let applied = self
            .in_force
            .apply(&mut ground, &mut self.warnings, |step, limit| {
                announce(say, step, limit);
            });
        let program = self.in_force.program();
        self.evidence.scheduler_binary = program.or(self.evidence.scheduler_binary.take());
        applied
    }

    /// Gives the groups and threads that are there what the arm has for their roles.
    pub fn equip(&mut self, load: Option<Pid>) -> Result<(), Stop> {
        let regrouped = self.stage.roles.regroup(&self.in_force);
        regrouped.map_err(|e| Stop::Void(e.to_string()))?;
        let mut leaders = self.stage.leaders(load).into_iter();
        leaders
            .try_for_each(|(role, pid)| self.in_force.equip_threads(self.context.root, &role, pid))
    }

    /// Gives new threads of the loads what they cannot inherit.
    pub fn follow_threads(&self, load: Option<Pid>) -> Result<(), Stop> {
        if !self.in_force.must_follow_threads(&Role::Load) {
            return Ok(());
        }
        let mut loads = load
            .into_iter()
            .chain(self.stage.co_runners.iter().copied());
        let root = self.context.root;
        loads.try_for_each(|pid| self.in_force.equip_threads(root, &Role::Load, pid))
    }

    /// The window is open, or opens now.
    pub fn open_window(&mut self, at: Instant) {
        self.window_ns.0 = self.since_start(at);
        self.tell(Edge::Opened);
    }

    /// The counters of the window begin.
    pub fn begin_counters(&mut self, bell: &mut dyn Bell) {
        let root = self.context.root;
        let first = bell.read_counters(root);
        let leaders = self.stage.leaders(bell.load());
        self.stage.collectors.begin_window(&At {
            root,
            leaders: &leaders,
            interrupt: self.context.interrupt,
        });
        self.stage.roles.begin_window(root);
        self.stage.events.begin_window();
        self.counting = Some(Counting { first, leaders });
    }

    /// The window has closed. Its counters end, where they have begun.
    fn end_window(&mut self, bell: &mut dyn Bell) {
        let Some(Counting { first, leaders }) = self.counting.take() else {
            return;
        };
        self.window_ns.1 = self.since_start(Instant::now());
        self.tell(Edge::Closed);
        self.tell_no_window();
        let root = self.context.root;
        let last = bell.read_counters(root);
        self.stage.events.end_window();
        self.stage.collectors.end_window(&At {
            root,
            leaders: &leaders,
            interrupt: self.context.interrupt,
        });
        self.counted = Some(Counted { first, last });
    }

    /// Another agent, which runs the rest of the trial, must know.
    fn tell(&mut self, edge: Edge) {
        if matches!(self.spec.part, Part::Load { .. }) {
            (self.context.say)(Reply::Window { edge });
        }
    }

    fn counts_deaths(&self) -> bool {
        let mut events = self.spec.observe.events.iter();
        events.any(|event| event.when == When::GuestDeath)
    }

    /// A machine that dies from now on dies in no window.
    pub fn tell_no_window(&mut self) {
        if self.counts_deaths() {
            (self.context.say)(Reply::InWindow { opened: None });
        }
    }

    /// The runner must know beforehand what a trial is whose machine dies. Without a proof it is void.
    fn tell_opened(&mut self) {
        if !self.counts_deaths() {
            return;
        }
        let mut evidence = self.evidence.clone();
        evidence.merge_facts();
        if judge_until_end(self.in_force.arm, &evidence).is_ok() {
            let opened = Opened {
                at_ns: self.window_ns.0,
                evidence,
            };
            (self.context.say)(Reply::InWindow {
                opened: Some(Box::new(opened)),
            });
        }
    }

    /// Keeps a reading of what is in force now.
    pub fn look_at_arm(&mut self, phase: Phase, load: Option<Pid>) {
        let point = self.read_evidence(phase, load);
        self.evidence.points.push(point);
    }

    /// Looks at the arm within the window, and tells those who watch how the trial goes.
    pub fn look_within(&mut self, load: Option<Pid>) {
        self.look_at_arm(Phase::During, load);
        self.tell_pace(load);
    }

    /// Tells those who watch what the load did since the last time, if it is time for that.
    pub fn tell_pace(&mut self, load: Option<Pid>) {
        let leaders = self.stage.leaders(load);
        let pace = self.stage.collectors.read_pace(&At {
            root: self.context.root,
            leaders: &leaders,
            interrupt: self.context.interrupt,
        });
        // `schedlab overhead` names the collector in trials that nobody watches. A message wakes four threads.
        if let Some(pace) = pace.filter(|_| self.spec.is_watched) {
            (self.context.say)(Reply::Pace { pace });
        }
    }

    fn read_evidence(&self, phase: Phase, load: Option<Pid>) -> EvidencePoint {
        let look = Look {
            root: self.context.root,
            in_force: &self.in_force,
            leaders: &self.stage.leaders(load),
            roles: &self.stage.roles,
            kernel_release: &self.stage.kernel_release,
        };
        evidence::point(&look, phase, self.since_start(Instant::now()))
    }

    /// Is it proven that the arm was in force in its window?
    pub fn prove(&mut self) -> Result<(), Stop> {
        self.check_arm()?;
        self.stage.roles.prove_parts()?;
        self.evidence.merge_facts();
        judge(self.in_force.arm, &self.evidence).map_err(|why| {
            Stop::Void(match self.in_force.reason() {
                Some(reason) => format!("{why} ({reason})"),
                None => why,
            })
        })
    }

    /// All processes beside the load are there, and those that disturb it ran in the window.
    pub fn prove_roles(&mut self) -> Result<(), Stop> {
        let Self { context, stage, .. } = self;
        stage.roles.prove(context.root, context.interrupt)
    }

    /// Everything that stands beside the load is still there.
    pub fn check_beside(&mut self) -> Result<(), Stop> {
        self.stage.roles.check_alive(self.context.interrupt)?;
        self.look_at_co_runners()?;
        self.check_arm()
    }

    /// An arm that is not in force any more ends the trial.
    pub fn check_arm(&mut self) -> Result<(), Stop> {
        let mut ground = Ground {
            root: self.context.root,
            fence: &self.stage.beside,
            journal: self.context.journal,
            interrupt: self.context.interrupt,
        };
        self.in_force.check_alive(&mut ground, &mut self.warnings)
    }
}
