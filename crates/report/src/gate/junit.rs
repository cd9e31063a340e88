//! JUnit XML, and KTAP of the same: a suite for each cell, a test case for each check. What fails is a failure, what was
//! compared and is not decided is skipped, and what was not measured is an error.

use super::text::format_move;
use super::{Call, Check, FailOn, Gate};
use crate::ReportError;
use crate::render::junit::not_measured;
use crate::render::ktap::render_suites;
use model::printable::one_line;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

impl Gate {
    /// Answer for continuous integration.
    pub fn to_junit(&self, fail_on: FailOn) -> Result<String, ReportError> {
        Ok(self.make_report(fail_on).to_string()?)
    }

    /// Answer for the test systems of the kernel.
    pub fn to_ktap(&self, fail_on: FailOn) -> String {
        render_suites(&self.make_report(fail_on))
    }

    fn make_report(&self, fail_on: FailOn) -> Report {
        let mut report = Report::new(&self.experiment);
        for checks in self.checks.chunk_by(|one, next| one.cell == next.cell) {
            let mut suite = TestSuite::new(&checks[0].cell);
            suite.add_property(("stored", self.stored.as_str()));
            suite.add_property(("new", self.new.as_str()));
            suite.add_property(("error rate", self.error_rate().as_str()));
            suite.add_test_cases(checks.iter().map(|check| case(check, fail_on)));
            report.add_test_suite(suite);
        }
        if !self.lacks.is_empty() {
            let mut suite = TestSuite::new("not measured");
            suite.add_test_cases(self.lacks.iter().map(|lack| not_measured(lack)));
            report.add_test_suite(suite);
        }
        report
    }
}

fn case(check: &Check, fail_on: FailOn) -> TestCase {
    let said = format!("{}; {}", format_move(check), check.figures);
    let said = one_line(&said).into_owned();
    let mut status = match (fail_on.is_failure(check.call), check.call) {
        (true, _) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        (false, Call::Unknown) => TestCaseStatus::skipped(),
        (false, _) => TestCaseStatus::success(),
    };
    if !matches!(status, TestCaseStatus::Success { .. }) {
        status.set_message(said.clone());
        status.set_type(check.call.as_str());
    }
    let mut case = TestCase::new(format!("{} of {}", check.metric, check.arm), status);
    case.set_classname(check.cell.as_str());
    case.set_system_out(format!("{}: {said}", check.call.as_str()));
    case
}
