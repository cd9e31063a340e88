//! Runs over a fake target: order, repetition, stopping, and what is left out.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

mod apart;
mod between;
mod calibrations;
mod capacity;
mod events;
mod futility;
mod kernels;
mod pilots;
mod place;
mod pool;
mod reboots;
mod resume;
mod snapshots;

use machines::fake::{FakeTarget, Fate};
use model::{Problem, Trial, TrialState};
use place::{Place, experiment, took, undecided, warnings, wobble};
use results::ResultSet;
use runner::{Event, RunError};

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
fn noise_without_an_answer_goes_on_to_the_least_number_of_blocks() {
    let mut wanted = experiment(&["default", "same"]);
    wanted.stop.min_blocks = 12;
    let place = Place::new(wanted);
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
fn what_would_fail_again_is_tried_once_unless_it_has_worked() {
    let place = Place::new(experiment(&["default", "wrong"]));
    let trials = place.run(FakeTarget::new(|spec| match spec.arm.name.as_str() {
        "wrong" => Fate::FailedForGood("exit status 2"),
        _ => took(1.0),
    }));
    let wrong = trials.iter().filter(|t| t.arm == "wrong");
    assert_eq!(wrong.count(), 1);
    let worked = trials.iter().filter(|t| t.arm == "default").count();
    assert!(worked <= 1, "nothing is left to compare: {worked}");

    let place = Place::new(experiment(&["default", "flaky"]));
    let mut turn = 0;
    let trials = place.run(FakeTarget::new(move |spec| {
        turn += usize::from(spec.arm.name == "flaky");
        match (spec.arm.name.as_str(), turn) {
            ("flaky", 2) => Fate::FailedForGood("exit status 2"),
            _ => took(wobble(spec.seed)),
        }
    }));
    let again = trials.iter().find(|t| t.attempt == 2).expect("a retry");
    assert!(again.is_ok());
}

#[test]
fn a_trial_that_is_longer_than_the_budget_is_said_after_the_first() {
    let mut wanted = experiment(&["default", "same"]);
    // A trial of the fake takes a second.
    wanted.stop.budget_ns = Some(1_500_000_000);
    let place = Place::new(wanted);
    let mut said = Vec::new();
    let outcome = place.run_with(
        FakeTarget::new(|_| took(1.0)),
        place.writer(),
        Vec::new(),
        |event, _| {
            if let Event::TooLong { what } = event {
                said.push((*what).to_owned());
            }
        },
    );
    outcome.unwrap();
    let expected = "One trial takes 1s, so a block takes about 2s, and the budget is 1.5s: the run ends after its \
                    first block. `--budget 14s` has room for 6, the least for an answer.";
    assert_eq!(said, [expected]);
    // What has been measured is in the results, with one advice.
    let results = ResultSet::read(place.path()).unwrap();
    let remedies = results.manifest.warnings.iter().map(|w| w.remedy.as_str());
    let with_budget: Vec<&str> = remedies.filter(|r| r.contains("budget")).collect();
    assert_eq!(with_budget.len(), 1, "{with_budget:?}");
}

/// A run of two arms that had some blocks, of two seconds each, and goes on with this budget.
fn after_blocks(blocks: usize, budget_ms: u64) -> (usize, Vec<String>) {
    let mut place = Place::new(experiment(&["default", "same"]));
    place.run_until(2 * blocks, undecided());
    place.experiment.stop.budget_ns = Some(budget_ms * 1_000_000);
    place.resume(undecided()).unwrap();
    (place.trials().len(), warnings(&place))
}

#[test]
fn a_budget_that_ends_just_short_of_the_least_blocks_is_stretched_by_a_tenth_at_most() {
    let (trials, said) = after_blocks(5, 11_200);
    assert_eq!(trials, 12, "the sixth block and no further one: {said:?}");
    let expected = "The run may take up to 12.32s in place of its budget of 11.2s: 6 blocks are the least for an \
                    answer, and they end within a tenth more.";
    assert!(said.iter().any(|what| what == expected), "{said:?}");

    let (trials, said) = after_blocks(5, 10_800);
    assert_eq!(trials, 10, "the sixth would need more than a tenth");
    let ended = "The budget of 10.8s ended the run after 5 of at least 6 blocks.";
    assert_eq!(said, [ended]);
}

#[test]
fn a_budget_is_not_stretched_for_more_than_the_least_blocks() {
    let (trials, said) = after_blocks(6, 13_500);
    assert_eq!(trials, 12, "a seventh block would end at 14 s");
    assert_eq!(said, ["The budget of 13.5s ended the run after 6 blocks."]);
}

#[test]
fn what_a_run_said_of_its_budget_is_outdated_once_it_goes_on() {
    let mut place = Place::new(experiment(&["default", "same"]));
    place.run_until(10, undecided());
    place.experiment.stop.budget_ns = Some(11_200_000_000);
    place.resume(undecided()).unwrap();
    let results = ResultSet::read(place.path()).unwrap();
    let of_budget = results.manifest.warnings.iter();
    let aside = runner::find_set_aside(&place.plan, &results.manifest.warnings);
    let kept = of_budget.filter(|w| !runner::says_of_budget(w));
    assert_eq!(kept.count(), aside.len(), "{:?}", warnings(&place));
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
    let expected = "The budget of 1ns ended the run after 1 of at least 6 blocks.";
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
            "noisy" => {
                // Not so noisy that it is set aside.
                let slower = if name == "slow" { 1.4 } else { 1.0 };
                took((1.0 + f64::from(turn * 7 % 5) / 5.0) * slower)
            }
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
    let left_out = runner::find_unexplained(&place.experiment, &place.plan, &trials, false);
    assert_eq!(left_out, [] as [&model::PlannedTrial; 0]);
}

#[test]
fn trials_that_were_taken_away_are_missed() {
    let (place, trials) = uneven();
    let missed = |taken: &dyn Fn(&Trial) -> bool| -> Vec<u32> {
        let left: Vec<Trial> = trials.iter().filter(|t| !taken(t)).cloned().collect();
        let missed = runner::find_unexplained(&place.experiment, &place.plan, &left, false);
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
