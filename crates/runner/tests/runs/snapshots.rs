//! Trials that go on from a snapshot.

use crate::place::{Place, experiment, took, wobble};
use model::Reset;
use std::sync::{Arc, Mutex};
use target::fake::FakeTarget;

/// For each block, how often a machine was prepared for a snapshot in it.
fn prepared(reset: Reset) -> Vec<usize> {
    let mut experiment = experiment(&["default", "nice"]);
    (experiment.stop.min_blocks, experiment.stop.max_blocks) = (3, 3);
    let place = Place::new(experiment);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let story = {
        let seen = seen.clone();
        move |spec: &model::TrialSpec| {
            seen.lock().unwrap().push(spec.stays);
            took(wobble(spec.seed))
        }
    };
    let mut target = FakeTarget::new(story);
    target.can.reset = reset;
    assert_eq!(place.run(target).len(), 6);
    let seen = seen.lock().unwrap();
    let mut blocks = vec![0];
    let mut trials = 0;
    for stays in seen.iter() {
        if !stays {
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
