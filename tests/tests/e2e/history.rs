//! Runs over months: what is followed, what raises an alarm, and what becomes of it.

#![allow(clippy::disallowed_methods)]

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use synthetic::{Effect, Scenario};
use tests::{Bench, beside_others, expect_code, is_root, skipped, stderr, stdout};

const CELL: &str = "hackbench";

/// Speeds of the two arms in a night.
#[derive(Clone, Copy)]
struct Speeds {
    default: f64,
    batch: f64,
}

const USUAL: Speeds = Speeds {
    default: 1.0,
    batch: 1.1,
};

/// The results of a night, which is a number of days after the first.
fn night(bench: &Bench, number: u64, speeds: Speeds) -> String {
    night_with(bench, number, speeds, |_| {})
}

fn night_with(
    bench: &Bench,
    number: u64,
    speeds: Speeds,
    change: impl Fn(&mut Scenario),
) -> String {
    let mut scenario = synthetic::few_blocks(5);
    scenario.experiment.arms.truncate(2);
    scenario.experiment.aa_arm = None;
    scenario.plan.trials.retain(|planned| planned.arm < 2);
    for (index, planned) in (0..).zip(&mut scenario.plan.trials) {
        planned.index = index;
    }
    scenario.experiment.seed = number;
    scenario.plan.seed = number;
    scenario.warnings.clear();
    scenario.samples = 10;
    scenario.began = begin(number);
    let effect = |arm, throughput| Effect {
        arm,
        cell: CELL,
        throughput,
        latency: 1.0,
        tail: 1.0,
    };
    scenario.effects = vec![
        effect("default", speeds.default),
        effect("batch", speeds.batch),
    ];
    change(&mut scenario);
    let dir = format!("night{number:03}");
    synthetic::write(&bench.path(&dir), &scenario).expect("a results directory");
    dir
}

/// 01:30 of a day of 2026, in months of 28 days.
fn begin(night: u64) -> String {
    format!("2026-{:02}-{:02}T01:30:00Z", 1 + night / 28, 1 + night % 28)
}

fn add(bench: &Bench, dirs: &[String]) {
    let mut args = vec!["history", "add", "--store", "store"];
    args.extend(dirs.iter().map(String::as_str));
    expect_code(&bench.run(&args), 0);
}

