//! Programs of the roles beside the load: servers, which answer, and antagonists, which
//! disturb. One table for each of the two roles, and what an entry says.
//!
//! A kind of server or of antagonist is one module of a crate above this one with its parameters and a
//! [`ProgramDef`], and one line in the catalogue, which puts it into [`SERVERS`] or [`ANTAGONISTS`]. Whatever else has to know
//! about them asks here: the reader of experiment files, the reference, the agent that starts
//! them, the versions of programs, the schedulers for the tasks that are measured.

use crate::params::{self, Does};
use crate::registry::Registry;
use crate::{Entry, Keys, Launch, Params, Work, allowed_cpus, check_installed};
use model::{Calibration, Invalid, KeyDef, Kind, OpenLoopParams, Placement, Program, Task};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;

/// Kinds of server of the catalogue (`[workload.server]`).
pub static SERVERS: Table<dyn ServerProgram> = Table::new("server");

/// Kinds of antagonist of the catalogue (`[[workload.antagonist]]`).
pub static ANTAGONISTS: Table<dyn AntagonistProgram> = Table::new("antagonist");

/// A program that answers requests, with its parameters. It listens on the address that it is
/// given, which is on the loopback interface.
pub trait ServerProgram: Debug {
    /// Parameters that cannot be, on whatever target, by the key in the file.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
    /// The program from PATH, and the arguments that the file gives it. The program is looked
    /// for before anything runs, and somebody who repeats the experiment is shown the whole.
    /// Empty for schedlab itself.
    fn command(&self) -> Vec<String>;
    /// Threads that it has for certain; it may have more.
    fn least_threads(&self) -> u32 {
        1
    }
    /// The port that it listens on; `None`: a free one is chosen.
    fn port(&self) -> Option<u16> {
        None
    }
    /// True where it cannot be kept to the loopback interface or to a port of our choice: it and
    /// the load then run in a network namespace of their own.
    fn has_own_network(&self) -> bool {
        false
    }
    /// Check by which it counts as ready.
    fn readiness(&self) -> Readiness {
        Readiness::Tcp
    }
    /// Command that starts it. `client` is the open-loop generator that will ask it, if it is one.
    fn launch(&self, address: SocketAddr, client: Option<&OpenLoopParams>) -> Launch;
}

/// A program that disturbs until it is killed, with its parameters.
pub trait AntagonistProgram: Debug {
    /// As [`ServerProgram::check`].
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
    /// As [`ServerProgram::command`].
    fn command(&self) -> Vec<String>;
    /// Name of what it does, where that may only be done to a guest.
    fn guests_only(&self) -> Option<&str> {
        None
    }
    /// Threads that it has for certain in this place; it may have more.
    fn least_threads(&self, _placement: &Placement) -> u32 {
        1
    }
    /// Values that are found once, on a machine where no trial runs, and hold for all of them.
    fn calibrate(&self, _known: &Calibration) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
    /// Command that starts it in this place.
    fn launch(&self, _placement: &Placement, _calibration: &Calibration) -> Launch {
        Launch::new(self.command())
    }
}

impl<P: Params + ServerProgram> Does<dyn ServerProgram> for P {
    fn boxed(self) -> Box<dyn ServerProgram> {
        Box::new(self)
    }
}

impl<P: Params + AntagonistProgram> Does<dyn AntagonistProgram> for P {
    fn boxed(self) -> Box<dyn AntagonistProgram> {
        Box::new(self)
    }
}

/// When a server counts as ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "check", rename_all = "kebab-case")]
pub enum Readiness {
    /// Its port takes a connection.
    #[default]
    Tcp,
    /// A `GET` of the path is answered with this status.
    Http {
        /// Path of the request, with its slash.
        path: String,
        /// Status code of the answer that counts as ready.
        status: u16,
    },
}

