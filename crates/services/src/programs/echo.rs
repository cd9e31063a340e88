//! schedlab's own server: HTTP and memcached on one port ([`crate::serve`]).

use load::roles::{ProgramDef, ServerProgram, words};
use load::{Keys, Launch, Params, SELF, Work};
use model::check::check_count;
use model::{Invalid, KeyDef, OpenLoopParams, Task};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The kind `echo`.
pub static SERVER: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "echo",
    summary: "schedlab's own: it answers HTTP requests and memcached's `get` and `set` on one port",
    keys: &[KeyDef::new(
        "threads",
        "number",
        "`1`",
        "Threads that answer.",
    )],
    work: Work::for_params::<Echo>(),
    tasks: &[Task::Thread("serve-*")],
    program: None,
};

/// schedlab's own server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Echo {
    /// Number of threads that answer.
    pub threads: u32,
}

impl Params for Echo {
    fn read(keys: &mut Keys) -> Self {
        Echo {
            threads: keys.get("threads").unwrap_or(1),
        }
    }
}

impl ServerProgram for Echo {
    fn check(&self) -> Result<(), Invalid> {
        check_count("threads", self.threads.into())
    }

    fn command(&self) -> Vec<String> {
        Vec::new()
    }

    fn least_threads(&self) -> u32 {
        self.threads
    }

    fn launch(&self, address: SocketAddr, _: Option<&OpenLoopParams>) -> Launch {
        let (threads, at) = (self.threads.to_string(), address.to_string());
        Launch::new(words(&[SELF, "serve", "--threads", &threads, "--at", &at]))
    }
}
