//! Roles of schedlab besides a command line: an agent, its guard, a load generator, a server,
//! an antagonist.

use crate::exit::CliError;
use crate::measure::build;
use crate::targets;
use doors::started::own_command;
use std::io::{BufReader, Stdout, stdin};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

/// Messages for another process of schedlab, which no terminal shows.
fn stdout() -> Stdout {
    doors::shown::raw_output("messages between processes of schedlab")
}

pub fn agent() -> Result<ExitCode, CliError> {
    agent::serve(BufReader::new(stdin()), stdout(), options()?)?;
    Ok(ExitCode::SUCCESS)
}

/// For a runner on another machine, which has no lock of this one and can vanish silently.
pub fn agent_alone() -> Result<ExitCode, CliError> {
    let _lock = targets::machine_lock()?;
    let heard = agent::Heard::stdin(agent::SILENCE).map_err(CliError::internal)?;
    agent::serve(BufReader::new(heard), stdout(), options()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Becomes an agent that finds the schedulers and tools of this machine.
pub fn agent_here(runner: &str) -> Result<ExitCode, CliError> {
    let mut agent = own_command(Path::new("/proc/self/exe"));
    agent
        .arg0("schedlab")
        .args(["agent", "--alone", "--for", runner]);
    agent.envs(targets::environment_here()?);
    Err(CliError::internal(format!(
        "start the agent: {}",
        agent.exec()
    )))
}

fn options() -> Result<agent::Options, CliError> {
    Ok(agent::Options {
        build: build(),
        ..agent::Options::of_this_process()?
    })
}

pub fn guard() -> Result<ExitCode, CliError> {
    agent::guard_main()?;
    Ok(ExitCode::SUCCESS)
}

pub fn load() -> Result<ExitCode, CliError> {
    load::native_main(stdin(), stdout()).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn serve(threads: u32, at: SocketAddr) -> Result<ExitCode, CliError> {
    services::serve_main(threads, at, stdout()).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn serve_pairs(at: SocketAddr) -> Result<ExitCode, CliError> {
    kinds::serve_pairs_main(at, stdout()).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn worker() -> Result<ExitCode, CliError> {
    burnwait::worker_main().map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn burn(company: &str) -> Result<ExitCode, CliError> {
    burnwait::beside_main(company).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn provoke(name: &str) -> Result<ExitCode, CliError> {
    services::provoke_main(name).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}

pub fn spin(threads: u32) -> Result<ExitCode, CliError> {
    services::spin_main(threads).map_err(CliError::internal)?;
    Ok(ExitCode::SUCCESS)
}
