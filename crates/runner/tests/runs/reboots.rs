//! Kernels that the machine of the run boots itself: a start for each boot.

use crate::place::{Place, experiment, undecided};
use model::{Reset, Trial, TrialState};
use results::ResultSet;
use runner::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use target::fake::FakeTarget;

/// Two kernels, one with two arms, and two cells.
fn place(blocks: u32) -> Place {
    let mut wanted = experiment(&["old", "new", "tuned"]);
    let kernels = ["6.1", "6.12", "6.12"];
    for (arm, kernel) in wanted.arms.iter_mut().zip(kernels) {
        arm.kernel = Some(kernel.to_owned());
    }
    let mut second = wanted.workloads[0].clone();
    second.name = "link".to_owned();
    wanted.workloads.push(second);
    wanted.stop.min_blocks = blocks;
    wanted.stop.max_blocks = blocks;
    Place::new(wanted)
}

fn machine() -> FakeTarget {
    let mut target = undecided();
    target.can.reboots = true;
    target.can.reset = Reset::Block;
    target
}

/// Goes on after each boot until the run has ended; the kernels that were booted. `cut` loses the
/// power in the middle of a boot, after so many trials of it.
fn across_boots(
    place: &Place,
    target: &FakeTarget,
    mut cut: Option<(usize, usize)>,
) -> Vec<String> {
    let mut boots = Vec::new();
    drop(place.writer());
    let mut target = target.clone();
    loop {
        assert!(boots.len() < 100, "{boots:?}");
        if cut.is_some_and(|(boot, _)| boot == boots.len()) {
            let (_, trials) = cut.take().unwrap();
            place.resume_until(trials, target.clone());
            target.asked = None;
        }
        match place.resume(target.clone()).unwrap() {
            Outcome::Restarts(restart) => {
                boots.push(restart.kernel.clone());
                target.asked = Some(restart.kernel);
            }
            outcome => {
                assert_eq!(outcome, Outcome::Done);
                return boots;
            }
        }
    }
}

fn starts(trials: &[Trial], place: &Place) -> BTreeMap<(u32, String), BTreeSet<u32>> {
    let mut starts: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
    for trial in trials.iter().filter(|t| t.is_ok()) {
        let kernel = place.experiment.arms[trial.place.arm]
            .kernel
            .clone()
            .unwrap();
        let of_boot = starts.entry((trial.place.block, kernel)).or_default();
        of_boot.insert(trial.start);
    }
    starts
}

#[test]
fn each_kernel_is_booted_once_in_a_block_and_every_trial_is_measured_once() {
    let place = place(3);
    let boots = across_boots(&place, &machine(), None);
    assert_eq!(boots.len(), 6, "{boots:?}");
    let trials = place.trials();
    assert_eq!(trials.len(), 3 * 2 * 3);
    assert!(trials.iter().all(|t| t.is_ok() && t.attempt == 1));
    let starts = starts(&trials, &place);
    assert_eq!(starts.len(), 6);
    assert!(
        starts.values().all(|of_boot| of_boot.len() == 1),
        "{starts:?}"
    );
}

#[test]
fn a_power_cut_loses_no_trial_and_brings_a_boot_of_the_same_kernel() {
    for cut in [(1, 1), (2, 1), (3, 1)] {
        let place = place(3);
        let boots = across_boots(&place, &machine(), Some(cut));
        assert!(boots.len() >= 7, "{boots:?}");
        let kernel = |boot: usize| &boots[boot - 1];
        assert_eq!(kernel(cut.0), kernel(cut.0 + 1));
        let good = place.trials().into_iter().filter(Trial::is_ok);
        let places: BTreeSet<u32> = good.map(|t| t.place.index).collect();
        assert_eq!(places.len(), 3 * 2 * 3);
    }
}

#[test]
fn a_kernel_that_does_not_come_up_is_given_up_and_the_rest_goes_on() {
    let mut place = place(2);
    place.experiment.arms[2].kernel = Some("6.99".to_owned());
    let place = Place::new(place.experiment);
    let mut target = machine();
    target.comes_up = |kernel| kernel != Some("6.99");
    let boots = across_boots(&place, &target, None);
    let trials = ResultSet::read(place.path()).unwrap().trials;
    let trials: Vec<Trial> = trials.into_iter().map(|t| t.trial).collect();
    let broken: Vec<&Trial> = trials.iter().filter(|t| t.arm == "tuned").collect();
    let attempts = place.experiment.stop.max_attempts as usize;
    assert_eq!(
        broken.len(),
        2 * attempts,
        "in each cell, in the first block alone"
    );
    assert!(
        broken
            .iter()
            .all(|t| matches!(t.result.state, TrialState::Void { .. }))
    );
    assert_eq!(
        boots.iter().filter(|kernel| *kernel == "6.99").count(),
        broken.len()
    );
    let good = trials.iter().filter(|t| t.is_ok()).count();
    assert_eq!(good, 2 * 2 * 2);
}
