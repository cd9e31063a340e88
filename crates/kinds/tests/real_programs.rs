//! The adapters with the real programs, where they are installed.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use kinds::hackbench::Transport;
use load::{Job, Output, driver};
use model::{Kind, Load, Workload};
use std::process::Command;
use std::time::Instant;

fn workload(kind: Kind) -> Workload {
    Workload {
        duration_ns: 1_000_000_000,
        time_limit_ns: 120_000_000_000,
        ..Workload::new(kind)
    }
}

/// Requires, calibrates, runs and parses. `None` if a requirement is not met.
fn figures(kind: Kind) -> Option<Vec<(String, f64)>> {
    load::KINDS.add_entries(&[
        &kinds::hackbench::KIND,
        &kinds::schbench::KIND,
        &kinds::command::KIND,
    ]);
    let workload = workload(kind);
    let driver = driver(&workload.kind).unwrap();
    let mut job = Job::new(&workload, Load::Count(1), 1);
    if let Some(problem) = driver.require(&job).first() {
        ::tests::skipped(format!("{}; {}", problem.what, problem.remedy));
        return None;
    }
    job.calibration = driver
        .calibrate(&job, &mut |argv, _| Ok(run(argv)))
        .unwrap();
    let output = run(&driver.launch(&job).argv);
    let parsed = driver.parse(&job, &output).unwrap();
    Some(
        parsed
            .metrics
            .into_iter()
            .map(|m| (m.metric, m.value))
            .collect(),
    )
}

fn run(argv: &[String]) -> Output {
    let started = Instant::now();
    let output = Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
    Output {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        success: output.status.success(),
        status: output.status.to_string(),
        wall_ns: model::whole_nanos(started.elapsed()),
        ..Output::default()
    }
}

fn hackbench(threads: bool, transport: Transport, loops: Option<u64>) -> Kind {
    kinds::hackbench::KIND.with_params(&kinds::hackbench::Hackbench {
        threads,
        transport,
        message_bytes: 100,
        fds: 2,
        loops,
        program: "hackbench".to_owned(),
    })
}

#[test]
fn hackbench_runs_with_tasks_of_both_kinds_over_both_transports() {
    for threads in [false, true] {
        for transport in [Transport::Pipe, Transport::Socket] {
            let Some(figures) = figures(hackbench(threads, transport, Some(20_000))) else {
                return;
            };
            assert_eq!(figures[0].0, "hackbench_time");
        }
    }
}

#[test]
fn calibrated_hackbench_gives_a_time() {
    if let Some(figures) = figures(hackbench(false, Transport::Pipe, None)) {
        assert!(figures[0].1 > 0.0);
    }
}

#[test]
fn schbench_gives_wakeup_and_request_latency_and_a_rate() {
    let args = ["-n", "1", "-F", "16"].map(str::to_owned).to_vec();
    let kind = Kind::new("schbench").with_param("message_threads", 1);
    let kind = kind.with_param("args", args);
    let Some(figures) = figures(kind) else { return };
    for name in ["wakeup_p50", "request_p50", "requests_per_sec"] {
        assert!(
            figures.iter().any(|(n, _)| n == name),
            "{name} in {figures:?}"
        );
    }
}

#[test]
fn a_command_gives_its_wall_time() {
    let kind = Kind::new("command").with_param("argv", vec!["true"]);
    let figures = figures(kind).unwrap();
    assert_eq!(figures[0].0, "wall_time");
    assert!(figures[0].1 > 0.0);
}
