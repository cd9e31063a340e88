//! stress-ng from PATH.

use load::roles::{AntagonistProgram, ProgramDef, words};
use load::{Keys, Params, Work};
use model::{KeyDef, Program};
use serde::{Deserialize, Serialize};

/// The kind `stress-ng`.
pub static ANTAGONIST: ProgramDef<dyn AntagonistProgram> = ProgramDef {
    name: "stress-ng",
    summary: "stress-ng from PATH",
    keys: &[KeyDef::new(
        "args",
        "list of words",
        "`[\"--cpu\", \"0\"]`",
        "Arguments; the usual ones keep every CPU busy.",
    )],
    work: Work::for_params::<StressNg>(),
    tasks: &[],
    program: Some(Program {
        name: "stress-ng",
        version: Some("--version"),
        package: Some("stress-ng"),
    }),
};

/// stress-ng.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StressNg {
    /// Arguments, without the program itself.
    pub args: Vec<String>,
}

impl Params for StressNg {
    fn read(keys: &mut Keys) -> Self {
        StressNg {
            args: keys.words("args").unwrap_or_else(|| words(&["--cpu", "0"])),
        }
    }
}

impl AntagonistProgram for StressNg {
    fn command(&self) -> Vec<String> {
        [&words(&["stress-ng"]), &self.args[..]].concat()
    }
}
