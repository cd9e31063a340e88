//! Requests and responses over the loopback interface, as netperf's TCP_RR and UDP_RR have them
//! (native).
//!
//! Each pair is a thread of the load and a thread of the server ([`serve`]), which take turns:
//! one request is under way at a time, and both wait in blocking calls. Where a pair may run
//! matters more than anything else: on one CPU its threads hand over, on two they wake each
//! other up.

mod client;
mod hello;
pub mod serve;

use load::latency as m;
use load::stalls::REQUEST_STALLS;
use load::steady::THROUGHPUT_DRIFT;
use load::{
    Asks, Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params,
    Parsed, Phases, Usual, Window, Work, phase,
};
use model::{Invalid, KeyDef, Load, MetricDef, Place, Problem, Task};
use serde::{Deserialize, Serialize};
use services::programs::rr;

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "protocol",
        "`tcp` or `udp`",
        "`tcp`",
        "Protocol of the requests.",
    ),
    KeyDef::new("request-size", "size", "`1B`", "Size of a request."),
    KeyDef::new("response-size", "size", "`1B`", "Size of a response."),
    KeyDef::new(
        "pair-cpus",
        "list of two numbers",
        "not bound",
        "CPU of the load's thread and CPU of the server's thread in every pair. A pair that is \
         not bound may run at one rate on one CPU and at another on two, and change between them.",
    ),
];

/// The kind `rr`.
pub static KIND: KindDef = KindDef {
    name: "rr",
    aliases: &[],
    summary: "pairs of threads that send requests and responses over loopback, closed loop \
              (native; what netperf's TCP_RR and UDP_RR measure)",
    loads: LoadForms::Counts,
    load_unit: "pairs",
    window: Window::Phased,
    usual: Usual {
        load: Load::Count(1),
        duration_ns: 2_000_000_000,
        warmup_ns: 500_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Rr>(),
    client: false,
    metrics: METRICS,
    deciding: &["requests_per_sec"],
    logs: &["request"],
    watched: &["request"],
    tasks: &[Task::Thread("rr-*")],
    programs: &[],
    handicap: false,
    turns: true,
};

/// Metrics of the load.
const METRICS: &[MetricDef] = &[
    m::REQUESTS_PER_SEC,
    m::SLOWEST_PAIR,
    m::REQUEST_P50,
    m::REQUEST_P90,
    m::REQUEST_P95,
    m::REQUEST_P99,
    m::REQUEST_P999,
    m::REQUEST_MAX,
    REQUEST_STALLS,
    THROUGHPUT_DRIFT,
];

/// The largest payload of a UDP datagram over IPv4.
const MOST_UDP_BYTES: u64 = 65_507;
/// Every thread has a buffer of this size at most.
const MOST_TCP_BYTES: u64 = 64 << 20;

/// Requests and responses. The load is the number of pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rr {
    /// Protocol of the requests.
    pub protocol: Protocol,
    /// Size of each request.
    pub request_bytes: u64,
    /// Size of each response.
    pub response_bytes: u64,
    /// CPUs of the load's thread and of the server's; `None`: the scheduler chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_cpus: Option<[u32; 2]>,
}

/// Protocol between the two of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// One TCP connection, without Nagle's algorithm.
    Tcp,
    /// Datagrams between two sockets.
    Udp,
}

impl Protocol {
    fn most_bytes(self) -> u64 {
        match self {
            Protocol::Tcp => MOST_TCP_BYTES,
            Protocol::Udp => MOST_UDP_BYTES,
        }
    }
}

impl Params for Rr {
    fn read(keys: &mut Keys) -> Self {
        Rr {
            protocol: keys.get("protocol").unwrap_or(Protocol::Tcp),
            request_bytes: keys.size("request-size").unwrap_or(1),
            response_bytes: keys.size("response-size").unwrap_or(1),
            pair_cpus: keys.get("pair-cpus"),
        }
    }
}

impl Rr {
    fn check_size(&self, key: &str, bytes: u64) -> Result<(), Invalid> {
        let most = self.protocol.most_bytes();
        if (1..=most).contains(&bytes) {
            return Ok(());
        }
        let what = format!("`{key}` is 1B to {most} bytes, not {bytes}");
        Err(Invalid::new(key, what))
    }
}

impl Driver for Rr {
    fn check(&self) -> Result<(), Invalid> {
        self.check_size("request-size", self.request_bytes)?;
        self.check_size("response-size", self.response_bytes)
    }

    fn request_receiver(&self) -> Asks {
        Asks::Server(rr::SERVER.with_params(&rr::RrServer {}))
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        if job.workload.load_on == Place::Controller {
            let what = "the datagrams and the CPUs of `rr` are those of one machine, so its load \
                        runs beside its server";
            problems.push(job.problem(what.to_owned(), "leave out `load-on`"));
        }
        let cpus = load::allowed_cpus();
        let named = self.pair_cpus.into_iter().flatten();
        for cpu in named.filter(|cpu| !cpus.contains(cpu)) {
            let what = format!("`pair-cpus`: there is no CPU {cpu} to run on here");
            let remedy = "name CPUs of this machine that the workload may run on";
            problems.push(job.problem(what, remedy));
        }
        problems
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        client::generate(self, job, phases)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}

#[cfg(test)]
mod tests;
