//! Rare events: declared in a file or by an option, counted in trials, and in the answer.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use model::{RareEvent, Trial};
use results::ResultSet;
use std::fs;
use std::process::Output;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

const ARMS: &str =
    "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n";
const WAKEUP: &str = "[[workload]]\nkind = \"wakeup\"\n";

/// Keys of an event, the place of the fault, and what is said of it.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "when = \"reqest > 5ms\"",
        "x.toml:2",
        "did you mean `request`?",
    ),
    ("when = \"request\"", "x.toml:2", "write: request > 100ms"),
    ("when = \"request > 5\"", "x.toml:2", "has no unit"),
    (
        "when = \"request > 0ms\"",
        "x.toml:2",
        "a bound that few reach",
    ),
    ("when = \"ejected > 1s\"", "x.toml:2", "takes no bound"),
    (
        "when = \"kernel_log = a(b\"",
        "x.toml:2",
        "no regular expression",
    ),
    ("whan = \"ejected\"", "x.toml:2", "did you mean `when`?"),
    (
        "when = \"request > 5ms\"\nsame-within = 0.5",
        "x.toml:3",
        "no ratio above 1",
    ),
    (
        "when = \"request > 5ms\"\nsame-below = \"3\"",
        "x.toml:3",
        "\"0.1/min\"",
    ),
    (
        "when = \"request > 5ms\"\ncluster = \"1\"",
        "x.toml:3",
        "has no unit",
    ),
    // No arm has a scheduler, and this load has neither a lateness nor failures.
    ("when = \"ejected\"", "x.toml", "no arm has one"),
    (
        "when = \"guest_death\"",
        "x.toml",
        "run it in a guest: --vm debian:sid",
    ),
    ("when = \"lateness > 5ms\"", "x.toml", "periodic, burnwait"),
    ("when = \"failed_request\"", "x.toml", "http, memcached"),
    (
        "when = \"request > 5ms\"\n[[event]]\nwhen = \"request > 5ms\"",
        "x.toml",
        "two events",
    ),
];

#[test]
fn a_bad_event_is_shown_with_its_place_and_a_remedy() {
    let bench = Bench::default();
    for (event, place, said) in FAULTS {
        let file = bench.file("x.toml", &format!("[[event]]\n{event}\n{ARMS}{WAKEUP}"));
        let output = bench.run(&["plan", &file]);
        expect_code(&output, 2);
        let text = stderr(&output);
        assert!(
            text.contains(place) && text.contains(said),
            "{event}: {text}"
        );
    }
    let words = ["plan", "-a", "default", "-a", "idle", "-w", "wakeup"];
    let typed = [&words[..], &["--event", "wakup > 5ms"]].concat();
    let output = bench.run(&typed);
    expect_code(&output, 2);
    let text = stderr(&output);
    assert!(text.contains("--event 'wakup > 5ms'"), "{text}");
    assert!(text.contains("did you mean `wakeup`?"), "{text}");
    let in_turns = [
        &words[..],
        &["--event", "request > 5ms", "--in-place", "always"],
    ]
    .concat();
    expect_code(&bench.run(&in_turns), 2);
}

/// A run of one block, into `out`.
fn run_wakeup(bench: &Bench, arms: &[&str], duration: &str, events: &[&str]) -> Output {
    let mut words = vec!["run", "-w", "wakeup", "--duration", duration];
    words.extend(["--max-blocks", "1", "-o", "out", "-q", "--wait"]);
    words.extend(arms.iter().flat_map(|arm| ["-a", arm]));
    words.extend(events.iter().flat_map(|event| ["--event", event]));
    bench.run(&words)
}

#[test]
fn events_of_a_run_are_in_its_trials_and_in_its_answer() {
    let _turn = beside_others();
    let bench = Bench::default();
    // No wake-up takes less than a nanosecond, and none an hour.
    let output = run_wakeup(
        &bench,
        &["default", "batch"],
        "500ms",
        &["wakeup > 1ns", "wakeup > 1h", "oom_kill"],
    );
    expect_code(&output, 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let events = &results.experiment.observe.events;
    assert_eq!(events.len(), 3);
    results
        .trials
        .iter()
        .for_each(|stored| expect_events(&stored.trial, events));
    let text = stdout(&output);
    assert!(text.contains("Events (against default)"), "{text}");
    assert!(
        text.contains("is no rare one: 100 % of all requests"),
        "{text}"
    );
    // The file that the words became says the same.
    let file = fs::read_to_string(bench.path("out/experiment.toml")).unwrap();
    assert!(file.contains("wakeup > 1h"), "{file}");
    expect_code(
        &bench.run(&[
            "plan",
            &bench.path("out/experiment.toml").display().to_string(),
        ]),
        0,
    );
}

#[test]
fn an_event_of_one_arm_is_said_to_be_compared_with_nothing() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = run_wakeup(&bench, &["default"], "200ms", &["wakeup > 1h"]);
    let text = stdout(&output);
    let said: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("is compared with nothing"), "{text}");
    assert!(said.contains(": 0 in "), "{text}");
}

