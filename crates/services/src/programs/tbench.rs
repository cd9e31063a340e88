//! tbench_srv of dbench, which answers the clients of tbench.
//!
//! It listens at one port of all interfaces, with no option against either, so it has a network
//! of its own.

use load::roles::{ProgramDef, ServerProgram, words};
use load::{Keys, Launch, Params, Work};
use model::{OpenLoopParams, Program, Task};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Its port is a constant of its source (4.0).
const PORT: u16 = 7003;

/// The program.
pub const PROGRAM: Program = Program {
    name: "tbench_srv",
    // It starts to listen whatever its arguments are.
    version: None,
    package: Some("dbench"),
};

/// The kind `tbench`.
pub static SERVER: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "tbench",
    summary: "tbench_srv from PATH, in a network namespace of its own",
    keys: &[],
    work: Work::for_params::<TbenchServer>(),
    tasks: &[Task::Process(PROGRAM.name)],
    program: Some(PROGRAM),
};

/// The server of tbench, which has no parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TbenchServer {}

impl Params for TbenchServer {
    fn read(_: &mut Keys) -> Self {
        TbenchServer {}
    }
}

impl ServerProgram for TbenchServer {
    fn command(&self) -> Vec<String> {
        words(&[PROGRAM.name])
    }

    fn port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn has_own_network(&self) -> bool {
        true
    }

    fn launch(&self, _: SocketAddr, _: Option<&OpenLoopParams>) -> Launch {
        Launch::new(self.command())
    }
}
