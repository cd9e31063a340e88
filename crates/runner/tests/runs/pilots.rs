//! Pilots, which come before the first block.

use crate::place::{Place, experiment, took};
use machines::fake::{FakeTarget, Fate};
use model::{InPlace, Reset};
use std::sync::{Arc, Mutex};

#[test]
fn no_trial_has_the_machine_of_a_pilot_where_the_target_resets() {
    let mut experiment = experiment(&["default", "nice"]);
    (experiment.stop.min_blocks, experiment.stop.max_blocks) = (1, 1);
    let workload = &mut experiment.workloads[0];
    workload.duration_ns = 10_000_000_000;
    workload.in_place = Some(InPlace {
        pilot: true,
        ..InPlace::new(100_000_000)
    });
    let place = Place::new(experiment);
    // Label of each trial, and the boot that it came in.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let boots = Arc::new(Mutex::new(Vec::new()));
    let story = {
        let (seen, boots) = (seen.clone(), boots.clone());
        move |spec: &model::TrialSpec| {
            let is_pilot = spec.label.starts_with("pilot of ");
            seen.lock()
                .unwrap()
                .push((is_pilot, boots.lock().unwrap().len()));
            match is_pilot {
                true => Fate::Failed("no windows"),
                false => took(1.0),
            }
        }
    };
    let mut target = FakeTarget::new(story);
    target.can.reset = Reset::Trial;
    target.boots = boots;
    let trials = place.run(target);
    assert_eq!(trials.len(), 2);
    let seen = seen.lock().unwrap();
    let of = |pilot: bool| {
        let here = seen.iter().filter(move |(is_pilot, _)| *is_pilot == pilot);
        here.map(|(_, boot)| *boot).collect::<Vec<_>>()
    };
    let (pilots, trials) = (of(true), of(false));
    assert!(!pilots.is_empty() && trials.len() == 2, "{seen:?}");
    assert!(trials.iter().all(|boot| !pilots.contains(boot)), "{seen:?}");
}
