//! Runs over a fake target: order, repetition, stopping, resuming.

#![allow(clippy::unwrap_used)]

use model::{
    Arm, Better, Build, Experiment, Fact, Kind, Measurement, Part, Plan, PlannedTrial, Problem,
    SchedulerBinary, Severity, Start, StopRule, TargetSpec, Trial, TrialSpec, TrialState, Workload,
};
use results::{FORMAT, Manifest, ResultSet, RunState, Writer};
use runner::{Event, Options, Outcome, RunError, run};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use target::Target;
use target::fake::{FakeTarget, Fate};

fn experiment(arms: &[&str]) -> Experiment {
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
            ..Workload::new(Kind::new("command").with("argv", vec!["make"]))
        }],
        stop: StopRule {
            max_blocks: 12,
            ..StopRule::default()
        },
        collect: None,
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
    /// Resume although something differs?
    anyway: bool,
}

impl Place {
    fn new(experiment: Experiment) -> Self {
        let plan = schedule::plan(&experiment);
        Place {
            dir: tempfile::tempdir().unwrap(),
            experiment,
            plan,
            anyway: false,
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
        target: FakeTarget,
        writer: Writer,
        done: Vec<Trial>,
        sink: impl FnMut(&Event, &AtomicBool),
    ) -> Result<Outcome, RunError> {
        self.run_beside(target, None, writer, done, sink)
    }

    /// With a controller for the loads that are to run there.
    fn run_beside(
        &self,
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
            calibrations: BTreeMap::new(),
            began: "2026-11-21T10:00:00Z".to_owned(),
            build: Build::default(),
            anyway: self.anyway,
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

    /// Starts a run and interrupts it after some trials.
    fn run_until(&self, trials: usize, target: FakeTarget) -> Vec<Trial> {
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

    fn resume(&self, target: FakeTarget) -> Result<Outcome, RunError> {
        let writer = Writer::reopen(self.path()).unwrap();
        self.run_with(target, writer, self.trials(), |_, _| {})
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
    assert_eq!(trials.len(), 2 * blocks as usize);
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

/// Noise that decides nothing.
fn undecided() -> FakeTarget {
    let mut turn = 0u32;
    FakeTarget::new(move |_| {
        turn += 1;
        took(1.0 + f64::from(turn * 7 % 5) / 5.0)
    })
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_resume_completes_the_same_plan() {
    let place = Place::new(experiment(&["default", "same"]));
    let first = place.run_until(4, undecided());
    assert_eq!(first.len(), 4);
    assert_eq!(place.resume(undecided()).unwrap(), Outcome::Done);
    let all = place.trials();
    assert_eq!(all[..4], first[..]);
    let places: Vec<u32> = all.iter().map(|t| t.place.index).collect();
    assert_eq!(places, (0..24).collect::<Vec<u32>>());
    assert!(all.iter().all(|t| t.attempt == 1));
}

#[test]
fn a_block_that_was_half_done_is_measured_again_after_a_resume() {
    let place = Place::new(experiment(&["default", "same"]));
    let first = place.run_until(5, undecided());
    place.resume(undecided()).unwrap();
    let all = place.trials();
    assert_eq!(all.len(), 24, "one trial counts for each place");
    assert_eq!(all[..4], first[..4]);
    let third_block: Vec<_> = all.iter().filter(|t| t.place.block == 3).collect();
    assert_eq!(third_block.len(), 2);
    assert!(third_block.iter().all(|t| t.start == 2), "{third_block:?}");
    assert_eq!(third_block[0].attempt, 2, "the first attempt stays on disk");
}

#[test]
fn a_block_without_an_arm_that_never_worked_is_not_half_done() {
    let place = Place::new(experiment(&["default", "same", "broken"]));
    let mut turn = 0u32;
    let target = FakeTarget::new(move |spec| match spec.arm.name.as_str() {
        "broken" => Fate::Failed("exit status 1"),
        _ => {
            turn += 1;
            took(1.0 + f64::from(turn * 7 % 5) / 5.0)
        }
    });
    // Four blocks: the broken arm three times, the others in every block.
    let first = place.run_until(3 + 8, target.clone());
    place.resume(target).unwrap();
    let kept = |t: &&Trial| t.is_ok() && t.place.block <= 4;
    let kept: Vec<Trial> = place.trials().iter().filter(kept).cloned().collect();
    let before: Vec<Trial> = first.into_iter().filter(|t| t.is_ok()).collect();
    assert_eq!(kept, before);
}

#[test]
fn a_trial_on_another_kernel_than_its_arm_says_is_void_with_both_names() {
    let place = Place::new(experiment(&["default", "same"]));
    let mut target = undecided();
    target.facts = vec![Fact::found("kernel", "6.12.1 #7 SMP").wants("6.13.0 #1 SMP")];
    let trials = place.run(target);
    assert!(!trials.is_empty());
    for trial in trials {
        let why = "the kernel was 6.12.1 #7 SMP, not 6.13.0 #1 SMP";
        assert_eq!(trial.result.state.why(), Some(why));
        assert!(trial.result.metrics.is_empty(), "{:?}", trial.result);
    }
}

fn with_kernel(mut target: FakeTarget, release: &str) -> FakeTarget {
    target.system.kernel_release = release.to_owned();
    target
}

#[test]
fn a_resume_on_another_kernel_is_refused_and_changes_nothing() {
    let place = Place::new(experiment(&["default", "same"]));
    let before = place.run_until(4, with_kernel(undecided(), "6.12.1"));
    let refused = place.resume(with_kernel(undecided(), "6.13.0"));
    let Err(RunError::Mixed(problems)) = refused else {
        panic!("{refused:?}");
    };
    assert!(problems[0].what.contains("6.12.1") && problems[0].what.contains("6.13.0"));
    assert_eq!(place.trials(), before);
    let set = ResultSet::read(place.path()).unwrap();
    assert_eq!(set.starts.len(), 1);
    let resumed = place.resume(with_kernel(undecided(), "6.12.1"));
    assert_eq!(resumed.unwrap(), Outcome::Done);
}

#[test]
fn a_resume_on_another_kernel_that_is_wanted_anyway_is_said_in_the_results() {
    let mut place = Place::new(experiment(&["default", "same"]));
    place.run_until(4, with_kernel(undecided(), "6.12.1"));
    place.anyway = true;
    place.resume(with_kernel(undecided(), "6.13.0")).unwrap();
    let set = ResultSet::read(place.path()).unwrap();
    let mut warnings = set.manifest.warnings.iter();
    let said = warnings.find(|w| w.severity == Severity::Serious);
    let said = &said.expect("a warning").what;
    assert!(said.contains("6.12.1") && said.contains("6.13.0"), "{said}");
    let kernel = |start: &Start| start.machines[0].system.kernel_release.clone();
    let kernels: Vec<String> = set.starts.iter().map(kernel).collect();
    assert_eq!(kernels, ["6.12.1", "6.13.0"]);
    assert_eq!(set.system.kernel_release, "6.12.1");
}

#[test]
fn a_scheduler_that_was_replaced_ends_the_run() {
    let place = Place::new(experiment(&["default", "same"]));
    let with_scheduler = |sha256: &str| {
        let mut target = undecided();
        target.scheduler = Some(SchedulerBinary {
            path: "/opt/scx_rusty".to_owned(),
            args: Vec::new(),
            sha256: sha256.to_owned(),
            version: None,
        });
        target
    };
    let before = place.run_until(4, with_scheduler("aaaa"));
    let refused = place.resume(with_scheduler("bbbb"));
    let Err(RunError::Mixed(problems)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(problems[0].object, "/opt/scx_rusty");
    assert_eq!(place.trials(), before);
}

#[test]
fn an_agent_of_another_build_is_refused() {
    let place = Place::new(experiment(&["default", "same"]));
    let mut target = undecided();
    target.build.commit = "abc".to_owned();
    let refused = place.run_with(target, place.writer(), Vec::new(), |_, _| {});
    let other = matches!(refused, Err(RunError::OtherBuild { .. }));
    assert!(other, "{refused:?}");
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
    let kernels = |trial: &PlannedTrial| place.experiment.arms[trial.arm].kernel.clone();
    let mut wanted: Vec<_> = place.plan.trials.iter().map(kernels).collect();
    wanted.dedup();
    assert!(wanted.contains(&Some("debian:sid".to_owned())));
    assert_eq!(*boots.lock().unwrap(), wanted, "and none before its trial");
}

fn with_two_kernels(experiment: &mut Experiment) {
    experiment.arms[1].kernel = Some("debian:sid".into());
}

#[test]
fn each_kernel_is_on_record_as_it_first_came_up_and_the_baselines_is_the_runs() {
    let mut wanted = experiment(&["old", "new"]);
    with_two_kernels(&mut wanted);
    wanted.baseline = 1;
    let place = Place::new(wanted);
    let mut target = undecided();
    target.release_of = |kernel| kernel.map_or("6.12.1", |_| "6.18.1").to_owned();
    place.run(target);
    let set = ResultSet::read(place.path()).unwrap();
    assert_eq!(set.starts.len(), 1);
    let machines = &set.starts[0].machines;
    let releases: BTreeSet<&str> = machines
        .iter()
        .map(|m| m.system.kernel_release.as_str())
        .collect();
    assert_eq!(machines.len(), 2);
    assert_eq!(releases, BTreeSet::from(["6.12.1", "6.18.1"]));
    assert_eq!(set.system.kernel_release, "6.18.1");
}

#[test]
fn a_resume_boots_no_kernel_before_its_trial_and_none_when_nothing_is_left() {
    let mut wanted = experiment(&["old", "new"]);
    with_two_kernels(&mut wanted);
    let place = Place::new(wanted);
    place.run_until(4, undecided());
    let target = undecided();
    let boots = target.boots.clone();
    place.resume(target).unwrap();
    let first = place.plan.trials.iter().find(|t| t.block == 3).unwrap();
    let first = place.experiment.arms[first.arm].kernel.clone();
    assert_eq!(boots.lock().unwrap()[0], first);

    let target = undecided();
    let boots = target.boots.clone();
    assert_eq!(place.resume(target).unwrap(), Outcome::Done);
    assert!(boots.lock().unwrap().is_empty());
    assert_eq!(ResultSet::read(place.path()).unwrap().starts.len(), 2);
}

#[test]
fn a_kernel_that_never_comes_up_is_given_up_and_the_others_go_on() {
    let mut wanted = experiment(&["old", "new", "same"]);
    with_two_kernels(&mut wanted);
    // The first kernel of a run must come up, or the run does not begin.
    let begins_with_new = |wanted: &Experiment| schedule::plan(wanted).trials[0].arm == 1;
    while begins_with_new(&wanted) {
        wanted.seed += 1;
    }
    let place = Place::new(wanted);
    let mut target = undecided();
    target.comes_up = |kernel| kernel.is_none();
    let trials = place.run(target);
    let lost: Vec<&Trial> = trials.iter().filter(|t| t.arm == "new").collect();
    assert_eq!(lost.len(), 3);
    assert!(lost.iter().all(|t| !t.is_ok()));
    assert!(
        trials
            .iter()
            .filter(|t| t.arm == "same" && t.is_ok())
            .count()
            >= 3
    );
}

#[test]
fn a_hopeless_arm_is_not_tried_again_after_a_resume() {
    let place = Place::new(experiment(&["default", "same", "broken"]));
    let broken = |mut turn: u32| {
        FakeTarget::new(move |spec| match spec.arm.name.as_str() {
            "broken" => Fate::Failed("exit status 1"),
            _ => {
                turn += 1;
                took(1.0 + f64::from(turn * 7 % 5) / 5.0)
            }
        })
    };
    place.run_until(3 + 4, broken(0));
    place.resume(broken(0)).unwrap();
    let tried = |trials: Vec<Trial>| trials.iter().filter(|t| t.arm == "broken").count();
    assert_eq!(tried(place.trials()), 3);
}

#[test]
fn an_arm_whose_attempts_were_cut_short_is_tried_again_after_a_resume() {
    let place = Place::new(experiment(&["broken", "same"]));
    let target = || FakeTarget::new(|_| Fate::Failed("exit status 1"));
    let before = place.run_until(2, target());
    assert_eq!(before.len(), 2);
    place.resume(target()).unwrap();
    assert!(place.trials().len() > before.len());
}

/// Two cells, of which one is decided long before the other; an arm that never works in
/// one of them, and a trial that is void now and then.
fn uneven() -> (Place, Vec<Trial>) {
    let mut wanted = experiment(&["default", "slow", "broken"]);
    let mut noisy = wanted.workloads[0].clone();
    noisy.name = "noisy".into();
    wanted.workloads.push(noisy);
    wanted.stop.max_attempts = 2;
    let place = Place::new(wanted);
    let mut turn = 0u32;
    let trials = place.run(FakeTarget::new(move |spec| {
        turn += 1;
        let name = spec.arm.name.as_str();
        match spec.workload.name.as_str() {
            "make" if name == "broken" => Fate::Failed("exit status 1"),
            "noisy" if turn.is_multiple_of(7) => Fate::Void("ejected"),
            "noisy" => took(1.0 + f64::from(turn * 7 % 5) / 5.0),
            _ => took(wobble(spec.seed) * if name == "slow" { 1.5 } else { 1.0 }),
        }
    }));
    (place, trials)
}

#[test]
fn a_run_explains_every_place_that_it_left_out() {
    let (place, trials) = uneven();
    let last = |cell: &str| {
        let here = trials.iter().filter(|t| t.cell == cell);
        here.map(|t| t.place.block).max()
    };
    assert!(
        last("make") < last("noisy"),
        "one is decided before the other"
    );
    let left_out = runner::unexplained(&place.experiment, &place.plan, &trials);
    assert_eq!(left_out, [] as [&model::PlannedTrial; 0]);
}

#[test]
fn trials_that_were_taken_away_are_missed() {
    let (place, trials) = uneven();
    let missed = |taken: &dyn Fn(&Trial) -> bool| -> Vec<u32> {
        let left: Vec<Trial> = trials.iter().filter(|t| !taken(t)).cloned().collect();
        let missed = runner::unexplained(&place.experiment, &place.plan, &left);
        missed.iter().map(|place| place.index).collect()
    };
    let of = |cell: &str, block: u32| -> Vec<u32> {
        let here = trials
            .iter()
            .filter(|t| t.cell == cell && t.place.block == block);
        let mut here: Vec<u32> = here.map(|t| t.place.index).collect();
        here.dedup();
        here
    };
    assert_eq!(
        missed(&|t| t.cell == "noisy" && t.place.block == 5),
        of("noisy", 5)
    );
    // Without a block the cell was not decided either, where the run left it.
    let first_of_make = of("make", 1);
    let missed_of_make = missed(&|t| t.cell == "make" && t.place.block == 1);
    assert!(
        missed_of_make.starts_with(&first_of_make),
        "{missed_of_make:?}"
    );
    let inconvenient = |t: &Trial| t.cell == "noisy" && t.arm == "slow" && t.place.block < 9;
    assert!(missed(&inconvenient).len() >= 8);
}

/// An experiment whose load runs on the controller, on a target that is another machine.
fn apart(load: impl FnMut(&TrialSpec) -> Fate + Send + 'static, target: FakeTarget) -> Vec<Trial> {
    let mut experiment = experiment(&["default", "slow"]);
    experiment.workloads[0].load_on = model::Place::Controller;
    let place = Place::new(experiment);
    let mut target = target;
    target.can.apart = true;
    let controller = FakeTarget::new(load);
    place
        .run_beside(
            target,
            Some(controller),
            place.writer(),
            Vec::new(),
            |_, _| {},
        )
        .unwrap();
    place.trials()
}

/// The part of the target has a figure of its own.
fn steal(_: &TrialSpec) -> Fate {
    Fate::Ok(vec![Measurement {
        metric: "steal_time".into(),
        unit: "s".into(),
        better: Better::Neither,
        value: 0.5,
    }])
}

#[test]
fn a_load_on_the_controller_gives_the_figures_and_the_target_its_own() {
    let load = |spec: &TrialSpec| {
        assert!(matches!(spec.part, Part::Load { .. }) && spec.arm.summary() == "default");
        took(wobble(spec.seed) * if spec.arm.name == "slow" { 1.5 } else { 1.0 })
    };
    let trials = apart(load, FakeTarget::new(steal));
    assert!(
        trials.len() >= 6 && trials.iter().all(Trial::is_ok),
        "{trials:?}"
    );
    for trial in &trials {
        let metrics = trial.result.metrics.iter();
        let names: BTreeSet<&str> = metrics.map(|m| m.metric.as_str()).collect();
        assert_eq!(names, BTreeSet::from(["wall_time", "steal_time"]));
    }
}

#[test]
fn a_load_that_fails_on_the_controller_fails_its_trial_and_says_where() {
    let trials = apart(|_| Fate::Failed("exit status 1"), FakeTarget::new(steal));
    let why = trials[0].result.state.why().unwrap();
    assert_eq!(why, "the load, on the controller: exit status 1");
    assert!(trials[0].result.metrics.is_empty());
}

#[test]
fn a_load_whose_services_do_not_start_is_not_begun() {
    let begun = Arc::new(AtomicBool::new(false));
    let seen = begun.clone();
    let load = move |_: &TrialSpec| {
        seen.store(true, Ordering::Relaxed);
        took(1.0)
    };
    let trials = apart(load, FakeTarget::new(|_| Fate::Failed("no port")));
    assert!(
        trials
            .iter()
            .all(|t| t.result.state.why() == Some("no port"))
    );
    assert!(!begun.load(Ordering::Relaxed));
}

#[test]
fn a_controller_that_dies_voids_the_trial_and_is_started_again() {
    let mut turn = 0;
    let load = move |spec: &TrialSpec| {
        turn += 1;
        if turn == 2 {
            return Fate::Dies;
        }
        took(wobble(spec.seed) * if spec.arm.name == "slow" { 1.5 } else { 1.0 })
    };
    let trials = apart(load, FakeTarget::new(steal));
    let void: Vec<&Trial> = trials.iter().filter(|t| !t.is_ok()).collect();
    assert_eq!(void.len(), 1);
    assert!(trials.iter().filter(|t| t.is_ok()).count() >= 6);
}
