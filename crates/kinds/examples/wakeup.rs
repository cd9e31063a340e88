//! Two seconds of the native wakeup load: this program is the generator and the agent that
//! speaks with it.
//!
//! ```text
//! cargo run --release -p schedlab-kinds --example wakeup
//! ```

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use kinds::wakeup::{self, Wakeup};
use load::{Driver, Job, Output, native_main, phase};
use model::{Arrivals, Load, Workload};
use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    load::KINDS.add_entry(&wakeup::KIND);
    let load = Wakeup {
        message_threads: 1,
        workers: None,
        rate_per_sec: None,
        arrivals: Arrivals::Poisson,
        sleep_ns: 100_000,
        operations: 5,
        footprint_bytes: 32 << 10,
        cpu_lock: true,
    };
    let workload = Workload {
        warmup_ns: 500_000_000,
        duration_ns: 2_000_000_000,
        ..Workload::new(wakeup::KIND.with_params(&load))
    };
    let job = Job::new(&workload, Load::Count(2), 2);
    // The generator ends when this pipe does.
    let (generator, mut agent) = std::io::pipe()?;
    let job_line = load.launch(&job).stdin;
    write!(agent, "{job_line}{}\n{}\n", phase::GO, phase::SEEN)?;
    let mut said = Vec::new();
    native_main(generator, &mut said)?;
    let output = Output {
        stdout: String::from_utf8(said)?,
        success: true,
        ..Output::default()
    };
    for measured in load.parse(&job, &output)?.metrics {
        println!(
            "{:<20} {:>14.1} {}",
            measured.metric, measured.value, measured.unit
        );
    }
    Ok(())
}
