//! A limit of the generator itself is told as such, and is no failure of the server. The only test
//! of its process, whose limit of open files it lowers.

#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use load::{Job, native_main, phase};
use model::{Arrivals, Load, OpenLoopParams, Workload};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use services::http;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
/// Requests before the limit is lowered, so that the window has right answers.
const FINE_REQUESTS: u32 = 200;

/// Files that this process may open from now on.
fn allow(most: Option<u64>) {
    let limits = Rlimit {
        current: most,
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limits).unwrap();
}

/// A server of one connection, which it closes once no file can be opened any more.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut answer = |text: &str| {
            let heard = stream.read(&mut [0; 4096]).unwrap();
            assert!(heard > 0);
            stream.write_all(text.as_bytes()).unwrap();
        };
        (0..FINE_REQUESTS).for_each(|_| answer(FINE));
        // Fewer than are open: whatever the generator closes, it gets nothing for it.
        allow(Some(3));
        answer(LAST);
        // It listens until the end: nobody is refused by it.
        thread::park();
        drop(listener);
    });
    address
}

fn job(address: SocketAddr) -> Job {
    load::KINDS.add_entry(&http::KIND);
    let load = http::HttpLoad {
        url: "/".to_owned(),
        method: "GET".to_owned(),
        headers: Default::default(),
        body: String::new(),
        requests: Vec::new(),
        setup: Vec::new(),
        ramps: None,
    };
    let client = OpenLoopParams {
        connections: 1,
        threads: 1,
        arrivals: Arrivals::Constant,
        timeout_ns: 200_000_000,
        load_cpus: None,
        busy_poll: false,
        allow_remote: false,
    };
    let workload = Workload {
        client: Some(client),
        warmup_ns: 50_000_000,
        duration_ns: 500_000_000,
        ..Workload::new(http::KIND.with_params(&load))
    };
    Job {
        server: Some(address),
        seed: 3,
        ..Job::new(&workload, Load::RatePerSec(1_000.0), 2)
    }
}

#[test]
fn a_generator_with_too_many_open_files_ends_its_trial_with_a_remedy() {
    let before = getrlimit(Resource::Nofile).current;
    let (input, mut agent) = std::io::pipe().unwrap();
    let job = serde_json::to_string(&job(server())).unwrap();
    writeln!(agent, "{job}\n{}\n{}", phase::GO, phase::SEEN).unwrap();
    let ended = native_main(input, &mut Vec::new());
    allow(before);
    let why = ended.unwrap_err();
    assert!(
        why.contains("the generator has too many open files") && why.contains("ulimit -n"),
        "{why}"
    );
}
