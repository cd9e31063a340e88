//! Cells that are set aside: when, what becomes of their time, and how a run goes on with them.

use crate::place::{Place, experiment, took, undecided, warnings};
use machines::fake::FakeTarget;
use model::{Experiment, PlannedTrial, Trial};
use results::{ResultSet, Writer};
use runner::{Event, Outcome};

/// Places that nobody measured and that neither a verdict nor a cell that was set aside explains.
fn missing(place: &Place) -> Vec<u32> {
    let results = ResultSet::read(place.path()).unwrap();
    let set_aside = runner::find_set_aside(&place.plan, &results.manifest.warnings);
    let trials = place.trials();
    let missing = runner::find_unmeasured(&place.experiment, &place.plan, &trials);
    let is_missing =
        |p: &&&PlannedTrial| set_aside.get(&p.cell).is_none_or(|after| p.block <= *after);
    missing.iter().filter(is_missing).map(|p| p.index).collect()
}

fn last_block(trials: &[Trial], cell: &str) -> u32 {
    let here = trials.iter().filter(|t| t.cell == cell);
    here.map(|t| t.place.block).max().unwrap()
}

#[test]
fn a_run_whose_last_blocks_would_not_decide_ends_before_them_and_says_what_would() {
    let place = Place::new(experiment(&["default", "same"]));
    let trials = place.run(undecided());
    let blocks = last_block(&trials, "make");
    assert!((6..10).contains(&blocks), "{blocks}");
    let said = warnings(&place);
    let expected = format!(
        "make was set aside after {blocks} blocks: the chance that those which are left decide wall_time of same \
                    is below 5 %; an answer would take about "
    );
    assert!(
        said.iter().any(|what| what.starts_with(&expected)),
        "{said:?}"
    );
    assert_eq!(missing(&place), [0; 0]);
    let results = ResultSet::read(place.path()).unwrap();
    let without = runner::find_unmeasured(&place.experiment, &place.plan, &place.trials());
    assert_eq!(
        without.len(),
        24 - trials.len(),
        "the warning explains them"
    );
    assert_eq!(results.manifest.warnings.len(), 1, "{said:?}");
}

#[test]
fn more_blocks_take_a_cell_up_that_was_set_aside() {
    let mut place = Place::new(experiment(&["default", "slow"]));
    let target = || {
        let mut turn = 0u32;
        FakeTarget::new(move |spec| {
            turn += 1;
            let slower = if spec.arm.name == "slow" { 1.12 } else { 1.0 };
            took((1.0 + f64::from(turn * 7 % 5) / 5.0) * slower)
        })
    };
    let before = place.run(target());
    assert!(before.len() < 24, "{}", before.len());
    // Nothing has changed: nothing more is measured.
    assert_eq!(place.resume(target()).unwrap(), Outcome::Done);
    assert_eq!(place.trials().len(), before.len());
    assert_eq!(warnings(&place).len(), 1, "{:?}", warnings(&place));

    place.experiment.stop.max_blocks = 400;
    place.plan = schedule::plan_blocks(&place.experiment);
    let mut writer = Writer::reopen(place.path()).unwrap();
    let extended = writer.extend_plan(&place.experiment, &place.plan, runner::says_of_budget);
    extended.unwrap();
    let outcome = place.run_with(target(), writer, place.trials(), |_, _| {});
    assert_eq!(outcome.unwrap(), Outcome::Done);
    assert!(place.trials().len() > 24, "{}", place.trials().len());
    assert_eq!(warnings(&place), [""; 0], "it was decided");
    assert_eq!(missing(&place), [0; 0]);
}

/// A cell with noise and an effect of this size beside one that some more blocks decide.
fn two_cells(noisy_effect: f64, noise: f64) -> (Experiment, FakeTarget) {
    let mut wanted = experiment(&["default", "slow"]);
    let mut noisy = wanted.workloads[0].clone();
    noisy.name = "noisy".into();
    wanted.workloads.push(noisy);
    let mut turn = 0u32;
    let target = FakeTarget::new(move |spec| {
        turn += 1;
        let at_random = f64::from(turn.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
        let is_slow = spec.arm.name == "slow";
        took(match (spec.workload.name.as_str(), is_slow) {
            ("noisy", true) => (1.0 + noise * at_random) * noisy_effect,
            ("noisy", false) => 1.0 + noise * at_random,
            (_, true) => (1.0 + 0.1 * at_random) * 1.05,
            (_, false) => 1.0 + 0.1 * at_random,
        })
    });
    (wanted, target)
}

#[test]
fn a_cell_goes_on_when_another_one_is_set_aside() {
    let (mut wanted, target) = two_cells(1.0, 9.0);
    wanted.stop.max_blocks = 14;
    let place = Place::new(wanted);
    let trials = place.run(target);
    let [make, noisy] = ["make", "noisy"].map(|cell| last_block(&trials, cell));
    assert!((6..9).contains(&noisy), "{noisy}");
    assert!(make > noisy, "{make} and {noisy}");
    assert_eq!(missing(&place), [0; 0]);
}

#[test]
fn what_others_left_of_the_budget_takes_a_cell_up_again() {
    let (mut wanted, target) = two_cells(1.25, 1.0);
    wanted.stop.max_blocks = 60;
    let mut place = Place::new(wanted);
    place.run_until(4 * 6, target.clone());
    // Each trial of the fake takes a second of those before, and no time of this start.
    place.experiment.stop.budget_ns = Some(40 * 1_000_000_000);
    let mut said = Vec::new();
    let writer = Writer::reopen(place.path()).unwrap();
    let outcome = place.run_with(target, writer, place.trials(), |event, _| {
        if let Event::FoundOut { cell, what } = event {
            said.push(format!(
                "{cell} {}",
                what.split(' ').take(3).collect::<Vec<_>>().join(" ")
            ));
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Done);
    assert_eq!(said, ["noisy set aside after", "noisy taken up again:"]);
    assert_eq!(missing(&place), [0; 0]);
}
