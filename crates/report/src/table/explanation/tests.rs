use super::*;
use model::Measurement;

const BLOCKS: u32 = 14;
const METRIC: &str = "request_p99";

/// Noise that is the same in every run, between −1 and 1.
fn noise(block: u32, salt: u32) -> f64 {
    let mixed = (block * 7919 + salt * 104_729).wrapping_mul(2_654_435_761);
    f64::from(mixed >> 8) / f64::from(1u32 << 23) - 1.0
}

fn measured(metric: &str, better: Better, value: f64) -> Measurement {
    Measurement {
        metric: metric.to_owned(),
        unit: "count".to_owned(),
        better,
        value,
        own: None,
    }
}

/// The arm's p99 follows its migrations; its slices are always shorter by a tenth;
/// its faults are noise; it alone is throttled, a few times, in some blocks.
fn metrics(arm: usize, block: u32) -> Vec<Measurement> {
    let is_arm = arm == 1;
    let common = if is_arm { noise(block, 1) } else { 0.0 };
    let slices = if is_arm { 0.9 } else { 1.0 };
    let salt = u32::try_from(arm).unwrap();
    vec![
        measured(METRIC, Better::Lower, (0.2 * common).exp() * 1e6),
        measured("migrations", Better::Neither, (0.5 * common).exp() * 300.0),
        measured(
            "slice_mean",
            Better::Neither,
            slices * (1.0 + 0.01 * noise(block, 20 + salt)) * 1e5,
        ),
        measured(
            "page_faults",
            Better::Neither,
            100.0 + 10.0 * noise(block, 30 + salt),
        ),
        measured(
            "throttles",
            Better::Neither,
            f64::from(u32::from(is_arm) * (block % 2)),
        ),
    ]
}

fn results() -> (tempfile::TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::few_blocks(BLOCKS)).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    for stored in &mut results.trials {
        let place = &stored.trial.place;
        stored.trial.result.metrics = metrics(place.arm, place.block);
    }
    (dir, results)
}

fn why() -> Why {
    let (_dir, results) = results();
    explain_call(&results, 0, METRIC, 1).unwrap()
}

fn kind(why: &Why, counter: &str) -> Kind {
    let found = why.counters.iter().find(|c| c.counter == counter);
    found.unwrap().kind
}

#[test]
fn what_moved_with_the_metric_is_told_from_what_only_moved() {
    let why = why();
    assert_eq!(why.counters[0].counter, "migrations");
    assert_eq!(kind(&why, "migrations"), Kind::Together);
    assert_eq!(kind(&why, "slice_mean"), Kind::OnlyMoved);
    assert_eq!(kind(&why, "page_faults"), Kind::Neither);
}

#[test]
fn a_counter_that_is_zero_somewhere_is_compared_by_differences() {
    let why = why();
    let throttles = why.counters.iter().find(|c| c.counter == "throttles");
    let Change::Difference(estimate) = throttles.unwrap().change else {
        panic!("{throttles:?}");
    };
    assert_eq!(estimate.mean, 0.5);
}

#[test]
fn a_metric_that_nobody_measured_has_no_explanation() {
    let (_dir, results) = results();
    assert_eq!(explain_call(&results, 0, "wakeup_p99", 1), None);
}

fn companion(counter: &str, tau: f64, p: f64) -> Companion {
    Companion {
        counter: counter.to_owned(),
        unit: "count".to_owned(),
        change: Change::of(Scale::Plain, 0.0, None),
        blocks: 10,
        tau: Some(tau),
        p: Some(p),
        kind: Kind::Neither,
    }
}

fn together(mut counters: Vec<Companion>) -> Vec<String> {
    mark_together(&mut counters, 0.05);
    counters.sort_by(order);
    let found = counters.into_iter().filter(|c| c.kind == Kind::Together);
    found.map(|c| c.counter).collect()
}

#[test]
fn of_many_counters_one_small_p_is_chance() {
    let mut counters: Vec<Companion> = (0..19)
        .map(|i| companion(&format!("c{i}"), 0.1, 0.5))
        .collect();
    counters.push(companion("lucky", 0.6, 0.03));
    assert!(together(counters).is_empty());
}

#[test]
fn those_that_go_together_are_ranked_whatever_their_sign() {
    let counters = vec![
        companion("still", 0.0, 0.9),
        companion("close", 0.7, 0.004),
        companion("opposite", -0.9, 0.0001),
    ];
    assert_eq!(together(counters), ["opposite", "close"]);
}

#[test]
fn a_change_of_logarithms_is_given_as_a_ratio() {
    let change = Change::of(Scale::Logarithm, 2f64.ln(), Some((0.0, 3f64.ln())));
    let Change::Ratio(estimate) = change else {
        panic!("{change:?}");
    };
    assert!((estimate.mean - 2.0).abs() < 1e-12);
    let (low, high) = estimate.interval.unwrap();
    assert!((low - 1.0).abs() < 1e-12 && (high - 3.0).abs() < 1e-12);
}

#[test]
fn blocks_that_only_one_of_them_has_do_not_count() {
    let (xs, ys) = in_both(
        &vec![(1, 0.1), (2, 0.2), (4, 0.4)],
        &vec![(2, 2.0), (3, 3.0), (4, 4.0)],
    );
    assert_eq!((xs, ys), (vec![0.2, 0.4], vec![2.0, 4.0]));
}
