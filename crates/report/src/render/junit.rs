//! JUnit XML for continuous integration: a suite for each cell, a test case for
//! each deciding comparison. *Worse* is a failure, *unknown* is skipped, and what
//! was called of an A/A arm is an error of the measurement, as is all that was not measured.

use crate::lacks::{Lack, find_lacks};
use crate::render::events::{describe_call, describe_ratio};
use crate::table::across::EventComparison;
use crate::table::{CellTable, Comparison, Table, Verdict};
use crate::words;
use doors::shown::clean_line;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use results::ResultSet;

/// The suites of all cells.
pub fn make_report(table: &Table, results: &ResultSet) -> Report {
    let mut report = Report::new(&table.experiment.name);
    let lacks = find_lacks(table, results);
    report.add_test_suites(table.cells.iter().map(|cell| suite(table, cell, &lacks)));
    let of_run = lacks.iter().filter(|lack| lack.cell.is_none());
    let of_run: Vec<TestCase> = of_run.map(|lack| not_measured(&lack.what)).collect();
    if !of_run.is_empty() {
        let mut suite = TestSuite::new("the run");
        suite.add_test_cases(of_run);
        report.add_test_suite(suite);
    }
    report
}

fn suite(table: &Table, cell: &CellTable, lacks: &[Lack]) -> TestSuite {
    let mut suite = TestSuite::new(&cell.name);
    suite.add_property(("machine", words::machine_line(table).as_str()));
    suite.add_property(("trials", words::count_trials(&table.trials).as_str()));
    suite.add_test_cases(cell.deciding_comparisons().map(|c| case(table, c)));
    let events = table.across.events.iter().filter(|c| c.cell == cell.name);
    suite.add_test_cases(events.map(event_case));
    let of_cell = lacks
        .iter()
        .filter(|lack| lack.cell.as_ref() == Some(&cell.name));
    suite.add_test_cases(of_cell.map(|lack| not_measured(&lack.what)));
    suite
}

fn case(table: &Table, c: &Comparison) -> TestCase {
    let mut case = TestCase::new(
        format!("{} of {} against {}", c.metric, c.arm, c.baseline),
        status(table, c),
    );
    case.set_classname(format!("{} {}", c.workload, c.load));
    case.set_system_out(figures(c));
    case
}

/// An event that is worse is a failure, as a metric is, and one that is not decided is skipped.
fn event_case(c: &EventComparison) -> TestCase {
    let status = match (c.verdict, c.aa) {
        (Verdict::Better | Verdict::Worse, true) => Some(NonSuccessKind::Error),
        (Verdict::Worse, false) => Some(NonSuccessKind::Failure),
        (Verdict::Better | Verdict::Same | Verdict::Unknown, _) => None,
    };
    let mut status = match (status, c.verdict) {
        (Some(kind), _) => TestCaseStatus::non_success(kind),
        (None, Verdict::Unknown) => TestCaseStatus::skipped(),
        (None, _) => TestCaseStatus::success(),
    };
    if c.verdict != Verdict::Same {
        status.set_message(clean_line(describe_call(c)).into_string());
        status.set_type(c.verdict.as_str());
    }
    let name = format!("event {} of {} against {}", c.event, c.arm, c.baseline);
    let mut case = TestCase::new(name, status);
    case.set_classname(&c.cell);
    case.set_system_out(format!("times as often: {}", describe_ratio(c)));
    case
}

/// What must not pass for something without questions.
pub(crate) fn not_measured(why: &str) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message(clean_line(why).into_string());
    status.set_type("not measured");
    TestCase::new("measured", status)
}

fn status(table: &Table, c: &Comparison) -> TestCaseStatus {
    let mut status = match (c.verdict, c.aa) {
        (Verdict::Better | Verdict::Worse, true) => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
        (Verdict::Worse, false) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        (Verdict::Unknown, _) => TestCaseStatus::skipped(),
        (Verdict::Better | Verdict::Same, _) => return TestCaseStatus::success(),
    };
    status.set_message(words::verdict_meaning(c, table.experiment.smallest_effect));
    status.set_type(match c.withdrawn {
        Some(_) => words::marked_verdict(c),
        None => words::verdict_word(c).to_owned(),
    });
    status
}

fn figures(c: &Comparison) -> String {
    let change = c.format_change().unwrap_or_else(|| "no change".to_owned());
    let interval = c
        .format_interval()
        .unwrap_or_else(|| "no interval".to_owned());
    let notes: String = c.notes.iter().map(|note| format!("\n{note}")).collect();
    format!(
        "{}: {change} {interval}; blocks: {}{notes}",
        words::marked_verdict(c),
        words::blocks_word(c)
    )
}
