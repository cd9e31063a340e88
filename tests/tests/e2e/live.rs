//! Views of a run that is under way: on a terminal, as lines of JSON, and as a page.

#![allow(clippy::disallowed_methods)]

mod browser;

use browser::{Browser, Line};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use tests::{Bench, Sshd, Terminal, beside_others, expect_code, stderr};

const COLUMNS: u16 = 80;

/// Some blocks of a program that takes a moment, into `run`.
fn run_words<'a>(blocks: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec![
        "run",
        "-a",
        "default",
        "-a",
        "nice=5",
        "-o",
        "run",
        "--max-blocks",
        blocks,
        // Nothing is decided before the blocks are over.
        "--smallest-effect",
        "0.01%",
    ];
    words.extend(more);
    words.extend(["--", "sleep", "0.3"]);
    words
}

/// A run in the background, once it has a manifest.
fn started(bench: &Bench, blocks: &str, more: &[&str]) -> Child {
    let mut command = bench.command(&run_words(blocks, more));
    let run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut run = run.expect("schedlab starts");
    bench.wait_for_file(&mut run, "run/manifest.json");
    run
}

#[test]
fn a_run_is_followed_by_lines_of_json_until_its_end() {
    let _turn = beside_others();
    let bench = Bench::default();
    let mut run = started(&bench, "4", &["-q"]);
    let mut watch = bench.command(&["watch", "run", "--format", "json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let scenes: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"))
        .collect();
    assert!(watch.wait().expect("it ends").success());
    assert!(run.wait().expect("it ends").success());
    let last = scenes.last().expect("a scene");
    assert_eq!(last["life"], "ended");
    let comparison = &last["picture"]["cells"][0]["comparisons"][0];
    assert_eq!(comparison["arm"], "nice=5", "{comparison}");
    let narrowing = comparison["narrowing"].as_array().expect("a list");
    assert_eq!(narrowing.last().expect("a standing")["blocks"], 4);
    let is_measuring = |scene: &&Value| scene["now"]["block"].as_u64() >= Some(1);
    let seen = scenes.iter().find(is_measuring);
    let seen = seen.expect("it was seen under way");
    assert_eq!(seen["life"], "under-way", "{seen}");
    assert_eq!(seen["now"]["cell"], "sleep", "{seen}");
    // Nothing is left that was only for those who watch.
    assert!(!bench.path("run/report/now.json").exists());
}

#[test]
fn a_native_load_tells_its_latencies_while_it_runs() {
    let _turn = beside_others();
    expect_latencies("run -w wakeup:1 --duration 2s -a default -a nice=5 -o run --max-blocks 2 -q");
}

#[test]
fn a_load_tells_its_latencies_while_arms_take_turns() {
    let _turn = beside_others();
    expect_latencies(
        "run -w wakeup:1 --duration 4s -a default -a batch -o run --max-blocks 2 -q \
         --in-place always --turn 200ms",
    );
}

fn expect_latencies(words: &str) {
    let bench = Bench::default();
    let words: Vec<&str> = words.split_whitespace().collect();
    let paces = watch_paces(&bench, &words);
    let latencies = paces.iter().map(|pace| &pace["latencies"]);
    let told: Vec<&Value> = latencies.filter(|told| !told.is_null()).collect();
    assert!(told.len() >= 2, "it tells each second: {paces:?}");
    let sum = |log: &str, what: &str| -> u64 {
        let numbers = told.iter().map(|told| told[log][what].as_u64());
        numbers.map(|number| number.expect("a number")).sum()
    };
    let (requests, wakeups) = (sum("request", "count"), sum("wakeup", "count"));
    assert!(requests > 0 && wakeups > 0, "{told:?}");
    let mean_ns = sum("request", "sum_ns") / requests;
    assert!(mean_ns > 100_000, "one works for that long: {told:?}");
    assert!(mean_ns < 5_000_000_000, "{told:?}");
}

/// All figures of its trials that somebody who watches such a run into `run` sees. The last scene has none.
fn watch_paces(bench: &Bench, words: &[&str]) -> Vec<Value> {
    let mut run = bench.command(words).spawn().expect("schedlab starts");
    bench.wait_for_file(&mut run, "run/manifest.json");
    let mut watch = bench.command(&["watch", "run", "--format", "json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let scenes = lines.map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"));
    let mut paces: Vec<Value> = scenes
        .map(|scene: Value| scene["now"]["pace"].clone())
        .collect();
    assert!(watch.wait().expect("it ends").success());
    assert!(run.wait().expect("it ends").success());
    assert!(
        paces.last().expect("a scene").is_null(),
        "of a run that has ended"
    );
    paces.retain(|pace| !pace.is_null());
    paces.dedup();
    paces
}

