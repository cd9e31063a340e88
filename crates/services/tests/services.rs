//! The open-loop generators against the embedded server and against servers that
//! misbehave: nothing is lost from the distribution.

#![allow(clippy::unwrap_used)]

use load::{Job, Parsed, native_main, phase};
use model::{Arrivals, Kind, Load, OpenLoopParams, Severity, Workload};
use services::memcached::{self, Memcached, Sizes};
use services::{http, serve};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Settings of an open loop.
struct OpenLoop {
    address: SocketAddr,
    rate_per_sec: f64,
    connections: u32,
    threads: u32,
    timeout_ns: u64,
    warmup_ns: u64,
    duration_ns: u64,
}

fn open_loop(address: SocketAddr) -> OpenLoop {
    OpenLoop {
        address,
        rate_per_sec: 1_000.0,
        connections: 8,
        threads: 2,
        timeout_ns: 5_000_000_000,
        warmup_ns: 50_000_000,
        duration_ns: 500_000_000,
    }
}

impl OpenLoop {
    fn of(&self, kind: Kind) -> Job {
        load::KINDS.add_entries(&[&http::KIND, &memcached::KIND]);
        let client = OpenLoopParams {
            connections: self.connections,
            threads: self.threads,
            arrivals: Arrivals::Constant,
            timeout_ns: self.timeout_ns,
            load_cpus: None,
            busy_poll: false,
            allow_remote: false,
        };
        let workload = Workload {
            client: Some(client),
            warmup_ns: self.warmup_ns,
            duration_ns: self.duration_ns,
            ..Workload::new(kind)
        };
        Job {
            server: Some(self.address),
            seed: 3,
            ..Job::new(&workload, Load::RatePerSec(self.rate_per_sec), 2)
        }
    }
}

fn request(method: &str, open_loop: OpenLoop) -> Job {
    open_loop.of(http::KIND.with_params(&http::HttpLoad {
        url: "/".to_owned(),
        method: method.to_owned(),
        headers: Default::default(),
        body: String::new(),
        requests: Vec::new(),
        setup: Vec::new(),
        ramps: None,
    }))
}

fn get(open_loop: OpenLoop) -> Job {
    request("GET", open_loop)
}

/// Requests that are never sent twice.
fn post(open_loop: OpenLoop) -> Job {
    request("POST", open_loop)
}

/// Result of a generator's process, from its job line to its end.
fn run(job: &Job) -> Result<Parsed, String> {
    let (input, mut agent) = std::io::pipe().unwrap();
    writeln!(agent, "{}", serde_json::to_string(job).unwrap()).unwrap();
    writeln!(agent, "{}\n{}", phase::GO, phase::SEEN).unwrap();
    let mut said = Vec::new();
    native_main(input, &mut said)?;
    drop(agent);
    let said = String::from_utf8(said).unwrap();
    let words: Vec<&str> = said.lines().take(3).collect();
    assert_eq!(words, [phase::READY, phase::BEGIN, phase::END]);
    let result = said
        .lines()
        .nth(3)
        .unwrap()
        .strip_prefix(phase::RESULT)
        .unwrap();
    Ok(serde_json::from_str(result).unwrap())
}

fn metric(parsed: &Parsed, name: &str) -> f64 {
    let found = parsed.metrics.iter().find(|m| m.metric == name);
    found
        .unwrap_or_else(|| panic!("{name} in {:?}", parsed.metrics))
        .value
}

/// A server that treats each connection in its own way.
fn misbehaving(how: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let how = how.clone();
            thread::spawn(move || how(stream));
        }
    });
    address
}

/// Reads one request; `false` when there is none.
fn heard(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0)
}

const FINE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn answering(mut stream: TcpStream, answer: &[u8]) {
    while heard(&mut stream) && stream.write_all(answer).is_ok() {}
}

#[test]
fn every_request_of_the_window_is_counted_once() {
    let server = serve::Server::start(2, 0).unwrap();
    let parsed = run(&get(open_loop(server.address))).unwrap();
    assert_eq!(metric(&parsed, "offered_per_sec"), 1_000.0);
    assert_eq!(metric(&parsed, "error_percent"), 0.0);
    assert!(metric(&parsed, "request_p50") >= metric(&parsed, "service_p50"));
    let names: Vec<&str> = parsed.files.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        ["request.hlog", "service.hlog", "generator-lateness.hlog"]
    );
}

#[test]
fn stored_keys_are_hit() {
    let server = serve::Server::start(1, 0).unwrap();
    let load = Memcached {
        address: None,
        gets_percent: 90.0,
        keys: 500,
        key_size: Sizes::Etc,
        value_size: Sizes::Etc,
        preload: true,
    };
    let job = open_loop(server.address).of(memcached::KIND.with_params(&load));
    let parsed = run(&job).unwrap();
    assert_eq!(metric(&parsed, "hit_percent"), 100.0);
    assert_eq!(metric(&parsed, "error_percent"), 0.0);
    let empty = serve::Server::start(1, 0).unwrap();
    let load = Memcached {
        gets_percent: 100.0,
        preload: false,
        ..load
    };
    let job = open_loop(empty.address).of(memcached::KIND.with_params(&load));
    let parsed = run(&job).unwrap();
    assert_eq!(metric(&parsed, "hit_percent"), 0.0);
}

