use super::*;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use testing::run;

const NETPERF: Netperf = Netperf {
    test: Test::TcpRr,
    request_bytes: 1,
    response_bytes: 1,
    send_bytes: None,
    pair_cpus: None,
    program: String::new(),
};

fn netperf() -> Netperf {
    Netperf {
        program: usual_program(),
        ..NETPERF
    }
}

fn job(pairs: u64) -> Job {
    let mut job = testing::job(KIND.with_params(&NETPERF));
    job.workload.warmup_ns = 0;
    job.server = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 7)));
    Job {
        load: Load::Count(pairs),
        ..job
    }
}

fn parse(pairs: u64, stdout: &str) -> Result<Vec<(String, f64)>, String> {
    let parsed = NETPERF.parse(&job(pairs), &testing::make_output(stdout))?;
    let figures = parsed.metrics.into_iter();
    Ok(figures.map(|m| (m.metric, m.value)).collect())
}

#[test]
fn rates_are_added_and_the_worst_latency_of_the_pairs_is_taken() {
    // Output of netperf 2.7.0.
    let figures = parse(
        2,
        "110707.96,Trans/s,-1,-1,7,9,14,5457\n74618.39,Trans/s,-1,-1,10,12,13,7964\n",
    );
    let expected = [
        ("requests_per_sec", 185_326.35),
        ("slowest_pair_per_sec", 74_618.39),
        ("request_p50", 10_000.0),
        ("request_p90", 12_000.0),
        ("request_p99", 14_000.0),
        ("request_max", 7_964_000.0),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(figures, Ok(expected.to_vec()));
}

#[test]
fn output_that_is_empty_or_unknown_is_quoted() {
    assert!(parse(1, "\n").unwrap_err().contains("1 times a line"));
    for line in [
        "9006.84,10^6bits/s,-1,-1,2,3,47,8794",
        "9006.84,10^6bits/s,-1,-1",
        "110707.96,Trans/s",
        "110707.96,Trans/s,-1,-1,7,9,14",
        "110707.96,Trans/s,-1,-1,7,9,14,5457,1",
        "110707.96,Trans/s,-1,-1,7,9,14,-1",
        "0.00,Trans/s,-1,-1,7,9,14,5457",
        "nan,Trans/s,-1,-1,7,9,14,5457",
        "TCP REQUEST/RESPONSE TEST",
    ] {
        let error = parse(1, line).unwrap_err();
        assert!(error.contains(line), "{error}");
    }
}

#[test]
fn a_pair_without_figures_fails_the_trial() {
    let line = "110707.96,Trans/s,-1,-1,7,9,14,5457\n";
    assert!(parse(1, line).is_ok());
    for (pairs, text) in [(2, line.to_owned()), (1, line.repeat(2))] {
        assert!(parse(pairs, &text).is_err(), "{pairs}: {text}");
    }
}

#[test]
fn the_command_line_says_all_parameters() {
    let netperf = Netperf {
        test: Test::UdpRr,
        request_bytes: 100,
        response_bytes: 2000,
        pair_cpus: Some([0, 1]),
        ..netperf()
    };
    let mut job = job(1);
    // Rounded up.
    job.workload.duration_ns = 1_500_000_000;
    let argv = netperf.launch(&job).argv.join(" ");
    let options = "netperf -H 127.0.0.1 -p 7 -t UDP_RR -l 2 -T 0,1 -P 0 -- -r 100,2000 -o ";
    assert_eq!(argv, options.to_owned() + COLUMNS + "," + LATENCY_COLUMNS);
    let stream = Netperf {
        test: Test::TcpStream,
        pair_cpus: None,
        ..netperf
    };
    let argv = stream.launch(&job).argv.join(" ");
    let options = "netperf -H 127.0.0.1 -p 7 -t TCP_STREAM -l 2 -f m -P 0 -- -m 16384 -o ";
    assert_eq!(argv, options.to_owned() + COLUMNS);
}

#[test]
fn streams_have_throughput_in_bytes_and_it_decides() {
    let stream = Netperf {
        test: Test::TcpStream,
        ..NETPERF
    };
    let printed = testing::make_output("8000.00,10^6bits/s,-1,-1\n2000.00,10^6bits/s,-1,-1\n");
    let parsed = stream.parse(&job(2), &printed).unwrap();
    let figures = parsed.metrics.iter();
    let figures: Vec<_> = figures.map(|m| (m.metric.as_str(), m.value)).collect();
    let expected = [("throughput", 1250.0), ("slowest_pair_throughput", 250.0)];
    assert_eq!(figures, expected);
    assert!(parsed.files[0].text.contains("2,250.00,free,free"));
    assert!(parsed.warnings[0].what.contains("4.0 times"));
    let rr = testing::make_output("8000.00,Trans/s,-1,-1\n");
    assert!(stream.parse(&job(1), &rr).is_err());
    let deciding = |netperf: &Netperf| {
        load::KINDS.add_entry(&KIND);
        load::deciding_metrics(&model::Workload::new(KIND.with_params(netperf)))
    };
    assert_eq!(deciding(&stream), ["throughput"]);
    assert_eq!(deciding(&NETPERF), ["requests_per_sec"]);
}

#[test]
fn a_size_that_the_test_does_not_have_is_refused() {
    let fault = |written: serde_json::Value| {
        let mut keys = Keys::new(written.as_object().cloned().unwrap());
        Netperf::read(&mut keys);
        keys.into_fault().map(|fault| fault.key)
    };
    use serde_json::json;
    let stream = |key: &str| json!({"test": "TCP_STREAM", key: "4KiB"});
    assert_eq!(
        fault(stream("request-size")).as_deref(),
        Some("request-size")
    );
    assert_eq!(fault(stream("send-size")), None);
    assert_eq!(
        fault(json!({"send-size": "4KiB"})).as_deref(),
        Some("send-size")
    );
    assert_eq!(fault(json!({"response-size": "4KiB"})), None);
}

#[test]
fn a_pair_that_ran_elsewhere_than_it_was_bound_fails_the_trial() {
    let bound = Netperf {
        pair_cpus: Some([0, 1]),
        ..NETPERF
    };
    let line = |cpus: &str| testing::make_output(&format!("1.00,Trans/s,{cpus},1,1,1,1\n"));
    let right = bound.parse(&job(1), &line("0,1")).unwrap();
    assert!(right.files[0].text.ends_with("1,1.00,0,1\n"));
    let error = bound.parse(&job(1), &line("-1,-1")).unwrap_err();
    assert!(
        error.contains("bound to no CPU, not to CPUs 0 and 1"),
        "{error}"
    );
    assert!(NETPERF.parse(&job(1), &line("0,1")).is_err());
}

#[test]
fn pairs_run_at_once_and_a_failed_one_fails_all() {
    // Each waits until the other is there: one after the other, they would wait for ever.
    let fake = testing::FakeProgram::new(
        "netperf",
        "there=$(dirname \"$0\"); touch \"$there/$$\"\n\
         until [ $(ls \"$there\" | wc -l) -ge 3 ]; do sleep 0.01; done; echo 1,Trans/s,-1,-1,1,1,1,1",
    );
    let both = Netperf {
        program: fake.path().to_owned(),
        ..NETPERF
    };
    let output = run(&both.launch(&job(2)).argv, 0).unwrap();
    assert!(both.parse(&job(2), &output).is_ok(), "{output:?}");
    let fake = testing::FakeProgram::new(
        "netperf",
        "mkdir \"$0.first\" 2>/dev/null || exit 7; echo 1,Trans/s,-1,-1,1,1,1,1",
    );
    let one = Netperf {
        program: fake.path().to_owned(),
        ..NETPERF
    };
    let output = run(&one.launch(&job(2)).argv, 0).unwrap();
    assert!(!output.success && output.status.contains('7'), "{output:?}");
}

#[test]
fn sizes_that_the_protocol_cannot_carry_are_refused_by_their_key() {
    let check = |test, request_bytes, response_bytes| {
        let netperf = Netperf {
            test,
            request_bytes,
            response_bytes,
            ..NETPERF
        };
        netperf.check().map_err(|fault| fault.key)
    };
    assert_eq!(check(Test::UdpRr, 65_507, 65_507), Ok(()));
    assert_eq!(
        check(Test::UdpRr, 65_508, 1),
        Err("request-size".to_owned())
    );
    assert_eq!(check(Test::TcpRr, 65_508, 1), Ok(()));
    assert_eq!(check(Test::TcpCrr, 65_508, 1), Ok(()));
    let empty = Netperf {
        test: Test::TcpStream,
        send_bytes: Some(0),
        ..NETPERF
    };
    assert_eq!(empty.check().unwrap_err().key, "send-size");
    assert_eq!(check(Test::TcpRr, 1, 0), Err("response-size".to_owned()));
}

#[test]
fn what_netperf_cannot_do_is_a_problem_before_anything_runs() {
    let mut job = job(1);
    job.workload.warmup_ns = 1;
    job.workload.load_on = Place::Controller;
    job.load = Load::RatePerSec(1.0);
    let netperf = Netperf {
        program: "/no/such/netperf".to_owned(),
        pair_cpus: Some([0, u32::MAX]),
        ..NETPERF
    };
    let problems = netperf.require(&job);
    let said: Vec<&str> = problems.iter().map(|p| p.what.as_str()).collect();
    for (what, said) in [
        "is not installed",
        "cannot be paced",
        "a warm-up",
        "controller",
        "no CPU 4294967295",
    ]
    .iter()
    .zip(&said)
    {
        assert!(said.contains(what), "{what}: {said}");
    }
    assert_eq!(said.len(), 5);
    assert!(problems[0].remedy.contains("non-free"), "{problems:?}");
}

/// Ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// netserver on a free port.
fn netserver() -> (Running, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let Asks::Server(program) = netperf().request_receiver() else {
        panic!("netperf asks its own server");
    };
    let program = server_command::SERVER.work.open(program.params()).unwrap();
    let argv = program.launch(address, None).argv;
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    let server = Running(command.stdout(Stdio::null()).spawn().unwrap());
    while TcpStream::connect(address).is_err() {
        std::thread::yield_now();
    }
    (server, address)
}

#[test]
fn the_real_netperf_gives_all_figures_of_every_pair() {
    if let Some(missing) = [PROGRAM, SERVER]
        .iter()
        .find(|p| which::which(p.name).is_err())
    {
        return ::tests::skipped(format!(
            "{} is not installed; Debian has it in non-free",
            missing.name
        ));
    }
    let (_server, address) = netserver();
    for (test, pairs) in [
        (Test::TcpRr, 1),
        (Test::TcpCrr, 1),
        (Test::UdpRr, 2),
        (Test::TcpStream, 2),
    ] {
        let pair_cpus = (pairs == 1).then(|| {
            let cpu = *load::allowed_cpus().first().unwrap();
            [cpu, cpu]
        });
        let netperf = Netperf {
            test,
            pair_cpus,
            ..netperf()
        };
        let job = Job {
            server: Some(address),
            ..job(pairs)
        };
        assert_eq!(netperf.require(&job), []);
        let output = run(&netperf.launch(&job).argv, 0).unwrap();
        let parsed = netperf.parse(&job, &output).unwrap();
        let names: Vec<&str> = parsed.metrics.iter().map(|m| m.metric.as_str()).collect();
        let all: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
        let (of_requests, of_streams) = all.split_at(6);
        match test.is_stream() {
            true => assert_eq!(names, of_streams),
            false => assert_eq!(names, of_requests),
        }
        assert_eq!(parsed.files[0].text.lines().count() as u64, pairs + 1);
    }
}
