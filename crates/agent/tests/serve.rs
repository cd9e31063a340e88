//! An agent as its runner sees it: requests in, replies out.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

mod harness;

use harness::{Agent, command, is_root, root_or_skip, trial, workload};
use model::{Arm, Class, Fact, PROTOCOL_VERSION, Phase, Policy, Reply, Request, Role, TrialState};

#[test]
fn a_runner_of_the_same_protocol_is_greeted_and_any_other_refused() {
    let mut agent = Agent::start();
    let hello = agent.ask(&Request::Hello {
        protocol: PROTOCOL_VERSION,
    });
    assert!(matches!(hello, Reply::Hello { .. }), "{hello:?}");
    let refused = agent.ask(&Request::Hello { protocol: 99 });
    assert!(
        matches!(&refused, Reply::Refused { why } if why.contains("99")),
        "{refused:?}"
    );
}

#[test]
fn a_line_that_is_no_message_is_refused_and_the_next_one_answered() {
    let mut agent = Agent::start();
    agent.send_line("make it so");
    assert!(matches!(agent.answer(), Some(Reply::Refused { .. })));
    assert_eq!(agent.ask(&Request::Bye), Reply::Bye);
    assert!(agent.child.wait().unwrap().success());
}

#[test]
fn a_probe_describes_the_machine() {
    let Reply::System { system } = Agent::start().ask(&Request::Probe { experiment: None }) else {
        panic!("no system");
    };
    assert!(system.cpus >= 1 && system.memory_bytes > 0);
}

#[test]
fn nothing_starts_before_the_rest_that_other_arms_had_is_over() {
    let mut request = trial(Arm::unchanged("default"), command("sleep 0.3"));
    let Request::Trial { spec } = &mut request else {
        panic!("{request:?}");
    };
    spec.rest_ns = 700_000_000;
    let result = Agent::start().result(&request);
    assert_eq!(result.state, TrialState::Ok);
    let evidence = &result.evidence;
    assert!(evidence.points[0].at_ns >= 700_000_000, "{evidence:?}");
    assert!(evidence.applied_ns > 0, "{evidence:?}");
}

#[test]
fn a_command_is_measured_with_evidence_from_both_sides() {
    let mut agent = Agent::start();
    let result = agent.trial(
        Arm::unchanged("default"),
        command("echo out; echo err >&2; sleep 0.4"),
    );
    assert_eq!(result.state, TrialState::Ok);
    let phases: Vec<Phase> = result.evidence.points.iter().map(|p| p.phase).collect();
    assert_eq!(phases, [Phase::Before, Phase::During, Phase::After]);
    for metric in [
        "user_time",
        "system_time",
        "voluntary_switches",
        "page_faults",
    ] {
        assert!(
            result.metrics.iter().any(|m| m.metric == metric),
            "{metric} is missing"
        );
    }
    assert_eq!(agent.file("stdout.log"), Some("out\n"));
    assert_eq!(agent.file("stderr.log"), Some("err\n"));
}

#[test]
fn the_native_load_is_measured_in_its_own_window() {
    let kind = serde_json::json!({
        "kind": "wakeup", "message_threads": 1, "sleep_ns": 100_000, "operations": 1,
        "footprint_bytes": 16384, "cpu_lock": false,
    });
    let kind = serde_json::from_value(kind).unwrap();
    let mut agent = Agent::start();
    let result = agent.trial(Arm::unchanged("default"), workload(kind));
    assert_eq!(result.state, TrialState::Ok);
    assert!(result.window_end_ns > result.window_start_ns);
    assert!(
        result
            .metrics
            .iter()
            .any(|m| m.metric == "requests_per_sec")
    );
    let before = &result.evidence.points[0];
    assert!(before.threads > 2, "{before:?}");
}

#[test]
fn a_policy_is_inherited_by_what_a_command_starts() {
    let mut arm = Arm::unchanged("batch");
    arm.policy = Some(Policy::new(Class::Batch));
    let result = Agent::start().trial(arm, command("sh -c 'sleep 0.5' & sleep 0.5; wait"));
    assert_eq!(result.state, TrialState::Ok);
    let policy = Fact::new("policy", "batch")
        .about_role(&Role::Load)
        .with_wanted("batch");
    assert!(
        result.evidence.facts.contains(&policy),
        "{:?}",
        result.evidence
    );
    let threads = result.evidence.points.iter().map(|p| p.threads);
    assert!(threads.max() >= Some(2));
}

