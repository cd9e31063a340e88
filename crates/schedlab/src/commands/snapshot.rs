//! `schedlab vm snapshot`: guests saved as they run (memory, processes, devices), to
//! go on from there as often as wanted.

use super::show_guest;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use clap::Subcommand;
use model::printable::one_line;
use model::{Check, CheckState, Experiment, TargetSpec};
use std::process::ExitCode;
use vm::manage::DEFAULT_GUEST;
use vm::manage::snapshot;
use vm::snapshot::Snapshot;
use vm::{VmError, VmSpec};

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Save a guest that runs; it goes on running
    ///
    /// Its root must be an image (`schedlab vm start --root image:PATH`), and no command
    /// may run in it. What is saved is its memory: the image is read-only and stays where
    /// it is. An experiment with `reset = { snapshot = "NAME" }` goes on from it.
    Create {
        /// Name of the snapshot: letters, digits, - and _
        snapshot: String,
        /// The guest, as in `vm status`
        #[arg(long, default_value = DEFAULT_GUEST)]
        name: String,
    },
    /// Start a guest that goes on where the snapshot was taken
    ///
    /// Its clock goes on from there too. A snapshot of another build of schedlab is refused, and one whose
    /// kernel, image or memory is no longer what was saved. `vm shell` looks around in the guest.
    Restore {
        snapshot: String,
        /// Name of the guest; several can go on from one snapshot
        #[arg(long, default_value = DEFAULT_GUEST)]
        name: String,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Snapshots with who made them, their kernel, root, size and time
    List {
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Delete a snapshot; guests that were restored from it go on
    #[command(visible_alias = "remove")]
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
            let directory = snapshot::find_directory()?;
            let all = all.iter().map(|(name, s)| {
                let mut json = as_json(name, s);
                json["path"] = serde_json::json!(directory.join(name));
                json
            });
            let all: Vec<_> = all.collect();
            output::json(&all)?;
        }
        Plain::Text if all.is_empty() => {
            say!("no snapshots: `schedlab vm snapshot create NAME` makes one")
        }
        Plain::Text => all.iter().for_each(|(name, s)| print_one(name, s)),
    }
    Ok(())
}

fn print_one(name: &str, found: &Result<Snapshot, VmError>) {
    match found {
        Ok(s) => say!("{name:<20} {}", one_line(&in_words(s))),
        Err(e) => say!("{}", one_line(&e.to_string())),
    }
}

/// `by a run for web, 7.2.13, image:…, 90 MiB, 2026-…`.
fn in_words(s: &Snapshot) -> String {
    let by = match &s.done {
        Some(done) => {
            let workload = done.asked.get("name").and_then(|name| name.as_str());
            format!("by a run for {}", workload.unwrap_or("a workload"))
        }
        None => format!("of {}", s.guest),
    };
    let mib = s.bytes.div_ceil(1 << 20);
    let (release, root) = (&s.ready.release, &s.spec.root);
    format!("{by}, {release}, {root}, {mib} MiB, {}", created(s))
}

/// What is there under the name that the experiment's guests go on from, if it has one.
pub fn describe_named(experiment: &Experiment) -> Option<String> {
    let spec = VmSpec::from_target(&experiment.target).ok()?;
    let name = spec.snapshot?;
    Some(match snapshot::find(&name) {
        Ok(Some(s)) => format!("goes on from the snapshot {name} {}", in_words(&s)),
        Ok(None) => {
            format!("there is no snapshot {name} yet: the run makes it before the first trial")
        }
        Err(e) => e.to_string(),
    })
}

/// Leaves no name of a snapshot in an experiment whose work is another than that of the runs which share it: its guests
/// are saved for it alone.
pub fn forget_name(experiment: &mut Experiment) {
    if let Ok(mut spec) = VmSpec::from_target(&experiment.target)
        && spec.snapshot.take().is_some()
    {
        experiment.target = TargetSpec::from(&spec);
    }
}

/// In seconds, UTC.
fn created(s: &Snapshot) -> String {
    let seconds = i64::try_from(s.created_unix_s).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "?".to_owned(), |t| t.to_string())
}

/// What `doctor` says of the snapshots; `None` where there are none.
pub fn check_snapshots() -> Option<Check> {
    let all = snapshot::list().ok().filter(|all| !all.is_empty())?;
    let bytes = all.iter().flat_map(|(_, found)| found).map(|s| s.bytes);
    let mib = bytes.fold(0, u64::saturating_add).div_ceil(1 << 20);
    let damaged = all.iter().find(|(_, found)| found.is_err());
    let (value, state, remedy) = match damaged {
        Some((name, _)) => (
            format!("the description of {name} cannot be read"),
            CheckState::Unknown,
            format!("schedlab vm snapshot delete {name}"),
        ),
        None => (
            format!("{}, {mib} MiB", report::format_count(all.len(), "snapshot")),
            CheckState::Ok,
            String::new(),
        ),
    };
    Some(Check {
        name: "snapshots".to_owned(),
        value,
        state,
        effect: "Each is proven when a guest goes on from it.".to_owned(),
        remedy,
    })
}

fn as_json(name: &str, found: &Result<Snapshot, VmError>) -> serde_json::Value {
    let s = match found {
        Ok(s) => s,
        Err(e) => return serde_json::json!({ "name": name, "problem": e.to_string() }),
    };
    serde_json::json!({
        "name": name, "guest": s.guest, "kernel": s.ready.release, "root": s.spec.root,
        "cpus": s.spec.cpus, "memory_bytes": s.spec.memory_bytes, "bytes": s.bytes,
        "created": created(s), "sha256": s.sha256, "parts": s.parts,
        "build": s.done.as_ref().map(|done| &done.build),
        "workload": s.done.as_ref().and_then(|done| done.asked.get("name")),
    })
}
