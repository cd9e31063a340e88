//! The fuzzer at any size. It prints what it found, and at its end the counts.

#![allow(clippy::print_stdout, reason = "what it found goes to stdout")]

use program_fuzz::{Campaign, forked};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// The counts are printed after so many inputs, and at the end.
const EACH: u64 = 10_000;
const USAGE: &str = "usage: program-fuzz [INPUTS] [SEED]; what it finds is kept in program-fuzz/";

fn main() -> Result<ExitCode, String> {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|w| w.parse()).collect();
    let numbers = numbers.map_err(|_| USAGE)?;
    let inputs = numbers.first().copied().unwrap_or(10_000);
    let mut campaign = Campaign::new(numbers.get(1).copied().unwrap_or(1), forked);
    let began = Instant::now();
    let mut found = 0;
    for input in 1..=inputs {
        if let Some(one) = campaign.step(Path::new("program-fuzz")) {
            found += 1;
            println!("{:?}: {} {:?}", one.fault, one.kept.display(), one.words);
        }
        if input.is_multiple_of(EACH) || input == inputs {
            let seconds = began.elapsed().as_secs_f64();
            let rate = input as f64 / seconds;
            println!("{input} inputs in {seconds:.0} s, {rate:.0} a second, {found} faults");
            println!("by command and exit code: {:?}", campaign.counts);
        }
    }
    Ok(match found {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
