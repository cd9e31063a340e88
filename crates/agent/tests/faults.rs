//! Whatever happens to the agent: the machine is as before, and nothing runs on.

#![allow(clippy::unwrap_used)] // In a test a panic is the message.

mod harness;

use harness::{
    Agent, arm_with_tunable, command, eventually, is_root, knob, program, running, trial,
};
use model::{Arm, Reply, Request};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::time::Duration;

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A workload that tries to get away, with a number to find it by.
fn stubborn(number: &str) -> String {
    format!("trap '' INT TERM HUP; setsid sleep {number} & sleep {number}; sleep {number}")
}

/// In the middle of a trial with a knob turned.
fn in_a_trial(number: &str) -> Agent {
    let mut agent = Agent::start();
    agent.send(&trial(arm_with_tunable("37ms"), command(&stubborn(number))));
    eventually("the workload runs", || running(number).len() >= 2);
    agent
}

fn root_or_skip() -> bool {
    if !is_root() {
        println!("skipped: turning a knob needs root");
    }
    is_root()
}

#[test]
fn the_guard_undoes_everything_when_the_agent_is_killed() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = in_a_trial("601.25");
    assert_eq!(knob(), "37");
    agent.kill();
    eventually("the knob is as before", || knob() == before);
    eventually("the workload is gone", || running("601.25").is_empty());
}

#[test]
fn the_machine_is_as_before_after_a_kill_at_any_moment() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    for moment in 0..40u64 {
        let mut agent = Agent::start();
        agent.send(&trial(
            arm_with_tunable("37ms"),
            command("sleep 0.02; sleep 602.25"),
        ));
        std::thread::sleep(Duration::from_micros(moment * moment * 70));
        agent.kill();
        eventually("the knob is as before", || knob() == before);
        eventually("the workload is gone", || running("602.25").is_empty());
    }
}

#[test]
fn a_restore_undoes_what_agent_and_guard_left() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = in_a_trial("603.25");
    kill_guard_and_agent(&mut agent);
    assert_eq!(knob(), "37");
    let restore = Command::new(program())
        .arg("restore")
        .env("SCHEDLAB_STATE_DIR", agent.state.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&restore.stdout).into_owned();
    assert!(said.contains("sched_rr_timeslice_ms"), "{said}");
    assert_eq!(knob(), before);
    assert!(running("603.25").is_empty());
}

#[test]
fn the_next_start_undoes_what_agent_and_guard_left() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = in_a_trial("604.25");
    kill_guard_and_agent(&mut agent);
    let state = std::mem::replace(&mut agent.state, tempfile::tempdir().unwrap());
    let mut next = Agent::start_in(state);
    assert!(matches!(next.ask(&Request::Probe), Reply::System { .. }));
    assert_eq!(knob(), before);
    assert!(running("604.25").is_empty());
}

fn kill_guard_and_agent(agent: &mut Agent) {
    let is_guard = |pid: &i32| running("guard").contains(pid);
    let guard = agent.children().into_iter().find(is_guard).unwrap();
    signal(guard, Signal::KILL);
    agent.kill();
}

#[test]
fn the_end_of_the_input_ends_the_trial_and_the_agent() {
    let mut agent = Agent::start();
    agent.send(&trial(Arm::unchanged("x"), command(&stubborn("605.25"))));
    eventually("the workload runs", || running("605.25").len() >= 2);
    agent.close_input();
    let Some(Reply::Trial { result }) = agent.answer() else {
        panic!("no result");
    };
    assert_eq!(result.state.why(), Some("interrupted"));
    assert!(agent.child.wait().unwrap().success());
    assert!(running("605.25").is_empty());
}

#[test]
fn a_goodbye_in_the_middle_ends_the_trial_and_is_answered() {
    let mut agent = Agent::start();
    agent.send(&trial(Arm::unchanged("x"), command(&stubborn("606.25"))));
    eventually("the workload runs", || running("606.25").len() >= 2);
    agent.send(&Request::Bye);
    assert!(matches!(agent.answer(), Some(Reply::Trial { .. })));
    assert_eq!(agent.answer(), Some(Reply::Bye));
    assert!(running("606.25").is_empty());
}

#[test]
fn a_signal_ends_the_trial_in_order() {
    let mut agent = Agent::start();
    agent.send(&trial(Arm::unchanged("x"), command(&stubborn("607.25"))));
    eventually("the workload runs", || running("607.25").len() >= 2);
    signal(agent.child.id() as i32, Signal::TERM);
    assert!(matches!(agent.answer(), Some(Reply::Trial { .. })));
    assert!(agent.child.wait().unwrap().success());
    assert!(running("607.25").is_empty());
}

#[test]
fn an_agent_leaves_no_guard_behind() {
    let mut agent = Agent::start();
    assert!(matches!(agent.ask(&Request::Probe), Reply::System { .. }));
    let children = agent.children();
    assert_eq!(children.len(), 1);
    assert_eq!(agent.ask(&Request::Bye), Reply::Bye);
    agent.child.wait().unwrap();
    let path = format!("/proc/{}", children[0]);
    eventually("the guard is gone", || {
        !std::path::Path::new(&path).exists()
    });
}
