//! Loads on the controller, apart from their services on the target.

use crate::place::{Place, experiment, took, wobble};
use machines::fake::{FakeTarget, Fate};
use model::{Better, Happened, Measurement, Part, RareEvent, Trial, TrialSpec, When};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An experiment whose load runs on the controller, on a target that is another machine.
fn apart(load: impl FnMut(&TrialSpec) -> Fate + Send + 'static, target: FakeTarget) -> Vec<Trial> {
    let mut experiment = experiment(&["default", "slow"]);
    experiment.workloads[0].load_on = model::Place::Controller;
    let place = Place::new(experiment);
    let mut target = target;
    target.can.apart = true;
    let controller = FakeTarget::new(load);
    place
        .run_beside(
            target,
            Some(controller),
            place.writer(),
            Vec::new(),
            |_, _| {},
        )
        .unwrap();
    place.trials()
}

/// The part of the target has a figure of its own.
fn steal(_: &TrialSpec) -> Fate {
    Fate::Ok(vec![Measurement {
        metric: "steal_time".into(),
        unit: "s".into(),
        better: Better::Neither,
        value: 0.5,
        own: None,
    }])
}

#[test]
fn a_load_on_the_controller_gives_the_figures_and_the_target_its_own() {
    let load = |spec: &TrialSpec| {
        assert!(matches!(spec.part, Part::Load { .. }) && spec.arm.summary() == "default");
        took(wobble(spec.seed) * if spec.arm.name == "slow" { 1.5 } else { 1.0 })
    };
    let trials = apart(load, FakeTarget::new(steal));
    assert!(
        trials.len() >= 6 && trials.iter().all(Trial::is_ok),
        "{trials:?}"
    );
    for trial in &trials {
        let metrics = trial.result.metrics.iter();
        let names: BTreeSet<&str> = metrics.map(|m| m.metric.as_str()).collect();
        assert_eq!(names, BTreeSet::from(["wall_time", "steal_time"]));
    }
}

#[test]
fn a_load_that_fails_on_the_controller_fails_its_trial_and_says_where() {
    let trials = apart(|_| Fate::Failed("exit status 1"), FakeTarget::new(steal));
    let why = trials[0].result.state.why().unwrap();
    assert_eq!(why, "the load, on the controller: exit status 1");
    assert!(trials[0].result.metrics.is_empty());
}

#[test]
fn a_load_whose_services_do_not_start_is_not_begun() {
    let begun = Arc::new(AtomicBool::new(false));
    let seen = begun.clone();
    let load = move |_: &TrialSpec| {
        seen.store(true, Ordering::Relaxed);
        took(1.0)
    };
    let trials = apart(load, FakeTarget::new(|_| Fate::Failed("no port")));
    assert!(
        trials
            .iter()
            .all(|t| t.result.state.why() == Some("no port"))
    );
    assert!(!begun.load(Ordering::Relaxed));
}

#[test]
fn a_controller_that_dies_voids_the_trial_and_is_started_again() {
    let mut turn = 0;
    let load = move |spec: &TrialSpec| {
        turn += 1;
        if turn == 2 {
            return Fate::Dies;
        }
        took(wobble(spec.seed) * if spec.arm.name == "slow" { 1.5 } else { 1.0 })
    };
    let trials = apart(load, FakeTarget::new(steal));
    let void: Vec<&Trial> = trials.iter().filter(|t| !t.is_ok()).collect();
    assert_eq!(void.len(), 1);
    assert!(trials.iter().filter(|t| t.is_ok()).count() >= 6);
}

#[test]
fn a_port_that_somebody_took_voids_its_trial_and_not_the_run() {
    let load = |spec: &TrialSpec| {
        took(wobble(spec.seed) * if spec.arm.name == "slow" { 1.5 } else { 1.0 })
    };
    let target = FakeTarget::new(steal);
    target.ports_taken.store(1, Ordering::Relaxed);
    let trials = apart(load, target);
    let void: Vec<&Trial> = trials.iter().filter(|t| !t.is_ok()).collect();
    assert_eq!(void.len(), 1);
    let why = void[0].result.state.why().unwrap();
    assert!(why.starts_with("forward ports of: the fake: "), "{why}");
    assert!(trials.iter().filter(|t| t.is_ok()).count() >= 6);
}

/// Each event once, 30 ns after the window opened by the clock of whoever counted it.
fn counted(spec: &TrialSpec) -> Vec<Happened> {
    let happened = |event: &RareEvent| Happened {
        name: event.name.clone(),
        exposure_ns: 1_000_000_000,
        at_ns: vec![30],
        ..Happened::default()
    };
    spec.observe.events.iter().map(happened).collect()
}

#[test]
fn a_load_on_the_controller_tells_of_its_requests_and_the_target_of_all_else() {
    let mut experiment = experiment(&["default", "slow"]);
    experiment.workloads[0].load_on = model::Place::Controller;
    let late = When::Latency {
        log: "request".to_owned(),
        beyond_ns: 5,
        of_baseline: None,
    };
    experiment.observe.events = vec![
        RareEvent::new("late", late),
        RareEvent::new("killed", When::OomKill),
    ];
    let place = Place::new(experiment);
    let mut target = FakeTarget::new(steal);
    target.can.apart = true;
    // The target is told of all, and has no requests.
    target.happened = |spec| {
        let mut own = counted(spec);
        own.retain(|happened| happened.name == "killed");
        own
    };
    let mut load = FakeTarget::new(|spec: &TrialSpec| took(wobble(spec.seed)));
    load.happened = counted;
    let outcome = place.run_beside(target, Some(load), place.writer(), Vec::new(), |_, _| {});
    outcome.unwrap();
    for trial in place.trials() {
        let events = trial.result.events.iter();
        let names: Vec<&str> = events.map(|happened| happened.name.as_str()).collect();
        assert_eq!(names, ["killed", "late"]);
        assert_eq!(trial.find_event("late").unwrap().at_ns, [30]);
    }
}
