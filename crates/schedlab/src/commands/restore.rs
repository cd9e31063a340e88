//! `schedlab restore`: undo what a killed run or a power cut left in force.

use crate::exit::CliError;
use crate::targets;
use std::process::ExitCode;

pub fn restore() -> Result<ExitCode, CliError> {
    let _lock = targets::machine_lock()?;
    let restored = targets::restore_leftovers()?;
    if restored.written.is_empty() && restored.killed.is_empty() {
        println!("nothing was left in force");
    }
    Ok(ExitCode::SUCCESS)
}
