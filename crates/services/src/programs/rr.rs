//! schedlab's own server of the workload `rr` ([`kinds::rr::serve`]).

use load::roles::{ProgramDef, ServerProgram, words};
use load::{Keys, Launch, Params, SELF, Work};
use model::{OpenLoopParams, Task};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The kind `rr`.
pub static SERVER: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "rr",
    summary: "schedlab's own server of the workload `rr`, with a thread for each pair",
    keys: &[],
    work: Work::for_params::<RrServer>(),
    tasks: &[Task::Thread("rr-server")],
    program: None,
};

/// The server of pairs, which has no parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RrServer {}

impl Params for RrServer {
    fn read(_: &mut Keys) -> Self {
        RrServer {}
    }
}

impl ServerProgram for RrServer {
    fn command(&self) -> Vec<String> {
        Vec::new()
    }

    fn launch(&self, address: SocketAddr, _: Option<&OpenLoopParams>) -> Launch {
        let at = address.to_string();
        Launch::new(words(&[SELF, "serve", "--pairs", "--at", &at]))
    }
}
