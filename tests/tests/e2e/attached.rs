//! Real nginx under a load from outside, whose figures are in the log that it writes anyway.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tests::{Bench, beside_others, expect_code, skipped, stdout};

const NGINX: &str = r#"
daemon off;
pid FOLDER/pid;
error_log stderr;
master_process off;
events {}
http {
  log_format sizes '$body_bytes_sent $request_time';
  access_log FOLDER/access.log sizes;
  keepalive_requests 1000000;
  server { listen 127.0.0.1:PORT; location / { return 200 "twelve bytes"; } }
}
"#;

/// Processes that are killed when this is dropped.
struct Running(Vec<Child>);

impl Running {
    fn start(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new("setsid");
        command.arg(program).args(args).stdout(Stdio::null());
        Running(vec![command.stderr(Stdio::null()).spawn().unwrap()])
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn wait_for(port: u16) {
    let limit = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(Instant::now() < limit, "nobody listens on {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A connection that asks again as soon as it has its answer, until this is dropped.
struct Visitor {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Visitor {
    fn start(port: u16) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let visit = move || {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            let mut answer = [0; 4096];
            while !over.load(Ordering::Relaxed) {
                let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n");
                // A service that is stopped at the end of the test answers no more.
                if asked.is_err() || !stream.read(&mut answer).is_ok_and(|n| n > 0) {
                    return;
                }
            }
        };
        Visitor {
            is_over,
            thread: Some(std::thread::spawn(visit)),
        }
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn can_change_or_skip(programs: &[&str]) -> bool {
    if !tests::is_root() {
        skipped("a process of somebody else is changed by root");
        return false;
    }
    let missing = programs.iter().find(|name| tests::program(name).is_none());
    if let Some(missing) = missing {
        skipped(format!("{missing} is not installed"));
    }
    missing.is_none()
}

/// nginx, its port, and its log.
fn nginx(bench: &Bench) -> (Running, u16, String) {
    let (port, folder) = (free_port(), bench.dir.path().display().to_string());
    let text = NGINX.replace("FOLDER", &folder);
    let conf = bench.file("nginx.conf", &text.replace("PORT", &port.to_string()));
    let running = Running::start("nginx", &["-c", &conf]);
    wait_for(port);
    (running, port, format!("{folder}/access.log"))
}

/// Two arms in turns, on a service by its ID, which takes less of the washout than a look at all open files.
fn experiment(service: &Running, first: &str, second: &str, metric: &str) -> String {
    let pid = service.0[0].id();
    format!(
        "name = \"attached\"\n\
         stop = {{ min-blocks = 1, max-blocks = 2, confidence = 0.99 }}\n\
         [[arm]]\nname = \"usual\"\n{first}\n[[arm]]\nname = \"other\"\n{second}\n\
         [[workload]]\nkind = \"attach\"\nto = {{ pid = {pid} }}\nin-place = \"always\"\n\
         turn = \"400ms\"\nwashout = \"1s\"\nduration = \"3s\"\nwarmup = \"100ms\"\n{metric}"
    )
}

/// The figure of bytes that nginx wrote into its log.
fn logged(log: &str) -> String {
    format!(
        "[[workload.metric]]\nname = \"sent\"\nbetter = \"higher\"\nunit = \"B\"\nfrom = \"{log}\"\n\
         regex = '^(?<v>\\d+) '\npick = \"sum\"\n"
    )
}

#[test]
fn lines_that_nginx_adds_to_its_log_are_figures_of_turns() {
    if !can_change_or_skip(&["nginx"]) {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let (nginx, port, log) = nginx(&bench);
    let _visitors = [Visitor::start(port), Visitor::start(port)];
    let text = experiment(&nginx, "", "policy = { class = \"batch\" }", &logged(&log));
    let short = text.replace("max-blocks = 2", "max-blocks = 1");
    let file = bench.file("attached.toml", &short.replace("\"3s\"", "\"1s\""));
    expect_code(&bench.run(&["run", &file, "-o", "out", "-q", "--wait"]), 0);
    let results = results::ResultSet::read(&bench.path("out")).unwrap();
    // A trial that others disturbed has none, and is repeated.
    let trials = results.trials.iter().map(|stored| &stored.trial.result);
    let mut figures = trials.flat_map(|result| &result.metrics);
    let sent = figures.find(|figure| figure.metric == "sent").unwrap();
    assert!(sent.unit == "B" && sent.value > 0.0, "{sent:?}");

    // Somebody else listens there.
    let heard = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = heard.local_addr().unwrap().to_string();
    for (from, why) in [
        (log.replace("access.log", "no.log"), "there is no log"),
        (format!("statsd:{taken}"), "Address already in use"),
        ("statsd:8125".to_owned(), "`8125` is no address with a port"),
        ("stdout".to_owned(), "`stdout` is no log"),
    ] {
        let wrong = text.replace(&log, &from);
        let output = bench.run(&["check", &bench.file("wrong.toml", &wrong)]);
        let said = stdout(&output) + &tests::stderr(&output);
        assert!(
            !output.status.success() && said.contains(why),
            "{why}: {said}"
        );
    }
}