/// Length of the window of the load.
const WINDOW_NS: u64 = 500_000_000;

/// The first event is every wake-up, the second none, and the third is not of requests.
fn expect_events(trial: &Trial, events: &[RareEvent]) {
    let result = &trial.result;
    let [often, never, killed] = events
        .iter()
        .map(|event| trial.find_event(&event.name).unwrap())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", result.events)
    };
    assert_eq!(Some(often.count()), often.requests);
    assert!(often.count() > 0, "{often:?}");
    assert_eq!((never.count(), never.requests), (0, often.requests));
    assert_eq!(killed.requests, None);
    let (first, last) = (often.at_ns[0], often.at_ns[often.at_ns.len() - 1]);
    assert!(first <= last && last - first < WINDOW_NS, "{often:?}");
    assert!(last < result.elapsed_ns, "{result:?}");
    assert_eq!(often.exposure_ns, WINDOW_NS);
}

#[test]
fn an_arm_with_more_of_an_event_fails_where_that_is_asked_for() {
    let bench = Bench::default();
    synthetic::write(&bench.path("out"), &synthetic::thrown_out()).unwrap();
    expect_code(&bench.run(&["report", "out", "--fail-on", "regression"]), 0);
    let output = bench.run(&["report", "out", "--fail-on", "events"]);
    expect_code(&output, 5);
    let text = stdout(&output);
    assert!(text.contains("faster and worse"), "{text}");
    // Without the ejections there is nothing that fails: the other event is as frequent in both arms.
    let mut kept = synthetic::thrown_out();
    kept.event_rates.retain(|rate| rate.event != "ejected");
    kept.experiment.seed += 1;
    synthetic::write(&bench.path("kept"), &kept).unwrap();
    expect_code(&bench.run(&["report", "kept", "--fail-on", "events"]), 0);
    // The gate has the events among its checks: the same experiment, without and with the ejections.
    let output = bench.run(&["gate", "kept", "out"]);
    expect_code(&output, 5);
    let text = stdout(&output);
    assert!(
        text.contains("ejected") && text.contains("0 against 0"),
        "{text}"
    );
    let junit = stdout(&bench.run(&["report", "out", "--format", "junit"]));
    assert!(
        junit.contains("event ejected of batch against default"),
        "{junit}"
    );
    assert!(junit.contains("failures=\"1\""), "{junit}");
    let rows = stdout(&bench.run(&["report", "out", "--format", "events"]));
    assert!(
        rows.lines()
            .any(|row| row.contains(",ejected,") && row.contains(",worse,")),
        "{rows}"
    );
}

#[test]
fn a_line_of_the_kernels_log_is_an_event_with_its_moment() {
    let Ok(mut log) = fs::OpenOptions::new().write(true).open("/dev/kmsg") else {
        return tests::skipped("the kernel's log cannot be written to: not root, or a container");
    };
    std::io::Write::write_all(&mut log, b"schedlab: before any window\n").unwrap();
    let _turn = beside_others();
    let bench = Bench::default();
    let line = "schedlab: the event of a test";
    let command = format!("sleep 0.1; echo '{line}' > /dev/kmsg; sleep 0.1");
    let file = format!(
        "[[event]]\nname = \"line\"\nwhen = \"kernel_log = schedlab: .* of a t[a-z]+\"\n{ARMS}\
         [[workload]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n[stop]\nmax-blocks = 1\nmin-blocks = 1\n"
    );
    let file = bench.file("x.toml", &file);
    let output = bench.run(&["run", &file, "-o", "out", "-q", "--wait"]);
    expect_code(&output, 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(results.trials.len(), 2);
    for stored in &results.trials {
        let result = &stored.trial.result;
        let event = stored.trial.find_event("line").unwrap();
        assert_eq!(event.messages, [line], "{event:?}");
        let window = result.window_start_ns..result.window_end_ns;
        assert!(window.contains(&event.at_ns[0]), "{event:?} in {window:?}");
        assert_eq!(event.exposure_ns, window.end - window.start);
    }
    let text = stdout(&output);
    assert!(text.contains(line), "{text}");
}
