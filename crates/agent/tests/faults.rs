//! Whatever happens to the agent: the machine is as before, and nothing runs on.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

mod harness;

use harness::{
    Agent, arm_with_tunable, command, eventually, knob, program, root_or_skip, running, signal,
    trial,
};
use model::{Arm, Reply, Request, TrialState};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use std::fs::File;
use std::process::Command;
use std::time::Duration;

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
fn the_rings_of_a_trace_are_gone_after_a_kill() {
    let root = std::path::Path::new("/");
    if !root_or_skip() {
        return;
    }
    if let Some(why) = collect::sched_trace::find_obstacle(root) {
        return ::tests::skipped(format!("tracefs: {why}"));
    }
    let mut agent = Agent::start();
    let prefix = format!("schedlab-{}-", agent.child.id());
    let rings = || {
        let mut names = collect::sched_trace::ring_names(root).unwrap();
        names.retain(|name| name.starts_with(&prefix));
        names.len()
    };
    let mut request = trial(Arm::unchanged("x"), command("sleep 609.25"));
    if let Request::Trial { spec } = &mut request {
        spec.observe.collect = Some(vec!["trace".to_owned()]);
    }
    agent.send(&request);
    eventually("the workload runs", || !running("609.25").is_empty());
    assert_eq!(rings(), 2);
    agent.kill();
    eventually("the rings are gone", || rings() == 0);
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
    assert!(matches!(
        next.ask(&Request::Probe { experiment: None }),
        Reply::System { .. }
    ));
    assert_eq!(knob(), before);
    assert!(running("604.25").is_empty());
}

fn kill_guard_and_agent(agent: &mut Agent) {
    agent.kill_guard();
    agent.kill();
}

#[test]
fn the_end_of_the_input_ends_the_trial_and_the_agent() {
    let mut agent = Agent::start();
    agent.send(&trial(Arm::unchanged("x"), command(&stubborn("605.25"))));
    eventually("the workload runs", || running("605.25").len() >= 2);
    agent.close_input();
    let Some(Reply::Trial { results }) = agent.answer() else {
        panic!("no result");
    };
    assert_eq!(results[0].state.why(), Some("interrupted"));
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
    assert!(matches!(
        agent.ask(&Request::Probe { experiment: None }),
        Reply::System { .. }
    ));
    let children = agent.children();
    assert_eq!(children.len(), 1);
    assert_eq!(agent.ask(&Request::Bye), Reply::Bye);
    agent.child.wait().unwrap();
    let path = format!("/proc/{}", children[0]);
    eventually("the guard is gone", || {
        !std::path::Path::new(&path).exists()
    });
}

/// A file system that is mounted as long as this lives.
struct Mount(std::path::PathBuf);

impl Mount {
    fn new(arguments: &[&str], target: &std::path::Path) -> Self {
        let mount = Command::new("mount").args(arguments).arg(target).status();
        assert!(mount.unwrap().success());
        Mount(target.to_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A trial whose knob cannot be put back while the mount lives: the workload covers it
/// with a file that nobody can write.
fn a_trial_that_cannot_be_undone(agent: &mut Agent) -> Mount {
    let covered = agent.state.path().join("covered");
    std::fs::write(&covered, "37\n").unwrap();
    let script = format!(
        "mount --bind {0} {1}; mount -o remount,bind,ro {1}",
        covered.display(),
        harness::KNOB
    );
    let result = agent.trial(arm_with_tunable("37ms"), command(&script));
    let mount = Mount(harness::KNOB.into());
    let why = result.state.why().unwrap_or_default();
    assert!(why.contains("could not be undone"), "{:?}", result.state);
    mount
}

#[test]
fn what_a_trial_could_not_undo_is_undone_before_the_next_one() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    drop(a_trial_that_cannot_be_undone(&mut agent));
    assert_eq!(knob(), "37");
    let result = agent.trial(Arm::unchanged("next"), command("true"));
    assert_eq!(result.state, TrialState::Ok);
    assert_eq!(knob(), before);
}

#[test]
fn nothing_is_measured_while_an_earlier_trial_cannot_be_undone() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    let mount = a_trial_that_cannot_be_undone(&mut agent);
    let next = trial(Arm::unchanged("next"), command("true"));
    match agent.ask(&next) {
        Reply::Unrestored { failed } => assert!(failed[0].contains("sched_rr_timeslice_ms")),
        other => panic!("{other:?}"),
    }
    drop(mount);
    assert!(matches!(agent.ask(&next), Reply::Trial { .. }));
    assert_eq!(knob(), before);
}

#[test]
fn the_guard_waits_for_a_lock_that_somebody_holds() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = in_a_trial("608.25");
    // A guard that sleeps cannot be faster than the test.
    let guard = agent.guard().unwrap();
    signal(guard, Signal::STOP);
    agent.kill();
    let lock = File::open(agent.state.path().join("lock")).unwrap();
    eventually("the agent has let go of the lock", || {
        flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    });
    signal(guard, Signal::CONT);
    eventually("the workload is gone", || running("608.25").is_empty());
    // It tries several times in that time.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(knob(), "37", "the lock is held");
    drop(lock);
    eventually("the knob is as before", || knob() == before);
}

#[test]
fn the_guard_needs_no_room_on_the_disk() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let state = tempfile::tempdir().unwrap();
    let _mount = Mount::new(&["-t", "tmpfs", "-o", "size=64k", "none"], state.path());
    let mut agent = Agent::start_in(state);
    let filler = format!(
        "while :; do echo 609.25 >> {}/full; done 2> /dev/null",
        agent.state.path().display()
    );
    agent.send(&trial(arm_with_tunable("37ms"), command(&filler)));
    let full = agent.state.path().join("full");
    eventually("the disk is full", || {
        let is_full = rustix::fs::statvfs(agent.state.path()).unwrap().f_bfree == 0;
        full.exists() && is_full
    });
    assert_eq!(knob(), "37");
    agent.kill();
    eventually("the knob is as before", || knob() == before);
    eventually("the workload is gone", || running("609.25").is_empty());
}

#[test]
fn a_runner_that_does_not_read_keeps_no_arm_in_force() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    // More than a pipe holds.
    let script = "head -c 200000 /dev/zero | tr '\\0' x; sleep 0.3";
    agent.send(&trial(arm_with_tunable("37ms"), command(script)));
    eventually("the arm is in force", || knob() == "37");
    eventually("the knob is as before", || knob() == before);
    assert!(matches!(agent.answer(), Some(Reply::Trial { .. })));
}
