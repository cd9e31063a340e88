//! Runs over a fake target: order, repetition, stopping, resuming.

#![allow(clippy::unwrap_used)]

use model::{
    Arm, Better, CommandParams, Experiment, Kind, Load, Measurement, Plan, Problem, Stop,
    TargetSpec, Trial, TrialState, Workload,
};
use results::{FORMAT, Manifest, ResultSet, RunState, Writer};
use runner::{Event, Options, Outcome, RunError, run};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use target::fake::{FakeTarget, Fate};

fn experiment(arms: &[&str]) -> Experiment {
    Experiment {
        name: "x".into(),
        question: None,
        seed: 1,
        target: TargetSpec::Local,
        arms: arms.iter().map(|name| Arm::unchanged(name)).collect(),
        baseline: 0,
        workloads: vec![Workload {
            name: "make".into(),
            kind: Kind::Command(CommandParams {
                argv: vec!["make".into()],
                directory: None,
                prepare: Vec::new(),
            }),
            loads: vec![Load::One],
            duration_ns: 0,
            warmup_ns: 0,
            time_limit_ns: 1_000_000_000,
            metrics: vec!["wall_time".into()],
            server: None,
            antagonists: Vec::new(),
            variant: None,
        }],
        stop: Stop {
            budget_ns: None,
            confidence: 0.95,
            smallest_effect: 0.02,
            min_blocks: 3,
            max_blocks: 12,
            max_attempts: 3,
        },
        aa_arm: None,
    }
}

fn took(seconds: f64) -> Fate {
    Fate::Ok(vec![Measurement {
        metric: "wall_time".into(),
        unit: "s".into(),
        better: Better::Lower,
        value: seconds,
    }])
}

/// Noise that repeats and has no direction.
fn wobble(seed: u64) -> f64 {
    1.0 + 0.001 * ((seed % 7) as f64 - 3.0)
}

struct Place {
    dir: tempfile::TempDir,
    experiment: Experiment,
    plan: Plan,
}

