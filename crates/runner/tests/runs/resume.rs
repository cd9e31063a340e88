//! Interrupted runs that go on: what is kept, measured again, or refused.

use crate::place::{Place, experiment, took, undecided};
use machines::fake::{FakeTarget, Fate};
use model::{Experiment, SchedulerBinary, Severity, Start, Trial};
use results::ResultSet;
use runner::{Outcome, RunError};

/// Neither decided nor set aside before its last block.
fn of_twelve_blocks() -> Experiment {
    let mut wanted = experiment(&["default", "same"]);
    wanted.stop.min_blocks = wanted.stop.max_blocks;
    wanted
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_resume_completes_the_same_plan() {
    let place = Place::new(of_twelve_blocks());
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
    let place = Place::new(of_twelve_blocks());
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
fn attempts_that_were_cut_short_go_on_after_a_resume() {
    let place = Place::new(experiment(&["broken", "same"]));
    let target = || FakeTarget::new(|_| Fate::Failed("exit status 1"));
    let before = place.run_until(2, target());
    assert_eq!(before.len(), 2);
    place.resume(target()).unwrap();
    let tried = before.first().map(|t| &t.arm);
    let again: Vec<u32> = place
        .trials()
        .iter()
        .filter(|t| Some(&t.arm) == tried)
        .map(|t| t.attempt)
        .collect();
    assert_eq!(again, [1, 2, 3]);
}
