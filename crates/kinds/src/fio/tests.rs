use super::*;
use serde_json::json;
use testing::{make_output, run};

fn fio(keys: serde_json::Value) -> Fio {
    let mut keys = Keys::new(keys.as_object().cloned().unwrap());
    let fio = Fio::read(&mut keys);
    assert!(keys.into_fault().is_none());
    fio
}

fn job(fio: &Fio, jobs: u64) -> Job {
    Job {
        load: Load::Count(jobs),
        ..testing::job(KIND.with_params(fio))
    }
}

/// Output of fio 3.33 with `count` requests, as far as it is read.
fn output(count: u64) -> String {
    let percentile = json!({"50.000000": 50432, "90.000000": 57088, "99.000000": 1_028_096,
        "99.900000": 6_193_152});
    let clat = json!({"min": 1, "max": 12_710_586, "mean": 79_502.5, "stddev": 1.0, "N": count,
        "percentile": percentile});
    let mixed = json!({"bw_bytes": 102_659_240, "iops": 25_063.29, "clat_ns": clat});
    json!({"fio version": "fio-3.33", "jobs": [{"jobname": "schedlab", "mixed": mixed}]})
        .to_string()
}

fn parse(stdout: &str) -> Result<Parsed, String> {
    let fio = fio(json!({}));
    fio.parse(&job(&fio, 1), &make_output(stdout))
}

#[test]
fn rate_bandwidth_and_completion_latencies_come_from_the_json() {
    // fio says some things in lines before it.
    let parsed = parse(&format!("fio: a note\n{}", output(37_620))).unwrap();
    let figures: Vec<_> = parsed
        .metrics
        .iter()
        .map(|m| (&*m.metric, m.value))
        .collect();
    assert_eq!(
        figures,
        [
            ("iops", 25_063.29),
            ("bandwidth", 102.65924),
            ("completion_mean", 79_502.5),
            ("completion_p50", 50_432.0),
            ("completion_p90", 57_088.0),
            ("completion_p99", 1_028_096.0),
            ("completion_p999", 6_193_152.0),
            ("completion_max", 12_710_586.0),
        ]
    );
    assert!(parsed.warnings.is_empty());
}

#[test]
fn percentiles_of_too_few_requests_are_left_out_and_said() {
    let parsed = parse(&output(999)).unwrap();
    let names: Vec<&str> = parsed.metrics.iter().map(|m| m.metric.as_str()).collect();
    assert!(names.contains(&"completion_p90") && !names.contains(&"completion_p99"));
    let said = &parsed.warnings[0].what;
    assert_eq!(
        said,
        "too few requests for completion_p99, completion_p999: left out"
    );
}

#[test]
fn output_that_is_not_what_was_asked_for_is_quoted() {
    let two_groups = output(30).replace("}]}", "},{}]}");
    for text in ["", "fio: no such engine", "{}", &output(0), &two_groups] {
        let error = parse(text).unwrap_err();
        assert!(
            error.starts_with("fio did not print JSON"),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_no_file_or_engine_can_do_is_refused_by_its_key() {
    let fault = |keys| fio(keys).check().map_err(|fault| fault.key);
    assert_eq!(fault(json!({})), Ok(()));
    for (keys, key) in [
        (json!({"block-size": "0B"}), "block-size"),
        (json!({"block-size": "100B"}), "block-size"),
        (json!({"block-size": "2G"}), "block-size"),
        (json!({"file-size": "1KiB"}), "file-size"),
        (json!({"depth": 0}), "depth"),
        (json!({"depth": 2}), "depth"),
        (json!({"depth": 5000, "engine": "libaio"}), "depth"),
    ] {
        assert_eq!(fault(keys.clone()), Err(key.to_owned()), "{keys}");
    }
    assert_eq!(
        fault(json!({"block-size": "100B", "direct": false})),
        Ok(())
    );
    assert_eq!(fault(json!({"depth": 8, "engine": "io_uring"})), Ok(()));
}

#[test]
fn what_fio_cannot_do_is_a_problem_before_anything_runs() {
    let fio = Fio {
        program: "/no/such/fio".to_owned(),
        ..fio(json!({}))
    };
    let mut job = job(&fio, 1);
    job.workload.load_on = Place::Controller;
    job.load = Load::RatePerSec(1.0);
    let said: Vec<String> = fio.require(&job).into_iter().map(|p| p.what).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("is not installed"));
    assert!(said[1].contains("is not paced"));
    assert!(said[2].contains("of the machine that is measured"));
}

#[test]
fn the_real_fio_makes_its_file_before_it_measures_and_gives_all_figures() {
    if which::which(PROGRAM.name).is_err() {
        return ::tests::skipped("fio is not installed");
    }
    for access in ["randread", "write", "randrw"] {
        let directory = tempfile::tempdir().unwrap();
        let fio = Fio {
            folder: directory.path().display().to_string(),
            // Not every place for temporary files can do without the page cache.
            ..fio(json!({"access": access, "file-size": "8MiB", "direct": false}))
        };
        let mut job = job(&fio, 2);
        job.seed = u64::MAX;
        (job.workload.warmup_ns, job.workload.duration_ns) = (50_000_000, 300_000_000);
        assert_eq!(fio.require(&job), []);
        let launch = fio.launch(&job);
        assert!(run(&launch.prepare, 0).unwrap().success);
        let file = directory.path().join("fio.data");
        assert_eq!(file.metadata().unwrap().len(), 8 << 20);
        let parsed = fio.parse(&job, &run(&launch.argv, 0).unwrap()).unwrap();
        let names: Vec<&str> = parsed.metrics.iter().map(|m| m.metric.as_str()).collect();
        for name in ["iops", "bandwidth", "completion_mean", "completion_max"] {
            assert!(names.contains(&name), "{access}: {names:?}");
        }
        assert!(
            parsed.metrics.iter().all(|m| m.value > 0.0),
            "{access}: {parsed:?}"
        );
    }
}
