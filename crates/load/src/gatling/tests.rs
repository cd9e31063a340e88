use super::*;
use crate::Phases;
use crate::testing::{self, FakeProgram};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::SystemTime;

const MS: u64 = 1_000;
const SECOND: u64 = 1_000 * MS;
const HEAD: &str = "# schedlab requests 1\n# epoch_minus_monotonic_ns=5\n\
                    request,phase,due_us,start_us,end_us,ok,status,reason\n";

fn gatling(argv: &[&str], log: &str) -> Gatling {
    Gatling {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        directory: None,
        log: log.to_owned(),
        load_cpus: None,
    }
}

/// 100 requests/s for two seconds after half a second.
fn job(gatling: &Gatling) -> Job {
    let mut job = testing::job(KIND.of(gatling));
    job.load = Load::RatePerSec(100.0);
    job.workload.warmup_ns = 500_000_000;
    job.workload.duration_ns = 2_000_000_000;
    job
}

/// Requests each 10 ms, of which those before 0.5 s are of the warm-up.
fn log(row: impl Fn(u64) -> String) -> String {
    let rows = (0..250u64).map(|index| {
        let due = 7 * SECOND + index * 10 * MS;
        let phase = if index < 50 { "warm-up" } else { "steady" };
        let name = if index % 2 == 0 { "Pay" } else { "Look, twice" };
        format!("\"{name}\",{phase},{due},{}\n", row(due))
    });
    rows.fold(HEAD.to_owned(), |log, row| log + &row)
}

fn right(due: u64) -> String {
    format!("{},{},true,200,", due + MS, due + 5 * MS)
}

fn parsed(log: &str) -> Parsed {
    let requests = requests::parse(log.as_bytes()).unwrap();
    let measured = run::Measured {
        opened: SystemTime::UNIX_EPOCH,
        cpu_ns: 200_000_000,
    };
    let job = job(&gatling(&["java"], "log"));
    figures::parsed(&job, &requests, &measured, 2).unwrap()
}

fn value(parsed: &Parsed, name: &str) -> f64 {
    let mut metrics = parsed.metrics.iter();
    metrics.find(|m| m.metric == name).unwrap().value
}

#[test]
fn the_warm_up_is_in_no_figure_and_latency_counts_from_when_a_request_was_due() {
    let mut log = log(right);
    for due in 0..50 {
        // The worst of all, but nobody counts them.
        writeln!(
            log,
            "Pay,warm-up,{due},{due},{},false,500,slow",
            60 * SECOND
        )
        .unwrap();
    }
    let parsed = parsed(&log);
    assert_eq!(value(&parsed, "offered_per_sec"), 100.0);
    assert_eq!(value(&parsed, "requests_per_sec"), 100.0);
    assert_eq!(value(&parsed, "error_percent"), 0.0);
    assert_eq!(value(&parsed, "overloaded"), 0.0);
    assert!((value(&parsed, "request_p95") - 5e6).abs() < 1e4);
    assert_eq!(value(&parsed, "request_mean"), 5e6);
    assert!((value(&parsed, "service_p50") - 4e6).abs() < 1e4);
    assert!((value(&parsed, "generator_lateness_p50") - 1e6).abs() < 1e3);
    assert_eq!(value(&parsed, "generator_cpu"), 10.0);
    let known: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    let metrics = parsed.metrics.iter();
    assert!(metrics.clone().all(|m| known.contains(&m.metric.as_str())));
}

#[test]
fn a_wrong_answer_is_a_failure_whatever_its_status_and_is_named() {
    let parsed = parsed(&log(|due| match due % (100 * MS) {
        0 => format!("{due},{},false,200,wrong answer", due + MS),
        _ => right(due),
    }));
    assert_eq!(value(&parsed, "error_percent"), 10.0);
    assert_eq!(value(&parsed, "requests_per_sec"), 90.0);
    assert_eq!(value(&parsed, "overloaded"), 1.0);
    let said: Vec<&str> = parsed.warnings.iter().map(|w| w.what.as_str()).collect();
    assert!(
        said[0].contains("20 got another answer than the right one"),
        "{said:?}"
    );
    assert!(
        said.iter().any(|what| what.contains("Pay: wrong answer")),
        "{said:?}"
    );
    let table = &parsed
        .files
        .iter()
        .find(|f| f.name == "requests-by-name.csv")
        .unwrap()
        .text;
    let rows: Vec<&str> = table.lines().collect();
    assert!(
        rows[1].starts_with("\"Look, twice\",100,100,0,50.000,5000000,"),
        "{table}"
    );
    assert!(
        rows[2].starts_with("Pay,100,80,20,40.000,5000000,,,"),
        "{table}"
    );
}

