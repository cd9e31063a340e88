//! A blind trial of the judgement: pairs of programs of which some differ and some do not. What was drawn is
//! sealed by a hash before the first run, schedlab judges every pair, and then the seal is opened.
//!
//! ```text
//! cargo run --release -p blind -- target/schedlab --changes 10 --nulls 10
//! ```
//! A program sends so many messages forth and back between two processes through pipes, and prints how long
//! that took. A change is one of more messages in one of the two programs, from 2 to 15 %, by a coin in the
//! first or in the second. The order of the pairs is drawn, too. Nothing that schedlab reads tells which. Both
//! processes are on one CPU: on two, whether they share one is a second draw that hides all the others.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

mod judge;
mod sealed;
mod work;

use clap::{Parser, Subcommand};
use judge::Judgement;
use sealed::{Pair, Sealed};
use std::error::Error;
use std::path::PathBuf;

/// Planted changes and equal programs, judged without knowing which is which.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    work: Option<Work>,
    #[command(flatten)]
    trial: Trial,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// The program that is measured
    #[command(hide = true)]
    Work {
        /// File with the extra messages of the two programs, in percent
        pair: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Trial {
    /// The schedlab that judges
    #[arg(required = true)]
    schedlab: Option<PathBuf>,
    /// Pairs that differ
    #[arg(long, default_value_t = 10)]
    changes: usize,
    /// Pairs of equal programs
    #[arg(long, default_value_t = 10)]
    nulls: usize,
    /// Most blocks of a pair
    #[arg(long, default_value_t = 100)]
    max_blocks: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if let Some(Work::Work { pair }) = arguments.work {
        return work::run(&pair);
    }
    let trial = arguments.trial;
    let sealed = Sealed::draw(trial.changes, trial.nulls)?;
    println!("Seal: sha256 {}", sealed.seal());
    let mut judged = Vec::new();
    for (number, pair) in sealed.pairs().iter().enumerate() {
        let judgement = judge::judge(&trial, *pair)?;
        println!("{:3}  {judgement}", number + 1);
        judged.push(judgement);
    }
    println!("\nOpened: {}", sealed.text());
    println!("sha256 {}", sealed::hash(sealed.text()));
    print_outcome(sealed.pairs(), &judged);
    Ok(())
}

fn print_outcome(pairs: &[Pair], judged: &[Judgement]) {
    println!("\n pair  planted  judged");
    let [mut found, mut missed, mut wrong, mut within, mut calls] = [0; 5];
    for (number, (pair, judgement)) in pairs.iter().zip(judged).enumerate() {
        let planted = pair.change_percent();
        println!("{:5}  {planted:+6.1}%  {judgement}", number + 1);
        within += usize::from(judgement.contains(planted));
        match judgement.direction() {
            Some(direction) if direction * planted > 0.0 => found += 1,
            Some(_) if planted == 0.0 => calls += 1,
            Some(_) => wrong += 1,
            None => missed += usize::from(planted != 0.0),
        }
    }
    let nulls = pairs
        .iter()
        .filter(|pair| pair.change_percent() == 0.0)
        .count();
    println!(
        "\nOf {} changes: {found} found, {missed} not decided, {wrong} called the other way.",
        pairs.len() - nulls
    );
    println!("Of {nulls} equal pairs: {calls} called different.");
    println!(
        "The interval holds what was planted in {within} of {}.",
        pairs.len()
    );
}
