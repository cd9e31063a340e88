//! hashicorp/http-echo from PATH.

use load::roles::{ProgramDef, ServerProgram, words};
use load::{Keys, Launch, Params, Work};
use model::{OpenLoopParams, Program, Task};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The kind `http-echo`.
pub static SERVER: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "http-echo",
    summary: "hashicorp/http-echo from PATH",
    keys: &[],
    work: Work::for_params::<HttpEcho>(),
    tasks: &[Task::Process("http-echo")],
    program: Some(Program {
        name: "http-echo",
        version: Some("-version"),
        package: None,
    }),
};

/// http-echo, which has no parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpEcho {}

impl Params for HttpEcho {
    fn read(_: &mut Keys) -> Self {
        HttpEcho {}
    }
}

impl ServerProgram for HttpEcho {
    fn command(&self) -> Vec<String> {
        words(&["http-echo"])
    }

    fn launch(&self, address: SocketAddr, _: Option<&OpenLoopParams>) -> Launch {
        let listen = format!("-listen={address}");
        Launch::new(words(&["http-echo", &listen, "-text=ok"]))
    }
}
