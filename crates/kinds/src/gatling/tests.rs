use super::requests::Request;
use super::*;
use load::Phases;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::SystemTime;
use testing::FakeProgram;

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
    let mut job = testing::job(KIND.with_params(gatling));
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
    result(log).unwrap()
}

fn result(log: &str) -> Result<Parsed, String> {
    let requests = requests::parse(log.as_bytes()).unwrap();
    let measured = run::Measured {
        opened: SystemTime::UNIX_EPOCH,
        cpu_ns: 200_000_000,
        assertions_failed: false,
    };
    let job = job(&gatling(&["java"], "log"));
    figures::compute_figures(&job, &requests, &measured, 2)
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
fn the_reasons_of_the_simulation_of_the_demo_are_told_apart() {
    let with = |reason: &str| {
        parsed(&log(|due| match due % (100 * MS) {
            0 => format!("{due},{},true,200,", due + MS),
            _ => format!("{due},{},false,0,{reason}", due + MS),
        }))
    };
    let own = with("no answer: too many open files of the load");
    assert!(own.void.unwrap().contains("ulimit -n"));
    for reason in [
        "no answer: no free port of the load",
        "j.n.BindException: Cannot assign requested address",
    ] {
        let own = with(reason);
        assert!(
            own.void.unwrap().contains("ip_local_port_range"),
            "{reason}"
        );
    }
    for (reason, words) in [
        ("no answer: timed out", "180 timed out"),
        ("no answer: closed", "180 met a connection"),
        ("no answer: refused", "180 met a connection"),
        (
            "j.n.ConnectException: Connection refused",
            "180 met a connection",
        ),
        ("no answer", "180 were not answered"),
    ] {
        let parsed = with(reason);
        assert_eq!(parsed.void, None, "{reason}");
        let said: Vec<&str> = parsed.warnings.iter().map(|w| w.what.as_str()).collect();
        assert!(said.iter().any(|what| what.contains(words)), "{said:?}");
        let way = format!("Pay: {reason}");
        assert!(said.iter().any(|what| what.contains(&way)), "{said:?}");
    }
}

#[test]
fn a_run_in_which_everything_failed_says_why() {
    let error = |reason: &str| {
        result(&log(|due| format!("{due},{},false,0,{reason}", due + MS))).unwrap_err()
    };
    let refused = error("no answer: refused");
    assert!(refused.contains("no request was answered"), "{refused}");
    assert!(refused.contains("Pay: no answer: refused"), "{refused}");
    let own = error("no answer: too many open files of the load");
    assert!(own.contains("ulimit -n"), "{own}");
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
        assertions_failed: false,
    };
    let error = figures::compute_figures(&job, &none, &measured, 1).unwrap_err();
    assert!(error.contains("no request"), "{error}");
}

#[test]
fn names_in_braces_are_those_of_the_trial() {
    let mut gatling = gatling(
        &[
            "sim",
            "-r={rate}",
            "{warmup}+{duration}={total}",
            "{seed}{x}",
        ],
        "log",
    );
    gatling.directory = Some("/work".to_owned());
    let mut job = job(&gatling);
    job.seed = u64::MAX;
    let seed = i64::MAX.to_string() + "{x}";
    assert_eq!(gatling.argv_of(&job), ["sim", "-r=100", "0.5+2=2.5", &seed]);
    assert_eq!(gatling.log(), PathBuf::from("/work/log"));
}

