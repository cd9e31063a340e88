use super::*;
use std::collections::BTreeMap;

/// Frames of 60 a second without a spread.
fn frames() -> Frames {
    Frames {
        work: FrameWork::Percent(5.0),
        distribution: Distribution::Fixed,
        spread_percent: 0.0,
        input_per_sec: 1_000.0,
        audio_period_ns: 10_000_000,
        audio_work_ns: 100_000,
        compilers: 0,
        compile_every_ns: 100_000_000,
        compile_work_ns: 1_000_000,
        footprint_bytes: 4096,
    }
}

fn job(params: &Frames) -> Job {
    let mut job = testing::job(KIND.with_params(params));
    job.load = Load::RatePerSec(60.0);
    job
}

fn run(params: &Frames) -> BTreeMap<String, f64> {
    run_job(params, &job(params))
}

fn run_job(params: &Frames, job: &Job) -> BTreeMap<String, f64> {
    let parsed = testing::generate(params, job).unwrap();
    let names: Vec<&str> = parsed.files.iter().map(|file| file.name.as_str()).collect();
    for log in ["frame", "render", "input"] {
        assert!(names.contains(&format!("{log}.hlog").as_str()), "{names:?}");
    }
    let metrics = parsed.metrics.into_iter();
    metrics.map(|m| (m.metric, m.value)).collect()
}

#[test]
fn every_vblank_of_the_window_has_a_frame_or_is_missed() {
    let found = run(&Frames {
        compilers: 2,
        ..frames()
    });
    // 18 vblanks in 300 ms.
    let missed = found["missed_frames_per_min"] / 60.0;
    let rate = found["fps_average"] + missed;
    assert!((rate - 60.0).abs() < 1e-3, "{found:?}");
    assert!(found["fps_1_percent_low"] <= found["fps_average"] + 1e-9);
    assert!(found["longest_freeze"] >= 16_666_667.0);
    assert!(found["underruns_per_min"] >= 0.0);
    assert!(found["compiled_per_sec"] > 0.0, "{found:?}");
    // An event is taken by a frame that begins after it, and shown at least a frame later.
    assert!(found["input_p50"] >= 16_000_000.0, "{found:?}");
    assert!(found["render_max"] > 0.0);
}

#[test]
fn frames_that_take_longer_than_one_are_shown_at_every_second_vblank_at_most() {
    let found = run(&Frames {
        work: FrameWork::Percent(130.0),
        audio_period_ns: 0,
        ..frames()
    });
    // 33 vblanks are missed in a second, or more where others work here. The calibration is the
    // median of times that vary, so a few frames may be in time.
    assert!(found["fps_average"] < 45.0, "{found:?}");
    assert!(found["longest_freeze"] >= 33_333_333.0, "{found:?}");
    assert!(!found.contains_key("underruns_per_min"));
}

#[test]
fn a_loop_that_never_gets_a_frame_done_is_as_late_as_the_window_is_long() {
    let params = Frames {
        work: FrameWork::Ns(600_000_000),
        audio_period_ns: 0,
        ..frames()
    };
    // Eleven jobs of that length would be long; those of other frames are as good.
    let mut job = job(&params);
    job.calibration = frames().calibrate(&job, &mut testing::run).unwrap();
    let found = run_job(&params, &job);
    assert_eq!(found["fps_average"], 0.0);
    assert!(found["longest_freeze"] >= 283_000_000.0, "{found:?}");
    // Neither the frame in work nor the events that wait for it are left out.
    assert!(found["render_max"] >= 299_000_000.0, "{found:?}");
    assert!(found["input_max"] >= 150_000_000.0, "{found:?}");
}

#[test]
fn parameters_that_cannot_be_are_refused_by_their_key() {
    let key = |params: Frames| params.check().unwrap_err().key;
    let all = [
        (
            "work",
            Frames {
                work: FrameWork::Percent(0.0),
                ..frames()
            },
        ),
        (
            "spread",
            Frames {
                spread_percent: 120.0,
                ..frames()
            },
        ),
        (
            "input-rate",
            Frames {
                input_per_sec: 1e6,
                ..frames()
            },
        ),
        (
            "audio-period",
            Frames {
                audio_period_ns: 1_000,
                ..frames()
            },
        ),
        (
            "audio-work",
            Frames {
                audio_work_ns: 20_000_000,
                ..frames()
            },
        ),
        (
            "compilers",
            Frames {
                compilers: 5_000,
                ..frames()
            },
        ),
        (
            "compile-every",
            Frames {
                compile_every_ns: 0,
                ..frames()
            },
        ),
    ];
    for (expected, params) in all {
        assert_eq!(key(params), expected);
    }
    assert_eq!(frames().check(), Ok(()));
}

#[test]
fn a_screen_has_30_to_480_frames_a_second() {
    let problems = |load| {
        let mut job = job(&frames());
        job.load = load;
        frames().require(&job)
    };
    assert_eq!(problems(Load::RatePerSec(480.0)), []);
    let slow = problems(Load::RatePerSec(20.0));
    assert!(slow[0].what.contains("30 to 480"), "{slow:?}");
    assert_eq!(problems(Load::Count(60)).len(), 1);
}
