//! The rule that ends a run and the report of the run judge alike.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::{Measurement, Trial};
use report::Table;
use results::ResultSet;
use runner::{CellState, Decisions};
use std::collections::BTreeSet;
use synthetic::Scenario;

/// The results of `scenario` with figures of one deciding metric: `x` of the block and the
/// arm is the logarithm of the ratio to the baseline.
fn measured(scenario: &Scenario, keep: impl Fn(&Trial) -> bool) -> ResultSet {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    results.trials.retain(|stored| keep(&stored.trial));
    let strength = strength_for_one_and_not_for_two();
    for stored in &mut results.trials {
        let trial = &mut stored.trial;
        let x = match trial.arm.as_str() {
            "batch" => log_ratio(trial.place.block, strength),
            _ => 0.01 * f64::from(trial.place.block % 3),
        };
        trial.result.metrics = vec![Measurement {
            metric: "hackbench_time".to_owned(),
            unit: "s".to_owned(),
            better: model::Better::Lower,
            value: x.exp(),
            own: None,
        }];
    }
    results
}

fn log_ratio(block: u32, strength: f64) -> f64 {
    strength * (1.0 + 0.2 * f64::from(block % 4))
        + 0.05 * (f64::from(block * 7 % 5) - 2.0)
        + 0.01 * f64::from(block % 3)
}

const BLOCKS: u32 = 6;

/// Strength at which the evidence decides one comparison, but not one of two.
fn strength_for_one_and_not_for_two() -> f64 {
    let e_value = |strength: f64| {
        let blocks = 1..=BLOCKS;
        let xs: Vec<f64> = blocks
            .map(|block| log_ratio(block, strength) - 0.01 * f64::from(block % 3))
            .collect();
        let params = stats::Params {
            alpha: 0.05,
            smallest_effect: 0.02,
            better: stats::Better::Lower,
        };
        stats::judge(&xs, &params).e_value
    };
    let strengths = (1..10_000).map(|step| f64::from(step) * 1e-4);
    let mut fitting = strengths.filter(|s| (21.0..39.0).contains(&e_value(*s)));
    fitting.next().unwrap()
}

/// Scenario of hackbench alone, with these arms.
fn scenario(arms: &[&str]) -> Scenario {
    let mut scenario = synthetic::few_blocks(BLOCKS);
    let experiment = &mut scenario.experiment;
    let kept = |name: &str| arms.contains(&name);
    let places: Vec<usize> = (0..experiment.arms.len())
        .filter(|arm| kept(&experiment.arms[*arm].name))
        .collect();
    experiment.arms.retain(|arm| kept(&arm.name));
    let aa_arm = experiment.aa_arm.take();
    experiment.aa_arm = aa_arm.filter(|name| kept(name));
    scenario
        .plan
        .trials
        .retain(|trial| places.contains(&trial.arm));
    for (index, trial) in scenario.plan.trials.iter_mut().enumerate() {
        trial.index = index.try_into().unwrap();
        trial.arm = places.iter().position(|arm| *arm == trial.arm).unwrap();
    }
    scenario.effects.clear();
    scenario.failed_attempts.clear();
    scenario
}

/// Calls that do not hold among the others: for the rule of stopping, and in the report.
fn doubted(results: &ResultSet) -> (Vec<String>, Vec<String>) {
    let trials: Vec<Trial> = results.trials.iter().map(|s| s.trial.clone()).collect();
    let decisions = Decisions::new(&results.experiment, &results.plan);
    let open = decisions.cell_states(&trials, &BTreeSet::new()).into_iter();
    let open = open.flat_map(|state| match state {
        CellState::Decided => Vec::new(),
        CellState::Open(open) => open,
    });
    let table = Table::from_results(results);
    let is_call = |arm: &str| {
        let mut found = table.all_comparisons();
        found.any(|c| c.arm == arm && c.verdict.is_call())
    };
    let by_runner = open.map(|o| o.arm).filter(|arm| is_call(arm)).collect();
    let starred = table
        .all_comparisons()
        .filter(|c| c.survives_ebh == Some(false));
    (by_runner, starred.map(|c| c.arm.clone()).collect())
}

#[test]
fn a_comparison_with_one_block_makes_no_call_harder_for_run_or_report() {
    let scenario = scenario(&["default", "batch", "slice=0.3ms"]);
    let results = measured(&scenario, |trial| {
        trial.arm != "slice=0.3ms" || trial.place.block == 1
    });
    let (by_runner, in_report) = doubted(&results);
    assert_eq!(in_report, Vec::<String>::new());
    assert_eq!(by_runner, in_report);
}

#[test]
fn two_full_comparisons_are_one_family_for_run_and_report() {
    let scenario = scenario(&["default", "batch", "slice=0.3ms"]);
    let (by_runner, in_report) = doubted(&measured(&scenario, |_| true));
    assert_eq!(in_report, ["batch"]);
    assert_eq!(by_runner, in_report);
}

#[test]
fn the_control_makes_no_call_harder_for_run_or_report() {
    let scenario = scenario(&["default", "batch", "default-again"]);
    let (by_runner, in_report) = doubted(&measured(&scenario, |_| true));
    assert_eq!(in_report, Vec::<String>::new());
    assert_eq!(by_runner, in_report);
}

#[test]
fn an_event_that_decides_keeps_a_cell_open_until_there_is_a_verdict_on_it() {
    let mut scenario = synthetic::thrown_out();
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &scenario).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    let trials: Vec<Trial> = results.trials.iter().map(|s| s.trial.clone()).collect();
    let open = |experiment: &model::Experiment, trials: &[Trial]| -> Vec<String> {
        let decisions = Decisions::new(experiment, &results.plan);
        let states = decisions.cell_states(trials, &BTreeSet::new()).into_iter();
        let open = states.flat_map(|state| match state {
            CellState::Decided => Vec::new(),
            CellState::Open(open) => open,
        });
        open.map(|open| open.metric).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(open(&scenario.experiment, &trials), none);
    for event in &mut scenario.experiment.observe.events {
        event.decides = true;
    }
    // The ejections are decided; requests are late as often under both arms, and nobody said what is the same.
    assert_eq!(open(&scenario.experiment, &trials), ["request > 100ms"]);
    let first: Vec<Trial> = trials.into_iter().filter(|t| t.place.block <= 6).collect();
    let early = open(&scenario.experiment, &first);
    assert!(early.contains(&"ejected".to_owned()), "{early:?}");
}