#[test]
fn what_is_missing_is_said_before_anything_runs() {
    let mut gatling = gatling(&["no-such-program"], "{folder}");
    gatling.load_cpus = Some("4000".to_owned());
    let mut job = job(&gatling);
    job.workload.metrics = vec!["request_p95".to_owned(), "request_p99".to_owned()];
    let problems = gatling.require(&job);
    let said: Vec<&str> = problems.iter().map(|p| p.what.as_str()).collect();
    assert!(said[0].contains("no-such-program"), "{said:?}");
    assert!(said[1].contains("no CPU 4000"), "{said:?}");
    assert!(
        said[2].contains("request_p99, which decides, needs 1000"),
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

/// Written by Gatling 3.14.9: four users, each with two requests in a group, one that is answered
/// with 500, one whose answer lacks what is asked for, one to where nobody listens, and a last one.
const GATLINGS: &[u8] = include_bytes!("simulation.log");

#[test]
fn gatlings_own_log_has_every_request_with_its_group_its_times_and_its_fault() {
    let requests = requests::parse(GATLINGS).unwrap();
    assert_eq!(requests.len(), 24);
    let first = &requests[0];
    assert_eq!(&*first.name, "Notes / Write");
    assert_eq!(
        (first.start_us, first.end_us),
        (1_795_709_896_594_000, 1_795_709_896_765_000)
    );
    assert!(first.ok && first.due_us.is_none() && first.phase.is_none());
    assert_eq!((&*requests[2].name, requests[2].status), ("Broken", 500));
    assert!(!requests[2].ok);
    assert_eq!(
        &*requests[3].reason,
        "jsonPath($.nope).find.exists, found nothing"
    );
    assert_eq!(&*requests[5].name, "Grüße → é");
    assert_eq!(
        requests[5],
        Request {
            start_us: 1_795_709_896_913_000,
            end_us: 1_795_709_896_917_000,
            ..requests[11].clone()
        }
    );
    assert_eq!(requests.iter().filter(|r| r.ok).count(), 12);
}

#[test]
fn a_part_of_gatlings_log_is_no_result_unless_it_ends_with_a_record() {
    let whole = requests::parse(GATLINGS).unwrap();
    let mut with_an_end = 0;
    for length in 1..GATLINGS.len() {
        match requests::parse(&GATLINGS[..length]) {
            Ok(part) => {
                with_an_end += 1;
                assert_eq!(part, whole[..part.len()]);
            }
            Err(why) => assert!(why.contains("in the middle of a record"), "{length}: {why}"),
        }
    }
    // After the run, 24 requests, 4 groups, 8 times that a user came or went; the last is whole.
    assert_eq!(with_an_end, 1 + 24 + 4 + 8 - 1);
}

#[test]
fn other_bytes_are_refused_with_what_is_wrong() {
    let error = |bytes: &[u8]| requests::parse(bytes).unwrap_err();
    assert!(error(b"RUN\tmy.Simulation\t\nREQUEST\t\tHome\t10").contains("line 2"));
    assert!(error(&[0, 0xff, 0, 0, 0]).contains("a text of -"));
    assert!(error(&[0, 0x7f, 0, 0, 0]).contains("a text of 2130706432 bytes"));
    let user = GATLINGS.len() - 10;
    let kind = [&GATLINGS[..user], &[9]].concat();
    let said = error(&kind);
    assert!(
        said.contains("kind 9") && said.contains("Gatling 3.14.9"),
        "{said}"
    );
    let unknown = [&GATLINGS[..user], &[4, 0xff, 0xff, 0xff, 0x9c]].concat();
    assert!(error(&unknown).contains("text -100 was never written"));
    let groups = [&GATLINGS[..user], &[1, 0, 0, 1, 0]].concat();
    assert!(error(&groups).contains("in 256 groups"));
}

fn of_gatling(opened_us: u64, cpu_ns: u64) -> Parsed {
    let requests = requests::parse(GATLINGS).unwrap();
    let measured = run::Measured {
        opened: SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(opened_us),
        cpu_ns,
        assertions_failed: false,
    };
    let mut job = job(&gatling(&["java"], "log"));
    job.workload.duration_ns = 1_000_000_000;
    figures::compute_figures(&job, &requests, &measured, 2).unwrap()
}

#[test]
fn of_gatlings_log_counts_what_was_sent_within_the_window_of_the_agent() {
    // The second user's first request, sent at .994, is the first to count.
    let parsed = of_gatling(1_795_709_896_994_000, 0);
    assert_eq!(value(&parsed, "offered_per_sec"), 12.0);
    assert_eq!(value(&parsed, "error_percent"), 50.0);
    assert_eq!(value(&parsed, "requests_per_sec"), 6.0);
    assert!((value(&parsed, "request_max") - 7e6).abs() < 1e4);
    let has = |name: &str| parsed.metrics.iter().any(|m| m.metric == name);
    assert!(!has("generator_lateness_p50"));
    assert!(
        parsed
            .files
            .iter()
            .all(|f| f.name != "generator-lateness.hlog")
    );
    let said: Vec<&str> = parsed.warnings.iter().map(|w| w.what.as_str()).collect();
    let failures = "2 met a connection that the server closed or refused, 2 got an error from the \
                    server, 2 got another answer than the right one";
    assert!(said.iter().any(|what| what.contains(failures)), "{said:?}");
    assert!(
        said.iter()
            .any(|what| what.contains("does not say when requests were due")),
        "{said:?}"
    );
    assert!(
        said.iter().all(|what| !what.contains("sent nothing")),
        "{said:?}"
    );
}

#[test]
fn a_simulation_that_stopped_long_before_the_window_closed_is_named() {
    let mut log = log(right);
    log.truncate(log.len() / 2);
    log.truncate(log.rfind('\n').unwrap() + 1);
    let parsed = parsed(&log);
    let mut said = parsed.warnings.iter();
    let early = said
        .find(|w| w.what.contains("sent nothing in the last 1.2"))
        .unwrap();
    assert_eq!(early.severity, model::Severity::Serious);
}

#[test]
fn rows_without_a_time_at_which_they_were_due_count_from_when_they_were_sent() {
    let rows = log(right)
        .replace(",steady,", ",steady,;")
        .replace(",warm-up,", ",warm-up,;");
    let rows: String = rows
        .lines()
        .map(|line| match line.split_once(';') {
            Some((name, rest)) => format!("{name}{}\n", &rest[rest.find(',').unwrap()..]),
            None => format!("{line}\n"),
        })
        .collect();
    let parsed = parsed(&rows);
    assert_eq!(value(&parsed, "offered_per_sec"), 100.0);
    assert_eq!(value(&parsed, "request_mean"), 4e6);
    let mut metrics = parsed.metrics.iter();
    assert!(metrics.all(|m| !m.metric.starts_with("generator_lateness")));
}

#[test]
fn a_folder_stands_for_the_one_log_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let opened = SystemTime::UNIX_EPOCH;
    let error = || requests::read(folder.path(), opened).unwrap_err();
    assert!(error().contains("-rf {folder}"), "{}", error());
    let run = |name: &str| {
        let run = folder.path().join("html").join(name);
        std::fs::create_dir_all(&run).unwrap();
        std::fs::write(run.join("simulation.log"), GATLINGS).unwrap();
        run
    };
    let one = run("tiny-1");
    assert_eq!(requests::read(folder.path(), opened).unwrap().len(), 24);
    run("tiny-2");
    assert!(error().contains("2 files simulation.log"), "{}", error());
    assert_eq!(requests::read(&one, opened).unwrap().len(), 24);
    std::fs::write(folder.path().join("requests.csv"), log(right)).unwrap();
    assert_eq!(requests::read(folder.path(), opened).unwrap().len(), 250);
}

#[test]
fn a_log_that_is_old_or_no_file_of_its_own_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.csv");
    std::fs::write(&path, log(right)).unwrap();
    let read = |path: &std::path::Path, opened| requests::read(path, opened).map(|all| all.len());
    assert_eq!(read(&path, SystemTime::UNIX_EPOCH), Ok(250));
    let later = SystemTime::now() + std::time::Duration::from_secs(60);
    assert!(read(&path, later).unwrap_err().contains("an old one"));
    let link = folder.path().join("link.csv");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let of_link = read(&link, SystemTime::UNIX_EPOCH).unwrap_err();
    assert!(of_link.contains("it is a link"), "{of_link}");
    let device = read("/dev/null".as_ref(), SystemTime::UNIX_EPOCH).unwrap_err();
    assert!(device.contains("no regular file"), "{device}");
    // Neither is found where only a folder is named.
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("simulation.log")).unwrap();
    let nothing = read(folder.path(), SystemTime::UNIX_EPOCH).unwrap_err();
    assert!(nothing.contains("neither"), "{nothing}");
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
    let after = error(&format!("{SIMULATE}; exit 3"));
    assert!(after.contains("failed with exit status: 3"), "{after}");
    let without = error("echo Simulation a.B started...; sleep 1");
    assert!(without.contains("read the log of requests"), "{without}");
    let asserted = error("echo Simulation a.B started...; sleep 1; exit 2");
    assert!(asserted.contains("read the log of requests"), "{asserted}");
}