#[test]
fn answers_that_come_ever_later_are_an_overload() {
    let parsed = parsed(&log(|due| {
        let waited = (due - 7 * SECOND) * 2;
        format!("{due},{},true,200,", due + waited)
    }));
    assert_eq!(value(&parsed, "overloaded"), 1.0);
    assert!(value(&parsed, "achieved_percent") < 50.0);
}

#[test]
fn a_generator_that_could_not_open_its_connections_voids_the_trial() {
    let parsed = parsed(&log(|due| {
        format!("{due},{due},{},0,Too many open files", due < 8 * SECOND)
    }));
    assert!(parsed.void.unwrap().contains("ulimit -n"));
}

#[test]
fn half_a_log_is_no_result() {
    let error = |log: &str| requests::parse(log.as_bytes()).unwrap_err();
    assert!(error("request,phase\n").contains("# schedlab requests 1"));
    let cut = format!("{HEAD}Pay,steady,1,2,3,tr");
    assert!(error(&cut).contains("line: 4"), "{}", error(&cut));
    let none = requests::parse(HEAD.as_bytes()).unwrap();
    let job = job(&gatling(&["java"], "log"));
    let measured = run::Measured {
        opened: SystemTime::UNIX_EPOCH,
        cpu_ns: 0,
    };
    let error = figures::parsed(&job, &none, &measured, 1).unwrap_err();
    assert!(error.contains("no request"), "{error}");
}

#[test]
fn names_in_braces_are_those_of_the_trial() {
    let mut gatling = gatling(
        &["sim", "-r={rate}", "{warmup}+{duration}", "{seed}{x}"],
        "log",
    );
    gatling.directory = Some("/work".to_owned());
    let mut job = job(&gatling);
    job.seed = u64::MAX;
    let seed = i64::MAX.to_string() + "{x}";
    assert_eq!(gatling.argv_of(&job), ["sim", "-r=100", "0.5+2", &seed]);
    assert_eq!(gatling.log(), PathBuf::from("/work/log"));
}

#[test]
fn what_is_missing_is_said_before_anything_runs() {
    let mut gatling = gatling(&["no-such-program"], "{folder}/requests.csv");
    gatling.load_cpus = Some("4000".to_owned());
    let mut job = job(&gatling);
    job.workload.metrics = vec!["request_p95".to_owned(), "request_p99".to_owned()];
    let problems = gatling.require(&job);
    let said: Vec<&str> = problems.iter().map(|p| p.what.as_str()).collect();
    assert!(said[0].contains("no-such-program"), "{said:?}");
    assert!(said[1].contains("no CPU 4000"), "{said:?}");
    assert!(said[2].contains("folder of the load"), "{said:?}");
    assert!(
        said[3].contains("request_p99, which decides, needs 1000"),
        "{said:?}"
    );
    let mut keys = Keys::default();
    Gatling::read(&mut keys);
    assert!(
        keys.into_fault()
            .unwrap()
            .what
            .contains("needs its command")
    );
}

/// The outcome of a program for the generator, which tells it to go and that it was seen.
fn run_program(script: &str) -> Result<Parsed, String> {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("log");
    std::fs::write(folder.path().join("made"), log(right)).unwrap();
    let program = FakeProgram::new("sim", script);
    let mut gatling = gatling(&[program.path(), "{rate}"], written.to_str().unwrap());
    gatling.directory = Some(folder.path().display().to_string());
    let mut job = job(&gatling);
    job.workload.warmup_ns = 1_000_000;
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"go\nseen\n").unwrap();
    let mut said = Vec::new();
    let mut phases = Phases::new(reader, &mut said).unwrap();
    let result = gatling
        .generate(&job, &mut phases)
        .map_err(|e| e.to_string());
    drop(phases);
    if result.is_ok() {
        assert_eq!(String::from_utf8(said).unwrap(), "ready\nbegin\nend\n");
    }
    result
}

const SIMULATE: &str = "echo Simulation a.B started...; sleep 1; [ $1 = 100 ] && cp made log";

#[test]
fn the_window_opens_after_the_injection_began_and_the_log_is_read_at_the_end() {
    let parsed = run_program(SIMULATE).unwrap();
    assert_eq!(value(&parsed, "requests_per_sec"), 100.0);
}

#[test]
fn a_program_that_fails_is_a_failed_trial() {
    let error = |script: &str| run_program(script).unwrap_err();
    let before = error("exit 3");
    assert!(
        before.contains("exit status: 3 before its injection began"),
        "{before}"
    );
    let after = error(&format!("{SIMULATE}; exit 2"));
    assert!(after.contains("failed with exit status: 2"), "{after}");
    let without = error("echo Simulation a.B started...; sleep 1");
    assert!(without.contains("read the log of requests"), "{without}");
}
