//! Real runs of the wakeup generator, spoken to over pipes as the agent does.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)]

use kinds::wakeup::{self, Wakeup};
use load::{Job, Output, Parsed, driver, native_main, phase};
use model::{Arrivals, Load, Workload};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::thread::JoinHandle;
use std::time::Duration;

/// Short requests, so that a window of 300 ms has many of them.
fn short() -> Wakeup {
    Wakeup {
        message_threads: 1,
        workers: None,
        rate_per_sec: None,
        arrivals: Arrivals::Constant,
        sleep_ns: 100_000,
        operations: 1,
        footprint_bytes: 4096,
        cpu_lock: true,
    }
}

/// `workers` of the load for 300 ms.
fn job(load: &Wakeup, workers: u64) -> Job {
    load::KINDS.add_entry(&wakeup::KIND);
    let workload = Workload {
        duration_ns: 300_000_000,
        warmup_ns: 20_000_000,
        ..Workload::new(wakeup::KIND.with_params(load))
    };
    Job {
        seed: 1,
        ..Job::new(&workload, Load::Count(workers), 2)
    }
}

fn usual() -> Job {
    job(&short(), 2)
}

struct Generated {
    stdin: PipeWriter,
    stdout: BufReader<PipeReader>,
    thread: JoinHandle<Result<(), String>>,
}

