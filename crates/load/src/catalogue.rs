//! The catalogue: all kinds of load, servers and antagonists that can be named.
//!
//! This crate says what an entry is and names none. The list is in a crate above all of them, and is installed
//! once, at the entry of a program; whoever has to know about kinds asks [`KINDS`], [`SERVERS`] and
//! [`ANTAGONISTS`]. So the reader of experiment files and the agent are built without any kind.

use crate::KindDef;
use crate::kind::KINDS;
use crate::roles::{ANTAGONISTS, AntagonistProgram, ProgramDef, SERVERS, ServerProgram};
use model::{KeyDef, Program};
use std::sync::Once;

/// Properties of every entry, whatever it is an entry of.
pub trait Entry {
    /// Name in an experiment file.
    fn name(&self) -> &'static str;
    /// Other names that a file may use.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// One sentence for lists and the reference.
    fn summary(&self) -> &'static str;
    /// Keys in an experiment file, as they are described.
    fn keys(&self) -> &'static [KeyDef];
    /// Names of the keys that are read, in their order.
    fn asked_keys(&self) -> Vec<&'static str>;
}

/// All entries, the main one of each sort first.
#[derive(Debug)]
pub struct Catalogue {
    /// Kinds of load.
    pub kinds: &'static [&'static KindDef],
    /// Kinds of server.
    pub servers: &'static [&'static ProgramDef<dyn ServerProgram>],
    /// Kinds of antagonist.
    pub antagonists: &'static [&'static ProgramDef<dyn AntagonistProgram>],
    /// Programs that `schedlab tool install` brings and that no entry names, since any program may be
    /// the command of a load.
    pub installable: &'static [Program],
}

static INSTALLED: Once = Once::new();

/// Makes the entries of a catalogue known to this process. Only the first call counts.
pub fn install(catalogue: &'static Catalogue) {
    INSTALLED.call_once(|| {
        KINDS.add_entries(catalogue.kinds);
        SERVERS.kinds.add_entries(catalogue.servers);
        ANTAGONISTS.kinds.add_entries(catalogue.antagonists);
        crate::kind::INSTALLABLE.add_entries(&catalogue.installable.iter().collect::<Vec<_>>());
    });
}

/// An error where this process was given no catalogue: then no kind that is named is there, and none of them
/// is misspelt.
pub fn check_installed() -> Result<(), String> {
    match KINDS.iter().next() {
        Some(_) => Ok(()),
        None => Err("this program was built without its catalogue of kinds of load".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Kind;

    /// Nothing is installed in the tests of this crate.
    #[test]
    fn a_program_without_a_catalogue_says_so_and_blames_no_name() {
        let errors = [
            check_installed().unwrap_err(),
            crate::driver(&Kind::new("wakeup")).map(drop).unwrap_err(),
            SERVERS.open(&Kind::new("echo")).map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(error.contains("without its catalogue"), "{error}");
        }
    }
}
