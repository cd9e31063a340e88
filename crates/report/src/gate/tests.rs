use super::*;
use synthetic::Scenario;
use tempfile::TempDir;

fn stored(scenario: &Scenario) -> (TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    (dir, results)
}

/// The experiment once more, with other noise and perhaps another effect.
fn again(seed: u64, change: impl Fn(&mut Scenario)) -> Scenario {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.seed = seed;
    change(&mut scenario);
    scenario
}

fn batch_is_slower(scenario: &mut Scenario) {
    for effect in &mut scenario.effects {
        if effect.cell == "hackbench" && effect.arm == "batch" {
            effect.throughput *= 0.7;
        }
    }
}

fn judged(new: &Scenario, by: Option<By>) -> Result<Gate, GateError> {
    let ((_a, stored), (_b, new)) = (stored(&synthetic::quickstart()), stored(new));
    judge_gate(&stored, &new, by)
}

/// In virtual time, as the facts of the machine say.
fn in_virtual_time(scenario: &mut Scenario) {
    let facts = &mut scenario.system.facts;
    let clock = (model::system::CLOCK, model::system::VIRTUAL);
    facts.insert(clock.0.to_owned(), clock.1.to_owned());
}

#[test]
fn an_arm_that_became_worse_is_a_regression_and_nothing_else_is() {
    let gate = judged(&again(99, batch_is_slower), None).unwrap();
    assert_eq!(gate.by, By::Effects);
    let failing: Vec<_> = gate.failing_checks(FailOn::Regression).collect();
    let place = |c: &&Check| (c.cell.starts_with("hackbench"), c.arm.clone());
    let expected = (true, "batch".to_owned());
    assert!(!failing.is_empty() && failing.iter().all(|c| place(c) == expected));
    assert!(
        gate.to_text(FailOn::Regression, 100)
            .starts_with("FAILED on ")
    );
}

#[test]
fn what_became_better_is_a_difference_and_no_regression() {
    let ((_a, now), (_b, then)) = (
        stored(&synthetic::quickstart()),
        stored(&again(99, batch_is_slower)),
    );
    let gate = judge_gate(&then, &now, None).unwrap();
    assert_eq!(gate.failing_checks(FailOn::Regression).count(), 0);
    assert!(gate.failing_checks(FailOn::Difference).count() > 0);
}

#[test]
fn a_slower_machine_is_no_regression_of_effects_and_one_of_levels() {
    let ((_a, then), (_b, mut now)) = (stored(&synthetic::quickstart()), stored(&again(5, |_| {})));
    for stored in &mut now.trials {
        for measured in &mut stored.trial.result.metrics {
            match measured.better {
                Better::Higher => measured.value /= 2.0,
                _ => measured.value *= 2.0,
            }
        }
    }
    let by = |by| judge_gate(&then, &now, Some(by)).unwrap();
    assert_eq!(by(By::Effects).count_calls(Call::Regression), 0);
    let levels = by(By::Levels);
    assert!(levels.count_calls(Call::Regression) > 0, "{levels:?}");
    assert!(levels.notes[0].contains("only where nothing but chance"));
}

#[test]
fn nothing_is_called_of_a_machine_that_only_has_noise() {
    for seed in 100..108 {
        let gate = judged(&again(seed, |_| {}), None).unwrap();
        assert_eq!(
            gate.failing_checks(FailOn::Difference).count(),
            0,
            "{gate:?}"
        );
    }
}

#[test]
fn other_experiments_and_the_same_run_are_refused() {
    let other = again(7, |scenario| {
        scenario.experiment.workloads[0].duration_ns += 1_000_000_000;
    });
    let error = judged(&other, None).unwrap_err();
    assert!(matches!(&error, GateError::OtherExperiment(w) if w[0].contains("duration")));
    let error = judged(&synthetic::quickstart(), None).unwrap_err();
    assert!(matches!(error, GateError::SameRun(_)), "{error}");
    let error = judged(&again(7, |_| {}), Some(By::Trials)).unwrap_err();
    assert_eq!(error, GateError::NotVirtual("the stored run"));
}

#[test]
fn a_single_arm_is_judged_by_its_levels() {
    let one = synthetic::one_arm();
    let mut new = synthetic::one_arm();
    new.experiment.seed += 1;
    let ((_a, then), (_b, now)) = (stored(&one), stored(&new));
    assert_eq!(judge_gate(&then, &now, None).unwrap().by, By::Levels);
}

#[test]
fn trials_in_virtual_time_are_the_same_to_the_bit_or_they_differ() {
    let then = again(1, in_virtual_time);
    let ((_a, then), (_b, mut now)) = (stored(&then), stored(&then));
    let gate = |now: &ResultSet| judge_gate(&then, now, Some(By::Trials)).unwrap();
    assert_eq!(gate(&now).failing_checks(FailOn::Difference).count(), 0);
    let metric = then.experiment.workloads[0].metrics[0].clone();
    let trial = now.trials.iter_mut().find(|s| s.trial.place.cell == 0);
    let metrics = &mut trial.unwrap().trial.result.metrics;
    let figure = metrics.iter_mut().find(|m| m.metric == metric).unwrap();
    figure.value = f64::from_bits(figure.value.to_bits() + 1);
    let found = gate(&now);
    let calls: Vec<_> = found.failing_checks(FailOn::Difference).collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!((calls[0].call, &calls[0].metric), (Call::Changed, &metric));
    assert_eq!(found.failing_checks(FailOn::Regression).count(), 0);
}

