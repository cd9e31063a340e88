//! The worker of `burnwait` beside rt-app, both alone on the machine: how long work takes that is
//! asked for in microseconds, and how late it begins.
//!
//! ```text
//! cargo run --release -p precision -- target/schedlab --rounds 8
//! ```
//! Each round calibrates both anew, as a user's run does: rt-app by `"calibration": "CPU0"`, burnwait
//! before its first trial. Then both have one trial of each form of demand, in random order, in one
//! run of schedlab. The calibrations of rt-app take most of the time. Its log has whole
//! microseconds.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod demand;
mod read;
mod round;
mod table;

use clap::Parser;
use std::error::Error;
use std::path::PathBuf;

/// Precision of burnwait beside that of rt-app.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// The schedlab to run
    schedlab: PathBuf,
    /// The rt-app to compare with
    #[arg(long, default_value = "rt-app")]
    rt_app: PathBuf,
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// Measured seconds of each trial
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    print_load("before");
    let mut rounds = Vec::new();
    for number in 1..=arguments.rounds {
        let round = round::measure(&arguments)?;
        table::print_round(number, &round);
        rounds.push(round);
    }
    print_load("after");
    table::print(&rounds);
    Ok(())
}

/// Other work on the machine is part of every figure.
fn print_load(when: &str) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = load.split(' ').next().unwrap_or_default();
    println!("load average {when}: {first}");
}
