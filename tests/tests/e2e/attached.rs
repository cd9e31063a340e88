//! Real servers under a load from outside: nginx and PostgreSQL, whose figures are in the logs that they write
//! anyway, and Redis by those of the kernel.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what was counted goes to stdout"
)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tests::{Bench, alone, beside_others, expect_code, skipped, stdout};

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

    fn pid(&self) -> u32 {
        self.0[0].id()
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
    let pid = service.pid();
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

/// A server that somebody uses, and the figure by which its arms are judged.
struct Used {
    server: Running,
    _users: Vec<Box<dyn std::any::Any>>,
    /// Declaration of the metric; empty for one of the kernel's.
    declared: String,
    metric: &'static str,
}

fn used_nginx(bench: &Bench) -> Used {
    let (server, port, log) = nginx(bench);
    Used {
        server,
        _users: vec![
            Box::new(Visitor::start(port)),
            Box::new(Visitor::start(port)),
        ],
        declared: logged(&log),
        metric: "sent",
    }
}

fn used_redis(_: &Bench) -> Used {
    let port = free_port();
    let of_port = port.to_string();
    let server = ["--port", &of_port, "--bind", "127.0.0.1", "--save", ""];
    let server = Running::start("redis-server", &server);
    wait_for(port);
    let users = ["-p", &of_port, "-c", "2", "-t", "get", "-l", "-q"];
    Used {
        server,
        _users: vec![Box::new(Running::start("redis-benchmark", &users))],
        declared: String::new(),
        metric: "wait_per_run",
    }
}

/// Started by a user without rights, for it refuses root. Each answer is a line in its log.
const POSTGRESQL: &str = r#"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
chown 65534:65534 "$1"
touch "$1.log"; chown 65534:65534 "$1.log"
as_user="setpriv --reuid 65534 --regid 65534 --clear-groups"
$as_user "$bin/initdb" --pgdata="$1" --username=postgres --auth=trust --no-locale --encoding=UTF8 > /dev/null
exec $as_user "$bin/postgres" -D "$1" -c listen_addresses=127.0.0.1 -c "port=$2" -c unix_socket_directories= \
  -c fsync=off -c log_min_duration_statement=0 >> "$1.log" 2>&1
"#;

fn used_postgresql(bench: &Bench) -> Used {
    let port = free_port().to_string();
    let folder = bench.path("data");
    std::fs::create_dir(&folder).unwrap();
    // Others may pass through the folder of the bench.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.dir.path(), mode).unwrap();
    let folder = folder.display().to_string();
    let server = Running::start("sh", &["-c", POSTGRESQL, "sh", &folder, &port]);
    let pgbench = |more: &str| -> Vec<String> {
        let all = format!("-h 127.0.0.1 -U postgres -p {port} {more} postgres");
        all.split(' ').map(str::to_owned).collect()
    };
    let limit = Instant::now() + Duration::from_secs(120);
    let mut filling = Command::new("pgbench");
    filling
        .args(pgbench("--initialize --quiet --scale=1"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    while !filling.status().unwrap().success() {
        assert!(Instant::now() < limit, "PostgreSQL gives no answer");
        std::thread::sleep(Duration::from_millis(200));
    }
    let users = pgbench("--select-only --client=2 --rate=400 --time=100000");
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    Used {
        server,
        _users: vec![Box::new(Running::start("pgbench", &users))],
        declared: format!(
            "[[workload.metric]]\nname = \"answer_p50\"\nbetter = \"lower\"\nunit = \"ms\"\n\
             from = \"{folder}.log\"\nregex = 'duration: (?<v>[\\d.]+) ms'\npick = \"p50\"\n"
        ),
        metric: "answer_p50",
    }
}

/// One run of two arms on the server: what is said of its figure.
fn judge(bench: &Bench, used: &Used, arms: [&str; 2]) -> String {
    let text = format!(
        "name = \"attached\"\nstop = {{ min-blocks = 1, max-blocks = 1 }}\n\
         [[arm]]\nname = \"usual\"\n{}\n[[arm]]\nname = \"other\"\n{}\n\
         [[workload]]\nkind = \"attach\"\nto = {{ pid = {} }}\nin-place = \"always\"\n\
         turn = \"250ms\"\nwashout = \"150ms\"\nduration = \"2500ms\"\nwarmup = \"100ms\"\n{}",
        arms[0],
        arms[1],
        used.server.pid(),
        used.declared
    );
    let file = bench.file("attached.toml", &text);
    let _ = std::fs::remove_dir_all(bench.path("out"));
    let output = bench.run(&["run", &file, "-o", "out", "-q", "--wait"]);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let report = stdout(&bench.run(&["report", "out", "--format", "json"]));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let mut comparisons = report["comparisons"].as_array().unwrap().iter();
    let judged = comparisons.find(|c| c["metric"] == used.metric);
    judged.unwrap_or_else(|| panic!("{}: {report}", used.metric))["verdict"]
        .as_str()
        .unwrap()
        .to_owned()
}

type Start = fn(&Bench) -> Used;

const SERVERS: [(&str, Start); 3] = [
    ("nginx", used_nginx),
    ("redis", used_redis),
    ("postgresql", used_postgresql),
];

/// How often each verdict is given in so many runs on each server, with others on the first CPU or without.
fn count_verdicts(runs: usize, arms: [&str; 2], others: usize) -> Vec<(&'static str, Vec<String>)> {
    let burn = |_| Running::start("taskset", &["-c", "0", "sh", "-c", "while :; do :; done"]);
    let _others: Vec<Running> = (0..others).map(burn).collect();
    let verdicts = SERVERS.map(|(name, start)| {
        let bench = Bench::default();
        let used = start(&bench);
        let verdicts: Vec<String> = (0..runs).map(|_| judge(&bench, &used, arms)).collect();
        println!("{name}: {verdicts:?}");
        (name, verdicts)
    });
    verdicts.into()
}

const PROGRAMS: [&str; 5] = [
    "nginx",
    "redis-server",
    "redis-benchmark",
    "pgbench",
    "setpriv",
];

#[test]
#[ignore = "two hundred runs; make test-long runs them"]
fn equal_arms_of_servers_in_use_are_hardly_ever_called() {
    if can_change_or_skip(&PROGRAMS) {
        let _turn = alone();
        let same = "policy = { nice = 5 }";
        let verdicts = count_verdicts(67, [same, same], 0);
        let verdicts = verdicts.iter().flat_map(|(_, verdicts)| verdicts);
        let called = verdicts.filter(|verdict| *verdict == "better" || *verdict == "worse");
        let called = called.count();
        println!("{called} of 201 were called");
        assert!(called <= 10, "{called} of 201, where 5 of 100 are promised");
    }
}

#[test]
#[ignore = "thirty runs; make test-long runs them"]
fn an_arm_that_sends_a_server_in_use_among_others_is_worse() {
    if can_change_or_skip(&PROGRAMS) {
        let _turn = alone();
        for (server, verdicts) in count_verdicts(10, ["cpus = \"1\"", "cpus = \"0\""], 3) {
            let found = verdicts.iter().filter(|verdict| *verdict == "worse");
            assert!(found.count() >= 9, "{server}: {verdicts:?}");
        }
    }
}
