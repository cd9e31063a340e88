//! Planned cells and arms without a trial that counts stay in the report, with the reason.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::{Trial, TrialState};
use report::{Format, Options, Table};
use results::ResultSet;
use std::cell::Cell;

/// The reports of a run whose trials are void where `lost` says so.
fn reports(lost: impl Fn(&Trial) -> bool) -> (Table, [String; 5]) {
    reports_of(lost, |trial| {
        format!("the generator was {} ms late", trial.place.block)
    })
}

/// The reports of a run whose trials are void where `lost` says so, for the reason that `why` says.
fn reports_of(
    lost: impl Fn(&Trial) -> bool,
    why: impl Fn(&Trial) -> String,
) -> (Table, [String; 5]) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    for stored in &mut results.trials {
        if lost(&stored.trial) {
            let why = why(&stored.trial);
            stored.trial.result.state = TrialState::Void { why };
        }
    }
    let table = Table::from_results(&results);
    let formats = ["text", "lkml", "markdown", "html", "junit"];
    let of = |name| {
        let format = Format::find_by_name(name).unwrap();
        format
            .render_report(&table, &results, &Options::default())
            .unwrap()
            .into_string()
    };
    let reports = formats.map(of);
    (table, reports)
}

#[test]
fn a_cell_without_a_counted_trial_is_in_every_report_with_its_reason() {
    let (table, reports) = reports(|trial| trial.cell == "wakeup 200%");
    for text in &reports {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("not measured: all "), "{text}");
        assert!(text.contains("ms late"), "{text}");
    }
    assert!(
        table
            .tallies
            .iter()
            .all(|tally| tally.cells_not_measured == 1)
    );
    assert!(reports[0].contains("1 cell not measured"));
}

#[test]
fn an_arm_without_a_counted_trial_is_not_measured_rather_than_unknown() {
    let (table, reports) = reports(|trial| trial.cell == "wakeup 200%" && trial.arm == "batch");
    let batch = table
        .tallies
        .iter()
        .find(|tally| tally.arm == "batch")
        .unwrap();
    assert_eq!(batch.cells_not_measured, 1);
    assert!(
        reports[0].contains("batch was not measured: all "),
        "{}",
        reports[0]
    );
}

#[test]
fn where_nothing_is_compared_no_error_rate_is_stated() {
    let (_, reports) = reports(|trial| trial.arm == "default");
    assert!(reports[0].contains("batch: compared in no cell; 4 cells not measured"));
    assert!(!reports[0].contains("chance to be a false call"));
}

#[test]
fn a_run_without_a_counted_trial_states_no_error_rate() {
    let (_, reports) = reports(|_| true);
    for text in &reports[..4] {
        assert!(text.contains("Nothing was measured: all "), "{text}");
        assert!(!text.contains("better on 0 of 0"));
        assert!(!text.contains("chance to be a false call"));
    }
}

#[test]
fn a_reason_that_is_not_that_of_all_trials_says_of_how_many() {
    let (lost, not_loaded) = (Cell::new(0), Cell::new(0));
    let is_lost = |_: &Trial| {
        lost.set(lost.get() + 1);
        true
    };
    let why = |trial: &Trial| match trial.arm.as_str() {
        "default" => "the scheduler was another one".to_owned(),
        _ => {
            not_loaded.set(not_loaded.get() + 1);
            "the scheduler did not load".to_owned()
        }
    };
    let (_, reports) = reports_of(is_lost, why);
    let (all, some) = (lost.get(), not_loaded.get());
    assert!(some < all);
    let said = format!("all {all} trials void: the scheduler did not load ({some} of them).");
    let first = reports[0].split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first.contains(&said), "{first}");
    assert!(
        first.contains("default: the scheduler was another one; batch:"),
        "{first}"
    );
}
