//! Several services in start order: real memcached and nginx, started for each trial,
//! prepared, asked, ended in order, and gone with their folders.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use model::{Role, TrialState, readings};
use results::ResultSet;
use std::collections::BTreeSet;
use std::path::Path;
use tests::{Bench, beside_others, expect_code, stderr, with_lock_of_runs};

const STACK: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }

[[workload]]
kind = "http"
loads = ["200/s"]
connections = 2
warmup = "50ms"
duration = "300ms"
metrics = ["request_p50"]

[[workload.service]]
name = "store"
command = ["memcached", "-l", "127.0.0.1", "-U", "0", "-u", "nobody", "-p", "{port}"]
ports = ["main"]

[[workload.service]]
name = "web"
command = ["nginx", "-p", "{folder}", "-c", "{folder}/conf/nginx.conf"]
ports = ["http"]
env = { STORE = "127.0.0.1:{store.port}" }
before-start = [["sh", "-c", "mkdir logs && echo $STORE > logs/store"]]
when-ready = [["sh", "-c", "cat {folder}/logs/store >> /PLACE/ready"]]
ready = { path = "/health", status = 204 }
stop-signal = "QUIT"
keep = ["logs", "none"]

[workload.service.files]
"conf/nginx.conf" = """
daemon off;
pid logs/pid;
error_log stderr;
events {}
http {
  access_log off;
  server {
    listen 127.0.0.1:{port};
    location /health { return 204; }
    location / { return 200 "{store.port}"; }
  }
}
"""

[stop]
min-blocks = 2
max-blocks = 2
"#;

fn has(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("-V").output();
    found.is_ok_and(|output| output.status.success())
}

fn can_run() -> bool {
    let missing = ["memcached", "nginx"].into_iter().find(|p| !has(p));
    if let Some(program) = missing {
        tests::skipped(format!("{program} is not installed"));
    }
    missing.is_none()
}

fn folders(bench: &Bench) -> usize {
    let folders = std::fs::read_dir(bench.path("state/folders"));
    folders.map_or(0, Iterator::count)
}

fn text(bench: &Bench) -> String {
    STACK.replace("/PLACE", &bench.dir.path().display().to_string())
}

/// What was read about a role under an arm, each finding once.
fn found(results: &ResultSet, arm: &str, role: Role, what: &str) -> Vec<String> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let of_arm = trials.filter(|trial| trial.arm == arm && trial.is_ok());
    let facts = of_arm.flat_map(|trial| trial.result.evidence.all_facts());
    let about = facts.filter(|fact| fact.what == what && fact.role.as_ref() == Some(&role));
    let found: BTreeSet<String> = about.map(|fact| fact.found.clone()).collect();
    found.into_iter().collect()
}

