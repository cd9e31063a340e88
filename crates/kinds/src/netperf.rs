//! netperf (Debian package `netperf`, section non-free): pairs of netperf and a child of
//! netserver that send requests and responses, or a stream, over the loopback interface.
//!
//! Each pair is a netperf of its own. Its last line has the figures in the order of
//! [`Test::columns`], which netperf 2.7.0 calls its output selection; its latencies are whole
//! microseconds. A stream's throughput is asked for in millions of bits per second.

use crate::pairs;
use load::latency as m;
use load::roles::Readiness;
use load::{
    Asks, Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, Output, Params, Parsed, Usual,
    Window, Work, program,
};
use model::{Invalid, KeyDef, Load, Measurement, MetricDef, Place, Problem, Program, Task};
use serde::{Deserialize, Serialize};
use services::programs::server_command::{self, ServerCommand};

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "test",
        "`TCP_RR`, `TCP_CRR`, `UDP_RR` or `TCP_STREAM`",
        "`TCP_RR`",
        "Test of netperf: requests and responses over TCP or UDP, each over a TCP connection of its \
         own (`TCP_CRR`), or one direction over TCP as fast as it goes.",
    ),
    KeyDef::new("request-size", "size", "`1B`", "Size of a request."),
    KeyDef::new("response-size", "size", "`1B`", "Size of a response."),
    KeyDef::new(
        "send-size",
        "size",
        "`16KiB`",
        "Bytes of each send of `TCP_STREAM`.",
    ),
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
    summary: "real netperf from PATH, closed loop: pairs that send requests and responses, or a \
              stream, over loopback",
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
    work: Work::for_params::<Netperf>(),
    client: false,
    metrics: METRICS,
    deciding: DECIDING,
    logs: &[],
    watched: &[],
    tasks: &[Task::Process("netperf"), Task::Process("netserver")],
    programs: &[PROGRAM, SERVER],
    handicap: false,
    turns: false,
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
    m::THROUGHPUT,
    m::SLOWEST_THROUGHPUT,
];
/// Names of the metrics that decide when a cell of requests and responses stops.
pub const DECIDING: &[&str] = &["requests_per_sec"];
/// The same of streams.
const STREAM_DECIDING: &[&str] = &["throughput"];

/// The figures that netperf is asked for in any test: the rate, its unit, and the CPUs that the
/// two of a pair were bound to.
const COLUMNS: &str = "THROUGHPUT,THROUGHPUT_UNITS,LOCAL_CPU_BIND,REMOTE_CPU_BIND";
/// Figures behind them, of requests and responses.
const LATENCY_COLUMNS: &str = "P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY";
/// The unit of the throughput of requests and responses.
const RR_UNIT: &str = "Trans/s";
/// The unit of the throughput of streams, which `-f m` chooses.
const STREAM_UNIT: &str = "10^6bits/s";
const BITS: f64 = 8.0;
/// Metrics of [`LATENCY_COLUMNS`].
const LATENCIES: [MetricDef; 4] = [
    m::REQUEST_P50,
    m::REQUEST_P90,
    m::REQUEST_P99,
    m::REQUEST_MAX,
];
/// The largest payload of a UDP datagram over IPv4.
const MOST_UDP_BYTES: u64 = 65_507;
const USUAL_SEND_BYTES: u64 = 16 << 10;
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
    /// Size of each send of a stream; `None`: 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_bytes: Option<u64>,
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
    /// Requests and responses, each over a TCP connection of its own.
    #[serde(rename = "TCP_CRR")]
    TcpCrr,
    /// Requests and responses as UDP datagrams.
    #[serde(rename = "UDP_RR")]
    UdpRr,
    /// As much as goes through one TCP connection, in one direction.
    #[serde(rename = "TCP_STREAM")]
    TcpStream,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Test::TcpRr => "TCP_RR",
            Test::TcpCrr => "TCP_CRR",
            Test::UdpRr => "UDP_RR",
            Test::TcpStream => "TCP_STREAM",
        }
    }

    fn is_stream(self) -> bool {
        self == Test::TcpStream
    }

    /// The figures that netperf is asked for.
    fn columns(self) -> String {
        match self.is_stream() {
            true => COLUMNS.to_owned(),
            false => format!("{COLUMNS},{LATENCY_COLUMNS}"),
        }
    }

    fn unit(self) -> &'static str {
        match self.is_stream() {
            true => STREAM_UNIT,
            false => RR_UNIT,
        }
    }

    fn most_bytes(self) -> u64 {
        match self {
            Test::TcpRr | Test::TcpCrr | Test::TcpStream => MOST_TCP_BYTES,
            Test::UdpRr => MOST_UDP_BYTES,
        }
    }
}

fn usual_program() -> String {
    PROGRAM.name.to_owned()
}

impl Params for Netperf {
    fn read(keys: &mut Keys) -> Self {
        let test = keys.get("test").unwrap_or(Test::TcpRr);
        let mut size = |key, of_stream: bool| {
            let size = keys.size(key);
            if size.is_some() && test.is_stream() != of_stream {
                keys.refuse(no_size(key, test));
            }
            size
        };
        Netperf {
            test,
            request_bytes: size("request-size", false).unwrap_or(1),
            response_bytes: size("response-size", false).unwrap_or(1),
            send_bytes: size("send-size", true),
            pair_cpus: keys.get("pair-cpus"),
            program: usual_program(),
        }
    }
}

