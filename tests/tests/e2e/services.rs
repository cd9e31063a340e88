//! Services with real servers: from the experiment file to the report.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tests::{Bench, beside_others, expect_code, is_root, stderr, stdout, with_lock_of_runs};

/// One workload under `arms`; `server` and `more` are tables of it.
fn experiment(arms: &str, workload: &str, tables: &str) -> String {
    format!(
        "name = \"services\"\n{arms}\n[[workload]]\n{workload}\nwarmup = \"100ms\"\n{tables}\n\
         [stop]\nmax-blocks = 1\nmin-blocks = 1\n"
    )
}

const ONE_ARM: &str = "[[arm]]\nname = \"default\"\n";
const SHORT: &str = "duration = \"500ms\"\nmetrics = [\"request_p50\"]";

fn http(server: &str) -> String {
    let workload = format!("kind = \"http\"\nloads = [\"200/s\"]\nload-cpus = \"0%-50%\"\n{SHORT}");
    experiment(ONE_ARM, &workload, &format!("[workload.server]\n{server}"))
}

fn run(bench: &Bench, text: &str) -> std::process::Output {
    let file = bench.file("e.toml", text);
    bench.run(&["run", &file, "-o", "out"])
}

fn trials(bench: &Bench) -> Vec<(PathBuf, Value)> {
    let mut dirs: Vec<PathBuf> = fs::read_dir(bench.path("out/trials"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    dirs.sort();
    let read = |dir: PathBuf| {
        let text = fs::read(dir.join("trial.json")).unwrap();
        (dir, serde_json::from_slice(&text).unwrap())
    };
    dirs.into_iter().map(read).collect()
}

/// On a busy machine an attempt may fail; the next one makes up for it.
fn ok_trials(bench: &Bench) -> Vec<(PathBuf, Value)> {
    let mut all = trials(bench);
    all.retain(|(_, trial)| trial["result"]["outcome"]["state"] == "ok");
    all
}

#[track_caller]
fn expect_figures(output: &std::process::Output) {
    if output.status.code() != Some(4) {
        expect_code(output, 0);
    }
}

fn metric(trial: &Value, name: &str) -> f64 {
    let metrics = trial["result"]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|m| m["metric"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {metrics:?}"))["value"]
        .as_f64()
        .unwrap()
}

/// Why the trials of a run do not count.
fn reasons(bench: &Bench) -> String {
    let outcome = |trial: &Value| trial["result"]["outcome"].to_string();
    trials(bench)
        .iter()
        .map(|(_, trial)| outcome(trial))
        .collect()
}

/// Processes of this bench whose command line contains `text`.
fn running(bench: &Bench, text: &str) -> Vec<String> {
    let state = bench.path("state").display().to_string();
    let read = |path: PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| read(entry.path().join("environ")).contains(&state))
        .map(|entry| read(entry.path().join("cmdline")))
        .filter(|line| line.contains(text))
        .collect()
}

fn is_installed(program: &str) -> bool {
    let found = tests::program(program).is_some();
    if !found {
        tests::skipped(format!("{program} is not installed"));
    }
    found
}

fn eventually(what: &str, check: impl Fn() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < Duration::from_secs(20), "not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn variables_of_an_arm_are_proven_also_of_a_server_that_writes_over_its_environment() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let arms = ONE_ARM.to_owned()
        + "[[arm]]\nname = \"own\"\nto = \"server\"\nenv = { SHOWN = \"1 2\" }\n";
    let workload = format!("kind = \"http\"\nloads = [\"200/s\"]\n{SHORT}");
    // Its master shows what it does in place of its arguments and variables.
    let server = "[workload.server]\nkind = \"nginx\"\n";
    let output = run(&bench, &experiment(&arms, &workload, server));
    expect_figures(&output);
    let trials = ok_trials(&bench);
    let mut arms = trials.iter().filter(|(_, trial)| trial["arm"] == "own");
    let (_, trial) = arms.next().expect("it counts");
    let facts = trial["result"]["evidence"].to_string();
    assert!(
        facts.contains("variable SHOWN") && facts.contains("1 2"),
        "{facts}"
    );
}

#[test]
fn every_kind_of_server_answers_and_is_gone_afterwards() {
    let _turn = with_lock_of_runs();
    let of_http = |name: &str| http(&format!("kind = \"{name}\""));
    let of_kind = |kind: &str| {
        let workload = format!("kind = \"{kind}\"\nloads = [\"200/s\"]\n{SHORT}");
        let server = format!("[workload.server]\nkind = \"{kind}\"");
        experiment(ONE_ARM, &workload, &server)
    };
    for (name, line, file) in [
        ("echo", "schedlab serve", of_http("echo")),
        ("nginx", "nginx -c", of_http("nginx")),
        ("http-echo", "http-echo -listen", of_http("http-echo")),
        ("memcached", "memcached -", of_kind("memcached")),
    ] {
        if name != "echo" && !is_installed(name) {
            continue;
        }
        let bench = Bench::default();
        expect_figures(&run(&bench, &file));
        let (_, trial) = &ok_trials(&bench)[0];
        assert_eq!(metric(trial, "error_percent"), 0.0, "{name}");
        assert!(metric(trial, "request_p50") > 0.0, "{name}");
        assert!(metric(trial, "server_cpu_time") > 0.0, "{name}");
        assert_eq!(running(&bench, line), Vec::<String>::new());
    }
}

#[test]
fn a_command_is_a_server_when_it_says_so_itself() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let server = format!(
        "kind = \"command\"\ncommand = [{:?}, \"serve\", \"--at\", \"{{target.address}}:{{port}}\"]\n\
         ready = {{ path = \"/\", status = 200 }}",
        tests::schedlab()
    );
    expect_figures(&run(&bench, &http(&server)));
    assert_eq!(metric(&ok_trials(&bench)[0].1, "error_percent"), 0.0);
}

const MEMCACHED: &str = r#"
[workload.server]
kind = "memcached"
cpus = "50%-100%"
weight = 200
[[workload.antagonist]]
name = "spin"
kind = "spinner"
threads = 1
nice = 5
[[workload.antagonist]]
name = "stress"
kind = "stress-ng"
args = ["--cpu", "1"]
quota = "50%"
"#;

#[test]
fn memcached_is_measured_alone_and_beside_each_antagonist_with_the_policy_proven() {
    if !is_root() || !is_installed("memcached") || !is_installed("stress-ng") {
        tests::skipped("needs root, memcached and stress-ng");
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let arms = "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"fifo\"\nto = \"server\"\n\
                policy = { class = \"fifo\", priority = 3 }\n";
    let workload = format!(
        "kind = \"memcached\"\nloads = [\"500/s\"]\nkeys = 100\nantagonists = \"each\"\n{SHORT}"
    );
    let output = run(&bench, &experiment(arms, &workload, MEMCACHED));
    expect_figures(&output);
    assert!(
        stdout(&output).contains("memcached beside others"),
        "{}",
        stdout(&output)
    );
    let trials = ok_trials(&bench);
    assert_eq!(trials.len(), 6, "two arms alone and beside each of two");
    for (dir, trial) in &trials {
        let facts = trial["result"]["evidence"]["facts"].as_array().unwrap();
        let fifo = facts.iter().any(|fact| {
            let is_servers = fact["what"] == "policy" && fact["role"] == "server";
            is_servers && fact["found"].as_str().unwrap().starts_with("fifo")
        });
        assert_eq!(fifo, trial["arm"] == "fifo", "{}", dir.display());
        assert_eq!(metric(trial, "hit_percent"), 100.0);
    }
    let beside = |name: &str| {
        let found = trials
            .iter()
            .find(|(_, t)| t["cell"].as_str().unwrap().contains(name));
        metric(&found.unwrap().1, "antagonist_cpu_time")
    };
    assert!(beside("+ spin") > 0.0 && beside("+ stress") > 0.0);
    assert_eq!(left_behind(&bench), Vec::<String>::new());
}

#[test]
fn workers_beside_a_load_want_the_same_in_every_trial_and_their_work_is_counted() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let words = [
        "run",
        "-a",
        "default",
        "-a",
        "batch",
        "-w",
        "wakeup",
        "--duration",
        "500ms",
    ];
    let beside = [
        "--beside",
        "burnwait:2 70 2ms",
        "--max-blocks",
        "1",
        "-o",
        "out",
    ];
    expect_figures(&bench.run(&[&words[..], &beside[..]].concat()));
    let trials = ok_trials(&bench);
    assert!(!trials.is_empty(), "{}", reasons(&bench));
    for (_, trial) in &trials {
        // 2 of them want 70 in each 2.07 ms, which is 68 thousand a second.
        let work = metric(trial, "antagonist_work_per_sec");
        assert!(work > 0.0 && work < 80_000.0, "{work}");
    }
    let found: Value =
        serde_json::from_slice(&fs::read(bench.path("out/calibration.json")).unwrap()).unwrap();
    assert!(found.to_string().contains("operations_per_kop"), "{found}");
    // The command line became a file that says the same.
    let file = fs::read_to_string(bench.path("out/experiment.toml")).unwrap();
    assert!(file.contains("events = [\"70 2ms\"]"), "{file}");
}

#[test]
fn a_worker_beside_a_load_that_cannot_be_where_it_is_put_voids_the_trial_with_the_reason() {
    let _turn = beside_others();
    let bench = Bench::default();
    let antagonist = "kind = \"echo\"\n[[workload.antagonist]]\nkind = \"burnwait\"\n\
                      [[workload.antagonist.set]]\nname = \"far\"\nevents = [\"70 200us\"]\n\
                      cpus = \"100000\"";
    expect_code(&run(&bench, &http(antagonist)), 4);
    let why = reasons(&bench);
    assert!(why.contains("antagonist-burnwait ended"), "{why}");
    assert!(why.contains("100000"), "{why}");
}

const HTTP_ECHO: &str = r#"
[workload.server]
kind = "http-echo"
[[workload.placement]]
name = "anywhere"
[[workload.placement]]
name = "apart"
load-cpus = "0%-50%"
server-cpus = "50%-100%"
antagonist-cpus = "50%-100%"
[[workload.antagonist]]
kind = "stress-ng"
args = ["--cpu", "1"]
"#;

/// It fetches a module of Go and compiles it.
#[test]
#[ignore = "fetches and builds a program of Go: make test-long ROWS=http-echo"]
fn the_real_http_echo_is_measured_alone_beside_stress_ng_and_on_cpus_of_its_own() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let installed = bench.run(&["tool", "install", "http-echo"]);
    if installed.status.code() != Some(0) {
        let why = stderr(&installed);
        assert!(
            why.contains("could not be fetched") || why.contains("needs `go`"),
            "{why}"
        );
        tests::skipped("http-echo is not installed");
        return;
    }
    let workload = format!("kind = \"http\"\nloads = [\"200/s\"]\nantagonists = \"each\"\n{SHORT}");
    expect_figures(&run(&bench, &experiment(ONE_ARM, &workload, HTTP_ECHO)));
    let facts = fs::read_to_string(bench.path("out/system.json")).unwrap();
    assert!(
        facts.contains("module github.com/hashicorp/http-echo v1.0.0"),
        "{facts}"
    );
    let trials = ok_trials(&bench);
    assert!(!trials.is_empty(), "{}", reasons(&bench));
    for (_, trial) in &trials {
        assert_eq!(metric(trial, "error_percent"), 0.0);
        assert!(metric(trial, "server_cpu_time") > 0.0);
    }
    let cells: Vec<String> = self::trials(&bench)
        .iter()
        .map(|(_, trial)| trial["cell"].as_str().unwrap().to_owned())
        .collect();
    for cell in [
        "anywhere",
        "apart",
        "anywhere + stress-ng",
        "apart + stress-ng",
    ] {
        let is_of = |name: &String| name.contains(cell);
        assert!(cells.iter().any(is_of), "{cell}: {cells:?}");
    }
    assert_eq!(left_behind(&bench), Vec::<String>::new());
}

