//! Arms with kernels of their own: boots, the record of each kernel, its proof.

use crate::place::{Place, experiment, took, undecided};
use machines::fake::FakeTarget;
use model::{Experiment, Fact, PlannedTrial, Trial};
use results::ResultSet;
use runner::Outcome;
use std::collections::BTreeSet;

#[test]
fn a_trial_on_another_kernel_than_its_arm_says_is_void_with_both_names() {
    let place = Place::new(experiment(&["default", "same"]));
    let mut target = undecided();
    target.facts = vec![Fact::new("kernel", "6.12.1 #7 SMP").with_wanted("6.13.0 #1 SMP")];
    let trials = place.run(target);
    assert!(!trials.is_empty());
    for trial in trials {
        let why = "the kernel was 6.12.1 #7 SMP, not 6.13.0 #1 SMP";
        assert_eq!(trial.result.state.why(), Some(why));
        assert!(trial.result.metrics.is_empty(), "{:?}", trial.result);
    }
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
    let begins_with_new = |wanted: &Experiment| schedule::plan_blocks(wanted).trials[0].arm == 1;
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
fn a_machine_whose_agent_does_not_answer_is_booted_once_more() {
    use std::sync::atomic::Ordering::Relaxed;
    let boots_of = |silent: u32| {
        let mut wanted = experiment(&["old", "new"]);
        wanted.stop.max_blocks = 2;
        wanted.stop.min_blocks = 2;
        let place = Place::new(wanted);
        let target = FakeTarget::new(|_| took(1.0));
        target.never_answer.store(silent, Relaxed);
        let boots = target.boots.clone();
        let ended = place.run_with(target, place.writer(), Vec::new(), |_, _| {});
        let boots = boots.lock().unwrap().len();
        (boots, ended.map_err(|e| e.to_string()))
    };
    assert_eq!(boots_of(0), (1, Ok(Outcome::Done)));
    assert_eq!(boots_of(1), (2, Ok(Outcome::Done)));
    let gone = "the agent ended: signal 9".to_owned();
    assert_eq!(boots_of(2), (2, Err(gone)), "and not for ever");
}
