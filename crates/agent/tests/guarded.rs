//! The guard is guarded: whatever happens to it, to the journal and to a stopped agent, the
//! machine is as before.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

mod harness;

use harness::{
    Agent, arm_with_tunable, command, eventually, knob, program, root_or_skip, running, signal,
    trial,
};
use model::{Arm, TrialState};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Sends a trial with a knob turned, and waits until its workload runs.
fn turn_the_knob(agent: &mut Agent, number: &str) {
    let script = format!("setsid sleep {number} & sleep {number}");
    agent.send(&trial(arm_with_tunable("37ms"), command(&script)));
    eventually("the workload runs", || running(number).len() >= 2);
    assert_eq!(knob(), "37");
}

#[track_caller]
fn expect_as_before(before: &str, number: &str) {
    eventually("the knob is as before", || knob() == before);
    eventually("the workload is gone", || running(number).is_empty());
}

fn restore(state: &Path) -> Output {
    let mut restore = Command::new(program());
    restore.arg("restore").env("SCHEDLAB_STATE_DIR", state);
    restore.output().unwrap()
}

#[test]
fn a_guard_that_was_killed_is_there_again_before_the_next_trial() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    agent.trial(Arm::unchanged("first"), command("true"));
    let first = agent.kill_guard();
    let result = agent.trial(Arm::unchanged("second"), command("true"));
    assert_eq!(result.state, TrialState::Ok);
    let said = format!("{:?}", result.warnings);
    assert!(said.contains("had ended (signal: 9"), "{said}");
    assert_ne!(agent.guard(), Some(first));
    turn_the_knob(&mut agent, "621.25");
    agent.kill();
    expect_as_before(&before, "621.25");
}

#[test]
fn the_note_of_a_new_guard_is_of_one_trial() {
    let mut agent = Agent::start();
    agent.kill_guard();
    let warned = |agent: &mut Agent| {
        let result = agent.trial(Arm::unchanged("x"), command("true"));
        format!("{:?}", result.warnings).contains("the guard")
    };
    assert!(warned(&mut agent));
    assert!(!warned(&mut agent));
}

/// The score by which the kernel chooses what it kills for want of memory (proc(5)).
const SCORE: &str = "/proc/self/oom_score_adj";

/// The lowest score that a process of this user may have: without CAP_SYS_RESOURCE, 0.
fn lowest_score() -> String {
    let script =
        format!("echo -1000 > {SCORE} || echo 0 > {SCORE}; read score < {SCORE}; echo $score");
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_guard_is_the_last_to_be_killed_for_memory_and_the_workload_is_not() {
    let before = fs::read_to_string(SCORE).unwrap();
    // As where a service is started that the kernel may kill first.
    fs::write(SCORE, "300").unwrap();
    let mut agent = Agent::start();
    fs::write(SCORE, &before).unwrap();
    let result = agent.trial(Arm::unchanged("x"), command(&format!("cat {SCORE}")));
    assert_eq!(result.state, TrialState::Ok);
    assert_eq!(agent.file("stdout.log"), Some("300\n"));
    let path = format!("/proc/{}/oom_score_adj", agent.guard().unwrap());
    let lowest = lowest_score();
    eventually("the guard is spared", || {
        fs::read_to_string(&path).unwrap() == lowest
    });
}

#[test]
fn the_guard_undoes_everything_although_the_state_directory_was_removed() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    turn_the_knob(&mut agent, "622.25");
    fs::remove_dir_all(agent.state.path()).unwrap();
    agent.kill();
    expect_as_before(&before, "622.25");
    eventually("nothing is missed any more", || {
        restore(agent.state.path()).status.success()
    });
}

#[test]
fn a_state_directory_that_was_made_anew_is_not_taken_for_the_one_that_was_removed() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    turn_the_knob(&mut agent, "623.25");
    fs::remove_dir_all(agent.state.path()).unwrap();
    fs::create_dir(agent.state.path()).unwrap();
    fs::write(agent.state.path().join("journal.jsonl"), "").unwrap();
    agent.kill();
    expect_as_before(&before, "623.25");
}

