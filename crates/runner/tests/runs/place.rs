//! Experiment over a fake target in a directory of its own.

use machines::Target;
use machines::fake::{FakeTarget, Fate};
use model::{
    Arm, Better, Build, Experiment, Kind, Measurement, Observe, Plan, StopRule, TargetSpec, Trial,
    Workload,
};
use results::read::{read_calibrations, read_trials};
use results::{FORMAT, Manifest, ResultSet, RunState, Writer};
use runner::{Event, Member, Options, Outcome, RunError, run_plan};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub fn experiment(arms: &[&str]) -> Experiment {
    Experiment {
        name: "x".into(),
        question: None,
        seed: 1,
        target: TargetSpec::local(),
        arms: arms.iter().map(|name| Arm::unchanged(name)).collect(),
        baseline: 0,
        workloads: vec![Workload {
            name: "make".into(),
            metrics: vec!["wall_time".into()],
            time_limit_ns: 1_000_000_000,
            ..Workload::new(Kind::new("command").with_param("argv", vec!["make"]))
        }],
        pause_ns: 0,
        stop: StopRule {
            max_blocks: 12,
            ..StopRule::default()
        },
        observe: Observe::default(),
        aa_arm: None,
    }
}

pub fn took(seconds: f64) -> Fate {
    Fate::Ok(vec![Measurement {
        metric: "wall_time".into(),
        unit: "s".into(),
        better: Better::Lower,
        value: seconds,
        own: None,
    }])
}

/// Noise that repeats and has no direction.
pub fn wobble(seed: u64) -> f64 {
    1.0 + 0.001 * ((seed % 7) as f64 - 3.0)
}

/// Experiment, its plan, and the directory that its results go to.
pub struct Place {
    pub dir: tempfile::TempDir,
    pub experiment: Experiment,
    pub plan: Plan,
    /// Resume although something differs?
    pub anyway: bool,
    /// Resume after the machine was restarted in order?
    pub continues: bool,
}

impl Place {
    pub fn new(experiment: Experiment) -> Self {
        let plan = schedule::plan_blocks(&experiment);
        Place {
            dir: tempfile::tempdir().unwrap(),
            experiment,
            plan,
            anyway: false,
            continues: false,
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn writer(&self) -> Writer {
        let manifest = Manifest {
            format: FORMAT,
            tool_version: String::new(),
            tool_commit: String::new(),
            name: "x".into(),
            seed: 1,
            created: String::new(),
            state: RunState::Running,
            warnings: Vec::new(),
            sources: Vec::new(),
            together: false,
        };
        Writer::create(self.path(), manifest, None, &self.experiment, &self.plan).unwrap()
    }

    pub fn run_with(
        &self,
        target: FakeTarget,
        writer: Writer,
        done: Vec<Trial>,
        sink: impl FnMut(&Event, &AtomicBool),
    ) -> Result<Outcome, RunError> {
        self.run_beside(target, None, writer, done, sink)
    }

    /// With a controller for the loads that are to run there.
    pub fn run_beside(
        &self,
        target: FakeTarget,
        controller: Option<FakeTarget>,
        writer: Writer,
        done: Vec<Trial>,
        sink: impl FnMut(&Event, &AtomicBool),
    ) -> Result<Outcome, RunError> {
        self.run_in(None, target, controller, writer, done, sink)
    }

    /// As one of several machines.
    pub fn run_in(
        &self,
        pool: Option<Member>,
        mut target: FakeTarget,
        mut controller: Option<FakeTarget>,
        mut writer: Writer,
        done: Vec<Trial>,
        mut sink: impl FnMut(&Event, &AtomicBool),
    ) -> Result<Outcome, RunError> {
        let interrupted = AtomicBool::new(false);
        let options = Options {
            controller: controller.as_mut().map(|c| c as &mut dyn Target),
            interrupted: &interrupted,
            done,
            calibrations: read_calibrations(self.path()).unwrap(),
            began: "2026-11-21T10:00:00Z".to_owned(),
            build: Build::default(),
            anyway: self.anyway,
            continues: self.continues,
            away: Duration::ZERO,
            pool,
            left_out: BTreeSet::new(),
        };
        let mut watch = |event: Event| sink(&event, &interrupted);
        run_plan(
            &self.experiment,
            &self.plan,
            &mut target,
            &mut writer,
            options,
            &mut watch,
        )
    }

    /// Starts a run and interrupts it after some trials.
    pub fn run_until(&self, trials: usize, target: FakeTarget) -> Vec<Trial> {
        let mut ended = 0;
        let outcome = self.run_with(target, self.writer(), Vec::new(), |event, stop| {
            if matches!(event, Event::TrialEnded { .. }) {
                ended += 1;
                stop.store(ended == trials, Ordering::Relaxed);
            }
        });
        assert_eq!(outcome.unwrap(), Outcome::Interrupted);
        self.trials()
    }

    /// Goes on with a run and interrupts it after some trials.
    pub fn resume_until(&self, trials: usize, target: FakeTarget) {
        let writer = Writer::reopen(self.path()).unwrap();
        let mut ended = 0;
        let outcome = self.run_with(target, writer, self.trials(), |event, stop| {
            if matches!(event, Event::TrialEnded { .. }) {
                ended += 1;
                stop.store(ended == trials, Ordering::Relaxed);
            }
        });
        assert_eq!(outcome.unwrap(), Outcome::Interrupted);
    }

    pub fn resume(&self, target: FakeTarget) -> Result<Outcome, RunError> {
        let writer = Writer::reopen(self.path()).unwrap();
        self.run_with(target, writer, self.trials(), |_, _| {})
    }

    pub fn run(&self, target: FakeTarget) -> Vec<Trial> {
        self.run_with(target, self.writer(), Vec::new(), |_, _| {})
            .unwrap();
        self.trials()
    }

    pub fn trials(&self) -> Vec<Trial> {
        let trials = read_trials(self.path()).unwrap();
        trials.into_iter().map(|t| t.trial).collect()
    }
}

pub fn warnings(place: &Place) -> Vec<String> {
    let results = ResultSet::read(place.path()).unwrap();
    let warnings = results.manifest.warnings.into_iter();
    warnings.map(|warning| warning.what).collect()
}

/// Noise that decides nothing.
pub fn undecided() -> FakeTarget {
    let mut turn = 0u32;
    FakeTarget::new(move |_| {
        turn += 1;
        took(1.0 + f64::from(turn * 7 % 5) / 5.0)
    })
}