/// Groups of ours and servers that still run.
fn left_behind(bench: &Bench) -> Vec<String> {
    let groups = tests::own_cgroups().into_iter();
    groups
        .chain(running(bench, "memcached -l 127.0.0.1"))
        .collect()
}

#[test]
fn the_highest_rate_that_holds_a_service_level_is_found_within_a_trial() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    // A level that always holds: what is found is where the search ends.
    let workload = "kind = \"http\"\nduration = \"500ms\"\n\
                    loads = { find = \"max\", slo = \"p50 < 2s\", from = \"200/s\", to = \"400/s\" }";
    let text = experiment(ONE_ARM, workload, "[workload.server]\nkind = \"echo\"");
    let output = run(&bench, &text);
    expect_figures(&output);
    let (dir, trial) = &ok_trials(&bench)[0];
    assert_eq!(metric(trial, "slo_rate"), 400.0);
    assert_eq!(metric(trial, "slo_bound"), 1.0);
    // Of the threads of all steps, which stay until they have been read.
    assert!(!Path::new("/proc/self/schedstat").exists() || metric(trial, "run_delay") > 0.0);
    let steps = fs::read_to_string(dir.join("search.csv")).unwrap();
    assert!(steps.lines().count() >= 3, "{steps}");
    assert!(
        stdout(&output).contains("still holds at 400/s"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn what_goes_wrong_with_a_server_is_said_and_never_becomes_a_figure() {
    let _turn = beside_others();
    let command = |script: &str, more: &str| {
        http(&format!(
            "kind = \"command\"\ncommand = [\"sh\", \"-c\", \"{script}\", \"{{port}}\"]\n{more}"
        ))
    };
    for (text, why) in [
        (
            command("echo no disk >&2; exit 3", ""),
            "(exit status 3) before the window closed: no disk",
        ),
        (command("sleep 100", "ready-limit = \"200ms\""), "ready"),
    ] {
        let bench = Bench::default();
        expect_code(&run(&bench, &text), 4);
        assert!(reasons(&bench).contains(why), "{}", reasons(&bench));
        assert!(!reasons(&bench).contains("\"ok\""), "{}", reasons(&bench));
    }
}

#[test]
fn a_server_that_keeps_answering_with_another_status_is_tried_once() {
    let _turn = beside_others();
    let server = |ready: &str| {
        http(&format!(
            "kind = \"command\"\ncommand = [{:?}, \"serve\", \"--at\", \"{{target.address}}:{{port}}\"]\n\
             ready = {{ path = \"/up\", {ready} }}\nready-limit = \"500ms\"",
            tests::schedlab()
        ))
    };
    let bench = Bench::default();
    expect_code(&run(&bench, &server("status = 204")), 4);
    let why = "GET /up was answered with 200, not 204";
    assert!(reasons(&bench).contains(why), "{}", reasons(&bench));
    let trials = trials(&bench);
    assert_eq!(trials.len(), 1, "{}", reasons(&bench));
    assert_eq!(trials[0].1["result"]["for_good"], true);
}

#[test]
fn a_server_that_does_not_take_its_arguments_is_tried_once() {
    let _turn = beside_others();
    let bench = Bench::default();
    let server = "kind = \"command\"\n\
                  command = [\"sh\", \"-c\", \"echo usage >&2; exit 2\", \"{port}\"]";
    expect_code(&run(&bench, &http(server)), 4);
    assert!(reasons(&bench).contains("usage"), "{}", reasons(&bench));
    assert_eq!(trials(&bench).len(), 1, "{}", reasons(&bench));
}

#[test]
fn an_antagonist_that_ends_early_voids_the_trial() {
    let _turn = beside_others();
    let bench = Bench::default();
    let antagonist = "kind = \"echo\"\n[[workload.antagonist]]\nname = \"batch\"\n\
                      kind = \"command\"\ncommand = [\"sleep\", \"0.3\"]";
    expect_code(&run(&bench, &http(antagonist)), 4);
    let why = reasons(&bench);
    assert!(
        why.contains("antagonist-batch ended (exit status 0) before the window closed"),
        "{why}"
    );
    assert!(why.contains("\"void\""), "{why}");
}

/// `wakeup` with workers on a clock, and a program that takes so long.
fn together(program: &str, keys: &str) -> String {
    let workload = format!(
        "kind = \"wakeup\"\nloads = [1]\nduration = \"1200ms\"\n{keys}\nmetrics = [\"wakeup_p50\"]"
    );
    let arm = "[[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n";
    let tables = format!(
        "[[workload.co-runner]]\nname = \"ticks\"\nkind = \"periodic\"\nload = 2\n\
         [[workload.co-runner]]\nname = \"job\"\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"{program}; echo units: 7\"]\n\
         [[workload.co-runner.metric]]\nname = \"units\"\nregex = 'units: (?<v>\\d+)'\nbetter = \"higher\"\n"
    );
    experiment(arm, &workload, &tables)
}

#[test]
fn loads_are_measured_together_under_the_arm_and_each_of_them_alone() {
    let _turn = beside_others();
    let bench = Bench::default();
    let text =
        together("sleep 1.2", "co-runners = \"each\"").replace("max-blocks = 1", "max-blocks = 2");
    expect_code(&run(&bench, &text), 0);
    let all = ok_trials(&bench);
    let cell = |name: &str| all.iter().find(|(_, trial)| trial["cell"] == name);
    let (dir, beside) =
        cell("wakeup + ticks, job 1").unwrap_or_else(|| panic!("{}", reasons(&bench)));
    for name in ["wakeup_p50", "ticks_lateness_p50", "ticks_offered_per_sec"] {
        assert!(metric(beside, name) > 0.0, "{name}");
    }
    assert_eq!(metric(beside, "job_units"), 7.0);
    for log in ["wakeup.hlog", "ticks-lateness.hlog", "job-stdout.log"] {
        assert!(dir.join(log).is_file(), "{log}");
    }
    // The workers of both loads are read with the policy of the arm, the main threads with theirs.
    let before = &beside["result"]["evidence"]["points"][0];
    let (_, alone) = cell("wakeup 1").unwrap();
    let threads = |trial: &Value| {
        trial["result"]["evidence"]["points"][0]["threads"]
            .as_u64()
            .unwrap()
    };
    assert!(threads(beside) >= threads(alone) + 3, "{before}");
    let policy = beside["result"]["evidence"]["facts"].as_array().unwrap();
    let policy = policy.iter().find(|fact| fact["what"] == "policy").unwrap();
    assert_eq!(policy["found"], "batch");
    let (_, alone) = cell("ticks 2").unwrap();
    assert!(metric(alone, "lateness_p50") > 0.0);
    let report = bench.run(&["report", "out", "--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&report)).unwrap();
    let tables = report["interference"].as_array().unwrap();
    let of = |name: &str| {
        tables
            .iter()
            .find(|table| table["service"] == name)
            .unwrap()
    };
    assert_eq!(of("wakeup")["rows"][0]["beside"], "ticks, job");
    assert_eq!(of("job")["rows"][0]["beside"], "wakeup, ticks");
    assert!(
        of("job")["rows"][0]["arms"][0]["ratio"].as_f64().unwrap() == 1.0,
        "{tables:?}"
    );
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn loads_that_do_not_work_at_the_same_time_void_the_trial() {
    let _turn = beside_others();
    for (program, why) in [
        ("true", "before the window of the load had closed"),
        ("sleep 4", "after the window of the load had closed"),
        ("exit 3", "job: it ended with exit status 3"),
    ] {
        let bench = Bench::default();
        expect_code(&run(&bench, &together(program, "")), 4);
        let reasons = reasons(&bench);
        assert!(reasons.contains(why), "{program}: {reasons}");
        assert!(!reasons.contains("\"ok\""), "{program}: {reasons}");
        assert_eq!(running(&bench, "load"), Vec::<String>::new());
    }
    // A native load closes its window by its own clock, long before the program ends.
    let bench = Bench::default();
    let workload = "kind = \"command\"\ncommand = [\"sleep\", \"4\"]\nduration = \"500ms\"";
    let ticks = "[[workload.co-runner]]\nname = \"ticks\"\nkind = \"periodic\"\nload = 1";
    let once = experiment(ONE_ARM, workload, ticks).replace("[stop]", "[stop]\nmax-attempts = 1");
    expect_code(&run(&bench, &once), 4);
    let reasons = reasons(&bench);
    let why = "before the window of the load had closed";
    assert!(
        reasons.contains("ticks: it ended") && reasons.contains(why),
        "{reasons}"
    );
}

#[test]
fn what_cannot_work_is_refused_before_the_first_trial() {
    let _turn = beside_others();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let on_port = format!("kind = \"command\"\ncommand = [\"sleep\", \"9\"]\nport = {port}");
    for (server, why) in [
        ("kind = \"echo\"\ncpus = \"4000\"", "no CPU 4000"),
        (
            "kind = \"command\"\ncommand = [\"no-such-server\", \"{port}\"]",
            "no-such-server is not there",
        ),
        (on_port.as_str(), "in use"),
    ] {
        let bench = Bench::default();
        let output = run(&bench, &http(server));
        expect_code(&output, 3);
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert!(!bench.path("out/trials").exists(), "{why}");
    }
}

#[test]
fn a_killed_run_leaves_no_server_and_no_group() {
    if !is_root() || !is_installed("memcached") {
        tests::skipped("needs root and memcached");
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let workload = "kind = \"memcached\"\nloads = [\"500/s\"]\nkeys = 100\nduration = \"60s\"";
    let server = "[workload.server]\nkind = \"memcached\"\nweight = 50";
    let file = bench.file("e.toml", &experiment(ONE_ARM, workload, server));
    let mut child = bench
        .command(&["run", &file, "-o", "out"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the server runs in its group", || {
        left_behind(&bench).len() >= 2
    });
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("nothing is left", || left_behind(&bench).is_empty());
}
