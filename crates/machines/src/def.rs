//! Kinds of target: what an entry of the table says. A target is one file or folder of this crate with a
//! [`TargetDef`], and one line in [`crate::TARGETS`].

use crate::{Target, TargetError};
use model::{Invalid, KeyDef, Problem, Reset, TargetSpec};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
pub(crate) const START: &str = "by the command";
pub(crate) const OPTIONS: &str = "with options";

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
    /// Words that `WORD:TEXT` of a command line begins with; empty where the name alone says all.
    pub shorts: &'static [Short],
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

/// A word of a command line, before the colon of `WORD:TEXT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// The word: the name of the kind, or another where it has several.
    pub word: &'static str,
    /// The key whose value is the text.
    pub key: &'static str,
    /// Thing that the text names, in a word.
    pub name: &'static str,
    /// One sentence for `schedlab list targets`; empty where that of the kind says it.
    pub summary: &'static str,
}

impl Short {
    /// The one word of a kind, which is its name.
    pub const fn of_kind(kind: &'static str, key: &'static str) -> Self {
        Short {
            word: kind,
            key,
            name: key,
            summary: "",
        }
    }
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
    /// True for a guest that schedlab starts, and that nobody else needs.
    pub is_guest: bool,
    /// Machines that measure at once, each in blocks of its own; `None` for a target that is one machine.
    pub machines: Option<u32>,
    /// Occasions on which the agent and its machine are started anew.
    pub reset: Reset,
}

impl Can {
    /// True where the runner sees the death of the machine when it happens, and starts it again. A guest in virtual
    /// time is seen when it has ended.
    pub fn sees_deaths(&self) -> bool {
        self.kernels && !self.reboots && self.apart
    }
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

impl From<Invalid> for TargetError {
    fn from(invalid: Invalid) -> Self {
        TargetError::Unmet(Problem {
            object: "target".to_owned(),
            what: invalid.what,
            remedy: invalid.remedy,
        })
    }
}
