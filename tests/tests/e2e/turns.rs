//! Arms that take turns inside one process, from the command line to the report.

use results::ResultSet;
use serde_json::Value;
use std::collections::BTreeSet;
use tests::{Bench, alone, expect_code, skipped, stderr, stdout};

/// Turns of `wakeup` in 40 windows of 50 ms: two processes at most.
fn run(bench: &Bench, arm: &str, more: &[&str]) -> std::process::Output {
    let file = bench.file(
        "turns.toml",
        &format!(
            "name = \"turns\"\n\
             stop = {{ min-blocks = 1, max-blocks = 2 }}\n\
             [[arm]]\nname = \"default\"\n\
             [[arm]]\nname = \"changed\"\n{arm}\n\
             [[workload]]\nkind = \"wakeup\"\nloads = [1]\noperations = 1\nsleep = \"20us\"\n\
             metrics = [\"requests_per_sec\"]\nin-place = \"always\"\nturn = \"50ms\"\n\
             duration = \"1400ms\"\nwarmup = \"100ms\"\n"
        ),
    );
    let args = [&["run", &file, "-o", "out", "-q"], more].concat();
    bench.run(&args)
}

fn report(bench: &Bench) -> Value {
    let output = bench.run(&["report", "out", "--format", "json"]);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).expect("valid JSON")
}

fn deciding(report: &Value) -> &Value {
    let comparisons = report["comparisons"].as_array().expect("a list");
    let deciding = comparisons.iter().find(|c| c["deciding"] == true);
    deciding.expect("one decides")
}