#[test]
fn figures_of_a_trial_that_runs_are_seen_and_kept_nowhere() {
    let _turn = beside_others();
    let bench = Bench::default();
    let burn = "timeout 2.6 sh -c 'while :; do :; done'; true";
    // Who joins sees the figures from the next trial on.
    let mut words = run_words("2", &["-q"]);
    words.truncate(words.len() - 2);
    words.extend(["sh", "-c", burn]);
    let paces = watch_paces(&bench, &words);
    if !fs::exists("/proc/self/schedstat").expect("it is asked") {
        return tests::skipped("this kernel has no schedstat of tasks");
    }
    assert!(paces.len() >= 2, "they move: {paces:?}");
    let ran = |pace: &Value| pace["run_ns"].as_u64() > Some(0);
    assert!(paces.iter().all(ran), "{paces:?}");
    let trials = fs::read_dir(bench.path("run/trials")).expect("trials");
    for trial in trials {
        let path = trial.expect("an entry").path().join("trial.json");
        let text = fs::read_to_string(path).expect("a trial");
        assert!(
            !text.contains("over_ns") && !text.contains("cost_ns"),
            "{text}"
        );
    }
}

#[test]
#[ignore = "needs scx_rusty, which make test-long builds"]
fn a_real_scheduler_tells_its_own_figures() {
    if let Some(why) = tests::no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    // A look at an emulated machine takes long, and the next one waits a thousand times as long.
    let words = "run -w wakeup:1 --duration 30s -a default -a scx_rusty@1.1.4 --vm debian:sid -o run \
                 --max-blocks 1 -q";
    let words: Vec<&str> = words.split_whitespace().collect();
    let paces = watch_paces(&bench, &words);
    let told = |pace: &Value| pace["scheduler"]["slice_us"].as_f64() > Some(0.0);
    assert!(paces.iter().any(told), "{paces:?}");
    let tells_nothing = |pace: &Value| pace["scheduler"].is_null();
    assert!(
        paces.iter().any(tells_nothing),
        "the kernel's own has none: {paces:?}"
    );
}

#[test]
fn a_run_draws_itself_goes_on_when_the_view_is_left_and_prints_its_report() {
    let _turn = beside_others();
    let bench = Bench::default();
    let command = bench.command(&run_words("6", &["--live"]));
    let mut terminal = Terminal::start(&command, COLUMNS);
    terminal.expect("q leave the view, the run goes on");
    terminal.expect("measuring");
    terminal.press("q");
    terminal.expect("The run goes on; Ctrl-C ends it.");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("Results  run"), "{shown}");
}

#[test]
fn ctrl_c_in_the_view_ends_the_run_in_order() {
    let _turn = beside_others();
    let bench = Bench::default();
    let command = bench.command(&run_words("100", &["--live"]));
    let mut terminal = Terminal::start(&command, COLUMNS);
    terminal.expect("measuring");
    terminal.press("\u{3}");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(shown.contains("schedlab run --resume run"), "{shown}");
}

#[test]
fn a_run_that_was_killed_is_said_to_be_and_one_that_has_ended_too() {
    let _turn = beside_others();
    let bench = Bench::default();
    let mut run = started(&bench, "100", &["-q"]);
    run.kill().expect("it is killed");
    run.wait().expect("it ends");
    let mut terminal = Terminal::start(&bench.command(&["watch", "run"]), COLUMNS);
    terminal.expect("was killed: nobody measures any more");
    terminal.press("q");
    assert_eq!(terminal.end().0.code(), Some(0));
    synthetic::write(&bench.path("ended"), &synthetic::quickstart()).expect("results");
    let mut terminal = Terminal::start(&bench.command(&["watch", "ended"]), COLUMNS);
    terminal.expect("has ended (done)");
    // The cell of the first comparison.
    terminal.press("\r");
    terminal.expect("every block");
    terminal.press("q");
    assert_eq!(terminal.end().0.code(), Some(0));
    // The killed run left nothing that nobody else would undo.
    expect_code(&bench.run(&["restore"]), 0);
}

