//! Nothing that a trial or a calibration starts outlives it, whatever it does to its
//! session, its environment and its parents.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

mod harness;

use harness::{Agent, command, eventually, is_root, running, signal, trial, workload};
use load::roles::Readiness;
use model::{Arm, Kind, Load, Placement, Reply, Request, Server, TrialState, Workload};
use rustix::process::Signal;
use services::programs::server_command::{self, ServerCommand};
use std::fs;
use std::path::{Path, PathBuf};

/// It leaves its session, its environment and its parent, and is gone from there when
/// the script goes on.
fn escaping(number: &str) -> String {
    format!(
        "up=$(mktemp); (setsid env -i sh -c \"sleep {number} & echo up > $up; sleep {number}\" &); \
         while [ ! -s $up ]; do sleep 0.01; done; rm $up"
    )
}

/// Is there a cgroup to find it by when its agent is dead?
fn group_or_skip() -> bool {
    let writable = ["", "unified", "freezer"].iter().any(|mount| {
        let path = Path::new("/sys/fs/cgroup").join(mount).join("schedlab-try");
        // A group that controllers come down to is not used.
        let made = fs::create_dir(&path).is_ok();
        let text = fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
        let alone = made && path.join("cgroup.procs").exists() && text.trim().is_empty();
        let _ = fs::remove_dir(&path);
        alone
    });
    if !writable {
        ::tests::skipped("no cgroup can be made here that is not a unit of scheduling");
    }
    writable
}

#[test]
fn what_left_session_and_environment_ends_with_the_trial_and_voids_it() {
    let mut agent = Agent::start();
    let result = agent.trial(Arm::unchanged("x"), command(&escaping("701.25")));
    let why = result.state.why().unwrap_or_default();
    assert!(
        matches!(result.state, TrialState::Void { .. }),
        "{result:?}"
    );
    assert!(why.contains("outlived it: process"), "{why}");
    assert!(running("701.25").is_empty());
    // And the next one is measured.
    let next = agent.trial(Arm::unchanged("x"), command("true"));
    assert_eq!(next.state, TrialState::Ok);
}

#[test]
fn it_ends_with_a_trial_that_is_over_its_time_too() {
    let mut hangs = command(&format!("{}; sleep 702.25", escaping("702.25")));
    hangs.time_limit_ns = 300_000_000;
    let result = Agent::start().trial(Arm::unchanged("x"), hangs);
    let why = result.state.why().unwrap_or_default();
    assert!(why.contains("time limit"), "{why}");
    assert!(running("702.25").is_empty());
}

#[test]
fn it_ends_with_a_preparation() {
    let mut workload = command("true");
    let prepare = ["sh", "-c", &escaping("703.25")].map(str::to_owned);
    workload.kind = workload.kind.with_param("prepare", prepare.to_vec());
    let result = Agent::start().trial(Arm::unchanged("x"), workload);
    assert!(
        matches!(result.state, TrialState::Void { .. }),
        "{result:?}"
    );
    assert!(running("703.25").is_empty());
}

#[test]
fn the_guard_ends_what_has_lost_its_environment() {
    // As nginx does, which writes over it.
    let mut agent = Agent::start();
    let script = "env -i sleep 704.25 & env -i sleep 704.25";
    agent.send(&trial(Arm::unchanged("x"), command(script)));
    eventually("the workload runs", || running("704.25").len() >= 3);
    agent.kill();
    eventually("it is gone", || running("704.25").is_empty());
}

#[test]
fn the_guard_ends_what_left_its_session_too() {
    if !group_or_skip() {
        return;
    }
    let mut agent = Agent::start();
    let script = format!("{}; sleep 705.25", escaping("705.25"));
    agent.send(&trial(Arm::unchanged("x"), command(&script)));
    eventually("the workload runs", || running("705.25").len() >= 4);
    agent.kill();
    eventually("it is gone", || running("705.25").is_empty());
    eventually("its group is gone", || groups(&agent).is_empty());
}

/// The groups of an agent's trials that are there.
fn groups(agent: &Agent) -> Vec<PathBuf> {
    let mounts = ["", "unified", "freezer", "cpu", "cpu,cpuacct"];
    let entries = mounts
        .iter()
        .filter_map(|mount| fs::read_dir(Path::new("/sys/fs/cgroup").join(mount)).ok());
    let beginning = format!("schedlab-{}-", agent.child.id());
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&beginning)
    };
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    paths.filter(is_its).collect()
}

