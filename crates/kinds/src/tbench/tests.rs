use super::*;
use std::net::{Ipv4Addr, SocketAddr};

const TBENCH: Tbench = Tbench {
    loadfile: None,
    program: String::new(),
};

fn job(clients: u64) -> Job {
    let mut job = testing::job(KIND.with_params(&TBENCH));
    job.workload.warmup_ns = 0;
    job.workload.duration_ns = 2_000_000_000;
    job.server = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 7003)));
    Job {
        load: Load::Count(clients),
        ..job
    }
}

/// Output of tbench 4.0, with three kinds of operation.
const PRINTED: &str = "\
dbench version 4.00 - Copyright Andrew Tridgell 1999-2004

Running for 3 seconds with load 'client.txt' and minimum warmup 0 secs
0 of 2 processes prepared for launch   0 sec
2 of 2 processes prepared for launch   0 sec
releasing clients
   2     20047   244.84 MB/sec  execute   1 sec  latency 9.177 ms
   2     38695   224.20 MB/sec  execute   2 sec  latency 9.409 ms
   2  cleanup   3 sec
   0  cleanup   3 sec

 Operation      Count    AvgLat    MaxLat
 ----------------------------------------
 NTCreateX        100     0.050     9.229
 Mkdir              2     2.000     3.383
 ReadX            300     0.020     9.240

Throughput 224.198 MB/sec  2 clients  2 procs  max_latency=9.409 ms
";

fn parse(clients: u64, stdout: &str) -> Result<Vec<(String, f64)>, String> {
    let parsed = TBENCH.parse(&job(clients), &testing::make_output(stdout))?;
    let figures = parsed.metrics.into_iter();
    Ok(figures.map(|m| (m.metric, m.value)).collect())
}

#[test]
fn throughput_and_latencies_are_read_as_printed() {
    let figures = parse(2, PRINTED).unwrap();
    let mean_ns = (100.0 * 0.05 + 2.0 * 2.0 + 300.0 * 0.02) / 402.0 * 1e6;
    let expected = [
        ("throughput", 224.198),
        ("operation_mean", mean_ns),
        ("request_max", 9_409_000.0),
    ];
    for ((name, value), (found, number)) in expected.into_iter().zip(figures) {
        assert_eq!(name, found);
        assert!((value - number).abs() < 1e-3, "{name}: {number}");
    }
}

#[test]
fn output_that_is_empty_doubled_or_unknown_fails_the_trial_with_its_line() {
    assert!(parse(2, "").unwrap_err().contains("it printed nothing"));
    assert!(parse(3, PRINTED).is_err(), "another number of clients");
    assert!(parse(2, &PRINTED.repeat(2)).is_err());
    for (right, wrong) in [
        ("Throughput 224.198", "Throughput 0"),
        ("Throughput 224.198", "Throughput nan"),
        ("MB/sec  2 clients  2", "KB/sec  2 clients  2"),
        ("max_latency=9.409 ms", "max_latency=9.409 us"),
        ("max_latency=", "latency="),
        ("Count    AvgLat", "Count    Lat"),
        (" ReadX            300", " ReadX            many"),
    ] {
        assert!(PRINTED.contains(right), "{right}");
        let error = parse(2, &PRINTED.replace(right, wrong)).unwrap_err();
        assert!(error.contains("Throughput"), "{error}");
    }
    // Exit status 0 all the same.
    let none = "FAILED TO START 2 CLIENTS (started -1)\n\
                Throughput 0 MB/sec  2 clients  2 procs  max_latency=0.000 ms\n";
    let error = parse(2, none).unwrap_err();
    assert!(error.contains("FAILED TO START 2 CLIENTS"), "{error}");
}

#[test]
fn the_time_limit_is_a_second_longer_than_what_is_measured() {
    let own = testing::FakeProgram::new("tbench", "");
    let tbench = Tbench {
        loadfile: Some(own.path().to_owned()),
        program: own.path().to_owned(),
    };
    let argv = tbench.launch(&job(4)).argv;
    let expected = [own.path(), "-c", own.path(), "-t", "3", "4", "127.0.0.1"];
    assert_eq!(argv, expected);
    assert_eq!(tbench.require(&job(4)), []);
}

#[test]
fn what_tbench_cannot_do_is_a_problem_before_anything_runs() {
    let mut job = job(1);
    job.workload.warmup_ns = 1;
    job.workload.load_on = Place::Controller;
    job.load = Load::RatePerSec(1.0);
    let own = testing::FakeProgram::new("tbench", "");
    let tbench = Tbench {
        loadfile: Some("/no/such/client.txt".to_owned()),
        program: own.path().to_owned(),
    };
    let problems = tbench.require(&job);
    let said: Vec<&str> = problems.iter().map(|p| p.what.as_str()).collect();
    let wanted = ["/no/such/client.txt", "not paced", "a warm-up", "namespace"];
    assert_eq!(said.len(), wanted.len(), "{said:?}");
    for (wanted, said) in wanted.iter().zip(said) {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let none = Tbench {
        program: "/no/such/tbench".to_owned(),
        ..TBENCH
    };
    let problems = none.require(&self::job(1));
    assert!(problems[0].remedy.contains("schedlab tool install tbench"));
}