#[test]
fn a_workload_that_changes_its_policy_voids_the_trial() {
    let mut arm = Arm::unchanged("batch");
    arm.policy = Some(Policy::new(Class::Batch));
    let result = Agent::start().trial(arm, command("chrt -o 0 sleep 0.5"));
    let why = result.state.why().unwrap_or_default();
    assert!(
        matches!(result.state, TrialState::Void { .. }),
        "{:?}",
        result.state
    );
    // The shell may still be there, which has the arm's policy.
    assert!(why.starts_with("the policy of the load was "), "{why}");
    assert!(why.contains("other, not batch, "), "{why}");
    assert_eq!(result.metrics, []);
}

#[test]
fn an_arm_that_cannot_be_applied_is_void_and_nothing_is_measured() {
    let mut arm = Arm::unchanged("wrong");
    arm.tunables
        .insert("rr_timeslice".to_owned(), "99999s".to_owned());
    let result = Agent::start().trial(arm, command("true"));
    assert!(
        matches!(result.state, TrialState::Void { .. }),
        "{:?}",
        result.state
    );
    assert_eq!(result.metrics, []);
}

#[test]
fn a_failing_command_is_a_failed_trial_with_its_last_words() {
    for script in [
        "echo 'no such luck' >&2; exit 3",
        // Some programs have only one stream.
        "echo 'no such luck'; exit 3",
    ] {
        let result = Agent::start().trial(Arm::unchanged("x"), command(script));
        let expected = TrialState::Failed {
            why: "the workload ended with exit status 3: no such luck".to_owned(),
        };
        assert_eq!(result.state, expected, "{script}");
        assert_eq!(result.metrics, []);
    }
}

#[test]
fn a_command_that_hangs_fails_at_its_time_limit() {
    let mut hangs = command("sleep 600");
    hangs.time_limit_ns = 100_000_000;
    let result = Agent::start().trial(Arm::unchanged("x"), hangs);
    assert!(
        result
            .state
            .why()
            .is_some_and(|why| why.contains("time limit of 100ms"))
    );
}

#[test]
fn a_preparation_that_fails_fails_the_trial() {
    let mut workload = command("true");
    workload.kind = workload
        .kind
        .with_param("prepare", vec!["sh", "-c", "exit 4"]);
    let result = Agent::start().trial(Arm::unchanged("x"), workload);
    let why = result.state.why().unwrap_or_default();
    assert_eq!(why, "the preparation ended with exit status 4");
}

#[test]
fn processes_that_a_command_leaves_are_ended_and_mentioned() {
    let result = Agent::start().trial(
        Arm::unchanged("x"),
        command("setsid sleep 123.456 & exit 0"),
    );
    assert_eq!(result.state, TrialState::Ok);
    assert!(
        result.warnings[0].what.contains("still running"),
        "{:?}",
        result.warnings
    );
    assert!(harness::running("123.456").is_empty());
}

#[test]
fn the_machine_is_as_before_after_a_trial() {
    if !is_root() {
        ::tests::skipped("turning a knob needs root");
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = harness::knob();
    let mut agent = Agent::start();
    let result = agent.trial(
        harness::arm_with_tunable("37ms"),
        command(&format!("cat {}", harness::KNOB)),
    );
    assert_eq!(result.state, TrialState::Ok);
    assert_eq!(agent.file("stdout.log"), Some("37\n"));
    let tunable = Fact::new("tunable rr_timeslice", "37").with_wanted("37");
    assert!(result.evidence.facts.contains(&tunable));
    assert_eq!(harness::knob(), before);
    let journal = std::fs::read_to_string(agent.state.path().join("journal.jsonl")).unwrap();
    assert_eq!(journal, "");
}

#[test]
fn events_of_an_experiment_are_counted_in_all_processes_of_the_load() {
    if !root_or_skip() {
        return;
    }
    // Each process waits, since one that only ends may never have been switched out.
    let many = "i=0; while [ $i -lt 20 ]; do sleep 0.05 & i=$((i+1)); done; wait; sleep 0.3";
    let Request::Trial { mut spec } = harness::trial(Arm::unchanged("default"), command(many))
    else {
        panic!("a trial is one");
    };
    spec.observe.perf = ["task-clock", "context-switches", "sched:sched_process_exec"]
        .map(str::to_owned)
        .into();
    let result = Agent::start().result(&Request::Trial { spec });
    if let TrialState::Void { why } = &result.state {
        return tests::skipped(why);
    }
    let value = |name: &str| {
        let found = result.metrics.iter().find(|m| m.metric == name);
        found
            .unwrap_or_else(|| panic!("{name}: {:?}", result.metrics))
            .value
    };
    assert!(value("perf_sched:sched_process_exec") >= 20.0);
    assert!(value("perf_context-switches") >= 20.0);
    assert!(value("perf_task-clock") > 0.0);
}
