//! Simulates the whole decision path of schedlab, with its real stopping rule and
//! the very `stats::judge` that runner and report use, on machines whose truth is
//! known. Prints tables and writes nothing.
//!
//! `cargo run --release -p simulation` makes `docs/statistics-simulation.md`'s
//! tables. The same seed gives the same tables on every machine.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

mod annotated;
mod confirmations;
mod courses;
mod events;
mod flattery;
mod fleets;
mod forecasts;
mod futility;
mod machine;
mod nights;
mod protocol;
mod race;
mod regret;
mod reports;
mod rivals;
mod searches;
mod sessions;
mod studies;
mod table;
mod tally;
mod turns;
mod verdicts;
mod wall;

use clap::Parser;
use std::error::Error;
use std::path::PathBuf;
use studies::Setup;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// False calls, detection and cost of schedlab's verdicts, simulated.
#[derive(Debug, Parser)]
struct Arguments {
    /// Simulated comparisons for each figure.
    #[arg(long, default_value_t = 10_000)]
    series: u32,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the tables whose names have this in them: `events`.
    #[arg(long, default_value = "")]
    only: String,
    /// Looks for changes in the series of a checkout of the Turing Change Point Dataset, and does nothing else.
    #[arg(long, value_name = "DIR")]
    annotated: Option<PathBuf>,
    /// Looks for changes in real nights, the `courses.jsonl` of `nights --keep`, and does nothing else.
    #[arg(long, value_name = "FILE", conflicts_with = "annotated")]
    courses: Option<PathBuf>,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    if let Some(dir) = &arguments.annotated {
        println!("{}", annotated::score_dataset(dir)?);
        return Ok(());
    }
    if let Some(file) = &arguments.courses {
        println!("{}", courses::judge_courses(file)?);
        return Ok(());
    }
    let setup = Setup {
        series: arguments.series,
        seed: arguments.seed,
    };
    println!(
        "{} comparisons a figure, seed {}; alpha 0.05, smallest effect 2 %,\n\
         3 to 40 blocks, a look after every block.",
        setup.series, setup.seed
    );
    let studies = studies::ALL.iter();
    for (_, study) in studies.filter(|(name, _)| name.contains(&arguments.only)) {
        println!("\n{}", study(&setup));
    }
    Ok(())
}
