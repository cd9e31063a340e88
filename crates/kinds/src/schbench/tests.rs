use super::*;
use testing::{FakeProgram, run};

/// Printed by schbench of 2025 with `-m 1 -t 2 -r 2 -w 1 --json -`.
const JSON_REPORT: &str = include_str!("testdata/2025.json");
const TEXT_REPORT: &str = include_str!("testdata/2025.txt");
/// In the format of version 1.0 of 2016.
const OLD_REPORT: &str = "Latency percentiles (usec)\n\
    \t50.0000th: 9\n\t75.0000th: 12\n\t90.0000th: 15\n\t95.0000th: 17\n\
    \t*99.0000th: 29\n\t99.5000th: 45\n\t99.9000th: 3044\n\tmin=0, max=5038\n";

fn schbench(program: &str) -> Schbench {
    Schbench {
        message_threads: 1,
        args: vec!["-F".to_owned(), "128".to_owned()],
        program: program.to_owned(),
    }
}

fn job() -> Job {
    testing::job(KIND.with_params(&schbench("schbench")))
}

fn output(stdout: &str, stderr: &str) -> Output {
    Output {
        stderr: stderr.to_owned(),
        ..testing::make_output(stdout)
    }
}

fn parse(stdout: &str, stderr: &str) -> Result<Parsed, String> {
    schbench("schbench").parse(&job(), &output(stdout, stderr))
}

fn value(parsed: &Parsed, name: &str) -> Option<f64> {
    let found = parsed.metrics.iter().find(|m| m.metric == name);
    found.map(|m| m.value)
}

#[test]
fn json_and_text_together_give_latencies_and_the_average_rate() {
    let parsed = parse(JSON_REPORT, TEXT_REPORT).unwrap();
    assert_eq!(value(&parsed, "wakeup_p50"), Some(6_000.0));
    assert_eq!(value(&parsed, "wakeup_max"), Some(8_585_000.0));
    assert_eq!(value(&parsed, "request_p90"), Some(28_640_000.0));
    assert_eq!(value(&parsed, "requests_per_sec"), Some(109.5));
}

#[test]
fn text_alone_gives_the_same_figures_as_both() {
    let both = parse(JSON_REPORT, TEXT_REPORT).unwrap();
    assert_eq!(parse("", TEXT_REPORT).unwrap(), both);
}

#[test]
fn json_alone_gives_the_median_of_the_rate() {
    let parsed = parse(JSON_REPORT, "").unwrap();
    assert_eq!(value(&parsed, "wakeup_p99"), Some(8_400_000.0));
    assert_eq!(value(&parsed, "requests_per_sec"), Some(103.0));
}

#[test]
fn quantiles_with_too_few_samples_are_left_out_with_a_warning() {
    let parsed = parse(JSON_REPORT, TEXT_REPORT).unwrap();
    assert_eq!(value(&parsed, "wakeup_p99"), None);
    assert!(
        parsed
            .warnings
            .iter()
            .any(|w| w.what.contains("request_p999"))
    );
}

#[test]
fn the_format_of_2016_gives_wakeup_latencies() {
    let parsed = parse("", OLD_REPORT).unwrap();
    assert_eq!(value(&parsed, "wakeup_p99"), Some(29_000.0));
    assert_eq!(value(&parsed, "wakeup_p999"), Some(3_044_000.0));
    assert_eq!(value(&parsed, "wakeup_max"), Some(5_038_000.0));
    assert_eq!(value(&parsed, "requests_per_sec"), None);
}

#[test]
fn the_last_block_of_a_report_counts() {
    let twice = format!("{}\n{TEXT_REPORT}", TEXT_REPORT.replace("8585", "1"));
    let parsed = parse("", &twice).unwrap();
    assert_eq!(value(&parsed, "wakeup_max"), Some(8_585_000.0));
}

#[test]
fn garbage_is_quoted() {
    let error = parse("{\"int\": {\"wakeup", "what is this\n").unwrap_err();
    assert!(error.contains("what is this"), "{error}");
}

#[test]
fn a_run_without_a_sample_is_an_error() {
    let none = "Wakeup Latencies percentiles (usec) runtime 2 (s) (0 total samples)\n\
                \t  50.0th: 0          (0 samples)\n\t  min=0, max=0\n";
    assert!(parse("", none).is_err());
}

#[test]
fn a_short_run_has_no_warm_up_and_says_so() {
    let mut job = job();
    job.workload.duration_ns = 5_000_000_000;
    job.workload.warmup_ns = 1_000_000_000;
    let argv = schbench("schbench").launch(&job).argv.join(" ");
    assert!(argv.contains("-r 5 -w 0"), "{argv}");
    let parsed = schbench("schbench").parse(&job, &output("", TEXT_REPORT));
    let parsed = parsed.unwrap();
    assert!(parsed.warnings.iter().any(|w| w.what.contains("warm-up")));
}

#[test]
fn the_runtime_of_a_long_run_includes_the_warm_up() {
    let mut job = job();
    job.workload.duration_ns = 30_000_000_000;
    job.workload.warmup_ns = 4_500_000_000;
    let argv = schbench("schbench").launch(&job).argv.join(" ");
    assert!(argv.contains("-m 1 -t 2 -r 35 -w 5"), "{argv}");
    assert!(argv.ends_with("-F 128"), "{argv}");
}

#[test]
fn json_is_asked_for_only_where_the_usage_knows_it() {
    let usage = |text: &str| {
        let fake = FakeProgram::new("schbench", &format!("echo '{text}' >&2; exit 1"));
        let driver = schbench(fake.path());
        let job = Job {
            calibration: driver.calibrate(&job(), &mut run).unwrap(),
            ..job()
        };
        driver.launch(&job).argv.join(" ")
    };
    assert!(usage("-j (--json) <file>: output in json").contains("--json -"));
    assert!(!usage("-r (--runtime): How long to run").contains("--json"));
}

#[test]
fn a_missing_schbench_says_where_to_get_it() {
    let problems = schbench("/no/such/schbench").require(&job());
    assert!(
        problems[0]
            .remedy
            .contains("schedlab tool install schbench"),
        "{problems:?}"
    );
}

#[test]
fn options_that_the_cell_says_are_errors_that_name_what_says_them() {
    let with = |args: &[&str]| Schbench {
        args: args.iter().map(|word| (*word).to_owned()).collect(),
        ..schbench("schbench")
    };
    // As posted with results.
    let posted = [
        "-L", "-m", "4", "-M", "auto", "-t", "64", "-n", "0", "-r", "1",
    ];
    let error = with(&posted).check().unwrap_err();
    assert_eq!(
        error.what,
        "schedlab gives schbench `-m`, `-t`, `-r` itself"
    );
    let remedy = error.remedy;
    for word in ["message-threads", "loads", "duration"] {
        assert!(remedy.contains(word), "{word}: {remedy}");
    }
    for args in [
        &["--json", "x"][..],
        &["-w5"],
        &["--interval=1"],
        &["-LCt", "9"],
    ] {
        assert!(with(args).check().is_err(), "{args:?}");
    }
    let allowed = ["-L", "-M", "auto", "-n", "0", "-F", "128", "-R", "100"];
    assert!(with(&allowed).check().is_ok());
}