#[test]
fn values_larger_than_the_buffers_of_the_kernel_go_through() {
    let server = serve::Server::start(1, 0).unwrap();
    let load = Memcached {
        address: None,
        gets_percent: 50.0,
        keys: 4,
        key_size: Sizes::Fixed { bytes: 8 },
        value_size: Sizes::Fixed { bytes: 900_000 },
        preload: true,
    };
    let seldom = OpenLoop {
        rate_per_sec: 10.0,
        connections: 2,
        // Room for a busy machine.
        duration_ns: 2_000_000_000,
        ..open_loop(server.address)
    };
    let parsed = run(&seldom.of(memcached::KIND.with_params(&load))).unwrap();
    assert_eq!(metric(&parsed, "error_percent"), 0.0);
    assert_eq!(metric(&parsed, "hit_percent"), 100.0);
}

/// Requests 25 ms apart, of which each answer is whole long before the next is due.
fn seldom(address: SocketAddr) -> OpenLoop {
    OpenLoop {
        rate_per_sec: 40.0,
        threads: 1,
        duration_ns: 1_500_000_000,
        ..open_loop(address)
    }
}

#[test]
fn an_answer_is_timed_when_it_comes_though_it_is_taken_with_the_next_request() {
    let address = misbehaving(|mut stream| {
        while heard(&mut stream) {
            thread::sleep(Duration::from_millis(2));
            stream.write_all(FINE).unwrap();
        }
    });
    let parsed = run(&get(seldom(address))).unwrap();
    let service_ns = metric(&parsed, "service_p50");
    assert!((2e6..9e6).contains(&service_ns), "{service_ns} ns");
}

#[test]
fn a_connection_that_was_closed_between_two_requests_costs_none() {
    let address = misbehaving(|mut stream| {
        if heard(&mut stream) {
            stream.write_all(FINE).unwrap();
        }
    });
    let one = OpenLoop {
        connections: 1,
        ..seldom(address)
    };
    let parsed = run(&get(one)).unwrap();
    assert_eq!(metric(&parsed, "error_percent"), 0.0);
    // Each of the 60 answers is followed by a connection.
    let (median, longest) = (
        metric(&parsed, "connect_p50"),
        metric(&parsed, "connect_max"),
    );
    assert!(median > 0.0 && median <= longest, "{median} {longest}");
    assert!(parsed.files.iter().any(|f| f.name == "connect.hlog"));
}

#[test]
fn connections_that_stay_have_no_time_to_connect() {
    let address = misbehaving(|mut stream| {
        while heard(&mut stream) {
            stream.write_all(FINE).unwrap();
        }
    });
    let parsed = run(&get(seldom(address))).unwrap();
    let mut names = parsed.metrics.iter().map(|m| m.metric.as_str());
    assert!(names.all(|name| !name.starts_with("connect_")));
    assert!(parsed.files.iter().all(|f| f.name != "connect.hlog"));
}

/// A server whose connections end under their second request, before it is answered.
fn closing_under_a_request() -> SocketAddr {
    misbehaving(|mut stream| {
        if heard(&mut stream) && stream.write_all(FINE).is_ok() {
            heard(&mut stream);
        }
    })
}

#[test]
fn a_request_on_its_way_while_its_connection_is_closed_is_sent_again_and_said() {
    let one = OpenLoop {
        connections: 1,
        ..seldom(closing_under_a_request())
    };
    let parsed = run(&get(one)).unwrap();
    assert_eq!(metric(&parsed, "error_percent"), 0.0);
    assert_eq!(metric(&parsed, "achieved_percent"), 100.0);
    let note = parsed
        .warnings
        .iter()
        .find(|w| w.what.contains("sent again"));
    assert_eq!(note.map(|w| w.severity), Some(Severity::Note));
}

#[test]
fn a_request_that_must_not_be_done_twice_is_not_sent_again() {
    let one = OpenLoop {
        connections: 1,
        ..seldom(closing_under_a_request())
    };
    let parsed = run(&post(one)).unwrap();
    assert!(metric(&parsed, "error_percent") > 40.0);
}

#[test]
fn a_server_that_is_gone_when_a_request_is_sent_again_has_failed_it() {
    let served = Arc::new(AtomicUsize::new(0));
    let address = misbehaving(move |mut stream| {
        // The first connection answers once; no later one answers at all.
        if heard(&mut stream) && served.fetch_add(1, Ordering::Relaxed) == 0 {
            let _ = stream.write_all(FINE).map(|()| heard(&mut stream));
        }
    });
    let one = OpenLoop {
        connections: 1,
        warmup_ns: 0,
        ..seldom(address)
    };
    let parsed = run(&get(one)).unwrap();
    assert!(metric(&parsed, "error_percent") > 90.0);
}