/// The fault of a size that a test does not have.
fn no_size(key: &str, test: Test) -> Invalid {
    let remedy = match test.is_stream() {
        true => "send-size = \"16KiB\"",
        false => "request-size = \"1B\" and response-size = \"1B\"",
    };
    Invalid::new(key, format!("{} has no `{key}`", test.name())).with_remedy(remedy)
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

    fn send_bytes(&self) -> u64 {
        self.send_bytes.unwrap_or(USUAL_SEND_BYTES)
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
        if self.test.is_stream() {
            option("-f", "m".to_owned());
        }
        // No header.
        option("-P", "0".to_owned());
        argv.push("--".to_owned());
        let sizes = match self.test.is_stream() {
            true => ["-m".to_owned(), self.send_bytes().to_string()],
            false => {
                let sizes = format!("{},{}", self.request_bytes, self.response_bytes);
                ["-r".to_owned(), sizes]
            }
        };
        argv.extend(sizes);
        argv.extend(["-o".to_owned(), self.test.columns()]);
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
        self.check_size("response-size", self.response_bytes)?;
        self.check_size("send-size", self.send_bytes())
    }

    fn deciding_metrics(&self) -> &[&'static str] {
        match self.test.is_stream() {
            true => STREAM_DECIDING,
            false => DECIDING,
        }
    }

    fn request_receiver(&self) -> Asks {
        // IPv4 and this machine only; in the foreground, as a child of the trial.
        let argv = ["-D", "-4", "-L", "127.0.0.1", "-p", "{port}"];
        let argv = std::iter::once(SERVER.name).chain(argv);
        Asks::Server(server_command::SERVER.with_params(&ServerCommand {
            argv: argv.map(str::to_owned).collect(),
            port: None,
            ready: Readiness::Tcp,
        }))
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
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
        if job.load.resolve_count(job.cpus).is_none() {
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
        let cpus = load::allowed_cpus();
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
        match job.load_count() {
            1 => Launch::new(argv),
            pairs => {
                let shell = ["sh", "-c", PAIRS, "pairs"].map(str::to_owned);
                Launch::new([&shell[..], &[pairs.to_string()], &argv].concat())
            }
        }
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        program::check_success(PROGRAM.name, output)?;
        let lines = output.stdout.lines().filter(|line| !line.trim().is_empty());
        let found: Option<Vec<Pair>> = lines.map(|line| Pair::read(line, self.test)).collect();
        let wanted = job.load_count();
        let pairs = found
            .filter(|pairs| pairs.len() as u64 == wanted)
            .ok_or_else(|| {
                let (columns, unit) = (self.test.columns(), self.test.unit());
                let expected = format!("{wanted} times a line of {columns} in {unit}");
                program::garbage(PROGRAM.name, &expected, output)
            })?;
        let asked = self.pair_cpus.map_or(FREE, |cpus| cpus.map(i64::from));
        match pairs.iter().find(|pair| pair.cpus != asked) {
            None => Ok(self.figures(&pairs)),
            Some(pair) => Err(format!(
                "netperf says that the two of a pair were bound to {}, not to {}",
                places(pair.cpus),
                places(asked)
            )),
        }
    }

    fn read_again(&self, job: &Job, output: &Output) -> Option<Result<Vec<Measurement>, String>> {
        Some(self.parse(job, output).map(|parsed| parsed.metrics))
    }
}

/// CPUs of a pair that is not bound, as netperf prints them.
const FREE: [i64; 2] = [-1, -1];

/// `CPUs 0 and 1`, for messages.
fn places(cpus: [i64; 2]) -> String {
    match cpus {
        FREE => "no CPU".to_owned(),
        [load, server] => format!("CPUs {load} and {server}"),
    }
}

/// The figures of one pair.
#[derive(Debug, Clone, PartialEq)]
struct Pair {
    /// In the unit of the test.
    rate: f64,
    cpus: [i64; 2],
    /// In the order of [`LATENCIES`]; a stream has none.
    latencies_us: Vec<u64>,
}

impl Pair {
    /// `None` for a line that netperf 2.7.0 does not print in this test.
    fn read(line: &str, test: Test) -> Option<Self> {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let (head, latencies) = columns.split_at_checked(4)?;
        let rate: f64 = head[0].parse().ok()?;
        if head[1] != test.unit() || !rate.is_finite() || rate <= 0.0 {
            return None;
        }
        let latencies: Option<Vec<u64>> = latencies.iter().map(|us| us.parse().ok()).collect();
        let wanted = match test.is_stream() {
            true => 0,
            false => LATENCIES.len(),
        };
        Some(Pair {
            rate,
            cpus: [head[2].parse().ok()?, head[3].parse().ok()?],
            latencies_us: latencies.filter(|us| us.len() == wanted)?,
        })
    }
}

impl Netperf {
    /// There is one pair at least.
    fn figures(&self, pairs: &[Pair]) -> Parsed {
        let (sum, slowest, factor) = match self.test.is_stream() {
            true => (m::THROUGHPUT, m::SLOWEST_THROUGHPUT, 1.0 / BITS),
            false => (m::REQUESTS_PER_SEC, m::SLOWEST_PAIR, 1.0),
        };
        let rates: Vec<f64> = pairs.iter().map(|pair| pair.rate * factor).collect();
        let mut metrics = vec![
            sum.to_measurement(rates.iter().sum()),
            slowest.to_measurement(rates.iter().copied().fold(f64::INFINITY, f64::min)),
        ];
        for (index, metric) in LATENCIES.iter().enumerate() {
            let worst = pairs.iter().filter_map(|pair| pair.latencies_us.get(index));
            metrics.extend(
                worst
                    .max()
                    .map(|us| metric.to_measurement(*us as f64 * 1000.0)),
            );
        }
        Parsed {
            metrics,
            files: vec![pairs::table(sum.name, &rates, self.pair_cpus)],
            warnings: pairs::two_rates(&rates, self.pair_cpus)
                .into_iter()
                .collect(),
            ..Parsed::default()
        }
    }
}

#[cfg(test)]
mod tests;
