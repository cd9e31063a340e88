//! The commands, one file each.

pub mod bisect;
pub mod boot;
pub mod certify;
pub mod check;
pub mod compare;
pub mod doctor;
pub mod forecast;
pub mod gate;
pub mod history;
pub mod hunt;
pub mod import;
pub mod inner_roles;
pub mod list;
pub mod manual;
pub mod mcp;
pub mod merge;
pub mod overhead;
pub mod pack;
pub mod pick;
pub mod plan;
pub mod propose;
pub mod recommend;
pub mod report;
pub mod restore;
pub mod run;
pub mod scheduler;
pub mod service;
pub mod snapshot;
pub mod target;
pub mod tool;
pub mod tune;
pub mod verify;
pub mod vm;
pub mod watch;

use crate::exit::CliError;
use crate::output::{self, Plain, say};
use ::vm::manage::Status;

/// A guest that runs, as `vm status` shows it.
fn show_guest(status: &Status, format: Plain) -> Result<(), CliError> {
    match format {
        Plain::Text => print_guest(status),
        Plain::Json => output::json(status)?,
    }
    Ok(())
}

/// One line of a guest that runs.
fn print_guest(status: &Status) {
    let fact = |name: &str| status.facts.get(name).map_or("?", String::as_str);
    say!(
        "{:<12} {} on {}, {} CPUs, {}, process {}",
        status.name,
        fact("vm.kernel"),
        fact("vm.accel"),
        fact("vm.cpus"),
        fact("vm.memory"),
        status.pid
    );
}
