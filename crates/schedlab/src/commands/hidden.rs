//! Roles of schedlab besides a command line: an agent, its guard, a load generator, a server,
//! an antagonist.

use crate::exit::CliError;
use crate::measure::build;
use std::io::{BufReader, stdin, stdout};
use std::process::ExitCode;

pub fn agent() -> Result<ExitCode, CliError> {
    let options = agent::Options {
        build: build(),
        ..agent::Options::of_this_process()?
    };
    agent::serve(BufReader::new(stdin()), stdout(), options)?;
    Ok(ExitCode::SUCCESS)
}

pub fn guard() -> Result<ExitCode, CliError> {
    agent::guard_main()?;
    Ok(ExitCode::SUCCESS)
}

pub fn load() -> Result<ExitCode, CliError> {
    load::native_main(stdin(), stdout()).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn serve(threads: u32, port: u16) -> Result<ExitCode, CliError> {
    load::serve_main(threads, port, stdout()).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn serve_pairs(port: u16) -> Result<ExitCode, CliError> {
    load::serve_pairs_main(port, stdout()).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn spin(threads: u32) -> Result<ExitCode, CliError> {
    load::spin_main(threads).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}
