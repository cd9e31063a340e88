//! Loads that are shares of a highest rate, which is looked for before the first block.

use crate::place::{Place, experiment, took, wobble};
use model::{Better, Experiment, Load, Measurement, ShareOfMax, Slo};
use results::read::read_calibrations;
use runner::{Event, RunError};
use std::sync::{Arc, Mutex};
use target::fake::{FakeTarget, Fate};

const SLO: Slo = Slo {
    permille: 950,
    below_ns: 1_000_000,
    from_per_sec: 100.0,
    to_per_sec: 800.0,
};

fn shares() -> Experiment {
    let mut experiment = experiment(&["default", "slow"]);
    let share = |percent| Load::ShareOfMax(ShareOfMax { percent, slo: SLO });
    experiment.workloads[0].loads = [50.0, 120.0].map(share).into();
    experiment
}

fn found(rate: f64, bound: f64) -> Fate {
    let metric = |name: &str, value| Measurement {
        metric: name.to_owned(),
        unit: "1/s".to_owned(),
        better: Better::Higher,
        value,
    };
    Fate::Ok(vec![metric("slo_rate", rate), metric("slo_bound", bound)])
}

/// Arm and load of each trial.
type Seen = Arc<Mutex<Vec<(String, Load)>>>;

/// A target whose searches end so, in turn; later ones end as the last.
fn target(searches: Vec<Fate>) -> (FakeTarget, Seen) {
    let seen = Seen::default();
    let mut searches = searches.into_iter();
    let mut last = None;
    let story = {
        let seen = seen.clone();
        move |spec: &model::TrialSpec| {
            let arm = spec.arm.name.clone();
            seen.lock().unwrap().push((arm.clone(), spec.load));
            match spec.load {
                Load::MaxRate(_) => {
                    last = searches.next().or(last.take());
                    last.clone().expect("no search was expected")
                }
                _ => took(wobble(spec.seed) * if arm == "slow" { 1.5 } else { 1.0 }),
            }
        }
    };
    (FakeTarget::new(story), seen)
}

fn searches(seen: &Seen) -> usize {
    let seen = seen.lock().unwrap();
    let is_search = |(_, load): &&(String, Load)| matches!(load, Load::MaxRate(_));
    seen.iter().filter(is_search).count()
}

#[test]
fn all_arms_get_shares_of_the_rate_that_the_baseline_sustains() {
    let place = Place::new(shares());
    let (target, seen) = target(vec![found(200.0, 0.0)]);
    let trials = place.run(target);
    assert_eq!(searches(&seen), 1);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], ("default".to_owned(), Load::MaxRate(SLO)));
    assert_eq!(seen.len(), trials.len() + 1, "the search is in no block");
    for (trial, (arm, load)) in trials.iter().zip(&seen[1..]) {
        let rate = match trial.cell.as_str() {
            "make 50% of max" => 100.0,
            "make 120% of max" => 240.0,
            other => panic!("{other}"),
        };
        assert_eq!((&trial.arm, *load), (arm, Load::RatePerSec(rate)));
    }
    let stored = read_calibrations(place.path()).unwrap();
    let stored: Vec<Option<f64>> = stored.values().map(|found| found.max_per_sec).collect();
    assert_eq!(stored, [Some(200.0), Some(200.0)]);
}

#[test]
fn a_resumed_run_has_the_rate_of_its_first_start() {
    let place = Place::new(shares());
    let (first, _) = target(vec![found(200.0, 0.0)]);
    let before = place.run_until(3, first);
    let (second, seen) = target(Vec::new());
    place.resume(second).unwrap();
    assert_eq!(searches(&seen), 0);
    let seen = seen.lock().unwrap();
    let mut loads = seen.iter().map(|(_, load)| *load);
    let meant = [100.0, 240.0].map(Load::RatePerSec);
    assert!(loads.all(|load| meant.contains(&load)), "{seen:?}");
    assert!(place.trials().len() > before.len());
}

#[test]
fn a_search_that_does_not_count_is_repeated_and_the_run_ends_where_none_does() {
    let place = Place::new(shares());
    let (flaky, seen) = target(vec![Fate::Void("ejected"), Fate::Dies, found(200.0, 0.0)]);
    place.run(flaky);
    assert_eq!(searches(&seen), 3);

    let place = Place::new(shares());
    let (broken, seen) = target(vec![Fate::Failed("exit status 3")]);
    let mut said = 0;
    let ended = place.run_with(broken, place.writer(), Vec::new(), |event, _| {
        said += usize::from(matches!(event, Event::SearchFailed { .. }));
    });
    let Err(RunError::Unmet(problems)) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!((searches(&seen), said), (3, 3));
    assert_eq!(problems[0].object, "workload make");
    assert!(problems[0].what.contains("exit status 3"), "{problems:?}");
    assert!(place.trials().is_empty());
}

#[test]
fn a_search_that_finds_a_bound_only_ends_the_run() {
    for bound in [-1.0, 1.0] {
        let place = Place::new(shares());
        let (target, seen) = target(vec![found(800.0, bound)]);
        let ended = place.run_with(target, place.writer(), Vec::new(), |_, _| {});
        assert!(matches!(ended, Err(RunError::Unmet(_))), "{ended:?}");
        assert_eq!(searches(&seen), 1);
    }
}