impl Generated {
    fn start(job: &Job) -> Self {
        let (their_stdin, stdin) = std::io::pipe().unwrap();
        let (stdout, their_stdout) = std::io::pipe().unwrap();
        let mut generated = Generated {
            stdin,
            stdout: BufReader::new(stdout),
            thread: std::thread::spawn(move || native_main(their_stdin, their_stdout)),
        };
        generated.say(&serde_json::to_string(job).unwrap());
        generated
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Through all phases to what was parsed.
    fn finish(mut self) -> Parsed {
        assert_eq!(self.line(), phase::READY);
        self.say(phase::GO);
        assert_eq!(self.line(), phase::BEGIN);
        assert_eq!(self.line(), phase::END);
        self.say(phase::SEEN);
        let line = self.line();
        self.thread.join().unwrap().unwrap();
        let json = line.strip_prefix(phase::RESULT).unwrap();
        serde_json::from_str(json).unwrap()
    }
}

fn run(job: &Job) -> Parsed {
    Generated::start(job).finish()
}

fn value(parsed: &Parsed, name: &str) -> f64 {
    let found = parsed.metrics.iter().find(|m| m.metric == name);
    found
        .unwrap_or_else(|| panic!("{name} in {parsed:?}"))
        .value
}

fn has(parsed: &Parsed, name: &str) -> bool {
    parsed.metrics.iter().any(|m| m.metric == name)
}

#[test]
fn a_closed_loop_reports_latencies_a_rate_and_two_histograms() {
    let parsed = run(&usual());
    assert!(value(&parsed, "requests_per_sec") > 50.0);
    assert!(value(&parsed, "wakeup_p50") > 0.0);
    assert!(
        value(&parsed, "request_p50") > 100_000.0,
        "no shorter than its sleep"
    );
    assert!(value(&parsed, "request_max") >= value(&parsed, "request_p50"));
    // A busy machine may hold a thread up, and then there is a file of that.
    let stalled = value(&parsed, "wakeup_stalls") + value(&parsed, "request_stalls");
    let stalls = (stalled > 0.0).then_some("stalls.csv");
    let expected = ["wakeup.hlog", "request.hlog"].into_iter().chain(stalls);
    let names = parsed.files.iter().map(|f| f.name.as_str());
    assert!(names.eq(expected), "{stalled}: {:?}", parsed.files);
    assert!(!has(&parsed, "service_p50") && !has(&parsed, "offered_per_sec"));
}

#[test]
fn quantiles_with_too_few_samples_are_left_out_with_a_warning() {
    let parsed = run(&usual());
    assert!(!has(&parsed, "request_p999"));
    assert!(
        parsed
            .warnings
            .iter()
            .any(|w| w.what.contains("request_p999")),
        "{:?}",
        parsed.warnings
    );
}

#[test]
fn many_message_threads_and_workers_all_end() {
    let load = Wakeup {
        message_threads: 3,
        cpu_lock: false,
        ..short()
    };
    let parsed = run(&job(&load, 20));
    assert!(value(&parsed, "requests_per_sec") > 0.0);
}

#[test]
fn an_open_loop_offers_what_the_schedule_says() {
    let load = Wakeup {
        rate_per_sec: Some(200.0),
        message_threads: 2,
        ..short()
    };
    let parsed = run(&job(&load, 4));
    // 60 in 0.3 s, and one more or less at the edges for each message thread.
    assert!((value(&parsed, "offered_per_sec") - 200.0).abs() <= 7.0);
    assert!(value(&parsed, "achieved_percent") > 0.0);
    assert!(parsed.files.iter().any(|f| f.name == "service.hlog"));
}

#[test]
fn overload_is_visible_in_latency_from_the_intended_start() {
    // One worker that sleeps 5 ms a request does 200 a second at most.
    let load = Wakeup {
        rate_per_sec: Some(2000.0),
        sleep_ns: 5_000_000,
        ..short()
    };
    let mut job = job(&load, 1);
    job.workload.duration_ns = 600_000_000;
    let parsed = run(&job);
    assert!(value(&parsed, "achieved_percent") < 20.0);
    assert_eq!(value(&parsed, "overloaded"), 1.0);
    assert!((value(&parsed, "offered_per_sec") - 2000.0).abs() <= 2.0);
    // The last of the window is more than half a window behind its intended start.
    assert!(value(&parsed, "request_max") > 300_000_000.0);
    assert!(value(&parsed, "request_p50") > 3.0 * value(&parsed, "service_p50"));
    assert!(parsed.warnings.iter().any(|w| w.what.contains("overload")));
}

#[test]
fn a_window_without_a_request_is_an_error() {
    let load = Wakeup {
        sleep_ns: 600_000_000,
        ..short()
    };
    let mut job = job(&load, 2);
    job.workload.duration_ns = 50_000_000;
    job.workload.warmup_ns = 0;
    let mut generated = Generated::start(&job);
    assert_eq!(generated.line(), phase::READY);
    generated.say(phase::GO);
    generated.say(phase::SEEN);
    let error = generated.thread.join().unwrap().unwrap_err();
    assert!(error.contains("no request was completed"), "{error}");
}

#[test]
fn threads_stay_until_what_they_used_has_been_read() {
    let mut generated = Generated::start(&usual());
    assert_eq!(generated.line(), phase::READY);
    generated.say(phase::GO);
    assert_eq!(generated.line(), phase::BEGIN);
    assert_eq!(generated.line(), phase::END);
    std::thread::sleep(Duration::from_millis(100));
    assert!(!generated.thread.is_finished());
    generated.say(phase::SEEN);
    assert!(generated.line().starts_with(phase::RESULT));
    generated.thread.join().unwrap().unwrap();
}

#[test]
fn an_impossible_job_is_refused_before_ready() {
    let load = Wakeup {
        rate_per_sec: Some(-1.0),
        ..short()
    };
    let mut generated = Generated::start(&job(&load, 2));
    assert_eq!(generated.line(), "");
    assert!(generated.thread.join().unwrap().is_err());
}

#[test]
fn the_generator_ends_when_its_input_closes_inside_the_window() {
    let mut job = usual();
    job.workload.duration_ns = 3_600_000_000_000;
    job.workload.warmup_ns = 0;
    let mut generated = Generated::start(&job);
    assert_eq!(generated.line(), phase::READY);
    generated.say(phase::GO);
    assert_eq!(generated.line(), phase::BEGIN);
    drop(generated.stdin);
    let error = generated.thread.join().unwrap().unwrap_err();
    assert!(error.contains("agent is gone"), "{error}");
}

#[test]
fn the_generator_ends_when_its_input_closes_before_go() {
    let mut generated = Generated::start(&usual());
    assert_eq!(generated.line(), phase::READY);
    drop(generated.stdin);
    assert!(generated.thread.join().unwrap().is_err());
}

fn parse(output: &Output) -> Result<Parsed, String> {
    let job = usual();
    let driver = driver(&job.workload.kind).unwrap();
    assert!(driver.launch(&job).phased);
    driver.parse(&job, output)
}

#[test]
fn the_result_line_is_found_among_the_phase_lines() {
    let stdout = "ready\nbegin\nend\nresult {\"metrics\":[],\"files\":[],\"warnings\":[]}\n";
    let output = Output {
        stdout: stdout.to_owned(),
        success: true,
        ..Output::default()
    };
    assert_eq!(parse(&output), Ok(Parsed::default()));
}

#[test]
fn a_generator_that_failed_is_an_error_with_what_it_said() {
    let output = Output {
        stderr: "start a wakeup-worker thread: too many\n".to_owned(),
        status: "exit status 1".to_owned(),
        ..Output::default()
    };
    assert!(parse(&output).unwrap_err().contains("too many"));
}
