//! netperf (Debian package `netperf`, section non-free): pairs of netperf and a child of
//! netserver that send requests and responses over the loopback interface.
//!
//! Each pair is a netperf of its own. Its last line has the figures in the order of
//! [`COLUMNS`], which netperf 2.7.0 calls its output selection; its latencies are whole
//! microseconds.

use crate::latency as m;
use crate::roles::Readiness;
use crate::roles::server_command::{self, ServerCommand};
use crate::{
    Asks, Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, Output, Params, Parsed, Usual,
    Window, Work, program,
};
use model::{Invalid, KeyDef, Load, MetricDef, Place, Problem, Program, Task};
use serde::{Deserialize, Serialize};

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "test",
        "`TCP_RR` or `UDP_RR`",
        "`TCP_RR`",
        "Test of netperf: requests and responses over TCP or UDP.",
    ),
    KeyDef::new("request-size", "size", "`1B`", "Size of a request."),
    KeyDef::new("response-size", "size", "`1B`", "Size of a response."),
    KeyDef::new(
        "pair-cpus",
        "list of two numbers",
        "not bound",
        "CPU of netperf and CPU of netserver in every pair (`-T`). A pair that is not bound may \
         run at one rate on one CPU and at another on two, and change between them.",
    ),
];

/// The kind `netperf`.
pub static KIND: KindDef = KindDef {
    name: "netperf",
    aliases: &[],
    summary: "real netperf from PATH, closed loop: pairs that send requests and responses over \
              loopback",
    loads: LoadForms::Counts,
    load_unit: "pairs",
    window: Window::Own,
    usual: Usual {
        load: Load::Count(1),
        duration_ns: 5_000_000_000,
        warmup_ns: 0,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::of::<Netperf>(),
    client: false,
    metrics: METRICS,
    deciding: DECIDING,
    logs: &[],
    tasks: &[Task::Process("netperf"), Task::Process("netserver")],
    programs: &[PROGRAM, SERVER],
    handicap: false,
};

const PROGRAM: Program = Program {
    name: "netperf",
    version: Some("-V"),
    package: Some("non-free/netperf"),
};
const SERVER: Program = Program {
    name: "netserver",
    ..PROGRAM
};

/// Metrics of the load.
pub const METRICS: &[MetricDef] = &[
    m::REQUESTS_PER_SEC,
    m::SLOWEST_PAIR,
    m::REQUEST_P50,
    m::REQUEST_P90,
    m::REQUEST_P99,
    m::REQUEST_MAX,
];
/// Names of the metrics that decide when a cell stops.
pub const DECIDING: &[&str] = &["requests_per_sec"];

/// The figures that netperf is asked for.
const COLUMNS: &str = "THROUGHPUT,THROUGHPUT_UNITS,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY";
/// The unit of the throughput of requests and responses.
const UNIT: &str = "Trans/s";
/// Metrics of the columns behind the unit.
const LATENCIES: [MetricDef; 4] = [
    m::REQUEST_P50,
    m::REQUEST_P90,
    m::REQUEST_P99,
    m::REQUEST_MAX,
];
/// The largest payload of a UDP datagram over IPv4.
const MOST_UDP_BYTES: u64 = 65_507;
/// netperf counts bytes of a request in 32 bits with a sign.
const MOST_TCP_BYTES: u64 = 1 << 30;

/// Starts the command in its arguments as often as the first of them says, all at once, and
/// fails if one of them does. Each of them prints one line.
const PAIRS: &str = "pairs=$1; shift; pids=
while [ \"$pairs\" -gt 0 ]; do \"$@\" & pids=\"$pids $!\"; pairs=$((pairs - 1)); done
status=0; for pid in $pids; do wait \"$pid\" || status=$?; done; exit $status";

/// netperf with netserver. The load is the number of pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Netperf {
    /// Protocol of the requests.
    pub test: Test,
    /// Size of each request.
    pub request_bytes: u64,
    /// Size of each response.
    pub response_bytes: u64,
    /// CPUs of netperf and of netserver; `None`: the scheduler chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_cpus: Option<[u32; 2]>,
    /// A name on PATH or a path.
    #[serde(skip, default = "usual_program")]
    pub program: String,
}

/// A test of netperf (`-t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// Requests and responses over one TCP connection.
    #[serde(rename = "TCP_RR")]
    TcpRr,
    /// Requests and responses as UDP datagrams.
    #[serde(rename = "UDP_RR")]
    UdpRr,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Test::TcpRr => "TCP_RR",
            Test::UdpRr => "UDP_RR",
        }
    }

    fn most_bytes(self) -> u64 {
        match self {
            Test::TcpRr => MOST_TCP_BYTES,
            Test::UdpRr => MOST_UDP_BYTES,
        }
    }
}

fn usual_program() -> String {
    PROGRAM.name.to_owned()
}

impl Params for Netperf {
    fn read(keys: &mut Keys) -> Self {
        Netperf {
            test: keys.get("test").unwrap_or(Test::TcpRr),
            request_bytes: keys.size("request-size").unwrap_or(1),
            response_bytes: keys.size("response-size").unwrap_or(1),
            pair_cpus: keys.get("pair-cpus"),
            program: usual_program(),
        }
    }
}

