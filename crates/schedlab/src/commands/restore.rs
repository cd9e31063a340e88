//! `schedlab restore`: undo what a killed run or a power cut left in force, and what
//! `schedlab doctor --fix` changed.
//!
//! It takes the lock of the journal, not the one of runs: nobody may keep it from
//! undoing.

use crate::args::FarArgs;
use crate::exit::{self, CliError};
use crate::output::{self, Plain, note, say};
use crate::targets;
use agent::Restored;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn restore(far: Option<&FarArgs>, format: Plain) -> Result<ExitCode, CliError> {
    if let Some(far) = far {
        return targets::run_elsewhere(far, &["restore", format.option_word()]);
    }
    let left = agent::restore()?;
    targets::print_restored(&left, "by an earlier run");
    let fixes = agent::restore_fixes()?;
    targets::print_restored(&fixes, "by schedlab doctor --fix");
    if format == Plain::Json {
        output::json(&json!({ "run": as_json(&left), "doctor": as_json(&fixes) }))?;
    }
    let failed: Vec<&String> = left.failed.iter().chain(&fixes.failed).collect();
    for why in &failed {
        note!("not put back: {why}");
    }
    if !failed.is_empty() {
        return Ok(ExitCode::from(exit::INTERNAL));
    }
    let undone = |restored: &Restored| {
        restored.written.len() + restored.killed.len() + restored.removed.len()
    };
    if agent::another_journal_holds_something() {
        note!(
            "The journal of root holds changes: a run of root's is under way, or was killed, or \
             `doctor --fix` was run. As root: schedlab restore"
        );
        return Ok(ExitCode::from(exit::UNMET));
    }
    if format == Plain::Text && undone(&left) + undone(&fixes) == 0 {
        say!("nothing was left in force");
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(restored: &Restored) -> Value {
    let written = restored.written.iter();
    let written = written.map(|(path, value)| json!({ "path": path, "value": value.trim() }));
    json!({
        "written": written.collect::<Value>(),
        "killed": restored.killed,
        "removed": restored.removed,
        "failed": restored.failed,
    })
}