fn with_server(argv: &[&str], weight: Option<u32>) -> Workload {
    let mut workload = command("sleep 706.25");
    workload.server = Some(Server {
        program: server_command::SERVER.with_params(&ServerCommand {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            port: None,
            ready: Readiness::Tcp,
        }),
        placement: Placement {
            weight,
            ..Placement::default()
        },
        ready_limit_ns: 30_000_000_000,
    });
    workload
}

#[test]
fn the_guard_removes_the_group_of_a_server_whatever_is_in_it() {
    if !is_root() {
        ::tests::skipped("a cgroup with a weight needs root");
        return;
    }
    let script = "env -i setsid sleep 706.25 & exec sleep 706.25";
    let mut agent = Agent::start();
    let workload = with_server(&["sh", "-c", script], Some(200));
    agent.send(&trial(Arm::unchanged("x"), workload));
    eventually("the server runs", || running("706.25").len() >= 2);
    agent.kill();
    eventually("it is gone", || running("706.25").is_empty());
    eventually("its group is gone", || groups(&agent).is_empty());
}

#[test]
fn a_process_that_cannot_be_killed_is_said_and_ends_the_measuring() {
    let freezer = Path::new("/sys/fs/cgroup/freezer");
    let group = freezer.join(format!("agent-test-{}", std::process::id()));
    if !freezer.join("cgroup.procs").exists() || fs::create_dir(&group).is_err() {
        ::tests::skipped("freezing a process needs the freezer of cgroup v1, and root");
        return;
    }
    // Of version 1, what is frozen does not take SIGKILL: like a process in the middle
    // of an access to a device that does not answer.
    let state = group.join("freezer.state");
    let script = format!(
        "echo $$ > {}/cgroup.procs; echo FROZEN > {}; sleep 707.25",
        group.display(),
        state.display()
    );
    let mut hangs = command(&script);
    hangs.time_limit_ns = 300_000_000;
    let mut agent = Agent::start();
    let result = agent.trial(Arm::unchanged("x"), hangs);
    let warnings = format!("{:?}", result.warnings);
    let next = trial(Arm::unchanged("x"), command("true"));
    let refused = agent.ask(&next);
    fs::write(&state, "THAWED").unwrap();
    assert!(
        warnings.contains("still there after SIGKILL: process"),
        "{result:?}"
    );
    assert!(matches!(refused, Reply::Unrestored { .. }), "{refused:?}");
    assert!(matches!(agent.ask(&next), Reply::Trial { .. }));
    fs::remove_dir(&group).unwrap();
}

/// A hackbench that never ends, and leaves something behind.
fn calibrating(number: &str) -> (tempfile::TempDir, Agent) {
    let programs = tempfile::tempdir().unwrap();
    let script = format!("#!/bin/sh\n{}; sleep {number}\n", escaping(number));
    tests::write_program(&programs.path().join("hackbench"), script);
    let path = format!(
        "{}:{}",
        programs.path().display(),
        std::env::var("PATH").unwrap()
    );
    let state = tempfile::tempdir().unwrap();
    let mut agent = Agent::start_with(state, &[("PATH", &path)]);
    let kind = Kind::new("hackbench").with_param("threads", false);
    let kind = kind
        .with_param("transport", "pipe")
        .with_param("message_bytes", 100);
    agent.send(&Request::Calibrate {
        workload: Box::new(workload(kind.with_param("fds", 2))),
        load: Load::Count(1),
        known: model::Calibration::default(),
    });
    eventually("the calibration runs", || running(number).len() >= 4);
    (programs, agent)
}

#[test]
fn a_calibration_ends_with_its_runner_and_leaves_nothing() {
    let (_programs, mut agent) = calibrating("708.25");
    agent.close_input();
    assert!(agent.child.wait().unwrap().success());
    assert!(running("708.25").is_empty());
}

#[test]
fn a_calibration_ends_with_a_signal_and_leaves_nothing() {
    let (_programs, mut agent) = calibrating("709.25");
    signal(agent.child.id() as i32, Signal::TERM);
    match agent.answer() {
        Some(Reply::Refused { why }) => assert!(why.contains("interrupted"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(agent.child.wait().unwrap().success());
    assert!(running("709.25").is_empty());
}

#[test]
fn the_guard_ends_a_calibration() {
    if !group_or_skip() {
        return;
    }
    let (_programs, mut agent) = calibrating("710.25");
    agent.kill();
    eventually("it is gone", || running("710.25").is_empty());
}
