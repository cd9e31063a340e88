//! How often does schedlab call a difference where there is none, on this machine,
//! and does it find one that is there? Real trials of the `wakeup` load, with the
//! real stopping of `schedlab run`, beside the common protocol: all runs of one arm,
//! then all of the other.
//!
//! ```text
//! cargo run --release -p aa -- measure target/schedlab aa.jsonl
//! cargo run --release -p aa -- tables aa.jsonl
//! ```
//! Three rounds, so that all protocols meet the same hours of the same machine; about
//! half an hour in all. Each line of the file is one comparison or one side of a
//! sequential one; another `measure` with the same file adds to it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod lab;
mod measure;
mod record;
mod sequential;
mod tables;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::path::PathBuf;

/// Real A/A comparisons on this machine, and known slowdowns, found or not.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure, and add to a file
    Measure {
        /// The schedlab to run
        schedlab: PathBuf,
        /// One JSON object a line
        file: PathBuf,
        #[command(flatten)]
        amount: measure::Amount,
    },
    /// Tables of what was measured, in Markdown
    Tables { file: PathBuf },
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = match Arguments::parse().command {
        Command::Tables { file } => file,
        Command::Measure {
            schedlab,
            file,
            amount,
        } => {
            measure::rounds(&lab::Lab::new(schedlab)?, &amount, &file)?;
            file
        }
    };
    print!("{}", tables::all(&record::read(&file)?));
    Ok(())
}
