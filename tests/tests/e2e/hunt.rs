//! Hunts: what is refused, what a hunt makes of a command line, and how it ends.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use model::DecidedBy;
use results::ResultSet;
use std::fs;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

const ARMS: [&str; 6] = ["-a", "default", "-a", "batch", "-w", "wakeup"];

/// Words of a hunt on this machine, and what is said of them.
const FAULTS: &[(&[&str], &[&str])] = &[
    (&[], &["no arm has one", "-a scx_lavd"]),
    (
        &["--event", "oom_kill", "--provoke", "hotplg"],
        &["--provoke hotplg", "did you mean `hotplug`?"],
    ),
    (
        &["--event", "oom_kill", "--provoke", "affinity,hotplug"],
        &["`affinity` is for guests only", "--vm debian:sid"],
    ),
    (
        &["--event", "oom_kill", "--same-below", "3"],
        &["--same-below 3", "\"0.1/min\""],
    ),
    (
        &["--event", "oom_kill", "--same-within", "0.5"],
        &["--same-within 0.5", "no ratio above 1"],
    ),
    (&["--same-below", "3/min"], &["--event <EVENT>"]),
    (
        &["--event", "wakeup > p98 of the baseline"],
        &["does not measure wakeup_p98", "wakeup_p99"],
    ),
    (
        &["--event", "wakeup > 0 x p99 of the baseline"],
        &["no whole number from 1", "3 x p99 of the baseline"],
    ),
    (
        &["--event", "wakeup > mean of the baseline"],
        &["no quantile of the baseline"],
    ),
    (
        &["--resume", "out", "--provoke", "affinity"],
        &["keeps its provocations"],
    ),
];

#[test]
fn a_bad_hunt_is_shown_with_its_words_and_a_remedy() {
    let bench = Bench::default();
    for (more, said) in FAULTS {
        let words = match more.first() {
            Some(&"--resume") => [&["hunt"][..], more].concat(),
            _ => [&["hunt"], &ARMS[..], more].concat(),
        };
        let output = bench.run(&words);
        expect_code(&output, 2);
        let text = stderr(&output);
        let missing = said.iter().find(|said| !text.contains(**said));
        assert_eq!(missing, None, "{more:?}: {text}");
    }
    assert!(!bench.path("results").exists());
}

/// Keys of a file, and the place and the words of their fault.
const KEYS: &[(&str, &str, &str)] = &[
    (
        "[[event]]\nwhen = \"oom_kill\"\nat-most = 3",
        "x.toml:3",
        "count `ejected`, `error_exit` or",
    ),
    (
        "[[event]]\nwhen = \"wakeup > 1ms\"\ncool-down = \"3s\"",
        "x.toml:3",
        "end their windows",
    ),
    (
        "[[event]]\nwhen = \"ejected\"\ncool-down = \"3h\"",
        "x.toml:3",
        "at most an hour",
    ),
    (
        "[[event]]\nwhen = \"ejected\"\nat-most = 0",
        "x.toml:3",
        "at-most = 100",
    ),
    ("stop.decided-by = \"events\"", "x.toml", "it counts none"),
    ("stop.decided-by = \"event\"", "x.toml:1", "`events`"),
];

#[test]
fn a_bad_key_of_a_hunt_is_shown_with_its_place() {
    let bench = Bench::default();
    for (keys, place, said) in KEYS {
        let arms = "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n";
        let text = format!("{keys}\n{arms}[[workload]]\nkind = \"wakeup\"\n");
        let output = bench.run(&["plan", &bench.file("x.toml", &text)]);
        expect_code(&output, 2);
        let text = stderr(&output);
        assert!(
            text.contains(place) && text.contains(said),
            "{keys}: {text}"
        );
    }
}

#[test]
fn a_hunt_with_one_arm_is_refused_with_what_to_add() {
    let one = [
        "hunt", "-a", "default", "-w", "wakeup", "--event", "oom_kill",
    ];
    let output = Bench::default().run(&one);
    expect_code(&output, 2);
    let text = stderr(&output);
    assert!(
        text.contains("it has one arm") && text.contains("add a second arm"),
        "{text}"
    );
}

#[test]
fn a_provocation_refuses_to_work_outside_a_guest() {
    let output = Bench::default().run(&["provoke", "hotplug"]);
    assert!(!output.status.success());
    let text = stderr(&output);
    assert!(text.contains("for guests that schedlab starts"), "{text}");
    let list = stdout(&Bench::default().run(&["list", "provocations"]));
    assert!(
        list.contains("hotplug") && list.contains("cgroups"),
        "{list}"
    );
}

#[test]
fn a_hunt_ends_with_its_events_and_the_baseline_says_the_bound() {
    let _turn = beside_others();
    let bench = Bench::default();
    // Fewer than a thousand a second is certain after the least number of blocks.
    let more = [
        "--duration",
        "500ms",
        "--event",
        "wakeup > 1000 x max of the baseline",
        "--same-below",
        "1000/s",
        "-o",
        "out",
        "--wait",
    ];
    let output = bench.run(&[&["hunt"], &ARMS[..], &more].concat());
    expect_code(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("Time to a verdict"), "{said}");
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let stop = &results.experiment.stop;
    assert_eq!(stop.decided_by, DecidedBy::Events);
    assert_eq!(stop.budget_ns, Some(3_600_000_000_000));
    let blocks = results.trials.iter().map(|t| t.trial.place.block).max();
    assert_eq!(blocks, Some(stop.min_blocks), "{}", stdout(&output));
    // The bound is of trials that no block has, and is kept.
    let bounds: Vec<u64> = results
        .calibrations
        .values()
        .flat_map(|found| found.bounds_ns.values().copied())
        .collect();
    assert!(bounds.len() == 1 && bounds[0] >= 1_000, "{bounds:?}");
    let mut notes = results.manifest.warnings.iter().map(|note| &note.what);
    assert!(notes.any(|what| what.contains("trials of the baseline before the first block")));
    let report = stdout(&output);
    assert!(report.contains("same"), "{report}");
    let file = fs::read_to_string(bench.path("out/experiment.toml")).unwrap();
    assert!(file.contains("stop.decided-by = \"events\""), "{file}");
    expect_code(&bench.run(&["verify", "out"]), 0);
    let json = stdout(&bench.run(&["report", "out", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(
        json["conclusion"][0].as_str().unwrap().starts_with("batch"),
        "{json}"
    );
}

#[test]
fn the_events_of_two_runs_stand_side_by_side() {
    let bench = Bench::default();
    synthetic::write(&bench.path("out"), &synthetic::thrown_out()).unwrap();
    let mut kept = synthetic::thrown_out();
    kept.event_rates.retain(|rate| rate.event != "ejected");
    kept.experiment.seed += 1;
    synthetic::write(&bench.path("kept"), &kept).unwrap();
    let text = stdout(&bench.run(&["compare", "kept", "out"]));
    assert!(text.contains("in A never thrown out"), "{text}");
    assert!(text.contains("in B thrown out 21 times"), "{text}");
    assert!(text.contains("Rare events: each arm"), "{text}");
}
