//! Kinds of target: the one table, and what an entry says.
//!
//! A target is one file or folder of this crate with a [`TargetDef`], and one line in
//! [`TARGETS`]. Whoever has to know about targets asks here: the reader of experiment
//! files, the checks of a plan, the lists of the command line and what starts a run.

use crate::{Target, TargetError, local, slurm, ssh, vm, xen};
use model::{Invalid, KeyDef, Problem, Reset, TargetSpec};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// All targets, this machine first.
pub static TARGETS: &[&TargetDef] = &[&local::DEF, &vm::DEF, &xen::DEF, &ssh::DEF, &slurm::DEF];

/// The table of a file, without `kind`.
pub type Keys<'a> = toml::de::ValueDeserializer<'a>;

/// Adds paths to the keys.
pub type Expose = fn(&mut TargetSpec, &[String]) -> Result<(), Invalid>;

/// Lines of what something is and a text about it.
pub type Shown = Vec<(&'static str, String)>;

/// What [`TargetDef::shown`] says of files and options by which a program starts, here or on the machine
/// that it names, before anything is measured.
pub(crate) const CONFIGURATION_OF_SSH: &str = "with the configuration of ssh";
pub(crate) const PROGRAM: &str = "which runs the program";
pub(crate) const OPTIONS: &str = "with options";
const THAT_START: [&str; 3] = [CONFIGURATION_OF_SSH, PROGRAM, OPTIONS];

/// The lines of a target about what starts as soon as somebody connects to it.
pub fn starts_by_connecting(spec: &TargetSpec) -> Result<Shown, Invalid> {
    let shown = (find_def(spec)?.shown)(spec).map_err(|e| e.in_table("target"))?;
    let starts = |(what, _): &(&str, String)| THAT_START.contains(what);
    Ok(shown.into_iter().filter(starts).collect())
}

/// A target, or why there is none.
pub type Made = Result<Box<dyn Target>, TargetError>;

/// A kind of target: all that holds for every target of it.
#[derive(Debug, Clone, Copy)]
pub struct TargetDef {
    /// Name in the experiment file.
    pub name: &'static str,
    /// One sentence for `schedlab list targets`.
    pub summary: &'static str,
    /// Keys of `[target]` beside `kind`, for the reference.
    pub keys: &'static [KeyDef],
    /// The key that `KIND:TEXT` of a command line gives; `None` where it gives none.
    pub short: Option<&'static str>,
    /// Reads the keys of `[target]`.
    pub read: fn(Keys) -> Result<TargetSpec, ReadError>,
    /// The abilities of a target with these keys, before it is there.
    pub can: fn(&TargetSpec) -> Result<Can, Invalid>,
    /// Lets the target see private files of this machine, where it sees others already.
    pub expose: Option<Expose>,
    /// Lines for somebody who runs a stranger's experiment and must agree to it: a line with
    /// what it is about and a text, then lines that belong to the first.
    pub shown: fn(&TargetSpec) -> Result<Shown, Invalid>,
    /// Makes it; nothing is started yet.
    pub make: fn(&TargetSpec, &Host) -> Made,
    /// Several machines of it at once, where it can have them.
    pub fleet: Option<MakeFleet>,
}

/// Waits until several machines are there, and says what it waits for.
pub type MakeFleet = fn(&TargetSpec, &Host, Say) -> MadeFleet;

/// Machines, or why there are none.
pub type MadeFleet = Result<Box<dyn Fleet>, TargetError>;

/// Tells whoever waits what for.
pub type Say<'a> = &'a mut dyn FnMut(&str);

/// Machines that measure at the same time, until this is dropped.
pub trait Fleet: Send + Sync {
    /// Names of the machines.
    fn machine_names(&self) -> Vec<String>;

    /// The target that one of them is, as results of it alone have it.
    fn machine_spec(&self, machine: &str) -> TargetSpec;

    /// One of them.
    fn make_target(&self, machine: &str, host: &Host) -> Made;

    /// Machines that should be left now.
    fn machines_to_leave(&self) -> Vec<Leaving>;
}

/// A machine that should be left, since it will be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Name of the machine.
    pub machine: String,
    /// Reason for which it will be lost.
    pub why: String,
}

/// The abilities of a target for an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Can {
    /// Does it boot the kernel that an arm names?
    pub kernels: bool,
    /// Is it a machine that boots installed kernels of its own, so that each arm must name one?
    pub reboots: bool,
    /// CPUs that its agents have, where that is known beforehand.
    pub cpus: Option<u32>,
    /// Is it another machine than the controller, which reaches its ports?
    pub apart: bool,
    /// Do its trials take the CPUs of this machine, so that it must be free of other runs?
    pub here: bool,
    /// Are its programs those of this machine, so that one that is missing here is missing there?
    pub programs_of_here: bool,
    /// Occasions on which the agent and its machine are started anew.
    pub reset: Reset,
}