#[test]
fn a_trial_ends_as_any_other_although_the_state_directory_was_removed() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    let script = format!("rm -r {}", agent.state.path().display());
    let result = agent.trial(arm_with_tunable("37ms"), command(&script));
    assert_eq!(result.state, TrialState::Ok);
    assert_eq!(knob(), before);
    let result = agent.trial(Arm::unchanged("next"), command("true"));
    let said = format!("{:?}", result.warnings);
    assert!(said.contains("was removed"), "{said}");
    // Others find it again, and a new guard has it.
    assert!(agent.state.path().join("journal.jsonl").exists());
    turn_the_knob(&mut agent, "624.25");
    fs::remove_dir_all(agent.state.path()).unwrap();
    agent.kill();
    expect_as_before(&before, "624.25");
}

#[test]
fn a_restore_misses_the_journal_that_nobody_has_any_more() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    turn_the_knob(&mut agent, "625.25");
    agent.kill_guard();
    fs::remove_dir_all(agent.state.path()).unwrap();
    agent.kill();
    let missed = restore(agent.state.path());
    let said = String::from_utf8_lossy(&missed.stderr).into_owned();
    assert!(
        !missed.status.success() && said.contains("is missing"),
        "{said}"
    );
    // The next agent does not take the machine for clean either.
    let mut next = Command::new(program());
    next.arg("agent")
        .env("SCHEDLAB_STATE_DIR", agent.state.path());
    let refused = next.output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is missing"));
    // As the message says: by hand.
    let sign = said.split_whitespace().last().unwrap();
    fs::remove_file(sign).unwrap();
    fs::write(harness::KNOB, &before).unwrap();
    for pid in running("625.25") {
        signal(pid, Signal::KILL);
    }
    assert!(restore(agent.state.path()).status.success());
}

#[test]
fn a_stopped_agent_whose_runner_is_gone_keeps_no_arm_in_force() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    turn_the_knob(&mut agent, "626.25");
    signal(agent.child.id() as i32, Signal::STOP);
    agent.close_input();
    expect_as_before(&before, "626.25");
}

#[test]
fn a_stopped_agent_whose_runner_lives_is_waited_for() {
    let mut agent = Agent::start();
    let pid = agent.child.id() as i32;
    agent.send(&trial(Arm::unchanged("x"), command("sleep 2")));
    eventually("the workload runs", || agent.children().len() >= 2);
    signal(pid, Signal::STOP);
    // More looks than a guard needs that has lost the runner.
    std::thread::sleep(std::time::Duration::from_secs(3));
    signal(pid, Signal::CONT);
    assert!(matches!(agent.answer(), Some(model::Reply::Trial { .. })));
}

/// Values of the kernel's limit of realtime threads, which it ties to each other, and to the share
/// of the root group where there are such groups.
fn realtime_limits() -> Vec<Option<String>> {
    let files = [
        "/proc/sys/kernel/sched_rt_period_us",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/sys/fs/cgroup/cpu/cpu.rt_runtime_us",
    ];
    files.map(|file| fs::read_to_string(file).ok()).to_vec()
}

#[test]
fn tunables_that_the_kernel_ties_to_each_other_are_as_before_after_a_trial_and_a_kill() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = realtime_limits();
    for (period, runtime) in [("100ms", "50ms"), ("2s", "1500ms"), ("900ms", "-1")] {
        let mut arm = Arm::unchanged("tied");
        let tunables = [("rt_period", period), ("rt_runtime", runtime)];
        let tunables = tunables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        arm.tunables = tunables.into();
        let mut agent = Agent::start();
        let result = agent.trial(arm.clone(), command("true"));
        assert_eq!(result.state, TrialState::Ok, "{period} {runtime}");
        assert_eq!(realtime_limits(), before, "{period} {runtime}");
        agent.send(&trial(arm, command("sleep 627.25")));
        eventually("the workload runs", || !running("627.25").is_empty());
        assert_ne!(realtime_limits(), before);
        agent.kill();
        eventually("the limits are as before", || realtime_limits() == before);
    }
}
