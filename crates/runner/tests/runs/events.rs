//! Rare events: runs that they decide, ends of schedulers, and bounds that the baseline says.

use crate::place::{Place, experiment, took, undecided, warnings};
use machines::fake::{FakeTarget, Fate};
use model::{DecidedBy, Experiment, Happened, OfBaseline, RareEvent, Trial, TrialSpec, When};
use results::read::read_calibrations;
use runner::{Event, Outcome};

/// Arms `default` and `thrown`, whose scheduler is thrown out in each of its trials.
pub fn ejections() -> Experiment {
    let mut experiment = experiment(&["default", "thrown"]);
    experiment.observe.events = vec![RareEvent::new("ejected", When::Ejected)];
    experiment
}

fn thrown_out(spec: &TrialSpec) -> Vec<Happened> {
    one_ejection(spec.arm.name == "thrown")
}

/// A second of exposure, in the middle of which the scheduler is thrown out or not.
pub fn one_ejection(is_thrown: bool) -> Vec<Happened> {
    vec![Happened {
        name: "ejected".to_owned(),
        exposure_ns: 1_000_000_000,
        at_ns: is_thrown.then_some(500_000_000).into_iter().collect(),
        ended_window: is_thrown,
        ..Happened::default()
    }]
}

fn target() -> FakeTarget {
    let mut target = FakeTarget::new(|_| took(1.0));
    target.happened = thrown_out;
    target
}

fn count(trials: &[Trial], arm: &str) -> usize {
    trials.iter().filter(|trial| trial.arm == arm).count()
}

#[test]
fn a_hunt_ends_with_the_verdict_on_its_event_and_waits_for_no_metric() {
    let mut hunted = ejections();
    hunted.stop.decided_by = DecidedBy::Events;
    let noisy = || {
        let mut target = undecided();
        target.happened = thrown_out;
        target
    };
    let trials = Place::new(hunted).run(noisy());
    assert_eq!(trials.len(), 12, "six blocks with one ejection each");
    // A run waits for the metric, which no block decides.
    let trials = Place::new(ejections()).run(noisy());
    assert!(trials.len() > 12, "{}", trials.len());
}

#[test]
fn an_arm_that_was_thrown_out_often_enough_is_attached_no_more() {
    let mut limited = ejections();
    limited.observe.events[0].at_most = Some(2);
    let place = Place::new(limited);
    let mut said = Vec::new();
    let outcome = place.run_with(target(), place.writer(), Vec::new(), |event, _| {
        if let Event::FoundOut { what, .. } = event {
            said.push((*what).to_owned());
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Done);
    assert_eq!(count(&place.trials(), "thrown"), 2);
    assert_eq!(said, ["thrown is measured no more: ejected 2 times"]);
    assert!(
        warnings(&place)[0].contains(&said[0]),
        "it is in the results"
    );
    // A resume knows it.
    place.resume(target()).unwrap();
    assert_eq!(count(&place.trials(), "thrown"), 2);
}

#[test]
fn the_machine_rests_after_an_ejection_and_only_then() {
    let mut resting = ejections();
    resting.stop.max_blocks = 3;
    resting.observe.events[0].cool_down_ns = 1;
    let place = Place::new(resting);
    let mut rests = 0;
    let outcome = place.run_with(target(), place.writer(), Vec::new(), |event, _| {
        if let Event::Step { step } = event {
            rests += usize::from(step.starts_with("resting for"));
        }
    });
    outcome.unwrap();
    assert_eq!(rests, 3);
}

/// A target on which this becomes of every trial of the arm `deadly`.
fn deadly(fate: Fate) -> FakeTarget {
    FakeTarget::new(move |spec| match spec.arm.name.as_str() {
        "deadly" => fate.clone(),
        _ => took(1.0),
    })
}

#[test]
fn a_guest_that_dies_in_its_window_is_an_outcome_and_the_next_trial_has_another() {
    let mut counted = experiment(&["default", "deadly"]);
    let mut event = RareEvent::new("died", When::GuestDeath);
    event.at_most = Some(2);
    let thrown = RareEvent::new("ejected", When::Ejected);
    let killed = RareEvent::new("killed", When::OomKill);
    counted.observe.events = vec![event, thrown, killed];
    let place = Place::new(counted.clone());
    let target = deadly(Fate::DiesInWindow);
    let boots = target.boots.clone();
    let trials = place.run(target);
    let died: Vec<&Trial> = trials.iter().filter(|t| t.arm == "deadly").collect();
    assert_eq!(died.len(), 2, "and no more than `at-most`");
    assert!(boots.lock().unwrap().len() >= 2);
    for trial in died {
        let result = &trial.result;
        assert!(trial.is_ok() && trial.has_ended_early(), "{result:?}");
        assert!(result.metrics.is_empty(), "{result:?}");
        let event = trial.find_event("died").unwrap();
        assert_eq!(event.at_ns, [result.window_end_ns]);
        assert_eq!(event.exposure_ns, result.window_end_ns);
        let said = event.messages.join("\n");
        assert!(
            said.contains("signal 9") && said.contains("Kernel panic"),
            "{said}"
        );
        let ejected = trial.find_event("ejected").unwrap();
        assert_eq!(
            (ejected.count(), ejected.exposure_ns),
            (0, event.exposure_ns)
        );
        assert!(trial.find_event("killed").is_none(), "nobody could look");
    }

    // Before its window, and where nobody counts it, the trial is void.
    let before = Place::new(counted.clone()).run(deadly(Fate::Dies));
    counted.observe.events.remove(0);
    let uncounted = Place::new(counted).run(deadly(Fate::DiesInWindow));
    for trials in [before, uncounted] {
        let mut deadly = trials.iter().filter(|t| t.arm == "deadly");
        assert!(deadly.all(|t| t.result.state.name() == "void"));
    }
}

/// The bound that a trial was given, as its only moment.
fn given_bound(spec: &TrialSpec) -> Vec<Happened> {
    let given = |event: &RareEvent| Happened {
        name: event.name.clone(),
        exposure_ns: 1_000_000_000,
        at_ns: vec![event.when.latency().unwrap().1],
        ..Happened::default()
    };
    spec.observe.events.iter().map(given).collect()
}

#[test]
fn a_bound_of_the_baseline_is_fixed_before_the_first_block_and_kept() {
    let mut bound = experiment(&["default", "other"]);
    bound.stop.max_blocks = 3;
    let when = When::Latency {
        log: "wall".to_owned(),
        beyond_ns: 0,
        of_baseline: Some(OfBaseline {
            quantile: "time".to_owned(),
            times: 3,
        }),
    };
    bound.observe.events = vec![RareEvent::new("late", when)];
    let place = Place::new(bound);
    // Each trial takes longer than the one before: the median of the first three is 20 ns.
    let make_target = |first: f64| {
        let mut took_ns = first;
        let mut target = FakeTarget::new(move |_| {
            took_ns += 10.0;
            took(took_ns)
        });
        target.happened = given_bound;
        target
    };
    place.run_until(1, make_target(0.0));
    place.resume(make_target(1_000.0)).unwrap();
    let trials = place.trials();
    assert_eq!(trials.len(), 6);
    let bounds = trials
        .iter()
        .map(|t| t.find_event("late").unwrap().at_ns[0]);
    assert_eq!(bounds.collect::<Vec<_>>(), [60; 6]);
    let stored = read_calibrations(place.path()).unwrap();
    assert_eq!(stored["make"].bounds_ns["late"], 60);
    let said = warnings(&place);
    let notes = said.iter().filter(|what| what.contains("longer than 60ns"));
    assert_eq!(notes.count(), 1, "{said:?}");
}
