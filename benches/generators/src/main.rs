//! The native HTTP and memcached generators beside wrk, wrk2 and mcperf: the highest
//! rate that one CPU sustains, what the generator adds to the latency that it
//! measures, and its CPU time at a low rate.
//!
//! ```text
//! cargo run --release -p generators -- target/schedlab \
//!     --wrk wrk --wrk2 wrk2/wrk --mcperf memcache-perf/mcperf --rounds 5
//! ```
//! Server and generator have a CPU each. Every round runs all sides, so that they meet
//! the same minutes of the same machine. A peer that is not named is left out.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cpu;
mod floor;
mod mcperf;
mod rounds;
mod schedlab;
mod server;
mod side;
mod tables;
mod wrk;

use clap::Parser;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// The native generators beside wrk, wrk2 and mcperf.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// The schedlab to run
    schedlab: PathBuf,
    /// A wrk to compare with (closed loop: only its throughput counts)
    #[arg(long)]
    wrk: Option<PathBuf>,
    /// A wrk2 to compare with
    #[arg(long)]
    wrk2: Option<PathBuf>,
    /// An mcperf of memcache-perf to compare with
    #[arg(long)]
    mcperf: Option<PathBuf>,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measured seconds of each run
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    #[arg(long, default_value_t = 16)]
    connections: u32,
    #[arg(long, default_value_t = 0)]
    server_cpu: u32,
    #[arg(long, default_value_t = 1)]
    load_cpu: u32,
    /// Needs root. Run server and generators under SCHED_FIFO, so that other work on the machine
    /// does not get between them; run this program at a higher priority: chrt -f 20 …
    #[arg(long)]
    realtime: bool,
    /// Measurement to make
    #[arg(long, value_delimiter = ',', default_value = "sustained,latency,cpu")]
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The highest rate of which 99 % is achieved
    Sustained,
    /// Latency that the generator adds to what it measures
    Latency,
    /// CPU time at a low rate
    Cpu,
}

impl Arguments {
    fn window(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    print_load("before");
    let table = rounds::measure(&arguments)?;
    print_load("after");
    table.print();
    Ok(())
}

/// Other work on the machine is part of every figure.
fn print_load(when: &str) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = load.split(' ').next().unwrap_or_default();
    println!("load average {when}: {first}");
}
