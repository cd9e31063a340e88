//! The native wake-up load: what schbench measures, with its known traps closed.
//!
//! Message threads wake workers over futexes. A woken worker sleeps ("network"),
//! takes the lock of its CPU, multiplies matrices of a set footprint, and offers
//! itself again. At the same parameters a closed loop does what schbench does
//! (<https://git.kernel.org/pub/scm/linux/kernel/git/mason/schbench.git>), on a
//! monotonic clock in nanoseconds, with a warm-up that is left out of the figures.
//!
//! Measured beside it in turns (`examples/beside_schbench.rs`, two CPUs, footprint
//! 64 KiB and 256 KiB), wakeup latency and the cost of sleep and wakes agree. Requests
//! differ for one reason: schbench never writes two of its three matrices, so the
//! kernel's one page of zeros stands for both; on the CPU tried (Zen 4) its requests
//! then take 10 % to 40 % longer. With one `memset` added to it, the medians of
//! requests agree within 4 %.
//!
//! An open loop starts requests at seeded intended times, never in bursts, and
//! counts request latency from the intended start, so that overload can be seen.
//!
//! Between the gate and the end of the window no thread allocates, prints or takes
//! another lock than the one per CPU that belongs to the load.

mod config;
mod cpu_lock;
mod figures;
mod generate;
mod group;
mod message;
mod post;
mod shared;
mod worker;

use config::Config;
pub use generate::{MESSAGE_THREAD, WORKER_THREAD};

use load::latency as m;
use load::stalls::{REQUEST_STALLS, WAKEUP_STALLS};
use load::steady::{LATENCY_DRIFT, THROUGHPUT_DRIFT};
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    Phases, Usual, Window, Work, phase,
};
use model::check::{check_count, check_size};
use model::{Arrivals, Invalid, KeyDef, Load, MetricDef, Problem, Task};
use serde::{Deserialize, Serialize};

/// The native wake-up load: message threads wake workers over futexes.
/// The load is the number of workers, or a rate with `workers` of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wakeup {
    /// Number of threads that wake the workers.
    pub message_threads: u32,
    /// Workers in all when the load is a rate; `None`: one per CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Requests per second in all, for an open loop at a load given as workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_sec: Option<f64>,
    /// Spread of the intended starts of an open loop.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Sleep in each request ("network time").
    pub sleep_ns: u64,
    /// Matrix multiplications in each request.
    pub operations: u32,
    /// Bytes that one worker's matrices take.
    pub footprint_bytes: u64,
    /// Take a per-CPU lock around the multiplications.
    pub cpu_lock: bool,
}

/// schbench sleeps 100 us and multiplies 5 times over 256 KiB; a smaller footprint
/// makes requests short enough for a 99th percentile in a trial of two seconds.
impl Params for Wakeup {
    fn read(keys: &mut Keys) -> Self {
        Wakeup {
            message_threads: keys.get("message-threads").unwrap_or(1),
            workers: keys.get("workers"),
            rate_per_sec: keys.rate("rate"),
            arrivals: keys.get("arrivals").unwrap_or_default(),
            sleep_ns: keys.duration("sleep").unwrap_or(100_000),
            operations: keys.get("operations").unwrap_or(5),
            footprint_bytes: keys.size("footprint").unwrap_or(32 << 10),
            cpu_lock: keys.get("cpu-lock").unwrap_or(true),
        }
    }
}

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "message-threads",
        "number",
        "1",
        "Threads that wake the workers.",
    ),
    KeyDef::new(
        "workers",
        "number",
        "one for each CPU",
        "Workers in all, where the load is a rate; otherwise the load is their number.",
    ),
    KeyDef::new(
        "rate",
        "rate",
        "",
        "Requests per second in all: makes a load given as a number of workers an open loop.",
    ),
    KeyDef::new(
        "arrivals",
        "`poisson` or `constant`",
        "`poisson`",
        "Spread of the intended starts of an open loop.",
    ),
    KeyDef::new(
        "sleep",
        "duration",
        "`100us`",
        "Sleep in each request, as a request waits for a network.",
    ),
    KeyDef::new(
        "operations",
        "number",
        "5",
        "Matrix multiplications in each request.",
    ),
    KeyDef::new(
        "footprint",
        "size",
        "`32KiB`",
        "Memory of the matrices of one worker.",
    ),
    KeyDef::new(
        "cpu-lock",
        "`true` or `false`",
        "`true`",
        "Whether a lock of the CPU is held during the multiplications.",
    ),
];

/// The kind `wakeup`.
pub static KIND: KindDef = KindDef {
    name: "wakeup",
    aliases: &[],
    summary: "message threads wake workers over futexes; each request sleeps, takes a per-CPU \
              lock and multiplies matrices (native; what schbench measures)",
    loads: LoadForms::CountsOrRates,
    load_unit: "workers",
    window: Window::Phased,
    usual: Usual {
        load: Load::PercentOfCpus(100.0),
        duration_ns: 2_000_000_000,
        warmup_ns: 500_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Wakeup>(),
    client: false,
    metrics: METRICS,
    deciding: m::DECIDING,
    logs: &["wakeup", "request", "service"],
    watched: &["wakeup", "request"],
    tasks: &[Task::Thread("wakeup-*")],
    programs: &[],
    handicap: true,
    turns: true,
};

/// Metrics of the wakeup load.
const METRICS: &[MetricDef] = &[
    m::WAKEUP_P50,
    m::WAKEUP_P90,
    m::WAKEUP_P95,
    m::WAKEUP_P99,
    m::WAKEUP_P999,
    m::WAKEUP_MAX,
    m::REQUEST_P50,
    m::REQUEST_P90,
    m::REQUEST_P95,
    m::REQUEST_P99,
    m::REQUEST_P999,
    m::REQUEST_MAX,
    m::REQUESTS_PER_SEC,
    m::SERVICE_P50,
    m::SERVICE_P99,
    m::OFFERED_PER_SEC,
    m::ACHIEVED_PERCENT,
    m::OVERLOADED,
    WAKEUP_STALLS,
    REQUEST_STALLS,
    THROUGHPUT_DRIFT,
    LATENCY_DRIFT,
];

impl Driver for Wakeup {
    fn check(&self) -> Result<(), Invalid> {
        check_count("message-threads", self.message_threads.into())?;
        check_count("workers", self.workers.unwrap_or(1).into())?;
        check_size("footprint", self.footprint_bytes)
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let fault = Config::for_job(self, job).fault();
        fault
            .map(|what| job.problem(what, "correct the workload in the experiment file"))
            .into_iter()
            .collect()
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        generate::generate(&Config::for_job(self, job), phases)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}

#[cfg(test)]
pub(crate) fn small_config() -> Config {
    Config {
        params: Wakeup {
            message_threads: 1,
            workers: None,
            rate_per_sec: None,
            arrivals: Arrivals::Poisson,
            sleep_ns: 100_000,
            operations: 1,
            footprint_bytes: 4096,
            cpu_lock: true,
        },
        workers: 2,
        rate_per_sec: None,
        handicap_percent: 0.0,
        warmup_ns: 20_000_000,
        duration_ns: 300_000_000,
        seed: 1,
        turns: None,
        handicaps: Vec::new(),
    }
}