#[test]
fn what_cannot_be_watched_is_said_with_a_remedy() {
    let bench = Bench::default();
    fs::create_dir(bench.path("empty")).expect("made");
    let output = bench.run(&["watch", "empty"]);
    expect_code(&output, 2);
    synthetic::write(&bench.path("ended"), &synthetic::quickstart()).expect("results");
    let output = bench.run(&["watch", "ended"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("take --page"),
        "{}",
        stderr(&output)
    );
    for (address, why) in [
        ("nowhere", "no address"),
        ("0.0.0.0:0", "no loopback address"),
    ] {
        let output = bench.run(&["watch", "ended", &format!("--page={address}")]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    let output = bench.run(&run_words("1", &["--live"]));
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("schedlab watch DIR"),
        "{}",
        stderr(&output)
    );
    assert!(!bench.path("run").exists());
}

/// Everything that is sent from this path, until the page closes the connection.
fn stream_of(address: &str, path: &str) -> BufReader<TcpStream> {
    let rest = address.strip_prefix("http://").expect("an address");
    let (host, secret) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let request = format!("GET /{secret}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    BufReader::new(stream)
}

/// The address that is said on standard error.
fn address_of(child: &mut Child) -> String {
    let errors = child.stderr.take().expect("piped");
    let mut lines = BufReader::new(errors).lines();
    let line = lines.find_map(|line| {
        let line = line.expect("text");
        line.strip_prefix("Live     ").map(str::to_owned)
    });
    // Who says more is not to wait for a reader.
    std::thread::spawn(move || lines.count());
    line.expect("it says its address")
}

#[test]
fn a_page_shows_each_scene_and_becomes_the_report() {
    let _turn = beside_others();
    let bench = Bench::default();
    let mut run = started(&bench, "3", &["--live=127.0.0.1:0"]);
    let address = address_of(&mut run);
    let mut page = String::new();
    let mut stream = stream_of(&address, "");
    stream.read_to_string(&mut page).expect("a page");
    assert!(page.contains("new EventSource(\"events\")"), "{page}");
    let lines: Vec<String> = stream_of(&address, "events")
        .lines()
        .map(|line| line.expect("text"))
        .collect();
    assert!(run.wait().expect("it ends").success());
    let after = |event: &str| {
        let at = lines.iter().rposition(|line| line == event);
        lines[at.unwrap_or_else(|| panic!("{event}: {lines:?}")) + 1].clone()
    };
    assert!(after("event: scene").contains("\"nice=5\""));
    let report = after("event: report");
    let report: String = serde_json::from_str(&report["data: ".len()..]).expect("a text");
    let written = fs::read_to_string(bench.path("run/report/report.html")).expect("a report");
    assert_eq!(report, written);
}

#[test]
#[ignore = "needs chromium, in make test-long"]
fn a_real_browser_connects_moves_survives_a_lost_line_and_ends_with_the_report() {
    let _turn = beside_others();
    let bench = Bench::default();
    let Some(mut browser) = Browser::start(&bench.path("profile")) else {
        return;
    };
    // The run stands while this file is there, so that nothing here is judged by time.
    let hold = bench.file("hold", "");
    let work = format!("while test -e {hold}; do sleep 0.05; done; sleep 0.1");
    let mut words = run_words("8", &["--live=127.0.0.1:0"]);
    words.truncate(words.len() - 2);
    words.extend(["sh", "-c", &work]);
    let mut command = bench.command(&words);
    let run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut run = run.expect("schedlab starts");
    let line = Line::lay_to(&address_of(&mut run));
    browser.open(line.address(), 390);
    let text = |id: &str| format!("document.getElementById('{id}').textContent");
    browser.expect(&format!("{}.startsWith('under way')", text("state")));
    browser.expect(&format!("{}.includes('sh')", text("now")));
    assert_eq!(
        browser.evaluate("document.querySelector('article')"),
        Value::Null
    );

    fs::remove_file(&hold).expect("removed");
    browser.expect("document.querySelectorAll('article svg').length > 0");
    fs::write(&hold, "").expect("written");
    let before = browser.evaluate(&text("trials"));
    let fits = "document.documentElement.scrollWidth <= 390";
    assert_eq!(browser.evaluate(fits), true);

    line.cut();
    browser.expect("document.getElementById('lost').hidden === false");
    line.mend();
    browser.expect("document.getElementById('lost').hidden === true");
    fs::remove_file(&hold).expect("removed");
    browser.expect("document.getElementById('cells') === null");
    assert!(run.wait().expect("it ends").success());
    let shown = browser.evaluate("document.body.innerText");
    let shown = shown.as_str().unwrap_or_default();
    assert!(shown.contains("nice=5") && before != Value::Null, "{shown}");
    assert_eq!(browser.evaluate(fits), true);
}

#[test]
fn a_run_on_another_machine_is_watched_from_here() {
    let _turn = beside_others();
    let Some(sshd) = Sshd::start() else { return };
    let bench = Bench::default();
    synthetic::write(&bench.path("ended"), &synthetic::quickstart()).expect("results");
    let dir = bench.path("ended");
    let words = "name = \"far\"\n[[arm]]\nname = \"default\"\n[[workload]]\nname = \"wakeup\"\n\
                 kind = \"wakeup\"\n";
    let host = bench.file("host.toml", &format!("{words}{}", sshd.target()));
    let results = dir.display().to_string();
    let output = bench.run(&[
        "watch", &results, "--target", &host, "--yes", "--format", "json",
    ]);
    expect_code(&output, 0);
    let scene: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!(scene["life"], "ended");
}
