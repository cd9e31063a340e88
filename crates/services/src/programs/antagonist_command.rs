//! Any program as an antagonist.

use load::roles::{AntagonistProgram, ProgramDef, needed};
use load::{Keys, Params, Work};
use model::check::check_argv;
use model::{Invalid, KeyDef};
use serde::{Deserialize, Serialize};

/// The kind `command`.
pub static ANTAGONIST: ProgramDef<dyn AntagonistProgram> = ProgramDef {
    name: "command",
    summary: "any program that does not end by itself",
    keys: &[KeyDef::new(
        "command",
        "list of words",
        "needed",
        "Program with its arguments.",
    )],
    work: Work::for_params::<AntagonistCommand>(),
    tasks: &[],
    program: None,
};

/// Any program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AntagonistCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl Params for AntagonistCommand {
    fn read(keys: &mut Keys) -> Self {
        AntagonistCommand {
            argv: needed(
                keys,
                "command",
                "antagonist `command`",
                "[\"my-batch-job\"]",
            ),
        }
    }
}

impl AntagonistProgram for AntagonistCommand {
    fn check(&self) -> Result<(), Invalid> {
        check_argv("command", &self.argv)
    }

    fn command(&self) -> Vec<String> {
        self.argv.clone()
    }
}
