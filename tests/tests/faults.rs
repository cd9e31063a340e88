//! Services that fail as they do in practice: the trial has their last words, and nothing of them
//! is left, neither a process nor a port.

#![allow(clippy::unwrap_used)]

use model::TrialState;
use results::ResultSet;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use tests::{Bench, alone, expect_code};

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
    let bench = Bench::default();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/notes.py");
    let text = EXPERIMENT
        .replace("SCRIPT", &script.display().to_string())
        .replace("/PLACE", &bench.dir.path().display().to_string())
        .replace("LIMIT", limit)
        .replace("PORT", port);
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
    let folders = std::fs::read_dir(bench.path("state/folders"));
    assert_eq!(folders.map_or(0, Iterator::count), 0);
    let state = bench.path("state").display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter(|process| {
        let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&state)
    });
    assert_eq!(ours.count(), 0, "a process is left");
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
    let _turn = alone();
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
    let _turn = alone();
    let said = failure("ulimit -v 400000", "{port}");
    assert!(
        said.contains("service-notes ended (exit status 137)"),
        "{said}"
    );
    assert!(said.contains("notes: out of memory"), "{said}");
}
