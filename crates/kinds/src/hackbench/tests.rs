use super::*;
use testing::{FakeProgram, run};

fn hackbench(program: &str) -> Hackbench {
    Hackbench {
        threads: false,
        transport: Transport::Pipe,
        message_bytes: 100,
        fds: 20,
        loops: None,
        program: program.to_owned(),
    }
}

fn job() -> Job {
    testing::job(KIND.with_params(&hackbench("hackbench")))
}

/// Output of hackbench V 2.40.
const REPORT: &str = "Running in process mode with 1 groups using 40 file descriptors each (== 40 tasks)\n\
                      Each sender will pass 50 messages of 100 bytes\n\
                      Time: 0.128\n";

fn parse(stdout: &str) -> Result<f64, String> {
    seconds(&testing::make_output(stdout))
}

#[test]
fn the_time_of_a_real_report_is_read() {
    assert_eq!(parse(REPORT), Ok(0.128));
}

#[test]
fn output_without_a_time_is_quoted() {
    let error = parse("Segmentation fault maybe\n").unwrap_err();
    assert!(error.contains("Segmentation fault maybe"), "{error}");
    assert!(parse("").unwrap_err().contains("nothing"));
}

#[test]
fn a_time_that_is_no_number_or_below_zero_is_refused() {
    for text in ["Time: soon\n", "Time: nan\n", "Time: -1\n", "Time:\n"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_trial_below_a_millisecond_is_an_error() {
    let output = testing::make_output("Time: 0.000\n");
    let error = hackbench("hackbench").parse(&job(), &output).unwrap_err();
    assert!(error.contains("more loops"), "{error}");
}

#[test]
fn two_times_are_refused() {
    assert!(parse("Time: 1.0\nTime: 2.0\n").is_err());
}

#[test]
fn a_failed_run_is_an_error_whatever_it_printed() {
    let output = Output {
        success: false,
        status: "exit status 1".to_owned(),
        ..testing::make_output(REPORT)
    };
    assert!(seconds(&output).unwrap_err().contains("exit status 1"));
}

#[test]
fn the_command_line_says_all_parameters() {
    let calibration = Calibration {
        values: [("loops".to_owned(), 777)].into(),
        ..Calibration::default()
    };
    let job = Job {
        calibration,
        ..job()
    };
    let argv = hackbench("hackbench").launch(&job).argv.join(" ");
    assert_eq!(
        argv,
        "hackbench --groups 2 --fds 20 --datasize 100 --loops 777 --process --pipe"
    );
}

#[test]
fn loops_of_the_experiment_are_taken_without_calibration() {
    let driver = Hackbench {
        loops: Some(5),
        threads: true,
        transport: Transport::Socket,
        ..hackbench("/no/such/hackbench")
    };
    assert_eq!(
        driver.calibrate(&job(), &mut run),
        Ok(Calibration::default())
    );
    let argv = driver.launch(&job()).argv.join(" ");
    assert!(argv.ends_with("--loops 5 --threads"), "{argv}");
}

#[test]
fn a_missing_hackbench_names_its_package() {
    let problems = hackbench("/no/such/hackbench").require(&job());
    assert!(problems[0].remedy.contains("rt-tests"), "{problems:?}");
}

/// Takes a millisecond a loop, and says so without taking it.
const MILLISECOND_A_LOOP: &str = r#"
while [ $# -gt 0 ]; do
    [ "$1" = --loops ] && loops=$2
    shift
done
echo "Time: $((loops / 1000)).$(printf %03d $((loops % 1000)))"
"#;

fn calibrate(script: &str) -> Result<Calibration, String> {
    let fake = FakeProgram::new("hackbench", script);
    hackbench(fake.path()).calibrate(&job(), &mut run)
}

#[test]
fn calibration_finds_loops_for_a_second_at_least() {
    let loops = calibrate(MILLISECOND_A_LOOP).unwrap().values[LOOPS];
    assert!((1000..=2000).contains(&loops), "{loops}");
}

#[test]
fn calibration_grows_from_runs_that_are_too_short_to_be_timed() {
    let tenth_of_it = MILLISECOND_A_LOOP.replace("echo", "loops=$((loops / 100)); echo");
    let loops = calibrate(&tenth_of_it).unwrap().values[LOOPS];
    assert!((100_000..=200_000).contains(&loops), "{loops}");
}

#[test]
fn calibration_of_a_program_that_prints_garbage_says_what_it_printed() {
    let error = calibrate("echo I am not hackbench").unwrap_err();
    assert!(error.contains("I am not hackbench"), "{error}");
}

#[test]
fn calibration_ends_for_a_program_that_is_always_fast() {
    let error = calibrate("echo 'Time: 0.001'").unwrap_err();
    assert!(error.contains("set the loops"), "{error}");
}

/// LTP installs one that takes `hackbench GROUPS process LOOPS`. A script may start the right one.
#[test]
fn a_program_of_another_family_under_the_name_is_a_problem_before_a_trial() {
    let dir = tempfile::tempdir().unwrap();
    let problems = |name: &str, code: &[u8]| {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.path().join(name);
        std::fs::write(&path, code).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        hackbench(&path.to_string_lossy()).require(&job())
    };
    let found = problems(
        "ltp",
        b"\x7fELF Usage: hackbench [-pipe] <num groups> [process|thread] [loops]",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].what.contains("ltp is another hackbench"),
        "{found:?}"
    );
    assert!(found[0].remedy.contains("rt-tests"), "{found:?}");
    assert_eq!(problems("rt-tests", b"\x7fELF --datasize"), []);
    assert_eq!(problems("script", b"#!/bin/sh\nexec perf bench"), []);
}
