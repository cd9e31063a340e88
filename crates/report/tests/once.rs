//! Verdicts that do not reach beyond what a run had once.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::TargetSpec;
use report::{Format, Options, Table};
use results::ResultSet;
use serde_json::json;

/// The report of a synthetic run on this target, in which the arm `batch` has a kernel of its own.
fn report(reset: &str, format: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    results.experiment.target = TargetSpec::new("vm", &json!({ "reset": reset }));
    for arm in &mut results.experiment.arms {
        arm.kernel = (arm.name == "batch").then(|| "debian:trixie".to_owned());
    }
    let table = Table::from_results(&results);
    let format = Format::find_by_name(format).unwrap();
    let said = format.render_report(&table, &results, &Options::default());
    said.unwrap().into_string()
}

#[test]
fn a_verdict_on_an_arm_with_one_boot_says_so_and_one_of_a_boot_for_each_block_does_not() {
    for format in ["text", "json"] {
        let said = report("snapshot", format);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(" in this boot"), "{said}");
        let each = report("block-snapshot", format);
        assert!(
            !each.contains("in this boot") && !each.contains("holds_for"),
            "{each}"
        );
    }
    assert!(report("snapshot", "json").contains("\"holds_for\": \"this-boot\""));
}
