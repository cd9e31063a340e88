//! The program that is the agent on another machine: this one, or a build for another
//! architecture.

use model::Problem;
use model::printable::write_hexadecimal;
use sha2::{Digest, Sha256};
use std::path::Path;

/// The program, without what is never loaded.
pub(super) struct AgentFile {
    pub bytes: Vec<u8>,
    /// SHA-256 in hexadecimal, which names it in the cache of the machine.
    pub hash: String,
    /// `e_machine` of its ELF header.
    machine: u16,
    given: bool,
}

impl std::fmt::Debug for AgentFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AgentFile({})", self.hash)
    }
}

/// Machines by the name that uname(2) gives them, with `e_machine` of elf(5).
const MACHINES: &[(&str, u16)] = &[
    ("x86_64", 62),
    ("i686", 3),
    ("i386", 3),
    ("aarch64", 183),
    ("armv7l", 40),
    ("riscv64", 243),
    ("ppc64le", 21),
    ("ppc64", 21),
    ("s390x", 22),
    ("loongarch64", 258),
];

impl AgentFile {
    /// `given`: somebody named it, for another architecture.
    pub fn read(path: &Path, given: bool) -> Result<Self, Problem> {
        let wrong = |what: String| Problem {
            object: path.display().to_string(),
            what,
            remedy: "agent = \"PATH\" is a static build of this schedlab".to_owned(),
        };
        let bytes = doors::read::large_file_bytes(path)
            .map_err(|e| wrong(format!("reading the agent: {e}")))?;
        let machine = machine(&bytes).ok_or_else(|| wrong("it is no program".to_owned()))?;
        let bytes = vm::elf::without_debug(&bytes).unwrap_or(bytes);
        let digest = Sha256::digest(&bytes);
        Ok(AgentFile {
            hash: write_hexadecimal(&digest),
            bytes,
            machine,
            given,
        })
    }

    /// Why a machine of this name, as uname(2) gives it, cannot run the program, and what to do.
    pub fn find_misfit(&self, uname: &str) -> Option<(String, String)> {
        let of_target = MACHINES.iter().find(|(name, _)| *name == uname);
        // A machine that nobody has met is left to try it.
        if of_target.is_none_or(|(_, number)| *number == self.machine) {
            return None;
        }
        let own = MACHINES.iter().find(|(_, n)| *n == self.machine);
        let own = own.map_or_else(
            || format!("machine {}", self.machine),
            |(n, _)| (*n).to_owned(),
        );
        let which = match self.given {
            true => "the program that `agent` names",
            false => "this schedlab",
        };
        Some((
            format!("the machine is {uname}, and {which} is for {own}"),
            format!(
                "build the same schedlab for {uname} and put it beside this one as schedlab-{uname}, or \
                 name the file: agent = \"PATH\""
            ),
        ))
    }
}

/// `e_machine` of an ELF file, of either byte order.
fn machine(file: &[u8]) -> Option<u16> {
    let header = file
        .get(..20)
        .filter(|header| header.starts_with(b"\x7fELF"))?;
    let bytes = [header[18], header[19]];
    Some(match header[5] {
        2 => u16::from_be_bytes(bytes),
        _ => u16::from_le_bytes(bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(machine: u16) -> AgentFile {
        AgentFile {
            bytes: Vec::new(),
            hash: String::new(),
            machine,
            given: false,
        }
    }

    #[test]
    fn a_program_for_another_architecture_is_told_before_it_is_copied() {
        let (what, remedy) = agent(62).find_misfit("aarch64").unwrap();
        let known = "the machine is aarch64, and this schedlab is for x86_64";
        assert_eq!(what, known);
        assert!(remedy.contains("agent = "), "{remedy}");
        assert_eq!(agent(62).find_misfit("x86_64"), None);
        assert_eq!(agent(62).find_misfit("of tomorrow"), None);
    }

    #[test]
    fn this_program_is_of_this_machine_and_a_text_is_no_program() {
        let own = AgentFile::read(Path::new("/proc/self/exe"), false).unwrap();
        let uname = rustix::system::uname();
        assert_eq!(own.find_misfit(&uname.machine().to_string_lossy()), None);
        assert_eq!(own.hash.len(), 64);
        let text = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(text.path(), "a text, of more than a header's length").unwrap();
        let problem = AgentFile::read(text.path(), true).unwrap_err();
        assert_eq!(problem.what, "it is no program");
    }
}