/// Call, ratio and figures by trials where the first metric that decides has these values in the
/// blocks of the two runs, by turns.
fn call_by_trials(better: Better, before: &[f64], after: &[f64]) -> (Call, Option<f64>, String) {
    let scenario = again(1, in_virtual_time);
    let with = |values: &[f64]| {
        let (dir, mut results) = stored(&scenario);
        let metric = results.experiment.workloads[0].metrics[0].clone();
        for of_trial in &mut results.trials {
            let block = of_trial.trial.place.block as usize;
            let metrics = of_trial.trial.result.metrics.iter_mut();
            for measured in metrics.filter(|m| m.metric == metric) {
                measured.better = better;
                measured.value = values[block % values.len()];
            }
        }
        (dir, results, metric)
    };
    let ((_a, then, metric), (_b, now, _)) = (with(before), with(after));
    let found = judge_gate(&then, &now, Some(By::Trials)).unwrap();
    let check = found.checks.iter().find(|c| c.metric == metric).unwrap();
    let text = found.to_text(FailOn::Regression, 100);
    assert!(!text.contains("inf%") && !text.contains("NaN"), "{text}");
    (check.call, check.ratio, check.figures.clone())
}

#[test]
fn what_rose_from_0_or_fell_to_0_is_judged_by_the_better_side() {
    for (better, before, after, expected) in [
        (Better::Higher, 5.0, 0.0, Call::Regression),
        (Better::Lower, 5.0, 0.0, Call::Improvement),
        (Better::Higher, 0.0, 5.0, Call::Improvement),
        (Better::Lower, 0.0, 5.0, Call::Regression),
        (Better::Neither, 0.0, 5.0, Call::Changed),
    ] {
        let (call, ratio, figures) = call_by_trials(better, &[before], &[after]);
        assert_eq!((call, ratio), (expected, None), "{before} to {after}");
        assert!(figures.contains(" differ; block "), "{figures}");
    }
}

#[test]
fn one_block_at_0_is_told_and_one_that_stays_there_hides_no_change() {
    let (call, ratio, figures) = call_by_trials(Better::Higher, &[5.0, 4.0], &[6.0, 0.0]);
    assert_eq!((call, ratio), (Call::Regression, None));
    assert!(figures.contains("block 1: 4"), "{figures}");
    // What is 0 in both runs did not change; the other block became twice as much.
    let (call, ratio, _) = call_by_trials(Better::Lower, &[0.0, 4.0], &[0.0, 8.0]);
    assert_eq!(call, Call::Regression);
    assert!(ratio.is_some_and(|ratio| ratio > 1.1), "{ratio:?}");
    // One up from 0 and one down to it: no side, and still a difference.
    let (call, ratio, _) = call_by_trials(Better::Lower, &[0.0, 4.0], &[4.0, 0.0]);
    assert_eq!((call, ratio), (Call::Changed, None));
}

#[test]
fn trials_of_another_seed_had_other_work() {
    let ((_a, then), (_b, now)) = (
        stored(&again(1, in_virtual_time)),
        stored(&again(2, in_virtual_time)),
    );
    let error = judge_gate(&then, &now, Some(By::Trials)).unwrap_err();
    assert_eq!(error, GateError::OtherSeed(1, 2));
}

#[test]
fn a_block_that_is_missing_is_unknown() {
    let then = again(1, in_virtual_time);
    let ((_a, then), (_b, mut now)) = (stored(&then), stored(&then));
    now.trials.truncate(now.trials.len() / 2);
    let gate = judge_gate(&then, &now, Some(By::Trials)).unwrap();
    assert!(gate.failing_checks(FailOn::Unknown).count() > 0);
}

#[test]
fn junit_and_markdown_have_every_check() {
    let gate = judged(&again(99, batch_is_slower), None).unwrap();
    let junit = gate.to_junit(FailOn::Regression).unwrap();
    assert_eq!(junit.matches("<testcase").count(), gate.checks.len());
    let failing = gate.failing_checks(FailOn::Regression).count();
    assert_eq!(junit.matches("<failure").count(), failing);
    let markdown = gate.to_markdown(FailOn::Regression);
    assert!(markdown.starts_with("# ") && markdown.contains(": failed"));
    assert_eq!(markdown.matches("**regression**").count(), failing);
    for width in [60, 80, 120] {
        let text = gate.to_text(FailOn::Regression, width);
        assert!(text.lines().all(|l| l.chars().count() <= width), "{text}");
    }
}