#[test]
fn an_arm_gives_every_service_its_weight_and_its_nice_value() {
    if !tests::is_root() || !can_run() {
        return tests::skipped("needs root");
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let heavy = "name = \"heavy\"\nweight = 300\npolicy = { nice = 5 }";
    let batch = "name = \"batch\"\npolicy = { class = \"batch\" }";
    let file = bench.file("stack.toml", &text(&bench).replace(batch, heavy));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let of = |arm, what| found(&results, arm, Role::Server, what);
    assert_eq!(of("heavy", readings::WEIGHT), ["300"]);
    assert_eq!(of("heavy", "nice"), ["5"]);
    assert_eq!(of("default", readings::WEIGHT), [""; 0]);
    assert_eq!(of("default", "nice"), ["0"]);
    assert_eq!(tests::left_cgroups(), [""; 0]);
}

#[test]
fn an_arm_of_the_command_line_is_for_the_neighbour_where_its_changes_say_so() {
    if !tests::is_root() {
        return tests::skipped("needs root");
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let line = "run -w wakeup:1 --beside spinner --duration 1s --max-blocks 1 -o out -a default \
                -a light:=antagonist:weight=20 -a antagonist:nice=5";
    let output = bench.run(&line.split_whitespace().collect::<Vec<_>>());
    assert!(
        matches!(output.status.code(), Some(0 | 4)),
        "{}",
        stderr(&output)
    );
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let of = |arm, role, what| found(&results, arm, role, what);
    assert_eq!(of("light", Role::Antagonist, readings::WEIGHT), ["20"]);
    assert_eq!(of("default", Role::Antagonist, readings::WEIGHT), [""; 0]);
    let nice = |role| of("antagonist:nice=5", role, "nice");
    assert_eq!(
        (nice(Role::Antagonist), nice(Role::Load)),
        (vec!["5".to_owned()], vec!["0".to_owned()])
    );
    assert_eq!(tests::left_cgroups(), [""; 0]);
}

#[test]
fn a_load_may_name_the_port_of_any_service_in_its_url() {
    if !can_run() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let url = "kind = \"http\"\nurl = \"http://127.0.0.1:{web.port}/\"";
    // Without the URL the last service would be asked, which is no web server.
    let last = "[[workload.service]]\nname = \"last\"\nports = [\"main\"]\ncommand = \
                [\"memcached\", \"-l\", \"127.0.0.1\", \"-U\", \"0\", \"-u\", \"nobody\", \
                \"-p\", \"{port}\"]\n\n[stop]";
    let text = text(&bench).replace("kind = \"http\"", url);
    let file = bench.file("any.toml", &text.replace("[stop]", last));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert!(results.trials.iter().all(|t| t.trial.is_ok()));

    let wrong = std::fs::read_to_string(bench.path("any.toml")).unwrap();
    let file = bench.file("wrong.toml", &wrong.replace("{web.port}", "{wbe.port}"));
    let output = bench.run(&["check", &file]);
    expect_code(&output, 3);
    assert!(
        stderr(&output).contains("{wbe.port}"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_template_of_an_application_measures_its_small_server() {
    let has = std::process::Command::new("busybox")
        .arg("httpd")
        .arg("--help")
        .output();
    if has.is_err() {
        return tests::skipped("busybox is not installed");
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let template =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/your-application.toml");
    let text = std::fs::read_to_string(template).unwrap();
    // So few requests have no tail, which on a busy machine would be the generator's.
    let short = text
        .replace(", \"request_p99\"", "")
        .replace("\"10s\"", "\"1s\"")
        .replace("warmup = \"1s\"", "warmup = \"50ms\"")
        .replace("budget = \"5m\"", "min-blocks = 1\nmax-blocks = 1");
    let file = bench.file("your-application.toml", &short);
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(results.trials.len(), 2);
    for stored in &results.trials {
        let metrics = &stored.trial.result.metrics;
        let rate = metrics.iter().find(|m| m.metric == "requests_per_sec");
        assert!(rate.is_some_and(|rate| rate.value > 100.0), "{metrics:?}");
    }
}

#[test]
fn a_stack_is_started_in_order_asked_and_gone_with_its_folders() {
    if !can_run() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("stack.toml", &text(&bench));
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(results.trials.len(), 4);
    for stored in &results.trials {
        let trial = &stored.trial;
        assert_eq!(trial.result.state, TrialState::Ok, "{trial:?}");
        assert_ne!(trial.result.evidence.points, [], "{trial:?}");
        let store = std::fs::read_to_string(stored.dir.join("kept/web/logs/store"));
        assert!(store.unwrap().starts_with("127.0.0.1:"));
        let warnings = trial.result.warnings.iter();
        let not_kept = warnings.filter(|w| w.what.contains("web/none is not there"));
        assert_eq!(not_kept.count(), 1, "{trial:?}");
    }
    // One address of the store for each trial.
    let ready = std::fs::read_to_string(bench.path("ready")).unwrap();
    assert_eq!(ready.lines().count(), 4);
    assert!(
        ready.lines().all(|line| line.starts_with("127.0.0.1:")),
        "{ready}"
    );
    assert_eq!(folders(&bench), 0);
    assert!(
        !Path::new(&bench.path("state/journal.jsonl"))
            .metadata()
            .is_ok_and(|m| m.len() > 0)
    );
}

/// The error that the trials failed with, where the file is changed so.
fn failure(from: &str, to: &str) -> String {
    let bench = Bench::default();
    let text = text(&bench).replacen(from, to, 1);
    let text = text.replace("max-blocks = 2", "max-blocks = 2\nmax-attempts = 1");
    let file = bench.file("stack.toml", &text);
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 4);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(folders(&bench), 0);
    match &results.trials[0].trial.result.state {
        TrialState::Failed { why } => why.clone(),
        other => panic!("{other:?}: {}", stderr(&output)),
    }
}

#[test]
fn a_service_that_does_not_come_up_fails_the_trial_with_its_words() {
    if !can_run() {
        return;
    }
    let _turn = beside_others();
    let said = failure("status = 204 }", "status = 200 }\nready-limit = \"300ms\"");
    assert!(
        said.contains("the service web was not ready after 300ms"),
        "{said}"
    );
    assert!(said.contains("answered with 204, not 200"), "{said}");
    let said = failure("mkdir logs &&", "echo no room >&2; exit 3;");
    assert!(
        said.contains("the service web: ") && said.contains("no room"),
        "{said}"
    );
    let said = failure("events {}", "events {");
    assert!(said.contains("service-web ended"), "{said}");
}

#[test]
fn what_a_service_lacks_is_said_before_anything_runs() {
    let bench = Bench::default();
    let text = text(&bench).replacen("\"nginx\"", "\"no-such-server\"", 1);
    let file = bench.file("stack.toml", &text);
    let output = bench.run(&["check", &file]);
    expect_code(&output, 3);
    let said = stderr(&output);
    assert!(
        said.contains("service web") && said.contains("no-such-server"),
        "{said}"
    );
}