/// A kind of server or antagonist: all that holds for every one of it.
#[derive(Debug)]
pub struct ProgramDef<W: ?Sized> {
    /// Name in the experiment file.
    pub name: &'static str,
    /// One sentence for the reference.
    pub summary: &'static str,
    /// The keys that [`Params::read`] asks for, in the same order.
    pub keys: &'static [KeyDef],
    /// The parameters, which start the program.
    pub work: Work<W>,
    /// Tasks whose scheduling is measured, as they are named to a scheduler that can favour
    /// some. An antagonist has none.
    pub tasks: &'static [Task],
    /// The program from PATH, where the kind itself names one.
    pub program: Option<Program>,
}

impl<W: ?Sized> ProgramDef<W> {
    /// The parameters that the keys of the role give. Faults stay in the keys.
    pub fn read(&self, keys: &mut Keys) -> Kind {
        self.work.read(self.name, keys)
    }

    /// The kind with these parameters, which must be its own.
    pub fn with_params(&self, params: &impl Params) -> Kind {
        params::kind(self.name, params)
    }
}

impl<W: ?Sized> Entry for ProgramDef<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn keys(&self) -> &'static [KeyDef] {
        self.keys
    }

    fn asked_keys(&self) -> Vec<&'static str> {
        self.work.asked_keys()
    }
}

/// The kinds of one role.
#[derive(Debug)]
pub struct Table<W: ?Sized + 'static> {
    /// Name of the role.
    pub role: &'static str,
    /// Its kinds.
    pub kinds: Registry<ProgramDef<W>>,
}

impl<W: ?Sized> Table<W> {
    const fn new(role: &'static str) -> Self {
        Table {
            role,
            kinds: Registry::new(&[]),
        }
    }

    /// The kind with this name.
    pub fn find(&self, name: &str) -> Option<&'static ProgramDef<W>> {
        self.kinds.find(name)
    }

    /// The program that a kind and its parameters mean; an error if this version has no such
    /// kind, or not with these parameters.
    pub fn open(&self, kind: &Kind) -> Result<Box<W>, String> {
        check_installed()?;
        let (role, name) = (self.role, kind.name());
        let def = self
            .find(name)
            .ok_or_else(|| format!("there is no {role} `{name}`"))?;
        let program = def.work.open(kind.params());
        program.map_err(|error| format!("the parameters of the {role} `{name}`: {error}"))
    }

    /// Programs from PATH that its kinds name.
    pub fn programs(&self) -> impl Iterator<Item = &'static Program> + use<W> {
        self.kinds.iter().filter_map(|def| def.program.as_ref())
    }

    /// Those of the kinds whose names are chosen.
    pub fn programs_of(
        &self,
        is_chosen: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &'static Program> {
        let kinds = self.kinds.iter().filter(move |def| is_chosen(def.name));
        kinds.filter_map(|def| def.program.as_ref())
    }

    /// Tasks whose scheduling is measured.
    pub fn tasks(&self) -> impl Iterator<Item = &'static Task> + use<W> {
        self.kinds.iter().flat_map(|def| def.tasks)
    }
}

/// The words of a key that a kind cannot do without; `of` is the kind, as it is read out.
pub fn needed(keys: &mut Keys, key: &'static str, of: &str, example: &str) -> Vec<String> {
    let words = keys.words(key).unwrap_or_default();
    if words.is_empty() {
        let missing = Invalid::new(key, format!("the {of} needs its `{key}`"));
        keys.refuse(missing.with_remedy(format!("{key} = {example}")));
    }
    words
}

/// CPUs that a program in this place may use.
pub fn cpus(placement: &Placement) -> u32 {
    let allowed = allowed_cpus();
    let list = placement.cpus.as_deref();
    let listed = list.and_then(|list| model::choose_cpus(list, &allowed).ok());
    u32::try_from(listed.unwrap_or(allowed).len()).unwrap_or(u32::MAX)
}

/// Words as an `argv` has them.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