#[test]
fn a_server_that_waits_for_room_is_not_kept_waiting_for_the_next_request() {
    const BYTES: usize = 4 << 20;
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + BYTES, b'x');
    let address = misbehaving(move |stream| answering(stream, &answer));
    let parsed = run(&get(seldom(address))).unwrap();
    assert_eq!(metric(&parsed, "error_percent"), 0.0);
    let service_ns = metric(&parsed, "service_p50");
    assert!(service_ns < 20e6, "{service_ns} ns");
}

#[test]
fn a_server_that_is_not_there_fails_the_load() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let why = run(&get(open_loop(free))).unwrap_err();
    assert!(
        why.contains(&free.to_string()) && why.contains("refused"),
        "{why}"
    );
}

#[test]
fn answers_with_errors_count_as_failed_and_keep_their_latency() {
    let error = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";
    let address = misbehaving(move |mut stream| {
        let mut turn = 0;
        while heard(&mut stream) {
            turn += 1;
            let answer = if turn % 2 == 0 { FINE } else { error };
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    });
    let parsed = run(&get(open_loop(address))).unwrap();
    let errors = metric(&parsed, "error_percent");
    assert!((40.0..60.0).contains(&errors), "{errors}");
    assert!(
        parsed
            .warnings
            .iter()
            .any(|w| w.what.contains("got an error from the server"))
    );
}

#[test]
fn hang_ups_half_answers_and_garbage_are_told_apart() {
    let one_fine = |then: &'static [u8]| {
        misbehaving(move |mut stream| {
            if heard(&mut stream) && stream.write_all(FINE).is_ok() && heard(&mut stream) {
                let _ = stream.write_all(then);
            }
        })
    };
    for (then, words) in [
        (&b""[..], "the server closed"),
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"[..],
            "half an answer",
        ),
        (&b"220 mail.example ESMTP\r\n"[..], "garbage"),
    ] {
        let parsed = run(&post(open_loop(one_fine(then)))).unwrap();
        assert!(metric(&parsed, "error_percent") > 10.0);
        let warned = parsed.warnings.iter().any(|w| w.what.contains(words));
        assert!(warned, "{words}: {:?}", parsed.warnings);
    }
}

#[test]
fn requests_without_an_answer_time_out_with_the_time_that_they_took() {
    // Every second connection never answers: some of those that replace the ones that timed out,
    // too, so that there are such requests within the window and not only before it.
    let connected = Arc::new(AtomicUsize::new(0));
    let address = misbehaving(move |mut stream| {
        if connected.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            while heard(&mut stream) {}
        } else {
            answering(stream, FINE);
        }
    });
    let config = OpenLoop {
        timeout_ns: 100_000_000,
        connections: 16,
        ..open_loop(address)
    };
    let parsed = run(&get(config)).unwrap();
    assert!(metric(&parsed, "request_max") >= 100e6 * 0.99);
    assert!(metric(&parsed, "error_percent") > 0.0);
    assert!(parsed.warnings.iter().any(|w| w.what.contains("timed out")));
}

#[test]
fn a_rate_beyond_reach_is_an_overload_and_its_queue_is_in_the_latency() {
    let address = misbehaving(|mut stream| {
        while heard(&mut stream) {
            thread::sleep(std::time::Duration::from_millis(10));
            if stream.write_all(FINE).is_err() {
                return;
            }
        }
    });
    let config = OpenLoop {
        connections: 2,
        timeout_ns: 200_000_000,
        ..open_loop(address)
    };
    let parsed = run(&get(config)).unwrap();
    assert_eq!(metric(&parsed, "offered_per_sec"), 1_000.0);
    assert!(metric(&parsed, "achieved_percent") < 50.0);
    assert_eq!(metric(&parsed, "overloaded"), 1.0);
    assert!(metric(&parsed, "request_p50") > 5.0 * metric(&parsed, "service_p50"));
    let serious =
        |w: &model::Warning| w.severity == Severity::Serious && w.what.contains("overload");
    assert!(parsed.warnings.iter().any(serious), "{:?}", parsed.warnings);
}

#[test]
fn thousands_of_connections_share_a_small_rate() {
    let server = serve::Server::start(1, 0).unwrap();
    let config = OpenLoop {
        connections: 2_000,
        ..open_loop(server.address)
    };
    match run(&get(config)) {
        Ok(parsed) => assert_eq!(metric(&parsed, "error_percent"), 0.0),
        Err(why) if why.contains("open files") || why.contains("ulimit") => ::tests::skipped(why),
        Err(why) => panic!("{why}"),
    }
}