impl Place {
    fn new(experiment: Experiment) -> Self {
        let plan = plan::plan(&experiment);
        Place {
            dir: tempfile::tempdir().unwrap(),
            experiment,
            plan,
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn writer(&self) -> Writer {
        let manifest = Manifest {
            format: FORMAT,
            tool_version: String::new(),
            tool_commit: String::new(),
            name: "x".into(),
            seed: 1,
            created: String::new(),
            state: RunState::Running,
            warnings: Vec::new(),
        };
        Writer::create(self.path(), manifest, None, &self.experiment, &self.plan).unwrap()
    }

    fn run_with(
        &self,
        mut target: FakeTarget,
        mut writer: Writer,
        done: Vec<Trial>,
        mut sink: impl FnMut(&Event, &AtomicBool),
    ) -> Result<Outcome, RunError> {
        let interrupted = AtomicBool::new(false);
        let options = Options {
            interrupted: &interrupted,
            done,
            calibrations: BTreeMap::new(),
        };
        let mut watch = |event: Event| sink(&event, &interrupted);
        run(
            &self.experiment,
            &self.plan,
            &mut target,
            &mut writer,
            options,
            &mut watch,
        )
    }

    fn run(&self, target: FakeTarget) -> Vec<Trial> {
        self.run_with(target, self.writer(), Vec::new(), |_, _| {})
            .unwrap();
        self.trials()
    }

    fn trials(&self) -> Vec<Trial> {
        let set = ResultSet::read(self.path()).unwrap();
        set.trials.into_iter().map(|t| t.trial).collect()
    }
}

#[test]
fn a_clear_difference_ends_the_run_early() {
    let place = Place::new(experiment(&["default", "slow"]));
    let trials = place.run(FakeTarget::new(|spec| {
        took(wobble(spec.seed) * if spec.arm.name == "slow" { 1.5 } else { 1.0 })
    }));
    let blocks = trials.iter().map(|t| t.place.block).max().unwrap();
    assert!((3..12).contains(&blocks), "{blocks} blocks");
    assert_eq!(trials.len() as u32, 2 * blocks);
}

#[test]
fn noise_without_an_answer_goes_on_to_the_last_block() {
    let place = Place::new(experiment(&["default", "same"]));
    let mut turn = 0u32;
    let trials = place.run(FakeTarget::new(move |_| {
        turn += 1;
        took(if turn.is_multiple_of(3) {
            1.3
        } else {
            1.0 + f64::from(turn % 5) / 20.0
        })
    }));
    assert_eq!(trials.len(), 24);
}

#[test]
fn a_void_trial_is_repeated_and_kept_beside_the_one_that_counts() {
    let place = Place::new(experiment(&["default", "other"]));
    let mut first = true;
    let trials = place.run(FakeTarget::new(move |spec| {
        if std::mem::take(&mut first) {
            return Fate::Void("ejected");
        }
        took(wobble(spec.seed) * if spec.arm.name == "other" { 2.0 } else { 1.0 })
    }));
    let place_0: Vec<_> = trials.iter().filter(|t| t.place.index == 0).collect();
    assert_eq!(place_0.len(), 2);
    let void = TrialState::Void {
        why: "ejected".into(),
    };
    assert_eq!((place_0[0].attempt, &place_0[0].result.state), (1, &void));
    assert_eq!((place_0[1].attempt, place_0[1].is_ok()), (2, true));
}

#[test]
fn nothing_is_repeated_once_the_budget_is_spent() {
    let attempts = |budget_ns| {
        let mut experiment = experiment(&["default", "other"]);
        experiment.stop.budget_ns = budget_ns;
        let trials = Place::new(experiment).run(FakeTarget::new(|_| Fate::Void("ejected")));
        trials.iter().map(|t| t.attempt).max()
    };
    assert_eq!(attempts(None), Some(3));
    assert_eq!(attempts(Some(1)), Some(1));
}

#[test]
fn a_dead_agent_voids_its_trial_with_the_last_lines_and_is_started_again() {
    let place = Place::new(experiment(&["default", "other"]));
    let mut turn = 0;
    let target = FakeTarget::new(move |spec| {
        turn += 1;
        if turn == 3 {
            return Fate::Dies;
        }
        took(wobble(spec.seed) * if spec.arm.name == "other" { 2.0 } else { 1.0 })
    });
    let boots = target.boots.clone();
    let trials = place.run(target);
    let void = trials.iter().find(|t| !t.is_ok()).expect("one is void");
    let why = void.result.state.why().unwrap();
    assert!(
        why.contains("signal 9") && why.contains("Kernel panic"),
        "{why}"
    );
    assert_eq!(boots.lock().unwrap().len(), 2);
}

#[test]
fn an_arm_that_never_works_is_given_up_and_the_others_go_on() {
    let place = Place::new(experiment(&["default", "broken", "good"]));
    let trials = place.run(FakeTarget::new(|spec| match spec.arm.name.as_str() {
        "broken" => Fate::Failed("exit status 1"),
        "good" => took(0.5 * wobble(spec.seed)),
        _ => took(wobble(spec.seed)),
    }));
    assert_eq!(trials.iter().filter(|t| t.arm == "broken").count(), 3);
    assert!(trials.iter().filter(|t| t.arm == "good").count() >= 3);
    assert!(
        trials.len() < 3 * 12,
        "the cell was decided without the broken arm"
    );
}

#[test]
fn a_run_whose_baseline_never_works_ends() {
    let place = Place::new(experiment(&["default", "good"]));
    let trials = place.run(FakeTarget::new(|spec| match spec.arm.name.as_str() {
        "default" => Fate::Failed("exit status 1"),
        _ => took(1.0),
    }));
    assert!(trials.iter().filter(|t| t.arm == "default").count() == 3);
    assert!(trials.len() <= 4, "{}", trials.len());
}

#[test]
fn the_budget_ends_a_run_but_never_before_the_first_block() {
    let mut wanted = experiment(&["default", "same"]);
    wanted.stop.budget_ns = Some(1);
    let place = Place::new(wanted);
    let trials = place.run(FakeTarget::new(|_| took(1.0)));
    assert_eq!(trials.len(), 2);
    let said = warnings(&place);
    let expected = "The budget of 1ns ended the run after 1 of at least 3 blocks.";
    assert!(said.iter().any(|what| what == expected), "{said:?}");
}

#[test]
fn a_run_that_is_decided_or_at_its_last_block_does_not_blame_the_budget() {
    let mut wanted = experiment(&["default", "same"]);
    wanted.stop.budget_ns = Some(3_600_000_000_000);
    let place = Place::new(wanted);
    place.run(FakeTarget::new(|spec| took(wobble(spec.seed))));
    assert_eq!(warnings(&place), [""; 0]);
}

fn warnings(place: &Place) -> Vec<String> {
    let results = ResultSet::read(place.path()).unwrap();
    let warnings = results.manifest.warnings.into_iter();
    warnings.map(|warning| warning.what).collect()
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_resume_completes_the_same_plan() {
    let place = Place::new(experiment(&["default", "same"]));
    let mut turn = 0u32;
    let mut noise = move || {
        turn += 1;
        took(1.0 + f64::from(turn * 7 % 5) / 5.0)
    };
    let mut ended = 0;
    let target = FakeTarget::new(move |_| noise());
    let outcome = place.run_with(target.clone(), place.writer(), Vec::new(), |event, stop| {
        if matches!(event, Event::TrialEnded { .. }) {
            ended += 1;
            stop.store(ended == 5, Ordering::Relaxed);
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Interrupted);
    let first = place.trials();
    assert_eq!(first.len(), 5);
    let writer = Writer::reopen(place.path()).unwrap();
    let resumed = place.run_with(target, writer, first.clone(), |_, _| {});
    assert_eq!(resumed.unwrap(), Outcome::Done);
    let all = place.trials();
    assert_eq!(all[..5], first[..]);
    let places: Vec<u32> = all.iter().map(|t| t.place.index).collect();
    assert_eq!(places, (0..24).collect::<Vec<u32>>());
}

#[test]
fn one_arm_alone_is_measured_a_few_times() {
    let place = Place::new(experiment(&["default"]));
    let trials = place.run(FakeTarget::new(|_| took(1.0)));
    assert_eq!(trials.len(), 5);
}

#[test]
fn an_unmet_requirement_ends_the_run_before_the_first_trial() {
    let place = Place::new(experiment(&["default", "same"]));
    let mut target = FakeTarget::new(|_| unreachable!("nothing may run"));
    target.problems.push(Problem {
        object: "arm same".into(),
        what: "needs root".into(),
        remedy: "run as root".into(),
    });
    let refused = place.run_with(target, place.writer(), Vec::new(), |_, _| {});
    assert!(matches!(refused, Err(RunError::Unmet(problems)) if problems.len() == 1));
}

#[test]
fn arms_with_two_kernels_boot_each_in_every_block() {
    let mut wanted = experiment(&["old", "new"]);
    wanted.arms[1].kernel = Some("debian:sid".into());
    wanted.stop.max_blocks = 2;
    wanted.stop.min_blocks = 2;
    let place = Place::new(wanted);
    let target = FakeTarget::new(|_| took(1.0));
    let boots = target.boots.clone();
    place.run(target);
    let sid = Some("debian:sid".to_owned());
    let boots = boots.lock().unwrap();
    assert_eq!(
        boots[..2],
        [sid.clone(), None],
        "both are checked before the first trial"
    );
    assert!(
        boots.iter().filter(|b| **b == sid).count() >= 2,
        "{boots:?}"
    );
}
