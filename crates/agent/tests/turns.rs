//! Arms that take turns inside one process: each window is proven, and the machine is as before
//! whatever happens.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

mod few;
mod harness;

use harness::{Agent, arm_with_tunable, eventually, knob, root_or_skip, trial};
use model::turns::Span;
use model::{Arm, Class, InPlace, Policy, Reply, Request, TakingTurns, TrialResult, Turn, Turns};
use std::time::Duration;

const MS: u64 = 1_000_000;

/// `wakeup` with one worker, in which these arms take turns of 60 ms.
fn turns(arms: Vec<Arm>, pairs: u32) -> Request {
    few::install();
    let workload = plan::parse_workload("wakeup:1").unwrap();
    let load = workload.loads[0];
    let Request::Trial { mut spec } = trial(arms[0].clone(), workload) else {
        unreachable!()
    };
    spec.workload.warmup_ns = 20 * MS;
    spec.load = load;
    let pair = |pair: u32| {
        [pair % 2, 1 - pair % 2].map(|arm| Turn {
            arm: arm as usize,
            pair,
        })
    };
    spec.turns = Some(TakingTurns {
        arms,
        turns: Turns {
            lengths: InPlace {
                window_ns: 40 * MS,
                washout_ns: 40 * MS,
                pilot: false,
            },
            order: (0..pairs).flat_map(pair).collect(),
        },
        is_watched: false,
    });
    Request::Trial { spec }
}

fn policy(name: &str, policy: Policy) -> Arm {
    Arm {
        policy: Some(policy),
        ..Arm::unchanged(name)
    }
}

#[track_caller]
fn results(agent: &mut Agent, request: &Request) -> Vec<TrialResult> {
    match agent.ask(request) {
        Reply::Trial { results } if results.len() > 1 => results,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_arm_has_its_windows_their_figures_and_their_proof() {
    if !root_or_skip() {
        return;
    }
    let arms = vec![
        Arm::unchanged("default"),
        policy("batch", Policy::new(Class::Batch)),
    ];
    let mut agent = Agent::start();
    let found = results(&mut agent, &turns(arms, 4));
    assert_eq!(found.len(), 2);
    for (arm, policy) in ["other", "batch"].into_iter().enumerate() {
        let result = &found[arm];
        let windows = result.windows.as_ref().unwrap();
        assert_eq!(windows.pairs, [0, 1, 2, 3]);
        let counted = windows.by_pair("requests_per_sec", Span::Whole);
        assert_eq!(counted.len() + windows.void.len(), 4, "{:?}", windows.void);
        // A machine that others keep busy may leave a window of some milliseconds without a request.
        assert!(counted.values().sum::<f64>() > 0.0, "{counted:?}");
        let facts = &result.evidence.facts;
        let of_load = facts.iter().find(|fact| fact.what == "policy").unwrap();
        assert_eq!(of_load.found, policy);
        assert!(result.metrics.iter().any(|m| m.metric == "request_p50"));
        let log = agent.file(&format!("arm-{arm}/request.hlog")).unwrap();
        let intervals = log.lines().filter(|line| line.contains("HIST"));
        assert_eq!(intervals.count(), 4, "{log}");
    }
    let turns = |arm: usize| found[arm].windows.as_ref().unwrap().turns.clone();
    assert_eq!([turns(0), turns(1)], [[0, 3, 4, 7], [1, 2, 5, 6]]);
}

#[test]
fn a_process_ends_at_the_end_of_a_pair_when_the_runner_has_enough() {
    if !root_or_skip() {
        return;
    }
    let arms = vec![
        Arm::unchanged("default"),
        policy("batch", Policy::new(Class::Batch)),
    ];
    let Request::Trial { mut spec } = turns(arms, 400) else {
        unreachable!()
    };
    spec.workload.metrics = vec!["requests_per_sec".to_owned()];
    spec.turns.as_mut().unwrap().is_watched = true;
    let mut agent = Agent::start();
    agent.send(&Request::Trial { spec });
    let mut told = Vec::new();
    let results = loop {
        match agent.receive().unwrap() {
            Reply::SoFar { arms } => {
                told.push(arms);
                if told.len() == 2 {
                    agent.send(&Request::Enough);
                }
            }
            Reply::Trial { results } => break results,
            on_the_way => assert!(on_the_way.precedes_answer(), "{on_the_way:?}"),
        }
    };
    assert_eq!(results.len(), 2, "{:?}", results[0].state);
    for (arm, result) in results.iter().enumerate() {
        let windows = result.windows.as_ref().unwrap();
        assert!(
            (10..400).contains(&windows.pairs.len()),
            "{:?}",
            windows.pairs
        );
        assert_eq!(windows.pairs, results[0].windows.as_ref().unwrap().pairs);
        // The runner knows which looks it judged.
        assert!(windows.looks.is_empty(), "{:?}", windows.looks);
        let first = &told[0][arm].windows;
        assert_eq!(first.pairs, windows.pairs[..8]);
        assert!(!first.by_pair("requests_per_sec", Span::Whole).is_empty());
    }
}

#[test]
fn a_change_that_is_refused_makes_its_windows_void_and_the_rest_goes_on() {
    if !root_or_skip() {
        return;
    }
    // No CPU has so much bandwidth for all threads of the load.
    let deadline = Policy {
        runtime_ns: Some(94 * MS),
        period_ns: Some(100 * MS),
        ..Policy::new(Class::Deadline)
    };
    let arms = vec![Arm::unchanged("default"), policy("deadline", deadline)];
    let mut agent = Agent::start();
    let result = agent.result(&turns(arms, 2));
    let why = result.state.why().unwrap();
    assert!(why.contains("no window of deadline counts"), "{why}");
    assert!(why.contains("set policy deadline"), "{why}");
}

#[test]
fn a_tunable_is_set_in_its_turns_only_and_put_back() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let arms = vec![Arm::unchanged("default"), arm_with_tunable("37ms")];
    let mut agent = Agent::start();
    let found = results(&mut agent, &turns(arms, 3));
    assert!(found[1].windows.as_ref().unwrap().void.len() < 3);
    let is_tunable = |fact: &&model::Fact| fact.what == "tunable rr_timeslice";
    let fact = found[1].evidence.facts.iter().find(is_tunable).unwrap();
    assert_eq!(fact.found, "37");
    assert_eq!(knob(), before);
}

#[test]
fn the_machine_is_as_before_after_a_kill_in_any_window() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    for moment in 0..12u64 {
        let arms = vec![Arm::unchanged("default"), arm_with_tunable("37ms")];
        let mut agent = Agent::start();
        agent.send(&turns(arms, 400));
        eventually("the arms take turns", || knob() == "37");
        std::thread::sleep(Duration::from_millis(moment * 13));
        agent.kill();
        eventually("the knob is as before", || knob() == before);
    }
}

#[test]
fn a_guard_that_is_killed_within_a_trial_is_there_again_at_the_next_turn() {
    if !root_or_skip() {
        return;
    }
    let _turn = harness::knob_to_myself();
    let before = knob();
    let mut agent = Agent::start();
    let arms = vec![Arm::unchanged("default"), arm_with_tunable("37ms")];
    agent.send(&turns(arms, 200));
    eventually("an arm is in force", || knob() == "37");
    agent.kill_guard();
    eventually("there is another", || agent.guard().is_some());
    eventually("an arm is in force", || knob() == "37");
    agent.kill();
    eventually("the knob is as before", || knob() == before);
}
