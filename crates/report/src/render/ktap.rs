//! KTAP, the kernel's Test Anything Protocol (Documentation/dev-tools/ktap.rst): what JUnit has, as the lines that
//! kernel test systems read. A suite is a test with subtests; what is not decided is skipped.

use doors::shown::clean_line;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::fmt::Write;

/// Results of these suites as KTAP.
pub fn render_suites(report: &Report) -> String {
    let mut text = format!("KTAP version 1\n1..{}\n", report.test_suites.len());
    for (number, suite) in report.test_suites.iter().enumerate() {
        // A text takes all that is written.
        let _ = write_suite(&mut text, number + 1, suite);
    }
    text
}

fn write_suite(text: &mut String, number: usize, suite: &TestSuite) -> std::fmt::Result {
    let name = name_test(suite.name.as_str());
    writeln!(text, "  KTAP version 1\n  # Subtest: {name}")?;
    writeln!(text, "  1..{}", suite.test_cases.len())?;
    for (number, case) in suite.test_cases.iter().enumerate() {
        write_case(text, number + 1, case)?;
    }
    let is_passed = |case: &TestCase| !matches!(case.status, TestCaseStatus::NonSuccess { .. });
    let result = result_word(suite.test_cases.iter().all(is_passed));
    writeln!(text, "{result} {number} {name}")
}

fn write_case(text: &mut String, number: usize, case: &TestCase) -> std::fmt::Result {
    let name = name_test(case.name.as_str());
    let said = |message: &Option<quick_junit::XmlString>| match message {
        Some(message) => format!(" {}", clean_line(message.as_str())),
        None => String::new(),
    };
    match &case.status {
        TestCaseStatus::Success { .. } => writeln!(text, "  ok {number} {name}"),
        TestCaseStatus::Skipped { message, .. } => {
            writeln!(text, "  ok {number} {name} # SKIP{}", said(message))
        }
        TestCaseStatus::NonSuccess { kind, message, .. } => {
            let directive = match kind {
                NonSuccessKind::Failure => "",
                NonSuccessKind::Error => " ERROR",
            };
            writeln!(
                text,
                "  not ok {number} {name} #{directive}{}",
                said(message)
            )
        }
    }
}

fn result_word(is_passed: bool) -> &'static str {
    match is_passed {
        true => "ok",
        false => "not ok",
    }
}

/// Name of a test, which ends where a `#` begins a directive.
fn name_test(name: &str) -> String {
    clean_line(name).to_string().replace('#', "number ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_is_a_test_with_subtests_and_passes_if_none_of_them_fails() {
        let case = |name: &str, mut status: TestCaseStatus, said: &str| {
            if !said.is_empty() {
                status.set_message(said);
            }
            TestCase::new(name, status)
        };
        let failed = |kind| TestCaseStatus::non_success(kind);
        let mut mixed = TestSuite::new("http 1000/s");
        mixed.add_test_cases([
            case("p99 of batch", TestCaseStatus::success(), ""),
            case(
                "p50 of #2",
                failed(NonSuccessKind::Failure),
                "8 % higher\nnot ok 9 x",
            ),
            case("measured", failed(NonSuccessKind::Error), "no trial"),
        ]);
        let mut open = TestSuite::new("wakeup");
        open.add_test_case(case(
            "p99 of batch",
            TestCaseStatus::skipped(),
            "not decided",
        ));
        let mut report = Report::new("night");
        report.add_test_suites([mixed, open]);
        let expected = "KTAP version 1\n1..2\n  KTAP version 1\n  # Subtest: http 1000/s\n  1..3\n  \
                        ok 1 p99 of batch\n  not ok 2 p50 of number 2 # 8 % higher not ok 9 x\n  \
                        not ok 3 measured # ERROR no trial\nnot ok 1 http 1000/s\n  KTAP version 1\n  \
                        # Subtest: wakeup\n  1..1\n  ok 1 p99 of batch # SKIP not decided\nok 2 wakeup\n";
        assert_eq!(render_suites(&report), expected);
    }
}
