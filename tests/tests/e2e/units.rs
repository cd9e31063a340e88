//! Figures with units: what a program prints as `950us` or `1.03ms` is one figure of one metric, from
//! the program to the report.

#![allow(clippy::unwrap_used)]

use model::{Trial, TrialState};
use results::ResultSet;
use tests::{Bench, beside_others, expect_code, stdout};

/// An experiment whose program tells by its niceness under which arm it runs.
fn experiment(script: &str, metric: &str) -> String {
    format!(
        "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"nice\"\npolicy = {{ nice = 5 }}\n\
         [[workload]]\nname = \"told\"\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", '''{script}''']\n[[workload.metric]]\n{metric}\n\
         [stop]\nmin-blocks = 6\nmax-blocks = 6\nmax-attempts = 1\n"
    )
}

/// Prints one text for the arm `nice` and another for the baseline.
fn by_arm(nice: &str, other: &str) -> String {
    format!("if [ \"$(nice)\" = 5 ]; then echo \"{nice}\"; else echo \"{other}\"; fi")
}

fn ran(bench: &Bench, text: &str, code: i32) -> Vec<Trial> {
    let file = bench.file("units.toml", text);
    expect_code(&bench.run(&["run", "--wait", &file, "-o", "out"]), code);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    results
        .trials
        .into_iter()
        .map(|stored| stored.trial)
        .collect()
}

fn values_of<'t>(trials: &'t [Trial], arm: &str) -> Vec<(f64, &'t str)> {
    let of_arm = trials.iter().filter(|trial| trial.arm == arm);
    let metrics = of_arm.filter_map(|trial| trial.metric("p99"));
    metrics.map(|m| (m.value, m.unit.as_str())).collect()
}

const P99: &str = "name = \"p99\"\nbetter = \"lower\"\nregex = '99%\\s+(?<v>[\\d.]+)'";

#[test]
fn a_unit_that_changes_with_the_size_changes_no_figure() {
    let _turn = beside_others();
    let bench = Bench::default();
    let script = by_arm("99%  1.03ms", "99%  955.00us");
    let metric = format!("{P99}\nunit = \"ms\"");
    let trials = ran(&bench, &experiment(&script, &metric), 0);
    assert_eq!(values_of(&trials, "default"), [(0.955, "ms"); 6]);
    assert_eq!(values_of(&trials, "nice"), [(1.03, "ms"); 6]);
    let report = stdout(&bench.run(&["report", "out"]));
    let row = "955 us  1.03 ms   +7.9%  [+7.9%, +7.9%]  worse";
    assert!(report.contains(row), "{report}");
}

#[test]
fn without_a_declared_unit_the_report_has_that_of_the_source() {
    let _turn = beside_others();
    let bench = Bench::default();
    let script = by_arm("99%  1.03ms", "99%  955.00us");
    let trials = ran(&bench, &experiment(&script, P99), 0);
    assert_eq!(values_of(&trials, "default"), [(955_000.0, "ns"); 6]);
    assert_eq!(values_of(&trials, "nice"), [(1_030_000.0, "ns"); 6]);
    let report = stdout(&bench.run(&["report", "out"]));
    assert!(
        report.contains("1.03 ms") && report.contains("955 us"),
        "{report}"
    );
}

/// Reasons for which trials failed.
fn reasons(trials: &[Trial]) -> Vec<&str> {
    let failed = trials.iter().filter_map(|trial| match &trial.result.state {
        TrialState::Failed { why } => Some(why.as_str()),
        _ => None,
    });
    failed.collect()
}

#[test]
fn a_unit_that_one_trial_has_and_another_lacks_fails_it_with_both_lines() {
    let _turn = beside_others();
    let bench = Bench::default();
    let script = by_arm("99%  1030", "99%  955.00us");
    let trials = ran(&bench, &experiment(&script, P99), 4);
    let reasons = reasons(&trials);
    assert!(!reasons.is_empty(), "{trials:?}");
    for why in reasons {
        assert!(
            why.contains("`99%  955.00us`") && why.contains("`99%  1030`"),
            "{why}"
        );
    }
}

#[test]
fn a_unit_that_contradicts_the_declared_one_fails_every_trial() {
    let _turn = beside_others();
    let bench = Bench::default();
    let metric = format!("{P99}\nunit = \"MB/s\"");
    let trials = ran(&bench, &experiment("echo '99% 3.1 ms'", &metric), 4);
    let reasons = reasons(&trials);
    assert_eq!(reasons.len(), trials.len());
    assert!(
        reasons[0].contains("`99% 3.1 ms`") && reasons[0].contains("\"MB/s\""),
        "{}",
        reasons[0]
    );
}

#[test]
fn fields_of_a_table_and_of_json_have_their_units() {
    let _turn = beside_others();
    let bench = Bench::default();
    let script = by_arm("p99,n\n1.03 ms,7", "p99,n\n955us,7");
    let csv = "name = \"p99\"\nbetter = \"lower\"\ncsv = \"p99\"\nunit = \"us\"";
    let trials = ran(&bench, &experiment(&script, csv), 0);
    assert_eq!(values_of(&trials, "default"), [(955.0, "us"); 6]);
    assert_eq!(values_of(&trials, "nice"), [(1030.0, "us"); 6]);
}
