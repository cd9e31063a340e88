//! Services that fail as they do in practice: the trial has their last words, and nothing of them
//! is left, neither a process nor a port.

#![allow(clippy::unwrap_used)]

use model::TrialState;
use results::ResultSet;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use tests::{Bench, beside_others, expect_code};

const EXPERIMENT: &str = r#"
[[arm]]
name = "default"

[[workload]]
kind = "http"
url = "/hoard"
loads = ["20/s"]
connections = 1
warmup = "100ms"
duration = "2s"
metrics = ["request_p50"]

[[workload.service]]
name = "store"
command = ["python3", "SCRIPT", "{port}"]
ports = ["store"]
ready = { path = "/health" }

[[workload.service]]
name = "notes"
command = ["sh", "-c", "LIMIT; exec python3 SCRIPT PORT"]
ports = ["http"]
ready = { path = "/health" }
before-start = [["sh", "-c", "echo {store.port} {port} > /PLACE/ports"]]

[stop]
min-blocks = 1
max-blocks = 1
max-attempts = 1
"#;

/// The error that the trial failed with, where the service is limited so and listens there.
fn failure(limit: &str, port: &str) -> String {
    let command = format!("{limit}; exec python3 SCRIPT {port}");
    changed(&[("LIMIT; exec python3 SCRIPT PORT", &command)])
}

/// The error that the trial failed with, where the file is changed so.
fn changed(changes: &[(&str, &str)]) -> String {
    let bench = Bench::default();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/notes.py");
    let mut text = EXPERIMENT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let text = text
        .replace("SCRIPT", &script.display().to_string())
        .replace("/PLACE", &bench.dir.path().display().to_string())
        .replace("LIMIT", "true")
        .replace("PORT", "{port}");
    let file = bench.file("faults.toml", &text);
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    expect_nothing_left(&bench);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    match &results.trials[0].trial.result.state {
        TrialState::Failed { why } => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn expect_nothing_left(bench: &Bench) {
    bench.expect_nothing_left();
    let ports = std::fs::read_to_string(bench.path("ports")).unwrap();
    let ports: Vec<u16> = ports
        .split_whitespace()
        .map(|p| p.parse().unwrap())
        .collect();
    assert_eq!(ports.len(), 2);
    for port in ports {
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "{port}");
    }
}

#[test]
fn a_service_whose_port_is_taken_fails_the_trial_with_its_words() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = failure("true", &port);
    assert!(
        said.contains("service-notes ended (exit status 1)"),
        "{said}"
    );
    assert!(said.contains("Address already in use"), "{said}");
}

#[test]
fn a_service_that_runs_out_of_memory_fails_the_trial_with_its_words() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let said = failure("ulimit -v 400000", "{port}");
    assert!(
        said.contains("service-notes ended (exit status 137)"),
        "{said}"
    );
    assert!(said.contains("notes: out of memory"), "{said}");
}

#[test]
fn a_service_that_answers_every_request_with_an_error_fails_the_trial_with_its_log() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let said = changed(&[("/hoard", "/broken")]);
    let (headline, log) = said.split_once('\n').unwrap();
    assert!(
        headline.contains("no request got the right answer in the window of 2s"),
        "{said}"
    );
    assert!(headline.contains("got an error from the server"), "{said}");
    assert!(log.contains("last lines of service-notes.log:"), "{said}");
    assert!(log.contains("notes: out of ink"), "{said}");
}

#[test]
fn a_service_that_does_not_become_ready_fails_the_trial_with_its_log() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let ready = "ready = { path = \"/health\" }\nbefore-start";
    let never = "ready = { path = \"/broken\" }\nready-limit = \"1s\"\nbefore-start";
    let said = changed(&[(ready, never)]);
    let (headline, log) = said.split_once('\n').unwrap();
    assert!(headline.contains("was not ready after 1s"), "{said}");
    assert!(headline.contains("500"), "{said}");
    assert!(log.contains("notes: out of ink"), "{said}");
}

#[test]
fn a_jvm_that_runs_out_of_memory_fails_the_trial_with_its_words() {
    let jars = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/target/bank");
    if !jars.is_dir() {
        return tests::skipped("demo/ is not built: make demo-jars");
    }
    if !tests::python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bank = format!(
        "exec java -Xmx24m -XX:+ExitOnOutOfMemoryError -XX:TieredStopAtLevel=1 -cp '{}/*' \
         schedlab.bank.BankApplication --server.port={{port}} --kafka.enabled=false",
        jars.display()
    );
    let said = changed(&[
        ("LIMIT; exec python3 SCRIPT PORT", &bank),
        (
            "\"/health\" }\nbefore-start",
            "\"/actuator/health\" }\nready-limit = \"5m\"\nbefore-start",
        ),
    ]);
    assert!(
        said.contains("service-notes ended (exit status 3)"),
        "{said}"
    );
    assert!(said.contains("java.lang.OutOfMemoryError"), "{said}");
}