impl Netperf {
    fn check_size(&self, key: &str, bytes: u64) -> Result<(), Invalid> {
        let most = self.test.most_bytes();
        match bytes {
            0 => Err(Invalid::new(key, format!("`{key}` must be at least 1B"))),
            bytes if bytes > most => Err(Invalid::new(
                key,
                format!(
                    "`{key}` is at most {most} bytes in {}, not {bytes}",
                    self.test.name()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The command of one pair.
    fn argv(&self, job: &Job) -> Vec<String> {
        let mut argv = vec![self.program.clone()];
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        if let Some(server) = job.server {
            option("-H", server.ip().to_string());
            option("-p", server.port().to_string());
        }
        option("-t", self.test.name().to_owned());
        option("-l", seconds(job).to_string());
        if let Some([load, server]) = self.pair_cpus {
            option("-T", format!("{load},{server}"));
        }
        // No header.
        option("-P", "0".to_owned());
        argv.push("--".to_owned());
        let sizes = format!("{},{}", self.request_bytes, self.response_bytes);
        argv.extend(["-r", &sizes, "-o", COLUMNS].map(str::to_owned));
        argv
    }
}

/// Whole seconds, netperf's only unit.
fn seconds(job: &Job) -> u64 {
    job.workload.duration_ns.div_ceil(1_000_000_000).max(1)
}

impl Driver for Netperf {
    fn check(&self) -> Result<(), Invalid> {
        self.check_size("request-size", self.request_bytes)?;
        self.check_size("response-size", self.response_bytes)
    }

    fn asks(&self) -> Asks {
        // IPv4 and this machine only; in the foreground, as a child of the trial.
        let argv = ["-D", "-4", "-L", "127.0.0.1", "-p", "{port}"];
        let argv = std::iter::once(SERVER.name).chain(argv);
        Asks::Server(server_command::SERVER.of(&ServerCommand {
            argv: argv.map(str::to_owned).collect(),
            port: None,
            ready: Readiness::Tcp,
        }))
    }

    fn chosen(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |what: String, remedy: &str| {
            problems.push(job.problem(what, remedy));
        };
        if which::which(&self.program).is_err() {
            problem(
                format!("{} is not installed", self.program),
                "`schedlab tool install netperf`, or install Debian's package, which is non-free",
            );
        }
        if job.load.count(job.cpus).is_none() {
            problem(
                format!(
                    "netperf cannot be paced, so a load of {} has no meaning",
                    job.load
                ),
                "give the load as a number of pairs",
            );
        }
        if job.workload.warmup_ns > 0 {
            let what = "netperf measures from its first request, so a warm-up has no meaning";
            problem(what.to_owned(), "leave out `warmup`");
        }
        if job.workload.load_on == Place::Controller {
            let what = "netperf opens connections at ports that only netserver knows, which are \
                        not forwarded to the controller";
            problem(what.to_owned(), "leave out `load-on`");
        }
        let cpus = crate::allowed_cpus();
        let missing = self.pair_cpus.into_iter().flatten();
        for cpu in missing.filter(|cpu| !cpus.contains(cpu)) {
            let what = format!("`pair-cpus`: there is no CPU {cpu} to run on here");
            problem(
                what,
                "name CPUs of this machine that the workload may run on",
            );
        }
        problems
    }

    fn launch(&self, job: &Job) -> Launch {
        let argv = self.argv(job);
        match pairs(job) {
            1 => Launch::new(argv),
            pairs => {
                let shell = ["sh", "-c", PAIRS, "pairs"].map(str::to_owned);
                Launch::new([&shell[..], &[pairs.to_string()], &argv].concat())
            }
        }
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        program::succeeded(PROGRAM.name, output)?;
        let lines = output.stdout.lines().filter(|line| !line.trim().is_empty());
        let pairs: Option<Vec<Pair>> = lines.map(Pair::read).collect();
        let wanted = self::pairs(job);
        match pairs {
            Some(pairs) if pairs.len() as u64 == wanted => Ok(figures(&pairs)),
            _ => {
                let expected = format!("{wanted} times a line of {COLUMNS} in {UNIT}");
                Err(program::garbage(PROGRAM.name, &expected, output))
            }
        }
    }
}

fn pairs(job: &Job) -> u64 {
    job.load.count(job.cpus).unwrap_or(1)
}

/// The figures of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    per_sec: f64,
    /// In the order of [`LATENCIES`].
    latencies_us: [u64; LATENCIES.len()],
}

impl Pair {
    /// `None` for a line that netperf 2.7.0 does not print.
    fn read(line: &str) -> Option<Self> {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let (rate, rest) = columns.split_first()?;
        let (unit, latencies) = rest.split_first()?;
        let per_sec: f64 = rate.parse().ok()?;
        if *unit != UNIT || !per_sec.is_finite() || per_sec <= 0.0 {
            return None;
        }
        let latencies: Option<Vec<u64>> = latencies.iter().map(|us| us.parse().ok()).collect();
        Some(Pair {
            per_sec,
            latencies_us: latencies?.try_into().ok()?,
        })
    }
}

/// There is one pair at least.
fn figures(pairs: &[Pair]) -> Parsed {
    let rates = || pairs.iter().map(|pair| pair.per_sec);
    let mut metrics = vec![
        m::REQUESTS_PER_SEC.measured(rates().sum()),
        m::SLOWEST_PAIR.measured(rates().fold(f64::INFINITY, f64::min)),
    ];
    for (index, metric) in LATENCIES.iter().enumerate() {
        let worst = pairs.iter().map(|pair| pair.latencies_us[index]).max();
        metrics.extend(worst.map(|us| metric.measured(us as f64 * 1000.0)));
    }
    Parsed {
        metrics,
        ..Parsed::default()
    }
}

#[cfg(test)]
mod tests;
