//! `schedlab vm snapshot`: guests saved as they run (memory, processes, devices), to
//! go on from there as often as wanted.

use super::show_guest;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use clap::Subcommand;
use std::process::ExitCode;
use vm::manage::DEFAULT_GUEST;
use vm::manage::snapshot::{self, Snapshot};

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Save a guest that runs; it goes on running
    ///
    /// Its root must be an image (`schedlab vm start --root image:PATH`), and no command
    /// may run in it. What is saved is its memory: the image is read-only and stays where
    /// it is.
    Create {
        /// Name of the snapshot: letters, digits, - and _
        snapshot: String,
        /// The guest, as in `vm status`
        #[arg(long, default_value = DEFAULT_GUEST)]
        name: String,
    },
    /// Start a guest that goes on where the snapshot was taken
    ///
    /// Its clock goes on from there too.
    Restore {
        snapshot: String,
        /// Name of the guest; several can go on from one snapshot
        #[arg(long, default_value = DEFAULT_GUEST)]
        name: String,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Snapshots with their kernel, root, size and time
    List {
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Delete a snapshot; guests that were restored from it go on
    Delete { snapshot: String },
}

pub fn snapshot(command: &SnapshotCommand) -> Result<ExitCode, CliError> {
    match command {
        SnapshotCommand::Create { snapshot, name } => snapshot::create(name, snapshot)?,
        SnapshotCommand::Restore {
            snapshot,
            name,
            format,
        } => show_guest(&snapshot::restore(snapshot, name)?, *format)?,
        SnapshotCommand::List { format } => list(*format)?,
        SnapshotCommand::Delete { snapshot } => snapshot::delete(snapshot)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(format: Plain) -> Result<(), CliError> {
    let all = snapshot::list()?;
    match format {
        Plain::Json => {
            let all: Vec<_> = all.iter().map(as_json).collect();
            output::json(&all)?;
        }
        Plain::Text if all.is_empty() => {
            say!("no snapshots: `schedlab vm snapshot create NAME` makes one")
        }
        Plain::Text => all.iter().for_each(print_one),
    }
    Ok(())
}

fn print_one(s: &Snapshot) {
    say!(
        "{:<20} of {:<12} {}, {}, {} MiB, {}",
        s.name,
        s.request.name,
        s.release,
        s.request.spec.root,
        s.bytes.div_ceil(1 << 20),
        created(s)
    );
}

/// In seconds, UTC.
fn created(s: &Snapshot) -> String {
    let seconds = i64::try_from(s.created_unix_s).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "?".to_owned(), |t| t.to_string())
}

fn as_json(s: &Snapshot) -> serde_json::Value {
    serde_json::json!({
        "name": s.name, "guest": s.request.name, "kernel": s.release,
        "root": s.request.spec.root, "cpus": s.request.spec.cpus,
        "memory_bytes": s.request.spec.memory_bytes, "bytes": s.bytes, "created": created(s),
    })
}
