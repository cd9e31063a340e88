//! `trace = "worst"`: the scheduling events around the worst latency.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use collect::sched_trace;
use results::ResultSet;
use results::files::trace_in;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tests::{Bench, beside_others, expect_code, is_root, stderr, stdout, with_lock_of_runs};

const EXPERIMENT: &str = r#"
name = "traces"
trace = "worst"
[[arm]]
name = "default"
[[workload]]
kind = "wakeup"
loads = [2]
duration = "400ms"
warmup = "50ms"
metrics = ["wakeup_max"]
[stop]
max-blocks = 2
min-blocks = 2
"#;

fn no_tracefs() -> bool {
    let missing = match is_root() {
        true => sched_trace::find_obstacle(Path::new("/")).map(|why| why.to_string()),
        false => Some("it needs root".to_owned()),
    };
    if let Some(why) = &missing {
        tests::skipped(format!("tracefs: {why}"));
    }
    missing.is_some()
}

/// Names of the threads of a process, once none of them is `exe` any more; the last ones if that does not come.
fn names_of_threads(pid: u32) -> BTreeSet<String> {
    let read = || -> BTreeSet<String> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
        let names = tasks.flatten().flat_map(name);
        names.map(|name| name.trim_end().to_owned()).collect()
    };
    for _ in 0..1000 {
        let names = read();
        // Until it is another program it has the name of the thread of this test.
        let is_early =
            |name: &String| name == "exe" || name == "schedlab" || name.starts_with("traces::");
        if !names.is_empty() && !names.iter().any(is_early) {
            return names;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    read()
}

#[test]
fn no_thread_of_an_antagonist_of_ours_is_called_exe() {
    let bench = Bench::default();
    // As an agent starts it: the kernel names a process by the last part of its path.
    let exe = bench.path("exe");
    symlink(tests::schedlab(), &exe).unwrap();
    let mut spinner = Command::new(&exe);
    let mut spinner = spinner.args(["spin", "--threads", "2"]).spawn().unwrap();
    let names = names_of_threads(spinner.id());
    spinner.kill().unwrap();
    spinner.wait().unwrap();
    assert_eq!(names, BTreeSet::from(["spinner".to_owned()]));
}

/// Places in a trace, by the numbers of the fields that lead there, and what is there.
const PLACES: &[(&[u64], &str)] = &[
    (&[1, 1, 1], "CPU of the events of a packet"),
    (&[1, 1, 2, 1], "time of an event"),
    (&[1, 1, 2, 2], "thread that ran then"),
    (
        &[1, 1, 2, 4],
        "a switch: two threads, of which one goes and the other comes",
    ),
    (&[1, 1, 2, 17], "a thread that is awake"),
    (&[1, 1, 2, 20], "a thread that is being woken"),
    (&[1, 1, 2, 114], "a thread that is awake for the first time"),
    (&[1, 1, 2, 237], "a process that becomes another program"),
    (&[1, 1, 2, 238], "a process that ends"),
    (&[1, 1, 2, 239], "a process that begins"),
    (&[1, 1, 2, 491], "a thread that goes to another CPU"),
    (&[1, 2, 1], "a process, with its command line"),
    (&[1, 2, 2], "a thread, with its process"),
    (&[1, 8], "time of a packet"),
    (&[1, 10], "sequence that a packet is of"),
    (
        &[1, 11, 9],
        "kind of a mark: its beginning, its end, or both",
    ),
    (&[1, 11, 11], "track of a mark"),
    (&[1, 11, 22], "category of a mark"),
    (&[1, 11, 23], "name of a mark"),
    (&[1, 13], "that no packet before it is needed"),
    (&[1, 45, 1], "the system: its name and release"),
    (&[1, 60, 1], "number of a track"),
    (&[1, 60, 2], "name of a track"),
];
const SWITCH_COMES: &[u64] = &[1, 1, 2, 4, 5];
const SYSTEM_NAME: &[u64] = &[1, 45, 1, 1];

/// A number of the wire format: seven bits in each byte, the lowest first.
fn number(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (own, rest) = bytes.split_at(length);
    *bytes = rest;
    let bits = own.iter().rev();
    bits.fold(0, |all, byte| (all << 7) | u64::from(byte & 0x7f))
}

/// The fields of a message: their numbers and, of those that have a length, their bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = number(&mut message);
        let value = match key & 7 {
            0 => {
                number(&mut message);
                &[][..]
            }
            2 => {
                let length = usize::try_from(number(&mut message)).unwrap();
                let (value, rest) = message.split_at(length);
                message = rest;
                value
            }
            other => panic!("a kind of field that nothing here has: {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// All values at a place.
fn at<'a>(message: &'a [u8], place: &[u64]) -> Vec<&'a [u8]> {
    let Some((first, rest)) = place.split_first() else {
        return vec![message];
    };
    let fields = fields(message).into_iter();
    let fields = fields.filter(|(number, _)| number == first);
    fields.flat_map(|(_, value)| at(value, rest)).collect()
}

/// Asserts that below a place there is nothing but what [`PLACES`] has.
fn expect_known(message: &[u8], place: &[u64]) {
    if PLACES.iter().any(|(known, _)| *known == place) {
        return;
    }
    let leads_on = PLACES.iter().any(|(known, _)| known.starts_with(place));
    assert!(leads_on, "{place:?} is no place of a trace");
    for (number, value) in fields(message) {
        expect_known(value, &[place, &[number]].concat());
    }
}

/// Reads the file as Perfetto does, by the numbers of its fields, which are for ever.
fn expect_a_trace_of_perfetto(file: &Path) {
    let trace = std::fs::read(file).unwrap();
    expect_known(&trace, &[]);
    let is_usual = |what: &str| !what.contains("process that") && !what.contains("another CPU");
    let usual = PLACES.iter().filter(|(_, what)| is_usual(what));
    for (place, what) in usual.filter(|(_, what)| !what.contains("first time")) {
        assert!(!at(&trace, place).is_empty(), "not in the trace: {what}");
    }
    let names = at(&trace, SWITCH_COMES);
    assert!(names.contains(&&b"wakeup-worker"[..]));
    assert_eq!(at(&trace, SYSTEM_NAME), [b"Linux"]);
}

#[test]
fn of_all_trials_of_an_arm_the_worst_is_kept_and_shown() {
    let _turn = with_lock_of_runs();
    if no_tracefs() {
        return;
    }
    let rings = || sched_trace::ring_names(Path::new("/")).unwrap();
    let before = rings();
    let bench = Bench::default();
    let file = bench.file("e.toml", EXPERIMENT);
    let said = bench.run(&["run", &file, "-o", "out", "-q", "--format", "json"]);
    expect_code(&said, 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(results.trials.len(), 2);
    let took = |stored: &results::StoredTrial| {
        let trace = stored.trial.result.trace.as_ref().unwrap();
        let longest = stored.trial.metric("wakeup_max").unwrap().value;
        // Histograms have three digits.
        assert!(
            (longest / trace.took_ns as f64 - 1.0).abs() < 0.01,
            "{trace:?}"
        );
        trace.took_ns
    };
    let worst = results.trials.iter().map(took).max().unwrap();
    for stored in &results.trials {
        assert_eq!(trace_in(&stored.dir).exists(), took(stored) == worst);
    }
    let report: Value = serde_json::from_str(&stdout(&said)).unwrap();
    let shown = &report["worst"][0]["arms"][0];
    assert_eq!(shown["took_ns"], worst);
    assert_eq!(shown["thread_name"], "wakeup-worker");
    // Events have whole microseconds. A waker that was put off itself leaves less to wait.
    assert!(
        shown["waited_ns"].as_u64().unwrap() < worst + 3_000,
        "{shown}"
    );
    expect_a_trace_of_perfetto(&bench.path("out").join(shown["file"].as_str().unwrap()));
    let text = stdout(&bench.run(&["report", "out"]));
    assert!(text.contains("https://ui.perfetto.dev"), "{text}");
    let mut left = rings();
    left.retain(|name| !before.contains(name));
    assert_eq!(left, [""; 0], "rings that a trial left");
}

#[test]
fn a_trace_that_cannot_be_had_is_refused_before_anything_runs() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let word = [
        "run",
        "-a",
        "default",
        "-w",
        "hackbench",
        "--trace",
        "worst",
    ];
    let said = bench.run(&word);
    expect_code(&said, 2);
    assert!(stderr(&said).contains("does not say when"));
    let said = bench.run(&["run", "-a", "default", "-w", "wakeup", "--trace", "best"]);
    expect_code(&said, 2);
    assert!(
        stderr(&said).contains("`worst:request`"),
        "{}",
        stderr(&said)
    );
}

/// Output of perf about a file that a trial kept.
fn read_with_perf(words: &[&str], file: &Path) -> String {
    let mut perf = Command::new("perf");
    let output = perf.args(words).arg("-i").arg(file).output().unwrap();
    expect_code(&output, 0);
    stdout(&output)
}

#[test]
fn recordings_of_perf_are_kept_for_perf_itself() {
    if no_tracefs() {
        return;
    }
    if tests::program("perf").is_none() {
        return tests::skipped("perf is not installed");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let text = EXPERIMENT.replace(
        "trace = \"worst\"",
        "collect = [\"perf-record\", \"perf-sched\"]",
    );
    let file = bench.file("recorded.toml", &text);
    let output = bench.run(&["run", &file, "--wait", "-o", "out"]);
    expect_code(&output, 0);
    let trials = results::read::read_trials(&bench.path("out")).unwrap();
    assert_eq!(trials.len(), 2);
    for trial in fs::read_dir(bench.path("out/trials")).unwrap() {
        let kept = trial.unwrap().path().join("kept");
        let ran = read_with_perf(
            &["report", "--stdio", "-g", "none", "-s", "comm"],
            &kept.join("perf-record/perf.data"),
        );
        assert!(ran.contains("wakeup-worker"), "{ran}");
        let waited = read_with_perf(&["sched", "latency"], &kept.join("perf-sched/perf.data"));
        assert!(waited.contains("wakeup-worker"), "{waited}");
    }
    bench.expect_nothing_left();
    let folders = fs::read_dir(bench.path("state/folders"));
    assert_eq!(folders.into_iter().flatten().count(), 0);
}

#[test]
fn what_collects_within_the_window_of_one_arm_is_refused_in_turns() {
    let bench = Bench::default();
    let text = EXPERIMENT.replace("trace = \"worst\"", "collect = [\"perf-sched\"]");
    let text = text.replace(
        "kind = \"wakeup\"",
        "kind = \"wakeup\"\nin-place = \"always\"\nturn = \"20ms\"",
    );
    let text = text.replace(
        "[[workload]]",
        "[[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n[[workload]]",
    );
    let output = bench.run(&["check", &bench.file("turns.toml", &text)]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("`collect` names perf-sched"),
        "{}",
        stderr(&output)
    );
}
