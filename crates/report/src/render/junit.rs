//! JUnit XML for continuous integration: a suite for each cell, a test case for
//! each deciding comparison. *Worse* is a failure, *unknown* is skipped, and what
//! was called of an A/A arm is an error of the measurement.

use crate::ReportError;
use crate::quantity::{change, interval};
use crate::table::{CellTable, Comparison, Table, Verdict};
use crate::words;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

pub fn render(table: &Table) -> Result<String, ReportError> {
    let mut report = Report::new(&table.experiment.name);
    report.add_test_suites(table.cells.iter().map(|cell| suite(table, cell)));
    Ok(report.to_string()?)
}

fn suite(table: &Table, cell: &CellTable) -> TestSuite {
    let mut suite = TestSuite::new(&cell.name);
    suite.add_property(("machine", words::machine(table).as_str()));
    suite.add_property(("trials", words::trials(&table.trials).as_str()));
    suite.add_test_cases(cell.deciding().map(|c| case(table, c)));
    suite.add_test_cases(words::cell_not_measured(cell).map(not_measured));
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

/// A cell that must not pass for one without questions.
fn not_measured(why: String) -> TestCase {
    let mut status = TestCaseStatus::skipped();
    status.set_message(why);
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
    status.set_message(words::meaning(c, table.experiment.smallest_effect));
    status.set_type(words::verdict(c));
    status
}

fn figures(c: &Comparison) -> String {
    let change = c.ratio.map_or("no ratio".to_owned(), change);
    let interval = match c.low.zip(c.high) {
        Some((low, high)) => interval(low, high),
        None => "no interval".to_owned(),
    };
    let notes: String = c.notes.iter().map(|note| format!("\n{note}")).collect();
    format!(
        "{}: {change} {interval}; blocks: {}{notes}",
        words::marked_verdict(c),
        words::blocks(c)
    )
}