#[test]
fn extra_work_is_found_within_one_process_and_the_report_says_how_it_was_measured() {
    let _turn = alone();
    let bench = Bench::default();
    expect_code(&run(&bench, "handicap = \"300%\"", &[]), 0);
    let report = report(&bench);
    let found = deciding(&report);
    assert_eq!(found["verdict"], "worse", "{found}");
    // The process ends when they decide.
    assert!(found["in_turns"]["pairs"].as_u64() >= Some(8), "{found}");
    assert!(found["in_turns"]["change_ns"].as_u64() > Some(0), "{found}");
    let text = stdout(&bench.run(&["report", "out"]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in turns inside"), "{text}");
    let page = stdout(&bench.run(&["report", "out", "--format", "html"]));
    assert!(page.contains("in turns inside"), "{page}");
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn a_program_that_prints_how_far_it_is_and_workers_that_burn_are_measured_in_turns() {
    let _turn = alone();
    if !tests::is_root() {
        return skipped("going back to a nice value of 0 needs root");
    }
    let bench = Bench::default();
    let file = bench.file(
        "turns.toml",
        "name = \"turns\"\n\
         stop = { min-blocks = 1, max-blocks = 1 }\n\
         arm = [{ name = \"default\" }, { name = \"nice\", policy = { nice = 10 } }]\n\
         [[workload]]\nname = \"count\"\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"i=0; while :; do i=$((i+1)); \
         [ $((i % 200)) = 0 ] && echo done $i; done\"]\n\
         in-place = \"always\"\nturn = \"50ms\"\nduration = \"700ms\"\n\
         [[workload.metric]]\nname = \"per_sec\"\nregex = 'done (?<v>\\d+)'\n\
         better = \"higher\"\npick = \"rate\"\n\
         [[workload]]\nkind = \"burnwait\"\nloads = [2]\nmetrics = [\"work_per_sec\"]\n\
         in-place = \"always\"\nturn = \"50ms\"\nduration = \"700ms\"\nwarmup = \"100ms\"\n\
         interval = \"100ms\"\n",
    );
    expect_code(&bench.run(&["run", &file, "-o", "out", "-q"]), 0);
    let report = report(&bench);
    let comparisons = report["comparisons"].as_array().expect("a list");
    for metric in ["per_sec", "work_per_sec", "fairness_percent"] {
        let mut found = comparisons.iter();
        let found = found.find(|comparison| comparison["metric"] == metric);
        let found = found.unwrap_or_else(|| panic!("{metric} in {report}"));
        assert!(found["in_turns"]["pairs"].as_u64() >= Some(5), "{found}");
        assert!(found["ratio"].as_f64() > Some(0.0), "{found}");
    }
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn misses_that_only_one_arm_has_are_compared_in_turns_by_their_difference() {
    let _turn = alone();
    if !tests::is_root() {
        return skipped("going back to a nice value of 0 needs root");
    }
    let bench = Bench::default();
    // As many misses as its nice value: none under the baseline, whose ratio would be none.
    let file = bench.file(
        "misses.toml",
        "name = \"misses\"\n\
         stop = { min-blocks = 1, max-blocks = 1 }\n\
         arm = [{ name = \"default\" }, { name = \"nice\", policy = { nice = 3 } }]\n\
         [[workload]]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"while :; do read -r stat < /proc/self/stat; set -- $stat; \
         echo misses ${19}; sleep 0.005; done\"]\n\
         in-place = \"always\"\nturn = \"100ms\"\nduration = \"3s\"\n\
         [[workload.metric]]\nname = \"misses\"\nregex = 'misses (?<v>\\d+)'\n\
         better = \"lower\"\npick = \"mean\"\n",
    );
    let output = bench.run(&["run", &file, "-o", "out", "-q", "--fail-on", "regression"]);
    expect_code(&output, 5);
    let report = report(&bench);
    let found = deciding(&report);
    assert_eq!(found["verdict"], "worse", "{found}");
    assert_eq!(found["difference"]["value"], 3.0, "{found}");
    assert_eq!(found["baseline_level"], 0.0, "{found}");
    let text = stdout(&bench.run(&["report", "out"]));
    assert!(text.contains("+3"), "{text}");
    for format in ["html", "lkml", "markdown", "csv", "junit"] {
        expect_code(&bench.run(&["report", "out", "--format", format]), 0);
    }
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn equal_arms_have_pairs_of_windows_and_no_verdict_of_a_difference_that_is_none() {
    let _turn = alone();
    if !tests::is_root() {
        return skipped("going back to a nice value of 0 needs root");
    }
    let bench = Bench::default();
    // Of a thousand such runs one may call a difference.
    let sure = ["--seed", "3", "--confidence", "99.9%"];
    expect_code(&run(&bench, "policy = { nice = 0 }", &sure), 0);
    let report = report(&bench);
    let found = deciding(&report);
    let verdict = found["verdict"].as_str().expect("a verdict");
    assert!(["same", "unknown"].contains(&verdict), "{found}");
    assert!(found["in_turns"]["pairs"].as_u64() >= Some(10), "{found}");
    assert!(
        found["ratio"]
            .as_f64()
            .is_some_and(|ratio| (0.5..2.0).contains(&ratio)),
        "{found}"
    );
}

/// True if this machine was said to make no cgroups with a quota.
fn lacks_cgroups(said: &str) -> bool {
    said.contains("no cgroup controller") || said.contains("as in a container")
}

#[test]
fn a_quota_of_the_load_comes_and_goes_under_the_process() {
    let _turn = alone();
    if !tests::is_root() {
        return skipped("a cgroup needs root");
    }
    let bench = Bench::default();
    let output = run(&bench, "quota = \"1ms/50ms\"", &[]);
    if lacks_cgroups(&stderr(&output)) {
        return skipped("no cgroup with a quota can be made here");
    }
    expect_code(&output, 0);
    let found = report(&bench);
    let found = deciding(&found);
    assert_eq!(found["verdict"], "worse", "{found}");
}

#[test]
fn the_weight_of_a_neighbour_comes_and_goes_under_its_process() {
    let _turn = alone();
    if !tests::is_root() {
        return skipped("a cgroup needs root");
    }
    let bench = Bench::default();
    let line = "run -w wakeup:1 --beside spinner --in-place always --duration 2s --max-blocks 1 -o out \
                -a antagonist:default -a antagonist:weight=20";
    let output = bench.run(&line.split_whitespace().collect::<Vec<_>>());
    if lacks_cgroups(&stderr(&output)) {
        return skipped("no cgroup with a weight can be made here");
    }
    assert!(
        matches!(output.status.code(), Some(0 | 4)),
        "{}",
        stderr(&output)
    );
    let results = ResultSet::read(&bench.path("out")).expect("results");
    for (arm, weight) in [
        ("antagonist:default", "100"),
        ("antagonist:weight=20", "20"),
    ] {
        let of_arm = results.trials.iter().filter(|t| t.trial.arm == arm);
        let facts = of_arm.flat_map(|t| t.trial.result.evidence.all_facts());
        let weights = facts.filter(|fact| fact.what == model::readings::WEIGHT);
        let found: BTreeSet<&str> = weights.map(|fact| fact.found.as_str()).collect();
        assert_eq!(found, BTreeSet::from([weight]), "{arm}");
    }
}

#[test]
fn an_arm_that_cannot_change_in_place_is_an_error_that_names_its_ingredient() {
    let bench = Bench::default();
    for (arm, key, remedy) in [
        (
            "to = \"server\"\ncpus = \"0\"",
            "cpus",
            "leave out in-place",
        ),
        ("scheduler = \"scx_rusty\"", "scx_rusty", "washout = \"1s\""),
    ] {
        let output = run(&bench, arm, &[]);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(key) || said.contains("sched_ext"), "{said}");
        assert!(said.contains(remedy), "{said}");
    }
    let output = bench.run(&[
        "check",
        "-a",
        "default",
        "-a",
        "batch",
        "-w",
        "hackbench",
        "--in-place",
        "always",
    ]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("window by window"),
        "{}",
        stderr(&output)
    );
}

/// Words of the run, and the report on it.
fn run_auto(bench: &Bench, arm: &str, workload: &str) -> (String, Value) {
    let text = format!(
        "name = \"auto\"\nin-place = \"auto\"\nstop = {{ min-blocks = 1, max-blocks = 1 }}\n\
         [[arm]]\nname = \"default\"\n[[arm]]\nname = \"changed\"\n{arm}\n\
         [[workload]]\n{workload}\n"
    );
    let file = bench.file("auto.toml", &text);
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    (stderr(&output), report(bench))
}

const AUTO_WAKEUP: &str = "kind = \"wakeup\"\nloads = [1]\nsleep = \"20us\"\n\
                           duration = \"1900ms\"\nwarmup = \"100ms\"\n\
                           metrics = [\"requests_per_sec\"]";

#[test]
fn a_pilot_chooses_the_windows_of_arms_that_can_take_turns() {
    let _turn = alone();
    // A pilot may find a difference where none is: by chance, or since the machine changes its
    // speed between its short windows and its long ones.
    let tried = (0..3).map(|_| {
        let bench = Bench::default();
        let (said, found) = run_auto(&bench, "handicap = \"300%\"", AUTO_WAKEUP);
        (bench, said, found)
    });
    let refused = |said: &str| said.contains("something outlives a change");
    let mut tried = tried.skip_while(|(_, said, _)| refused(said));
    let (bench, said, found) = tried.next().expect("a pilot that finds no difference");
    assert!(said.contains("arms take turns in windows of"), "{said}");
    let found = deciding(&found);
    let window_ns = found["in_turns"]["window_ns"].as_u64().expect("a length");
    assert!(window_ns >= 50_000_000, "{found}");
    assert_eq!(found["arm"], "changed");
    expect_code(&bench.run(&["verify", "out"]), 0);
    // A resume has what the pilot found and asks nobody again.
    let more = bench.run(&["run", "--resume", "out", "--max-blocks", "2"]);
    expect_code(&more, 0);
    assert!(!stderr(&more).contains("pilot"), "{}", stderr(&more));
}

#[test]
fn what_cannot_take_turns_is_measured_in_whole_trials_and_the_run_says_why() {
    let _turn = alone();
    let bench = Bench::default();
    let (said, found) = run_auto(
        &bench,
        "policy = { nice = 5 }",
        "kind = \"command\"\ncommand = [\"true\"]",
    );
    assert!(said.contains("is a process of its own, since"), "{said}");
    assert!(said.contains("runs to its end"), "{said}");
    assert!(deciding(&found)["in_turns"].is_null(), "{found}");
}

#[test]
fn turns_whose_windows_do_not_fit_are_whole_trials() {
    let _turn = alone();
    let bench = Bench::default();
    // A 99th percentile needs a thousand requests. A trial has more at this rate, also where the machine
    // is slow, and the longest window that fits, of 500 ms, has at most eight hundred.
    let slow = AUTO_WAKEUP
        .replace("\"20us\"", "\"620us\"\noperations = 1")
        .replace("requests_per_sec", "request_p99");
    let (said, found) = run_auto(&bench, "handicap = \"10%\"", &slow);
    assert!(said.contains("too few requests for request_p99"), "{said}");
    assert!(deciding(&found)["in_turns"].is_null(), "{found}");
    let text = stdout(&bench.run(&["report", "out"]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("each trial is a process of its own"),
        "{text}"
    );
}

#[test]
#[ignore = "half a minute of pilots, in make test-long"]
fn a_queue_that_outlives_a_change_is_found_by_the_pilot_and_turns_are_refused() {
    let _turn = alone();
    if !tests::is_root() {
        return skipped("a cgroup needs root");
    }
    let bench = Bench::default();
    // The server has a hundredth of a CPU in the windows of one arm, so that requests queue: the
    // longer the window, the longer the queue.
    let text = "name = \"queue\"\nin-place = \"auto\"\n\
                stop = { min-blocks = 1, max-blocks = 1, max-attempts = 1 }\n\
                [[arm]]\nname = \"default\"\nto = \"server\"\n\
                [[arm]]\nname = \"starved\"\nto = \"server\"\nquota = \"1ms/100ms\"\n\
                [[workload]]\nkind = \"http\"\nloads = [\"2000/s\"]\nmetrics = [\"request_p50\"]\n\
                duration = \"2s\"\nwarmup = \"100ms\"\n\
                [workload.server]\nkind = \"nginx\"\n";
    let file = bench.file("queue.toml", text);
    // Where the machine is slow, the queue does not end before the pilot's window does: the
    // pilot itself is overloaded, or its windows have no figures, which says the same.
    let queue = [
        "something outlives a change",
        "the queue of one arm's turn is served in that of another",
        "too few to see whether",
    ];
    let mut said = String::new();
    // On a busy machine a pilot may not count, since its generator was late.
    for attempt in ["first", "second", "third"] {
        said = stderr(&bench.run(&["run", &file, "-o", attempt]));
        if lacks_cgroups(&said) {
            return skipped("no cgroup with a quota can be made here");
        }
        if queue.iter().any(|why| said.contains(why)) {
            assert!(said.contains("is a process of its own, since"), "{said}");
            return;
        }
    }
    panic!("no queue was found: {said}");
}

#[test]
#[ignore = "half a minute of pilots, in make test-long"]
fn a_pilot_says_what_turns_save_beside_whole_trials() {
    let _turn = alone();
    let bench = Bench::default();
    let text = "name = \"forecast\"\n\
                [[arm]]\nname = \"default\"\n\
                [[arm]]\nname = \"more\"\nhandicap = \"10%\"\n\
                [[workload]]\nkind = \"wakeup\"\nloads = [1]\noperations = 1\nsleep = \"20us\"\n\
                metrics = [\"requests_per_sec\"]\nin-place = \"always\"\nturn = \"50ms\"\n\
                washout = \"40ms\"\nduration = \"900ms\"\nwarmup = \"100ms\"\n";
    let file = bench.file("forecast.toml", text);
    let forecast = |more: &[&str]| {
        let args = [&["plan", &file, "--pilot=3", "--effect", "10%"], more].concat();
        let output = bench.run(&args);
        expect_code(&output, 0);
        stdout(&output)
    };
    let found: Value = serde_json::from_str(&forecast(&["--format", "json"])).expect("valid JSON");
    let (turns, whole) = (&found["rows"][0], &found["whole_trials"]["rows"][0]);
    assert!(turns["pairs"].as_u64() >= Some(5), "{found}");
    assert!(turns["blocks"]["expected"].as_u64() >= Some(1), "{found}");
    assert!(whole["pairs"].is_null(), "{found}");
    assert_eq!(whole["cell"], turns["cell"], "{found}");
    let said = forecast(&[]);
    assert!(said.contains("With arms that take turns"), "{said}");
    assert!(said.contains("With whole trials"), "{said}");
    assert!(
        said.contains("for the same change in these processes"),
        "{said}"
    );
}

#[test]
fn a_certificate_of_turns_has_copies_of_the_baseline_that_take_turns_with_it() {
    let _turn = alone();
    let bench = Bench::default();
    let output = bench.run(&[
        "certify",
        "-w",
        "wakeup:1",
        "--duration",
        "1s",
        "--in-place",
        "always",
        "--turn",
        "50ms",
        "--washout",
        "40ms",
        "--max-blocks",
        "3",
        "--format",
        "json",
        "-q",
    ]);
    expect_code(&output, 0);
    let found: Value = serde_json::from_str(&stdout(&output)).expect("valid JSON");
    let cell = &found["cells"][0];
    assert!(cell["pairs"].as_u64() >= Some(5), "{found}");
    assert!(cell["spread"].as_f64() > Some(0.0), "{found}");
    // Each copy takes turns with the baseline, and none with another.
    let copies = found["arms"].as_u64().map(|arms| arms - 1);
    assert_eq!(cell["comparisons"].as_u64(), copies, "{found}");
}
