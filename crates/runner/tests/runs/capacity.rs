//! Loads that are shares of a highest rate, which is looked for before the first block.

use crate::place::{Place, experiment, took, wobble};
use machines::fake::{FakeTarget, Fate};
use model::{Better, Experiment, Load, Measurement, ShareOfMax, Slo};
use results::read::read_calibrations;
use runner::{Event, RunError};
use std::sync::{Arc, Mutex};

const SLO: Slo = Slo {
    permille: 950,
    below_ns: 1_000_000,
    from_per_sec: 100.0,
    to_per_sec: 800.0,
};

fn shares() -> Experiment {
    let mut experiment = experiment(&["default", "slow"]);
    let share = |percent| {
        Load::ShareOfMax(ShareOfMax {
            percent,
            slo: SLO,
            by_trials: false,
        })
    };
    experiment.workloads[0].loads = [50.0, 120.0].map(share).into();
    experiment
}

fn found(rate: f64, bound: f64) -> Fate {
    let metric = |name: &str, value| Measurement {
        metric: name.to_owned(),
        unit: "1/s".to_owned(),
        better: Better::Higher,
        value,
        own: None,
    };
    Fate::Ok(vec![metric("slo_rate", rate), metric("slo_bound", bound)])
}

/// An ordinary trial at a rate that answers `answered` requests a second.
fn answers(offered: f64, answered: f64, p95_ns: f64) -> Fate {
    let Fate::Ok(mut metrics) = took(1.0) else {
        unreachable!("it always counts");
    };
    let overloaded = f64::from(u8::from(answered < offered));
    let figures = [
        ("request_p95", p95_ns),
        ("requests_per_sec", answered.min(offered)),
        ("overloaded", overloaded),
    ];
    metrics.extend(figures.map(|(name, value)| Measurement {
        metric: name.to_owned(),
        unit: String::new(),
        better: Better::Neither,
        value,
        own: None,
    }));
    Fate::Ok(metrics)
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
    let confirmed = ("default".to_owned(), Load::RatePerSec(200.0));
    assert_eq!(seen[1], confirmed, "an ordinary trial must hold it");
    assert_eq!(seen.len(), trials.len() + 2, "neither is in a block");
    for (trial, (arm, load)) in trials.iter().zip(&seen[2..]) {
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

/// Rates that trials of a load tried that whole trials look for, and how the run ended, where up to `capacity`
/// requests a second are answered in time.
fn climbed(capacity: f64) -> (Vec<f64>, Result<(), RunError>, Option<f64>) {
    let mut experiment = shares();
    for load in &mut experiment.workloads[0].loads {
        if let Load::ShareOfMax(share) = load {
            share.by_trials = true;
        }
    }
    let place = Place::new(experiment);
    let tried = Arc::new(Mutex::new(Vec::new()));
    let seen = tried.clone();
    let target = FakeTarget::new(move |spec: &model::TrialSpec| {
        let Load::RatePerSec(rate) = spec.load else {
            panic!("{:?}", spec.load);
        };
        let is_search = spec.label.starts_with("highest rate");
        seen.lock().unwrap().extend(is_search.then_some(rate));
        match is_search {
            true => answers(rate, capacity, 1e5),
            false => took(wobble(spec.seed)),
        }
    });
    let ended = place.run_with(target, place.writer(), Vec::new(), |_, _| {});
    let found = read_calibrations(place.path()).unwrap_or_default();
    let found = found.values().find_map(|found| found.max_per_sec);
    let tried = tried.lock().unwrap().clone();
    (tried, ended.map(drop), found)
}

#[test]
fn a_load_of_one_rate_for_each_process_is_looked_for_by_whole_trials() {
    let (tried, ended, found) = climbed(300.0);
    ended.unwrap();
    // Up by half until 337.5 is too much for 300, and then between.
    assert_eq!(tried[..4], [100.0, 150.0, 225.0, 337.5]);
    let found = found.unwrap();
    assert!(found <= 300.0 && 300.0 / found < 1.1, "{found}: {tried:?}");
    let why = |ended: Result<(), RunError>| match ended {
        Err(RunError::Unmet(problems)) => problems[0].what.clone(),
        other => panic!("{other:?}"),
    };
    let (tried, ended, _) = climbed(50.0);
    assert_eq!(tried, [100.0]);
    assert!(why(ended).contains("not even 100/s holds"));
    let (tried, ended, _) = climbed(5000.0);
    assert_eq!(tried.last(), Some(&800.0));
    assert!(why(ended).contains("the highest one that is tried, holds"));
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

/// Rates that ordinary trials are offered before the first block, where each ends as `fate` says, and the
/// rate that is stored.
fn descent(fate: fn(f64, usize) -> Fate) -> (Vec<f64>, Result<f64, String>) {
    let place = Place::new(shares());
    let limit_ns = place.experiment.workloads[0].time_limit_ns;
    let tried = Arc::new(Mutex::new(Vec::new()));
    let story = {
        let tried = tried.clone();
        move |spec: &model::TrialSpec| match spec.load {
            Load::MaxRate(_) => found(400.0, 0.0),
            Load::RatePerSec(rate) if spec.label.starts_with("highest rate") => {
                assert_eq!(spec.workload.time_limit_ns, limit_ns, "it is no search");
                let mut tried = tried.lock().unwrap();
                tried.push(rate);
                fate(rate, tried.len())
            }
            _ => took(wobble(spec.seed)),
        }
    };
    let ended = place.run_with(
        FakeTarget::new(story),
        place.writer(),
        Vec::new(),
        |_, _| {},
    );
    let tried = tried.lock().unwrap().clone();
    let stored = match ended {
        Ok(_) => {
            let stored = read_calibrations(place.path()).unwrap();
            Ok(stored.values().next().unwrap().max_per_sec.unwrap())
        }
        Err(RunError::Unmet(problems)) => {
            Err(format!("{}; {}", problems[0].what, problems[0].remedy))
        }
        Err(other) => panic!("{other}"),
    };
    (tried, stored)
}

#[test]
fn a_rate_that_only_a_warm_server_sustains_is_lowered_until_an_ordinary_trial_holds_it() {
    let (tried, stored) =
        descent(|rate, _| answers(rate, 300.0, if rate > 280.0 { 2e6 } else { 5e5 }));
    // 97 % of what was answered; twice, since it is only too slow; nine tenths of that.
    let rounded: Vec<f64> = tried.iter().map(|rate| rate.round()).collect();
    assert_eq!(rounded, [400.0, 291.0, 291.0, 262.0]);
    assert_eq!(stored.as_ref(), Ok(&tried[3]));
}

#[test]
fn one_slow_trial_lowers_no_rate() {
    let (tried, stored) = descent(|rate, n| answers(rate, rate, if n == 1 { 2e6 } else { 5e5 }));
    assert_eq!((tried, stored), (vec![400.0, 400.0], Ok(400.0)));
}

#[test]
fn a_rate_without_a_single_answer_is_lowered_and_a_server_that_never_answers_ends_the_run() {
    let (tried, stored) = descent(|rate, _| match rate > 350.0 {
        true => Fate::Failed("no request was answered"),
        false => answers(rate, rate, 5e5),
    });
    assert_eq!((tried, stored), (vec![400.0, 300.0], Ok(300.0)));

    let (tried, stored) = descent(|_, _| Fate::Failed("no request was answered"));
    assert_eq!(tried.len(), 3);
    assert!(stored.unwrap_err().contains("no request was answered"));

    let (_, stored) = descent(|rate, _| answers(rate, 1.0, 5e5));
    let said = stored.unwrap_err();
    assert!(
        said.contains("no ordinary trial holds even a tenth"),
        "{said}"
    );
    assert!(said.contains("warmup"), "{said}");
}
