//! A target without a machine, for tests of what talks to targets: a closure says
//! what becomes of each trial.

use crate::{Boot, By, Can, Done, Restart, Saved, Session, Target, TargetError};
use model::{
    Build, Calibration, Edge, Evidence, Experiment, Fact, Happened, Listening, Measurement, Opened,
    PROTOCOL_VERSION, Part, Problem, Reply, Request, Reset, SchedulerBinary, System, TrialResult,
    TrialSpec, TrialState, When,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Fate of a trial.
#[derive(Debug, Clone)]
pub enum Fate {
    /// Counts, with these metrics.
    Ok(Vec<Measurement>),
    /// Void, for this reason.
    Void(&'static str),
    /// Failed, for this reason.
    Failed(&'static str),
    /// Failed, for this reason, as it will every time.
    FailedForGood(&'static str),
    /// The agent and its machine are gone.
    Dies,
    /// The same, after the window has opened.
    DiesInWindow,
}

/// State that is kept under a name, with its calibrations, once it was made.
pub type Kept = Arc<Mutex<Option<BTreeMap<String, Calibration>>>>;

type Story = dyn FnMut(&TrialSpec) -> Fate + Send;

/// Target whose agents answer at once and measure nothing.
#[derive(Clone)]
pub struct FakeTarget {
    story: Arc<Mutex<Story>>,
    /// Abilities that it claims.
    pub can: Can,
    /// Problems that its check finds, whatever the experiment.
    pub problems: Vec<Problem>,
    /// Kernels of the boots, in order.
    pub boots: Arc<Mutex<Vec<Option<String>>>>,
    /// Build that agents say they are from.
    pub build: Build,
    /// System that agents find.
    pub system: System,
    /// The release that a kernel has, by its name; empty is that of `system`.
    pub release_of: fn(Option<&str>) -> String,
    /// The kernel that this boot was asked for, until it was used: on a machine that reboots.
    pub asked: Option<String>,
    /// Does a kernel come up?
    pub comes_up: fn(Option<&str>) -> bool,
    /// Number of next agents that are gone before they answer anything.
    pub never_answer: Arc<AtomicU32>,
    /// Facts that machines are known by.
    pub facts: Vec<Fact>,
    /// The program that is said to have been started as the scheduler, in every trial.
    pub scheduler: Option<SchedulerBinary>,
    /// Time that an arm takes to be put in force, by its name.
    pub applied_ns: fn(&str) -> u64,
    /// Do calibrations hold for all loads of a workload? Each has the number of those so far.
    pub calibrates_all_loads: bool,
    calibrated: Arc<AtomicU64>,
    /// Events of a trial that counts.
    pub happened: fn(&TrialSpec) -> Vec<Happened>,
    /// The state that it keeps under a name, with its calibrations, where it has a name.
    pub kept: Option<Kept>,
    /// Number of next times that ports cannot be forwarded, since somebody has them.
    pub ports_taken: Arc<AtomicU32>,
}

impl std::fmt::Debug for FakeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeTarget")
    }
}

impl FakeTarget {
    /// Target on which the closure decides each trial, with all kernels and without problems.
    pub fn new(story: impl FnMut(&TrialSpec) -> Fate + Send + 'static) -> Self {
        FakeTarget {
            story: Arc::new(Mutex::new(story)),
            can: Can {
                kernels: true,
                reboots: false,
                cpus: None,
                apart: false,
                here: true,
                programs_of_here: false,
                is_guest: true,
                machines: None,
                reset: Reset::None,
            },
            problems: Vec::new(),
            boots: Arc::default(),
            build: Build::default(),
            system: System::default(),
            release_of: |_| String::new(),
            asked: None,
            comes_up: |_| true,
            never_answer: Arc::default(),
            facts: Vec::new(),
            scheduler: None,
            applied_ns: |_| 0,
            calibrates_all_loads: false,
            calibrated: Arc::default(),
            happened: |_| Vec::new(),
            kept: None,
            ports_taken: Arc::default(),
        }
    }
}

impl Target for FakeTarget {
    fn kind(&self) -> &'static str {
        "fake"
    }

    fn abilities(&self) -> Can {
        self.can
    }

    fn check(&mut self, _experiment: &Experiment) -> Vec<Problem> {
        self.problems.clone()
    }

    fn keep_state(&mut self, saved: Saved, done: Done) -> Result<Option<Saved>, TargetError> {
        let Some(mut kept) = self.kept.as_ref().and_then(|kept| kept.lock().ok()) else {
            return Ok(Some(saved));
        };
        *kept = Some(done.calibrations);
        Ok(None)
    }

    fn recall_calibrations(&self) -> Option<BTreeMap<String, Calibration>> {
        self.kept.as_ref()?.lock().ok()?.clone()
    }

    fn open_session(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        if let Ok(mut boots) = self.boots.lock() {
            boots.push(boot.kernel.clone());
        }
        let kernel = boot.kernel.as_deref();
        if let Some(kernel) = kernel.filter(|_| self.can.reboots)
            && self.asked.take().as_deref() != Some(kernel)
        {
            let kernel = kernel.to_owned();
            return Err(TargetError::Restarts(Restart {
                kernel,
                by: By::Auto,
            }));
        }
        if !(self.comes_up)(kernel) {
            return Err(gone());
        }
        let mut system = self.system.clone();
        match (self.release_of)(kernel) {
            release if release.is_empty() => {}
            release => system.kernel_release = release,
        }
        Ok(Box::new(FakeSession {
            story: Arc::clone(&self.story),
            build: self.build.clone(),
            system,
            facts: self.facts.clone(),
            scheduler: self.scheduler.clone(),
            applied_ns: self.applied_ns,
            calibrates_all_loads: self.calibrates_all_loads,
            calibrated: Arc::clone(&self.calibrated),
            happened: self.happened,
            ports_taken: Arc::clone(&self.ports_taken),
            replies: VecDeque::new(),
            after_load: None,
            dead: take_one(&self.never_answer),
            is_dying: false,
        }))
    }
}

/// The port of the server in every trial whose load runs on the controller.
const LISTENING_AT: u16 = 8080;
/// Added to the number of a port that is forwarded.
const FORWARDED: u16 = 1000;

/// Whether one was left.
fn take_one(left: &AtomicU32) -> bool {
    let one_less = |left: u32| left.checked_sub(1);
    left.fetch_update(Relaxed, Relaxed, one_less).is_ok()
}

fn gone() -> TargetError {
    TargetError::Gone {
        why: "signal 9".into(),
        tail: "Kernel panic".into(),
    }
}

/// State and figures of a trial whose agent lives.
fn end_of(fate: Fate) -> (TrialState, Vec<Measurement>) {
    let state = match fate {
        Fate::Ok(metrics) => return (TrialState::Ok, metrics),
        Fate::Failed(why) | Fate::FailedForGood(why) => TrialState::Failed { why: why.into() },
        Fate::Void(why) => TrialState::Void { why: why.into() },
        Fate::Dies | Fate::DiesInWindow => TrialState::Void { why: String::new() },
    };
    (state, Vec::new())
}

/// The window of a trial, where deaths within it are counted.
fn open_window(spec: &TrialSpec) -> Option<Reply> {
    let mut events = spec.observe.events.iter();
    let opened = Opened {
        at_ns: 0,
        evidence: Evidence::default(),
    };
    let counts_deaths = events.any(|event| event.when == When::GuestDeath);
    counts_deaths.then(|| Reply::InWindow {
        opened: Some(Box::new(opened)),
    })
}

struct FakeSession {
    story: Arc<Mutex<Story>>,
    build: Build,
    system: System,
    facts: Vec<Fact>,
    scheduler: Option<SchedulerBinary>,
    applied_ns: fn(&str) -> u64,
    calibrates_all_loads: bool,
    calibrated: Arc<AtomicU64>,
    happened: fn(&TrialSpec) -> Vec<Happened>,
    ports_taken: Arc<AtomicU32>,
    replies: VecDeque<Reply>,
    /// The end of a trial whose load runs elsewhere.
    after_load: Option<Reply>,
    dead: bool,
    /// Dead once all is read.
    is_dying: bool,
}

impl FakeSession {
    fn trial(&mut self, spec: &TrialSpec) {
        let Some(fate) = self.story.lock().ok().map(|mut story| story(spec)) else {
            return;
        };
        let for_good = matches!(fate, Fate::FailedForGood(_));
        let (state, metrics) = match fate {
            Fate::Dies => {
                self.dead = true;
                return;
            }
            Fate::DiesInWindow => {
                self.is_dying = true;
                self.replies.extend(open_window(spec));
                return;
            }
            fate => end_of(fate),
        };
        let result = TrialResult {
            state,
            started_unix_ns: 0,
            elapsed_ns: 1_000_000_000,
            window_start_ns: 0,
            window_end_ns: 1_000_000_000,
            evidence: Evidence {
                scheduler_binary: self.scheduler.clone(),
                applied_ns: (self.applied_ns)(&spec.arm.name),
                ..Evidence::default()
            },
            metrics,
            warnings: Vec::new(),
            for_good,
            trace: None,
            windows: None,
            events: (self.happened)(spec),
            rail: None,
        };
        let is_ok = result.state == TrialState::Ok;
        let ended = Reply::Trial {
            results: vec![result],
        };
        match &spec.part {
            Part::Beside { .. } if is_ok => {
                let services = vec![Listening {
                    service: "server".to_owned(),
                    port: String::new(),
                    number: LISTENING_AT,
                    is_asked: true,
                }];
                self.replies.push_back(Reply::Serving { services });
                self.after_load = Some(ended);
                return;
            }
            Part::Load { services, .. } => {
                assert_eq!(services[0].number, LISTENING_AT + FORWARDED);
                let edges = [Edge::Opened, Edge::Closed];
                self.replies
                    .extend(edges.map(|edge| Reply::Window { edge }));
            }
            Part::Beside { .. } | Part::Whole => {}
        }
        self.replies.push_back(ended);
    }
}

impl Session for FakeSession {
    fn forward_ports(&mut self, ports: &[u16]) -> Result<Vec<u16>, TargetError> {
        if take_one(&self.ports_taken) {
            return Err(TargetError::Io {
                step: "forward ports of",
                object: "the fake".to_owned(),
                source: std::io::ErrorKind::AddrInUse.into(),
            });
        }
        Ok(ports.iter().map(|port| port + FORWARDED).collect())
    }

    fn machine_facts(&mut self) -> Vec<Fact> {
        self.facts.clone()
    }

    fn save_machine(self: Box<Self>) -> Result<Saved, TargetError> {
        Saved::without_guest().map_err(|_| gone())
    }

    fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        let reply = match request {
            Request::Hello { .. } => Reply::Hello {
                protocol: PROTOCOL_VERSION,
                build: self.build.clone(),
            },
            Request::Probe { .. } => Reply::System {
                system: Box::new(self.system.clone()),
            },
            Request::Check { .. } => Reply::Checked {
                problems: Vec::new(),
                foreseen: Vec::new(),
            },
            Request::Calibrate { .. } => Reply::Calibrated {
                calibration: Calibration {
                    values: [("turn".to_owned(), self.calibrated.fetch_add(1, Relaxed) + 1)].into(),
                    of_all_loads: self.calibrates_all_loads,
                    ..Calibration::default()
                },
            },
            Request::Trial { spec } => {
                self.trial(spec);
                return Ok(());
            }
            Request::Listen { .. } => Reply::Refused {
                why: "the fake listens nowhere".to_owned(),
            },
            Request::Window { .. } | Request::Enough => return Ok(()),
            Request::LoadEnded => {
                self.replies.extend(self.after_load.take());
                return Ok(());
            }
            Request::Bye => Reply::Bye,
        };
        self.replies.push_back(reply);
        Ok(())
    }

    fn receive_reply(&mut self, _wait: Duration) -> Result<Option<Reply>, TargetError> {
        if self.dead {
            return Err(gone());
        }
        match self.replies.pop_front() {
            None if self.is_dying => Err(gone()),
            reply => Ok(reply),
        }
    }

    fn is_machine_dead(&self) -> bool {
        self.is_dying
    }
}
