//! Figures of our own in the forms of kirk, of `runltp -l` and of runltp's output.

use super::*;
use std::fs;

fn json(kernel: &str, took: f64) -> String {
    let test = |name: &str, status: &str, took: f64| {
        format!(
            r#"{{"test_fqn": "{name}", "status": "{status}", "test": {{"command": "{name}", "arguments": [],
            "log": "x", "retval": ["0"], "duration": {took}, "failed": 0, "passed": 2, "broken": 0,
            "skipped": 0, "warnings": 0, "result": "{status}"}}}}"#
        )
    };
    let tests = [
        test("sched_setattr01", "pass", took),
        test("cfs_bandwidth01", "conf", 0.1),
        test("starvation", "fail", 30.5),
        test("sched_getattr01", "brok", 0.2),
    ];
    format!(
        r#"{{"results": [{}], "stats": {{"runtime": 1, "passed": 8}},
        "environment": {{"distribution": "debian", "kernel": "{kernel}", "arch": "x86_64", "RAM": "1 kB"}}}}"#,
        tests.join(",")
    )
}

const TABLE: &str = "Test Start Time: Mon Jun 10 10:00:00 2024
-----------------------------------------
Testcase                                           Result     Exit Value
--------                                           ------     ----------
sched_setattr01                                    PASS       0
cfs_bandwidth01                                    CONF       32
starvation                                         FAIL       1

-----------------------------------------------
Total Tests: 3
Total Skipped Tests: 1
Total Failures: 1
Kernel Version: 6.9.0
Machine Architecture: x86_64
Hostname: lab

";

const OUTPUT: &str = "<<<test_start>>>
tag=starvation stime=1716734654
cmdline=\"starvation\"
contacts=\"\"
analysis=exit
<<<test_output>>>
tst_test.c:1733: TINFO: LTP version: 20240524
tst_test.c:1737: TINFO: Tested kernel: 6.9.0 #1 SMP PREEMPT_DYNAMIC x86_64
starvation.c:80: TPASS: Haven't reproduced scheduler starvation.
duration of this tag=1
incrementing stop
<<<execution_status>>>
initiation_status=\"ok\"
duration=8 termination_type=exited termination_id=0 corefile=no
cutime=11 cstime=345
<<<test_end>>>
<<<test_start>>>
tag=cfs_bandwidth01 stime=1716734662
<<<execution_status>>>
initiation_status=\"ok\"
duration=0 termination_type=exited termination_id=32 corefile=no
cutime=0 cstime=0
<<<test_end>>>
<<<test_start>>>
tag=sched_stress stime=1716734662
<<<execution_status>>>
initiation_status=\"ok\"
duration=1 termination_type=signaled termination_id=9 corefile=no
cutime=0 cstime=3
<<<test_end>>>
<<<test_start>>>
tag=getcpu01 stime=1716734662
<<<execution_status>>>
initiation_status=\"ok\"
duration=0 termination_type=exited termination_id=0 corefile=no
cutime=0 cstime=0
<<<test_end>>>
INFO: ltp-pan reported some tests FAIL
LTP Version: 20240524
";

fn import(files: &[(&str, String)]) -> Imported {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    read(&[dir.path().to_owned()]).unwrap()
}

/// Arm, cell and figures of a run.
type Figures<'i> = (&'i str, String, Vec<(&'i str, f64)>);

fn runs(imported: &Imported) -> Vec<Figures<'_>> {
    let figures = |run: &Run| -> Vec<(&str, f64)> {
        let metrics = imported.runs.iter().find(|other| *other == run).unwrap();
        metrics
            .metrics
            .iter()
            .map(|m| (m.metric.as_str(), m.value))
            .collect()
    };
    let runs = imported.runs.iter();
    runs.map(|run| (run.arm.as_str(), run.place.cell_name(), figures(run)))
        .collect()
}

fn counts(failed: f64, passed: f64, skipped: f64) -> Vec<(&'static str, f64)> {
    vec![
        ("tests_failed", failed),
        ("tests_passed", passed),
        ("tests_skipped", skipped),
    ]
}

#[test]
fn json_has_a_run_of_all_tests_and_of_each_that_passed() {
    let imported = import(&[
        ("a.json", json("6.9.0", 1.25)),
        ("b.json", json("6.10.0", 1.5)),
    ]);
    assert_eq!(imported.faults, []);
    let expected = [
        ("6.9.0", "all tests".to_owned(), counts(2.0, 1.0, 1.0)),
        ("6.9.0", "sched_setattr01".to_owned(), vec![("time", 1.25)]),
        ("6.10.0", "all tests".to_owned(), counts(2.0, 1.0, 1.0)),
        ("6.10.0", "sched_setattr01".to_owned(), vec![("time", 1.5)]),
    ];
    assert_eq!(runs(&imported), expected);
    let said = &imported.warnings[0].what;
    assert!(
        said.contains("a.json") && said.contains("starvation (fail), sched_getattr01 (brok)"),
        "{said}"
    );
}

#[test]
fn the_table_has_numbers_of_tests_and_its_machine() {
    let imported = import(&[("a.log", TABLE.repeat(2))]);
    let run = ("6.9.0", "all tests".to_owned(), counts(1.0, 1.0, 1.0));
    assert_eq!(runs(&imported), [run.clone(), run]);
    assert_eq!(imported.arms[0].facts["host"], "lab");
}

#[test]
fn the_output_has_the_times_of_tests_that_passed() {
    let imported = import(&[("a.out", OUTPUT.to_owned())]);
    assert_eq!(imported.faults, []);
    let times = vec![("time", 8.0), ("cpu_time", 3.56)];
    let expected = [
        ("6.9.0", "all tests".to_owned(), counts(1.0, 2.0, 1.0)),
        ("6.9.0", "starvation".to_owned(), times),
    ];
    assert_eq!(runs(&imported), expected);
}

#[test]
fn what_was_cut_off_is_refused_with_its_line() {
    let refused = |text: &str| read_text(Path::new("x"), text).unwrap_err().to_string();
    let cut = TABLE
        .split("\n-----------------------------------------------")
        .next();
    assert!(refused(cut.unwrap()).contains("x:1: the table that begins here has no end"));
    let lost = TABLE.lines().filter(|line| !line.starts_with("starvation"));
    let lost = refused(&lost.collect::<Vec<_>>().join("\n"));
    assert!(
        lost.contains("x:9: it says 3 tests, and there are 2 above it"),
        "{lost}"
    );
    let cut = OUTPUT.split("duration=1 ").next().unwrap();
    assert!(refused(cut).contains("`sched_stress` has no end"));
    let nothing = refused("hello\n");
    assert!(nothing.contains("no test of LTP"), "{nothing}");
    assert!(refused("{\"results\": []}").contains("no test of LTP"));
    let no_result = r#"{"results": [{"test_fqn": "x", "test": {"duration": 1}}]}"#;
    assert!(refused(no_result).contains("`x` has no result"));
    let negative =
        r#"{"results": [{"test_fqn": "x", "status": "pass", "test": {"duration": -1}}]}"#;
    assert!(refused(negative).contains("no time"));
}

#[test]
fn one_kernel_on_two_hosts_is_refused() {
    let other = TABLE.replace("Hostname: lab", "Hostname: desk");
    let imported = import(&[("a.log", TABLE.to_owned()), ("b.log", other)]);
    let fault = imported.faults[0].to_string();
    assert!(fault.contains("two machines"), "{fault}");
}
