use super::*;

fn periodic() -> Periodic {
    Periodic {
        period_ns: 2_000_000,
        runtime_ns: 100_000,
        deadline_ns: None,
        offset_ns: 0,
        footprint_bytes: 4096,
    }
}

fn run(params: &Periodic) -> Result<Parsed, NativeError> {
    let job = testing::job(KIND.with_params(params));
    testing::generate(params, &job)
}

fn value(parsed: &Parsed, name: &str) -> f64 {
    let mut metrics = parsed.metrics.iter();
    let metric = metrics.find(|m| m.metric == name);
    metric
        .unwrap_or_else(|| panic!("{name} in {:?}", parsed.metrics))
        .value
}

#[test]
fn every_release_in_the_window_is_counted() {
    // Two workers, a release every 2 ms, for 300 ms.
    let parsed = run(&periodic()).unwrap();
    let due = value(&parsed, "offered_per_sec") * 0.3;
    assert!((298.0..=302.0).contains(&due), "{due}");
    assert!(value(&parsed, "lateness_p50") > 0.0);
    let (lateness, request) = (
        value(&parsed, "lateness_p50"),
        value(&parsed, "request_p50"),
    );
    // Of three digits each, which may be the same where a busy machine makes both long.
    assert!(request >= lateness, "{request} after {lateness}");
    let names: Vec<&str> = parsed.files.iter().map(|file| file.name.as_str()).collect();
    for log in KIND.logs {
        assert!(names.contains(&format!("{log}.hlog").as_str()), "{names:?}");
    }
}

#[test]
fn a_job_takes_about_the_cpu_time_that_was_asked_for() {
    let parsed = run(&periodic()).unwrap();
    let cpu = value(&parsed, "job_cpu_p50");
    // A shared machine does up to twice as much in one second as in another, and at times less.
    assert!((50_000.0..1_000_000.0).contains(&cpu), "{cpu} ns");
}

#[test]
fn jobs_that_cannot_be_done_in_time_are_misses_and_an_overload() {
    // Eight workers that want a whole CPU each, on whatever is here.
    let params = Periodic {
        period_ns: 10_000_000,
        runtime_ns: 10_000_000,
        ..periodic()
    };
    let mut job = testing::job(KIND.with_params(&params));
    let cpus = load::allowed_cpus().len() as u64;
    job.load = Load::Count(cpus * 4);
    let parsed = testing::generate(&params, &job).unwrap();
    assert!(value(&parsed, "miss_percent") > 50.0);
    assert_eq!(value(&parsed, "overloaded"), 1.0);
    // Jobs that were never begun are late too.
    assert!(value(&parsed, "lateness_max") > 100e6);
}

#[test]
fn times_that_cannot_be_are_refused_by_their_key() {
    let key = |params: Periodic| params.check().unwrap_err().key;
    let short = Periodic {
        period_ns: 1_000,
        ..periodic()
    };
    assert_eq!(key(short), "period");
    let long = Periodic {
        runtime_ns: 3_000_000,
        ..periodic()
    };
    assert_eq!(key(long), "runtime");
    let none = Periodic {
        deadline_ns: Some(0),
        ..periodic()
    };
    assert_eq!(key(none), "deadline");
    assert_eq!(periodic().check(), Ok(()));
}

#[test]
fn the_calibration_is_of_the_footprint() {
    let small = calibrate::rows_per_sec(4 << 10, 1_000_000, 2_000_000);
    let large = calibrate::rows_per_sec(256 << 10, 1_000_000, 2_000_000);
    // A row of the larger matrices has 64 times as many products.
    assert!(small > 8 * large, "{small} and {large} rows");
}

#[test]
fn a_job_without_runtime_is_not_calibrated() {
    let only_wakes = Periodic {
        runtime_ns: 0,
        ..periodic()
    };
    let job = testing::job(KIND.with_params(&only_wakes));
    let calibration = only_wakes.calibrate(&job, &mut testing::run).unwrap();
    assert!(calibration.values.is_empty());
    let parsed = run(&only_wakes).unwrap();
    assert!(value(&parsed, "job_cpu_p50") < 100_000.0);
}
