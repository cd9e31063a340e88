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
pub mod metrics;
mod post;
mod shared;
mod work;
mod worker;

pub use config::Config;
pub use generate::{MESSAGE_THREAD, WORKER_THREAD, generate};

use crate::native::Generator;
use crate::{
    Driver, Job, KindDef, Launch, LoadForms, Output, Parsed, SELF, Window, phase, program,
};
use model::{Problem, Task, WakeupParams};

/// Starts the generator as `schedlab load` and reads its result line.
#[derive(Debug, Clone)]
pub struct Wakeup {
    params: WakeupParams,
}

impl Wakeup {
    pub fn new(params: WakeupParams) -> Self {
        Wakeup { params }
    }
}

/// The kind `wakeup`.
pub static KIND: KindDef = KindDef {
    name: "wakeup",
    aliases: &[],
    summary: "message threads wake workers over futexes; each request sleeps, takes a per-CPU \
              lock and multiplies matrices (native; what schbench measures)",
    loads: LoadForms::CountsOrRates,
    load_unit: "workers",
    window: Window::Phased,
    client: false,
    metrics: metrics::ALL,
    deciding: metrics::DECIDING,
    logs: &["wakeup", "request", "service"],
    tasks: &[Task::Thread("wakeup-*")],
    programs: &[],
    handicap: true,
};

impl Driver for Wakeup {
    fn require(&self, job: &Job) -> Vec<Problem> {
        let fault = Config::of(&self.params, job).fault();
        fault
            .map(|what| Problem {
                object: format!("workload {}", job.workload.name),
                what,
                remedy: "correct the workload in the experiment file".to_owned(),
            })
            .into_iter()
            .collect()
    }

    fn launch(&self, job: &Job) -> Launch {
        let generator = Generator::Wakeup(Config::of(&self.params, job));
        // Numbers and names only: serialization cannot fail, and an empty line would be refused.
        let line = serde_json::to_string(&generator).unwrap_or_default();
        Launch {
            argv: vec![SELF.to_owned(), "load".to_owned()],
            directory: None,
            stdin: line + "\n",
            phased: true,
            prepare: Vec::new(),
        }
    }

    fn parse(&self, _job: &Job, output: &Output) -> Result<Parsed, String> {
        program::succeeded("the wakeup generator", output)?;
        let line = output
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(phase::RESULT))
            .ok_or_else(|| program::garbage("the wakeup generator", "a result line", output))?;
        serde_json::from_str(line)
            .map_err(|e| format!("read the result of the wakeup generator: {e}"))
    }
}

#[cfg(test)]
pub(crate) fn small_config() -> Config {
    Config {
        message_threads: 1,
        workers: 2,
        rate_per_sec: None,
        arrivals: model::Arrivals::Poisson,
        sleep_ns: 100_000,
        operations: 1,
        footprint_bytes: 4096,
        cpu_lock: true,
        handicap_percent: 0.0,
        warmup_ns: 20_000_000,
        duration_ns: 300_000_000,
        seed: 1,
    }
}