fn json(bench: &Bench, args: &[&str]) -> Value {
    let args = [
        &["history"],
        args,
        &["--store", "store", "--format", "json"],
    ]
    .concat();
    let output = bench.run(&args);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn runs(bench: &Bench) -> Vec<Value> {
    let runs = json(bench, &["list", "--runs"]);
    runs.as_array().expect("a list").clone()
}

/// The alarms after a check, each as the day of its first run, its direction and how it stands.
fn alarms(bench: &Bench) -> Vec<(String, String, String)> {
    let checked = json(bench, &["check"]);
    let runs = runs(bench);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let day = |id: &Value| {
        let run = runs.iter().find(|run| run["id"] == *id).expect("a run");
        text(&run["created"])[..10].to_owned()
    };
    let alarms = checked["alarms"].as_array().expect("a list").iter();
    let alarms = alarms.map(|known| &known["alarm"]);
    let told = alarms.map(|alarm| {
        (
            day(&alarm["first"]),
            text(&alarm["turn"]),
            text(&alarm["outcome"]),
        )
    });
    told.collect()
}

#[test]
fn a_run_is_in_the_history_once_as_a_directory_as_a_capsule_and_when_it_went_on() {
    let _turn = beside_others();
    let bench = Bench::default();
    let words = "-a default -a batch --max-blocks 4 --smallest-effect 0.001% --confidence 99.9999% -q -- true";
    let words: Vec<&str> = words.split(' ').collect();
    let run = bench.run(&[&["run", "-o", "one"], words.as_slice()].concat());
    expect_code(&run, 0);
    expect_code(&bench.run(&["pack", "one", "-o", "one.tar.gz"]), 0);
    let output = bench.run(&["history", "add", "one"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("one: run "), "{}", stdout(&output));
    assert!(
        stdout(&output).contains("the first of such a machine"),
        "{}",
        stdout(&output)
    );
    for again in ["one", "one.tar.gz"] {
        let output = bench.run(&["history", "add", again]);
        expect_code(&output, 0);
        let said = stdout(&output);
        assert!(
            said.contains("was there already: nothing is added"),
            "{said}"
        );
    }
    // In its usual place, beside the journal.
    let index = std::fs::read_to_string(bench.path("state/history/index.jsonl")).expect("an index");
    assert_eq!(index.lines().count(), 1, "{index}");
    let longer = bench.run(&["run", "--resume", "one", "--max-blocks", "6", "-q"]);
    expect_code(&longer, 0);
    let output = bench.run(&["history", "add", "one"]);
    assert!(
        stdout(&output).contains("it had 8 trials, and went on to 12"),
        "{}",
        stdout(&output)
    );
    let output = bench.run(&["history", "list", "--runs", "--format", "json"]);
    let runs: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
    assert_eq!(runs[0]["trials"], 12, "{runs}");
    // The figure is that of the report.
    let report: Value = {
        let output = bench.run(&["report", "one", "--format", "json"]);
        serde_json::from_str(&stdout(&output)).expect("JSON")
    };
    let comparisons = report["comparisons"].as_array().expect("a list").iter();
    let wanted: Vec<f64> = comparisons.filter_map(|c| c["ratio"].as_f64()).collect();
    let figures = runs[0]["figures"].as_array().expect("a list").iter();
    for figure in figures {
        let ratio = figure["log_ratio"].as_f64().expect("a number").exp();
        assert!(
            wanted.iter().any(|w| (w - ratio).abs() < 1e-9),
            "{ratio} of {wanted:?}"
        );
    }
}

#[test]
fn a_step_is_told_once_at_its_night_and_later_nights_do_not_move_it() {
    let bench = Bench::default();
    let slower = Speeds {
        batch: 1.1 * 0.95,
        ..USUAL
    };
    let nights = |from: u64, to: u64| -> Vec<String> {
        let speeds = |n| if n < 30 { USUAL } else { slower };
        (from..to).map(|n| night(&bench, n, speeds(n))).collect()
    };
    add(&bench, &nights(0, 30));
    assert!(alarms(&bench).is_empty(), "{:?}", alarms(&bench));
    add(&bench, &nights(30, 40));
    let told = alarms(&bench);
    assert_eq!(told.len(), 1, "{told:?}");
    let (day, turn, outcome) = &told[0];
    let near = [29, 30, 31].map(|n| begin(n)[..10].to_owned());
    assert!(near.contains(day), "{told:?}");
    assert_eq!((turn.as_str(), outcome.as_str()), ("worse", "open"));
    let mut check = bench.command(&["history", "check", "--store", "store", "--fail-on", "worse"]);
    let output = check
        .env("COLUMNS", "80")
        .output()
        .expect("schedlab starts");
    expect_code(&output, 5);
    let said = stdout(&output);
    assert!(said.contains("0 new alarms, 1 open before"), "{said}");
    let is_picture = |line: &&str| line.contains('█') && line.ends_with("in 40 runs)");
    assert_eq!(said.lines().filter(is_picture).count(), 1, "{said}");
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );

    let id = json(&bench, &["check"])["alarms"][0]["alarm"]["id"].clone();
    let id = id.as_str().expect("a hash");
    let close = |hash: &str| {
        bench.run(&[
            "history",
            "close",
            hash,
            "--because",
            "a new BIOS",
            "--store",
            "store",
        ])
    };
    expect_code(&close(&id[..8]), 0);
    let again = close(id);
    expect_code(&again, 2);
    assert!(
        stderr(&again).contains("is closed since"),
        "{}",
        stderr(&again)
    );
    add(&bench, &nights(40, 60));
    let closed = (day.clone(), turn.clone(), "closed".to_owned());
    assert_eq!(alarms(&bench), [closed]);
    let output = bench.run(&["history", "check", "--store", "store", "--fail-on", "any"]);
    expect_code(&output, 0);
    let shown = stdout(&bench.run(&["history", "show", id, "--store", "store"]));
    assert!(shown.contains("a new BIOS"), "{shown}");
}

#[test]
fn a_machine_that_is_slower_for_a_while_and_a_missing_week_raise_no_alarm() {
    let bench = Bench::default();
    let slow = Speeds {
        default: USUAL.default * 0.8,
        batch: USUAL.batch * 0.8,
    };
    let speeds = |n| if (20..40).contains(&n) { slow } else { USUAL };
    let kept = (0..60).filter(|n| !(45..52).contains(n));
    let dirs: Vec<String> = kept.map(|n| night(&bench, n, speeds(n))).collect();
    add(&bench, &dirs);
    assert!(alarms(&bench).is_empty(), "{:?}", alarms(&bench));
    // The levels are there, and show it.
    let series = json(&bench, &["list"])[0]["series"].clone();
    let shown = json(&bench, &["show", series.as_str().expect("a hash")]);
    let points = shown["points"].as_array().expect("a list");
    assert_eq!(points.len(), 53);
    let level = |n: usize| points[n]["anchor_level"].as_f64().expect("a level");
    assert!(
        level(30) > 1.1 * level(10),
        "{} and {}",
        level(30),
        level(10)
    );
}

#[test]
fn what_keeps_two_runs_apart_is_said() {
    let bench = Bench::default();
    let usual = night(&bench, 0, USUAL);
    let twin = night(&bench, 1, USUAL);
    let larger = night_with(&bench, 2, USUAL, |scenario| scenario.system.cpus = 64);
    let longer = night_with(&bench, 3, USUAL, |scenario| {
        scenario.experiment.workloads[0].warmup_ns += 1_000_000_000;
    });
    let nicer = night_with(&bench, 4, USUAL, |scenario| {
        scenario.experiment.arms[0]
            .tunables
            .insert("autogroup".to_owned(), "off".to_owned());
    });
    add(&bench, &[usual, twin, larger, longer, nicer]);
    let ids: Vec<String> = runs(&bench)
        .iter()
        .map(|run| run["id"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        json(&bench, &["show", &ids[0], &ids[1]])["apart"],
        serde_json::json!([])
    );
    for (other, says) in [
        (2, "machine: CPUs 2 in A, 64 in B"),
        (3, "warm-up"),
        (4, "anchor: default in A, autogroup=off in B"),
    ] {
        let apart = json(&bench, &["show", &ids[0], &ids[other]]);
        assert_eq!(apart["shared_series"], serde_json::json!([]), "{apart}");
        let reasons = apart["apart"].to_string();
        assert!(reasons.contains(says), "{reasons} does not say {says}");
    }
}

#[test]
fn what_is_no_run_or_of_another_time_is_answered_and_makes_no_store() {
    let bench = Bench::default();
    std::fs::create_dir(bench.path("empty")).expect("a directory");
    let ahead = night_with(&bench, 9, USUAL, |scenario| {
        scenario.began = "2199-01-01T00:00:00Z".to_owned();
    });
    let alone = bench.path("alone");
    synthetic::write(&alone, &synthetic::one_arm()).expect("a results directory");
    for (path, says) in [
        ("empty", "not a results directory"),
        ("nowhere", "does not exist"),
        (ahead.as_str(), "the clock there or here is wrong"),
        ("alone", "no figure that can be followed"),
    ] {
        let output = bench.run(&["history", "add", path, "--store", "store"]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    assert!(!bench.path("store").exists());
    let output = bench.run(&["history", "check", "--store", "store"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("there is no history in store"),
        "{}",
        stderr(&output)
    );

    let dirs: Vec<String> = [5, 6, 3].map(|n| night(&bench, n, USUAL)).into();
    add(&bench, &dirs[..2]);
    let output = bench.run(&["history", "add", &dirs[2], "--store", "store"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("it began before 2 runs"), "{said}");
    let merged = bench.run(&["merge", &dirs[0], &dirs[1], "-o", "merged"]);
    expect_code(&merged, 0);
    let output = bench.run(&["history", "add", "merged", "--store", "store"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("shares a run"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_can_be_added_is_added_beside_what_cannot() {
    let bench = Bench::default();
    std::fs::create_dir(bench.path("empty")).expect("a directory");
    let [one, two] = [0, 1].map(|n| night(&bench, n, USUAL));
    let names = ["nowhere", &one, "empty", &two];
    let add = |format: &str, code: i32| {
        let args = [
            &["history", "add", "--store", "store", "--format", format],
            &names[..],
        ];
        let output = bench.run(&args.concat());
        expect_code(&output, code);
        let said = stderr(&output);
        assert!(said.contains("2 of 4 runs were not added"), "{said}");
        stdout(&output)
    };
    let said = add("text", 2);
    for wanted in [
        "nowhere: not added",
        "nowhere does not exist",
        "empty: not added",
        "not a results directory",
        "night001: run ",
    ] {
        assert!(said.contains(wanted), "{wanted} is not in {said}");
    }
    let again: Value = serde_json::from_str(&add("json", 2)).expect("JSON");
    assert_eq!(again[0]["run"], Value::Null);
    assert_eq!(again[3]["outcome"], "was there already: nothing is added");
    assert_eq!(runs(&bench).len(), 2);
}

#[test]
fn a_store_that_many_processes_write_or_that_one_left_half_written_has_each_run_once() {
    let bench = Bench::default();
    let dirs: Vec<String> = (0..6).map(|n| night(&bench, n, USUAL)).collect();
    std::thread::scope(|scope| {
        for start in 0..3 {
            let (bench, mut dirs) = (&bench, dirs.clone());
            dirs.rotate_left(start);
            scope.spawn(move || add(bench, &dirs));
        }
    });
    assert_eq!(runs(&bench).len(), 6);
    let index = bench.path("store/index.jsonl");
    let whole = std::fs::read_to_string(&index).expect("an index");
    assert_eq!(whole.lines().count(), 6);
    // A writer that was killed in the middle of the last line.
    std::fs::write(&index, &whole[..whole.len() - 20]).expect("written");
    assert_eq!(runs(&bench).len(), 5);
    add(&bench, &dirs);
    assert_eq!(runs(&bench).len(), 6);
    // A line that somebody broke is named.
    append(&index, "{\"run\":7}\n");
    let output = bench.run(&["history", "list", "--store", "store"]);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("line 7 of store/index.jsonl"),
        "{}",
        stderr(&output)
    );
}

fn append(path: &Path, text: &str) {
    let file = std::fs::OpenOptions::new().append(true).open(path);
    file.expect("a file")
        .write_all(text.as_bytes())
        .expect("written");
}

#[test]
fn a_full_disk_adds_nothing_and_keeps_what_is_there() {
    if !is_root() {
        return skipped("mounting a small disk needs root");
    }
    let bench = Bench::default();
    let disk = match tests::SmallDisk::mount(&bench.path("store"), "64k") {
        Ok(disk) => disk,
        Err(why) => return skipped(why),
    };
    let mut added = 0;
    let refused = (0..200).find_map(|n| {
        let dir = night(&bench, n, USUAL);
        let output = bench.run(&["history", "add", &dir, "--store", "store"]);
        added += usize::from(output.status.success());
        (!output.status.success()).then_some(output)
    });
    let left = runs(&bench).len();
    let refused = refused.expect("64 KiB are full some day");
    expect_code(&refused, 1);
    let said = stderr(&refused);
    assert!(
        said.contains("No space left") && said.contains("nothing was changed"),
        "{said}"
    );
    assert_eq!(left, added);

    // The disk has no room for a shorter index beside the long one. A kill leaves what is still there readable.
    fill_disk(&bench);
    let age = age_of_night(6);
    let prune = [
        "history",
        "prune",
        "--older-than",
        &age,
        "--yes",
        "--store",
        "store",
    ];
    for round in 0..6 {
        let mut child = bench.command(&prune).spawn().expect("schedlab starts");
        std::thread::sleep(std::time::Duration::from_millis(3 * round));
        let _ = child.kill();
        child.wait().expect("it ends");
        assert!((left - 6..=left).contains(&runs(&bench).len()));
    }
    expect_code(&bench.run(&prune), 0);
    assert_eq!(runs(&bench).len(), left - 6);
    let index = std::fs::read(bench.path("store/index.jsonl")).expect("an index");
    assert!(index.contains(&0), "there was room for another index");
    // There is room now.
    add(&bench, &["night000".to_owned()]);
    assert_eq!(runs(&bench).len(), left - 5);
    drop(disk);
}

/// The age of the day of that night, as a limit for all nights before: whole hours, so that it is less than an hour old then.
fn age_of_night(night: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // The first of January 2026 has this number.
    let day = (20_454 + night) * 86_400;
    format!("{}h", (now.expect("a clock").as_secs() - day) / 3_600)
}

/// Takes the last room of the disk.
fn fill_disk(bench: &Bench) {
    let mut file = std::fs::File::create(bench.path("store/filler")).expect("a file");
    while file.write_all(&[1; 512]).is_ok() {}
}

/// Nights of a real experiment on a machine like this one, whose arm `next` has another handicap from the eighth
/// night on, and figures that are 30 % worse.
fn nights_of_next(bench: &Bench, later_handicap: f64) {
    let file = bench.file(
        "next.toml",
        "name = \"nightly\"\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"next\"\nhandicap = \"1%\"\n\
         [[workload]]\nkind = \"wakeup\"\nloads = [1]\nduration = \"1s\"\nin-place = \"always\"\nturn = \"50ms\"\n\
         metrics = [\"requests_per_sec\"]\n[stop]\nmin-blocks = 3\nmax-blocks = 3\n",
    );
    expect_code(&bench.run(&["run", &file, "-o", "probe", "-q"]), 0);
    let probe = results::ResultSet::read(&bench.path("probe")).expect("results");
    let dirs: Vec<String> = (0..14)
        .map(|n| {
            let worse = n >= 8;
            night_with(bench, n, USUAL, |scenario| {
                scenario.experiment = probe.experiment.clone();
                scenario.plan = probe.plan.clone();
                scenario.system = probe.system.clone();
                scenario.experiment.seed = n;
                if worse {
                    scenario.experiment.arms[1].handicap_percent = later_handicap;
                }
                scenario.effects = vec![Effect {
                    arm: "next",
                    cell: "wakeup",
                    throughput: if worse { 0.7 } else { 1.0 },
                    latency: 1.0,
                    tail: 1.0,
                }];
            })
        })
        .collect();
    add(bench, &dirs);
}

/// The alarm that there is, confirmed: how it stands afterwards, and why.
fn confirm(bench: &Bench) -> (String, String) {
    let checked = json(bench, &["check"]);
    let alarms = checked["alarms"].as_array().expect("a list");
    assert_eq!(alarms.len(), 1, "{checked}");
    let id = alarms[0]["alarm"]["id"].as_str().expect("a hash");
    let end = json(
        bench,
        &[
            "confirm",
            id,
            "-q",
            "-y",
            "--max-blocks",
            "12",
            "-o",
            "confirmed",
        ],
    );
    let shown = json(bench, &["show", id]);
    assert_eq!(shown["alarm"]["outcome"], end["outcome"], "{shown}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&end["outcome"]), text(&end["why"]))
}

#[test]
#[ignore = "a machine that nothing else uses for most of a minute: make test-long ROWS=quiet"]
fn an_alarm_is_confirmed_where_its_versions_differ_and_not_where_they_do_not() {
    let _turn = tests::alone();
    let bench = Bench::default();
    nights_of_next(&bench, 1.5);
    let (outcome, why) = confirm(&bench);
    assert_eq!(outcome, "not-confirmed", "{why}");
    assert!(
        why.contains("requests_per_sec of the later version"),
        "{why}"
    );
    // Its results are those of any run.
    expect_code(&bench.run(&["verify", "confirmed"]), 0);

    // Without anybody: runs that added themselves may be measured again.
    let bench = Bench::default();
    nights_of_next(&bench, 200.0);
    let index = bench.path("store/index.jsonl");
    let text = std::fs::read_to_string(&index).expect("an index");
    let own = text.replace(
        "\"name\":\"nightly\"",
        "\"is_own\":true,\"name\":\"nightly\"",
    );
    assert_ne!(own, text);
    std::fs::write(&index, own).expect("written");
    let words = [
        "run",
        "next.toml",
        "-q",
        "-o",
        "tonight",
        "--history=store",
        "--confirm",
        "40s",
        "--notify",
        "exec:cat >> told; echo >> told",
    ];
    expect_code(&bench.run(&words), 0);
    let told = std::fs::read_to_string(bench.path("told")).expect("notices");
    for wanted in [
        "is added to the history as",
        "New alarm ",
        " is confirmed (",
    ] {
        assert!(told.contains(wanted), "{wanted} is not in {told}");
    }
    assert_eq!(alarms(&bench)[0].2, "confirmed");
}

#[test]
fn a_version_that_no_experiment_names_cannot_be_built() {
    let bench = Bench::default();
    let dirs: Vec<String> = (0..16)
        .map(|n| {
            let later = n >= 8;
            let batch = if later { 0.7 } else { 1.1 };
            night_with(&bench, n, Speeds { batch, ..USUAL }, |scenario| {
                if later {
                    scenario.system.kernel_release = "6.13.1".to_owned();
                }
            })
        })
        .collect();
    add(&bench, &dirs);
    let (outcome, why) = confirm(&bench);
    assert_eq!(outcome, "cannot-be-built", "{why}");
    assert!(why.contains("kernel: 6.12.57 → 6.13.1"), "{why}");
    assert!(!bench.path("confirmed").exists());
}

/// Twenty usual nights, then slower ones under another kernel.
fn nights_with_step(bench: &Bench, kernel: &str, to: u64) -> Vec<String> {
    let nights = (0..to).map(|n| {
        let is_later = n >= 20;
        let batch = if is_later { 1.1 * 0.9 } else { 1.1 };
        night_with(bench, n, Speeds { batch, ..USUAL }, |scenario| {
            if is_later {
                scenario.system.kernel_release = kernel.to_owned();
            }
        })
    });
    nights.collect()
}

#[test]
fn the_page_shows_what_changed_and_nothing_of_a_stranger_becomes_a_part_of_it() {
    let bench = Bench::default();
    let dirs = nights_with_step(&bench, "6.13<script>alert(1)</script>", 32);
    let page = |name: &str| {
        let drawn = ["history", "page", "-o", name, "--store", "store"];
        expect_code(&bench.run(&drawn), 0);
        std::fs::read_to_string(bench.path(name)).expect("a page")
    };
    add(&bench, &dirs[..20]);
    let nothing = page("nothing.html");
    assert!(nothing.contains(" series, not looked at yet"), "{nothing}");
    assert!(
        nothing.contains("Nobody has looked for changes"),
        "{nothing}"
    );
    assert!(alarms(&bench).is_empty());
    let looked = page("looked.html");
    assert!(
        looked.contains("Nothing changed in ") && looked.contains("Changes from 2 % on were"),
        "{looked}"
    );
    add(&bench, &dirs[20..]);
    assert!(page("later.html").contains("; 12 runs came since"));
    assert_eq!(alarms(&bench).len(), 1);
    let changed = page("changed.html");
    for wanted in [
        "worse, open",
        "<svg",
        "var(--worse)",
        "kernel: 6.12.57 → 6.13&#60;script",
    ] {
        assert!(changed.contains(wanted), "{wanted} is not in {changed}");
    }
    for foreign in ["<script", "src=", "href=\"http", "@import", "url(http"] {
        assert!(!changed.contains(foreign), "{foreign} is in {changed}");
    }
    assert_eq!(changed, page("again.html"));
}

#[test]
fn the_last_figures_and_the_alarms_are_there_for_what_watches_machines() {
    let bench = Bench::default();
    add(&bench, &nights_with_step(&bench, "6.13.1", 32));
    assert_eq!(alarms(&bench).len(), 1);
    let listed = [
        "history",
        "list",
        "--format",
        "openmetrics",
        "--store",
        "store",
    ];
    let text = stdout(&bench.run(&listed));
    let open = |turn: &str, count: u32| {
        let labels = format!("turn=\"{turn}\",state=\"open\"}} {count}");
        text.lines()
            .any(|line| line.starts_with("schedlab_history_alarms{") && line.ends_with(&labels))
    };
    assert!(open("worse", 1) && open("better", 0), "{text}");
    let ratio = |name: &str| -> f64 {
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a line");
        line.rsplit(' ')
            .next()
            .expect("a value")
            .parse()
            .expect("a number")
    };
    let last = json(&bench, &["list"])[0]["last"].clone();
    let wanted = last["ratio"].as_f64().expect("a number");
    assert!(
        (ratio("schedlab_history_last_ratios{") - wanted).abs() < 1e-9,
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"), "{text}");
    let written = [&listed[..], &["-o", "history.prom"]].concat();
    expect_code(&bench.run(&written), 0);
    let file = std::fs::read_to_string(bench.path("history.prom")).expect("a file");
    assert_eq!(file, text);
    let of_runs = [&listed[..], &["--runs"]].concat();
    expect_code(&bench.run(&of_runs), 2);
}

#[test]
fn a_new_run_is_judged_by_the_last_good_nights() {
    let bench = Bench::default();
    let dirs = nights_with_step(&bench, "6.13.1", 32);
    let usual = night(&bench, 40, USUAL);
    let slower = Speeds {
        batch: 1.1 * 0.9,
        ..USUAL
    };
    let slow = night(&bench, 41, slower);
    let gate = |new: &str, more: &[&str], code: i32| {
        let args = [&["gate", "--history", "--store", "store", new], more].concat();
        let output = bench.run(&args);
        expect_code(&output, code);
        stdout(&output) + &stderr(&output)
    };
    assert!(gate(&usual, &[], 2).contains("there is no history in store"));
    add(&bench, &dirs[..2]);
    assert!(gate(&usual, &[], 4).contains("2 good runs before it, 3 are needed"));
    add(&bench, &dirs[2..20]);
    assert!(gate(&usual, &[], 0).contains("against the last 10 good runs"));
    let said = gate(&slow, &["--last", "15"], 5);
    assert!(
        said.contains("FAILED on 1") && said.contains("in 15 runs"),
        "{said}"
    );
    let judged: Value = serde_json::from_str(&gate(&slow, &["--format", "json"], 5)).expect("JSON");
    let ratio = judged["checks"][0]["ratio"].as_f64().expect("a ratio");
    // hackbench_time: lower is better.
    assert!((1.08..1.15).contains(&ratio), "{judged}");
    assert!(gate(&slow, &["--format", "markdown"], 5).contains("**regression**"));
    assert!(gate(&slow, &["--format", "junit"], 5).contains("<failure"));
    // Slow nights are no good ones while their alarm stands, and the usual level where it was closed.
    add(&bench, &dirs[20..]);
    assert_eq!(alarms(&bench).len(), 1);
    let said = gate(&slow, &[], 5);
    assert!(said.contains("are no good ones: it is open"), "{said}");
    let id = json(&bench, &["check"])["alarms"][0]["alarm"]["id"].clone();
    let id = id.as_str().expect("a hash");
    json(&bench, &["close", id, "--because", "as meant"]);
    gate(&slow, &[], 0);
    // A night that is in the history is not judged by itself.
    assert!(gate(&dirs[4], &[], 0).contains("last 4 good runs"));
}

#[test]
fn old_runs_go_after_it_was_said_and_not_those_of_an_open_alarm() {
    let bench = Bench::default();
    add(&bench, &nights_with_step(&bench, "6.13.1", 32));
    assert_eq!(alarms(&bench).len(), 1);
    // The nights are those of the first months of this year, whenever this runs.
    let prune = |more: &[&str], code: i32| {
        let args = ["history", "prune", "--older-than", "1h", "--store", "store"];
        let output = bench.run(&[&args[..], more].concat());
        expect_code(&output, code);
        stdout(&output) + &stderr(&output)
    };
    let said = prune(&["--dry-run"], 0);
    assert!(said.contains("19 of 32 runs go"), "{said}");
    assert!(
        said.contains("13 older runs stay because of open alarms"),
        "{said}"
    );
    assert!(prune(&[], 2).contains("nobody is here to agree"));
    assert_eq!(runs(&bench).len(), 32);
    prune(&["--yes"], 0);
    assert_eq!(runs(&bench).len(), 13);
    assert_eq!(alarms(&bench).len(), 1);
    let id = json(&bench, &["check"])["alarms"][0]["alarm"]["id"].clone();
    let shown = json(&bench, &["show", id.as_str().expect("a hash")]);
    assert!(shown["changed"].to_string().contains("6.13.1"), "{shown}");
    for age in ["yesterday", "-2y", "0d", "3"] {
        let args = ["history", "prune", "--store", "store", "--older-than", age];
        expect_code(&bench.run(&args), 2);
    }
}

#[test]
fn a_prune_that_is_killed_leaves_all_or_takes_what_it_said() {
    let bench = Bench::default();
    let dirs: Vec<String> = (0..12).map(|n| night(&bench, n, USUAL)).collect();
    add(&bench, &dirs);
    let index = bench.path("store/index.jsonl");
    let whole = std::fs::read(&index).expect("an index");
    for round in 0..24 {
        std::fs::write(&index, &whole).expect("written");
        let args = [
            "history",
            "prune",
            "--older-than",
            "1h",
            "--yes",
            "--store",
            "store",
        ];
        let mut child = bench.command(&args).spawn().expect("schedlab starts");
        std::thread::sleep(std::time::Duration::from_millis(2 * round));
        let _ = child.kill();
        child.wait().expect("it ends");
        let left = runs(&bench).len();
        assert!(left == 12 || left == 0, "{left} runs");
        // Whatever it left, the run comes in.
        add(&bench, &dirs[3..4]);
        let left = runs(&bench);
        let added = left
            .iter()
            .find(|run| run["created"] == begin(3))
            .expect("it is there");
        assert!(
            bench
                .path("store/experiments")
                .join(format!(
                    "{}.json",
                    added["experiment"].as_str().expect("a hash")
                ))
                .exists()
        );
    }
}

#[test]
fn a_run_adds_itself_and_one_that_nobody_can_follow_says_so() {
    let _turn = beside_others();
    let bench = Bench::default();
    let run = |arms: &str, output: &str, history: &str| {
        let words = format!("run {arms} --max-blocks 4 -o {output} {history} -- true");
        let words: Vec<&str> = words.split(' ').collect();
        bench.run(&words)
    };
    let output = run("-a default -a batch", "one", "--history=store");
    expect_code(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("which has 1 run and 0 open alarms"), "{said}");
    let known = runs(&bench);
    assert_eq!((known.len(), known[0]["is_own"].as_bool()), (1, Some(true)));
    // One that was added by hand may be a stranger's.
    expect_code(&run("-a default -a batch", "two", "--quiet"), 0);
    add(&bench, &["two".to_owned()]);
    assert_eq!(runs(&bench)[1]["is_own"], Value::Null);
    let alone = run("-a default", "three", "--history=store");
    expect_code(&alone, 0);
    assert!(
        stderr(&alone).contains("The history does not have the run"),
        "{}",
        stderr(&alone)
    );
    std::fs::write(bench.path("file"), "").expect("written");
    expect_code(&run("-a default -a batch", "four", "--history=file"), 1);
    for words in [
        "--history --bisect 1h",
        "--history --confirm 1m --bisect soon",
    ] {
        expect_code(&run("-a default -a batch", "five", words), 2);
    }
}

/// Which commits are bisected can be said where the alarm does not.
fn expect_words_of_bisect(refused: impl Fn(&[&str]) -> String) {
    let between = "-y -- sort --build make --repository r --good a --bad b";
    for (words, says) in [
        (
            "-y -- sort --build make",
            "the words after -- are those of schedlab bisect",
        ),
        (
            &format!("{between} -w wakeup"),
            "the work is that of the alarm",
        ),
        (
            &between.replace("sort --build make", "kernel"),
            "does not boot a kernel",
        ),
    ] {
        let said = refused(&words.split(' ').collect::<Vec<_>>());
        assert!(said.contains(says), "{words}: {said}");
    }
}

#[test]
fn an_alarm_goes_to_bisect_if_it_is_between_two_commits_and_else_it_is_said_why_not() {
    let bench = Bench::default();
    add(&bench, &nights_with_step(&bench, "6.13.1", 32));
    let bisect = |more: &[&str]| {
        let id = json(&bench, &["check"])["alarms"][0]["alarm"]["id"].clone();
        let id = id.as_str().expect("a hash").to_owned();
        let output = bench.run(&[&["history", "bisect", &id, "--store", "store"], more].concat());
        expect_code(&output, 2);
        stderr(&output)
    };
    let said = bisect(&["-y"]);
    assert!(
        said.contains("not between two commits") && said.contains("6.13.1"),
        "{said}"
    );
    expect_words_of_bisect(bisect);

    let script = "git init -q r && cd r && for n in one two; do git -c user.name=a -c user.email=a@b.c \
                  commit -q --allow-empty -m $n; git rev-parse HEAD; done";
    let made = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(bench.dir.path())
        .output();
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        return skipped("there is no git");
    };
    let commits: Vec<String> = stdout(&made).lines().map(str::to_owned).collect();
    let repository = bench.path("r").display().to_string();
    std::fs::remove_dir_all(bench.path("store")).expect("removed");
    let nights = (0..32).map(|n| {
        let is_later = n >= 20;
        let speeds = Speeds {
            batch: if is_later { 1.0 } else { 1.1 },
            ..USUAL
        };
        night_with(&bench, 100 + n, speeds, |scenario| {
            scenario.experiment.arms[1].scheduler = Some(model::Scheduler {
                program: "/cache/scx_none".to_owned(),
                args: Vec::new(),
                attach_limit_ns: None,
                built_from: Some(model::Revision {
                    repository: repository.clone(),
                    asked: Some("main".to_owned()),
                    commit: commits[usize::from(is_later)].clone(),
                }),
            });
        })
    });
    add(&bench, &nights.collect::<Vec<String>>());
    // A branch has one name every night.
    let changed = json(&bench, &["check"])["alarms"][0]["changed"].to_string();
    let commit = format!("scx_none@main#{}", &commits[1][..12]);
    assert!(changed.contains(&commit), "{changed}");
    let said = bisect(&[]);
    assert!(
        said.contains("nobody is here to agree") && said.contains("scx_none"),
        "{said}"
    );
    let said = bisect(&["-y", "-o", "out"]);
    assert!(said.contains("no crate scx_none"), "{said}");
}
