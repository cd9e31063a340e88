//! `schedlab restore`: undo what a killed run or a power cut left in force, and what
//! `schedlab doctor --fix` changed.

use crate::exit::{self, CliError};
use crate::output::say;
use crate::targets;
use agent::Restored;
use std::process::ExitCode;

pub fn restore() -> Result<ExitCode, CliError> {
    let _lock = targets::machine_lock()?;
    let restored = targets::restore_leftovers()?;
    let fixes = agent::restore_fixes().map_err(CliError::internal)?;
    targets::say(&fixes, "by schedlab doctor --fix");
    let failed: Vec<&String> = restored.failed.iter().chain(&fixes.failed).collect();
    for why in &failed {
        eprintln!("not put back: {why}");
    }
    if !failed.is_empty() {
        return Ok(ExitCode::from(exit::INTERNAL));
    }
    let undone = |restored: &Restored| restored.written.len() + restored.killed.len();
    if undone(&restored) + undone(&fixes) == 0 {
        say!("nothing was left in force");
    }
    Ok(ExitCode::SUCCESS)
}