/// The things that a target is given besides its keys.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The schedlab binary, which is the agent as well; `None` is this very program.
    pub program: Option<PathBuf>,
    /// Environment of agents.
    pub environment: Vec<(String, String)>,
    /// Directories with programs that agents look up behind those of PATH.
    pub path: Vec<PathBuf>,
    /// Environment of agents on another machine than this, besides.
    pub elsewhere: Vec<(String, String)>,
    /// Files and directories of this machine that agents need.
    pub needed: Vec<PathBuf>,
    /// Wait for the end of another run, where the target is a machine that has one.
    pub wait: bool,
    /// Record of the run that goes on after each boot of this machine, where this is that run.
    pub record: Option<PathBuf>,
    /// Set from outside to end what is being started.
    pub interrupted: Arc<AtomicBool>,
}

impl Host {
    /// A value of PATH with the directories of `path` at its end.
    pub fn longer_path(&self, path: &OsStr) -> OsString {
        // An empty text would be one directory, the current one.
        let usual = env::split_paths(path).filter(|_| !path.is_empty());
        let all = usual.chain(self.path.iter().cloned());
        // A directory with a colon in its name cannot be in PATH.
        env::join_paths(all).unwrap_or_else(|_| path.to_owned())
    }
}

/// Keys that make no target.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Error with its place in the file.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// Error with the key that it is about.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// The target with this name.
pub fn find_by_name(name: &str) -> Option<&'static TargetDef> {
    TARGETS.iter().find(|def| def.name == name).copied()
}

/// The entry for what an experiment names.
pub fn find_def(spec: &TargetSpec) -> Result<&'static TargetDef, Invalid> {
    find_by_name(spec.kind()).ok_or_else(|| {
        Invalid::new("target", format!("there is no target `{}`", spec.kind()))
            .with_remedy("`schedlab list targets` has all")
    })
}

/// The abilities of the target of an experiment; an error where its keys make none.
pub fn find_abilities(spec: &TargetSpec) -> Result<Can, Invalid> {
    (find_def(spec)?.can)(spec).map_err(|e| e.in_table("target"))
}

/// The CPUs of its agents, where that is known beforehand.
pub fn known_cpus(spec: &TargetSpec) -> Option<u32> {
    find_abilities(spec).ok().and_then(|can| can.cpus)
}

/// The way to the machines of an experiment, where it can want several at once.
pub fn find_fleet(spec: &TargetSpec) -> Result<Option<MakeFleet>, Invalid> {
    Ok(find_def(spec)?.fleet)
}

/// The target of an experiment; nothing is started yet.
pub fn make_target(spec: &TargetSpec, host: &Host) -> Made {
    (find_def(spec)?.make)(spec, host)
}

impl From<Invalid> for TargetError {
    fn from(invalid: Invalid) -> Self {
        TargetError::Unmet(Problem {
            object: "target".to_owned(),
            what: invalid.what,
            remedy: invalid.remedy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::vm::VmSpec;

    /// Target as the first version of schedlab stored it.
    const STORED: &str = r#"{"kind": "vm", "kernel": "debian:sid", "cpus": 4,
        "memory_bytes": 2147483648, "root": "host", "reset": "block"}"#;

    #[test]
    fn every_target_has_a_name_of_its_own_and_is_found_by_it() {
        for def in TARGETS {
            let same = TARGETS.iter().filter(|other| other.name == def.name);
            assert_eq!(same.count(), 1, "{}", def.name);
            assert_eq!(find_by_name(def.name).map(|d| d.summary), Some(def.summary));
        }
    }

    #[test]
    fn what_a_target_can_is_known_from_its_stored_keys() {
        let spec: TargetSpec = serde_json::from_str(STORED).unwrap();
        let guest = Can {
            kernels: true,
            reboots: false,
            cpus: Some(4),
            apart: true,
            here: true,
            programs_of_here: true,
            reset: Reset::Block,
        };
        assert_eq!(find_abilities(&spec), Ok(guest));
        assert!(!find_abilities(&TargetSpec::local()).unwrap().kernels);
        let vm = VmSpec::from_target(&spec).unwrap();
        assert_eq!(TargetSpec::from(&vm), spec);
    }

    #[test]
    fn keys_that_make_no_target_are_an_error_with_their_place() {
        let other: TargetSpec = serde_json::from_str(r#"{"kind": "moon"}"#).unwrap();
        assert_eq!(
            find_abilities(&other).unwrap_err().what,
            "there is no target `moon`"
        );
        let without = STORED.replace("\"cpus\": 4", "\"cpus\": 0");
        let without: TargetSpec = serde_json::from_str(&without).unwrap();
        let error = find_abilities(&without).unwrap_err();
        assert_eq!(error.key, "target.cpus");
        assert!(error.what.contains("at least one CPU"), "{error}");
    }
}
