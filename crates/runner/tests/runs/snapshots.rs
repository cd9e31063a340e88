//! Trials that go on from a snapshot.

use crate::place::{Place, experiment, took, wobble};
use machines::fake::{FakeTarget, Kept};
use model::{Experiment, Reset, TrialSpec};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// All trials of two arms in three blocks, and those before a snapshot, as the agents were told. An arm
/// that is called slow takes a minute to be put in force.
fn told(reset: Reset, arms: [&str; 2]) -> Vec<TrialSpec> {
    told_of(reset, experiment(&arms))
}

fn told_of(reset: Reset, experiment: Experiment) -> Vec<TrialSpec> {
    told_with(reset, experiment, None)
}

fn told_with(reset: Reset, mut experiment: Experiment, kept: Option<Kept>) -> Vec<TrialSpec> {
    (experiment.stop.min_blocks, experiment.stop.max_blocks) = (3, 3);
    let place = Place::new(experiment);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let story = {
        let seen = seen.clone();
        move |spec: &TrialSpec| {
            seen.lock().unwrap().push(spec.clone());
            took(wobble(spec.seed))
        }
    };
    let mut target = FakeTarget::new(story);
    target.can.reset = reset;
    target.kept = kept;
    target.applied_ns = |arm| if arm == "slow" { 60_000_000_000 } else { 0 };
    assert_eq!(place.run(target).len(), 6);
    seen.lock().unwrap().clone()
}

/// For each block, how often a machine was prepared for a snapshot in it.
fn prepared(reset: Reset) -> Vec<usize> {
    let mut blocks = vec![0];
    let mut trials = 0;
    for spec in told(reset, ["default", "nice"]) {
        if !spec.stays {
            trials += 1;
        } else if trials == 2 * blocks.len() {
            blocks.push(1);
        } else {
            *blocks.last_mut().unwrap() += 1;
        }
    }
    blocks
}

#[test]
fn services_are_saved_once_for_a_run_or_once_for_each_block() {
    assert_eq!(prepared(Reset::Snapshot), [1]);
    assert_eq!(prepared(Reset::BlockSnapshot), [1, 1, 1]);
    assert_eq!(prepared(Reset::None), [0]);
}

/// Arm and rest of each trial, in their order.
fn rests(reset: Reset) -> Vec<(String, u64)> {
    let told = told(reset, ["default", "slow"]).into_iter();
    told.map(|spec| (spec.arm.name, spec.rest_ns)).collect()
}

#[test]
fn an_arm_that_is_quick_to_be_in_force_rests_as_long_as_one_that_is_not_within_limits() {
    let rests_of = rests(Reset::Snapshot);
    assert_eq!(rests_of[0], ("snapshot".to_owned(), 0));
    let first = rests_of.iter().position(|(arm, _)| arm == "slow").unwrap();
    let (before, after) = rests_of.split_at(first + 1);
    assert!(before.iter().all(|(_, rest)| *rest == 0), "{rests_of:?}");
    assert!(after.len() >= 4, "{rests_of:?}");
    assert!(
        after.iter().all(|(_, rest)| *rest == 10_000_000_000),
        "{rests_of:?}"
    );
    assert!(rests(Reset::Trial).iter().all(|(_, rest)| *rest == 0));
}

#[test]
fn the_load_before_a_snapshot_has_a_warm_up_of_its_own() {
    let mut experiment = experiment(&["default", "nice"]);
    let workload = &mut experiment.workloads[0];
    workload.snapshot_warmup_ns = Some(workload.warmup_ns + 100_000_000_000);
    let (usual_ns, limit_ns) = (workload.warmup_ns, workload.time_limit_ns);
    for spec in told_of(Reset::Snapshot, experiment) {
        let longer_ns = if spec.stays { 100_000_000_000 } else { 0 };
        assert_eq!(spec.workload.warmup_ns, usual_ns + longer_ns);
        assert_eq!(spec.workload.time_limit_ns, limit_ns + longer_ns);
    }
}

#[test]
fn a_state_under_a_name_is_made_by_the_first_run_and_taken_with_its_calibrations_by_the_second() {
    let kept = Kept::default();
    let night = || {
        let experiment = experiment(&["default", "nice"]);
        told_with(Reset::Snapshot, experiment, Some(kept.clone()))
    };
    let first = night();
    let stays = |specs: &[TrialSpec]| specs.iter().filter(|spec| spec.stays).count();
    assert_eq!((stays(&first), first.len()), (1, 7));
    let cell = kept.lock().unwrap().clone().expect("a state");
    let (name, mut calibration) = cell.into_iter().next().expect("a calibration");
    // No calibration of the second night would find this.
    calibration.values.insert("turn".to_owned(), 4711);
    *kept.lock().unwrap() = Some([(name, calibration.clone())].into());
    let second = night();
    assert_eq!((stays(&second), second.len()), (0, 6));
    assert!(second.iter().all(|spec| spec.calibration == calibration));
}

#[test]
fn a_state_that_was_made_by_hand_is_calibrated_once_and_never_made() {
    let kept: Kept = Arc::new(Mutex::new(Some(BTreeMap::new())));
    let experiment = experiment(&["default", "nice"]);
    let told = told_with(Reset::Snapshot, experiment, Some(kept));
    assert!(told.iter().all(|spec| !spec.stays));
    let turns = told.iter().map(|spec| spec.calibration.values["turn"]);
    assert_eq!(turns.collect::<Vec<_>>(), [1; 6]);
}
