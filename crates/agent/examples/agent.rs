//! The agent alone, without the rest of schedlab: `agent`, `guard`, `load` and
//! `restore`, as the schedlab binary calls them. The tests of this crate drive it: cargo
//! builds the examples of a package before its tests, and no binary of another package.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

#[path = "../tests/few/mod.rs"]
mod few;

use std::io::BufReader;
use std::process::ExitCode;

fn main() -> ExitCode {
    few::install();
    let command = std::env::args().nth(1).unwrap_or_default();
    let result = match command.as_str() {
        "agent" => agent(),
        "load" => load::native_main(std::io::stdin(), std::io::stdout()),
        "guard" => agent::guard_main().map(drop).map_err(|e| e.to_string()),
        "restore" => agent::restore()
            .map(|restored| println!("{restored:?}"))
            .map_err(|e| e.to_string()),
        other => Err(format!(
            "unknown command {other:?}: agent, guard, load, restore"
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn agent() -> Result<(), String> {
    let input = BufReader::new(std::io::stdin());
    let options = agent::Options::of_this_process().map_err(|e| e.to_string())?;
    agent::serve(input, std::io::stdout(), options).map_err(|e| e.to_string())
}