#[test]
fn a_simulation_whose_own_assertions_fail_is_measured_and_says_so() {
    let warned = |parsed: &Parsed| {
        let mut warnings = parsed.warnings.iter();
        warnings.any(|w| w.what.contains("did not keep its own assertions"))
    };
    let failed = run_program(&format!("{SIMULATE}; exit 2")).unwrap();
    assert_eq!(value(&failed, "requests_per_sec"), 100.0);
    assert!(warned(&failed));
    assert!(!warned(&run_program(SIMULATE).unwrap()));
}

#[test]
fn a_log_of_too_many_requests_is_refused_and_messages_without_end_are_counted_as_one() {
    let row = "Home,,,1000,2000,true,200,\n";
    let most = 1_000_000;
    let log = format!("{HEAD}{}", row.repeat(most));
    assert_eq!(requests::parse(log.as_bytes()).unwrap().len(), most);
    let error = requests::parse(format!("{log}{row}").as_bytes()).unwrap_err();
    assert!(
        error.contains("1000000 requests: a shorter duration"),
        "{error}"
    );
    let texts = 40_000;
    let rows = (0..texts).map(|n| format!("Home,,,1000,2000,false,0,{n}{}\n", "x".repeat(1000)));
    let log = format!("{HEAD}{}", rows.collect::<String>());
    let requests = requests::parse(log.as_bytes()).unwrap();
    let is_one_of_many = |request: &&Request| request.reason.starts_with("one of too many");
    assert!((1..texts).contains(&requests.iter().filter(is_one_of_many).count()));
    let rows = (0..texts).map(|n| format!("{n}{},,,1000,2000,true,0,\n", "x".repeat(1000)));
    let log = format!("{HEAD}{}", rows.collect::<String>());
    let error = requests::parse(log.as_bytes()).unwrap_err();
    assert!(error.contains("names and messages"), "{error}");
}
