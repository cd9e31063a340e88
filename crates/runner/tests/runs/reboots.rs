//! Kernels that the machine of the run boots itself: a start for each boot.

use crate::place::{Place, experiment, took, undecided};
use machines::fake::{FakeTarget, Fate};
use model::{Reset, Trial, TrialState};
use results::{ResultSet, Writer, sample};
use runner::Outcome;

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
    place: &mut Place,
    target: &FakeTarget,
    mut cut: Option<(usize, usize)>,
) -> Vec<String> {
    let mut boots = Vec::new();
    drop(place.writer());
    let mut target = target.clone();
    // Starts before the last boot that came without being asked for.
    let mut earlier = 0;
    loop {
        assert!(boots.len() < 100, "{boots:?}");
        place.continues = starts_of(place) > earlier;
        if cut.is_some_and(|(boot, _)| boot == boots.len()) {
            let (_, trials) = cut.take().unwrap();
            place.resume_until(trials, target.clone());
            target.asked = None;
            earlier = starts_of(place);
            place.continues = false;
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

fn starts_of(place: &Place) -> usize {
    Writer::reopen(place.path()).unwrap().earlier_starts().len()
}

/// Blocks in which an arm and the baseline can be compared.
fn pairs(place: &Place, arm: usize) -> usize {
    let results = ResultSet::read(place.path()).unwrap();
    let trials: Vec<Trial> = results.trials.into_iter().map(|t| t.trial).collect();
    (0..2)
        .map(|cell| sample::pair_trials(&trials, cell, "wall_time", arm, 0).len())
        .sum()
}

#[test]
fn each_kernel_is_booted_once_in_a_block_and_every_trial_is_measured_once() {
    let mut place = place(3);
    let boots = across_boots(&mut place, &machine(), None);
    assert_eq!(boots.len(), 6, "{boots:?}");
    let trials = place.trials();
    assert_eq!(trials.len(), 3 * 2 * 3);
    assert!(trials.iter().all(|t| t.is_ok() && t.attempt == 1));
    assert_eq!((pairs(&place, 1), pairs(&place, 2)), (6, 6));
    assert_eq!(starts_of(&place), 1, "a boot in order is no new start");
}

#[test]
fn a_power_cut_loses_no_block_that_was_whole_and_its_own_is_measured_again() {
    for boot in 1..=4 {
        let mut place = place(3);
        let boots = across_boots(&mut place, &machine(), Some((boot, 1)));
        // The kernels of the block that was cut, again.
        assert!((7..=8).contains(&boots.len()), "{boots:?}");
        assert_eq!(
            (pairs(&place, 1), pairs(&place, 2)),
            (6, 6),
            "{boot}: {boots:?}"
        );
        assert_eq!(starts_of(&place), 2);
    }
}

#[test]
fn a_kernel_that_does_not_come_up_is_given_up_and_the_rest_goes_on() {
    for broken in [1, 2] {
        let mut wanted = place(2).experiment;
        wanted.arms[broken].kernel = Some("6.99".to_owned());
        let mut place = Place::new(wanted);
        let mut target = machine();
        target.comes_up = |kernel| kernel != Some("6.99");
        let boots = across_boots(&mut place, &target, None);
        let trials = ResultSet::read(place.path()).unwrap().trials;
        let trials: Vec<Trial> = trials.into_iter().map(|t| t.trial).collect();
        let lost: Vec<&Trial> = trials.iter().filter(|t| t.place.arm == broken).collect();
        let attempts = place.experiment.stop.max_attempts as usize;
        assert_eq!(
            lost.len(),
            2 * attempts,
            "in each cell, in the first block alone"
        );
        assert!(
            lost.iter()
                .all(|t| matches!(t.result.state, TrialState::Void { .. }))
        );
        assert_eq!(
            boots.iter().filter(|kernel| *kernel == "6.99").count(),
            lost.len()
        );
        assert_eq!((pairs(&place, 3 - broken), pairs(&place, broken)), (4, 0));
    }
}

#[test]
fn a_place_that_had_all_its_attempts_is_not_tried_again_after_each_boot() {
    let mut place = place(3);
    let mut target = FakeTarget::new(|spec| match spec.label.as_str() {
        "make b2 new" => Fate::Void("its first file system is broken"),
        _ => took(1.0),
    });
    target.can = machine().can;
    across_boots(&mut place, &target, None);
    let trials = place.trials();
    let attempts = place.experiment.stop.max_attempts as usize;
    let lost = trials.iter().filter(|t| !t.is_ok()).count();
    assert_eq!(lost, attempts);
    // The block that lacks it is no block of that cell.
    assert_eq!((pairs(&place, 1), pairs(&place, 2)), (5, 6));
}
