//! memcached from PATH.

use load::options::{Options, Own};
use load::roles::{ProgramDef, ServerProgram, words};
use load::{Keys, Launch, Params, Work};
use model::check::check_count;
use model::{Invalid, KeyDef, OpenLoopParams, Program, Task};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// memcached's own default.
const USUAL_CONNECTIONS: u32 = 1024;

/// The options that the experiment says, and where the load asks.
const OPTIONS: Options = Options {
    own: &[
        Own {
            short: 't',
            long: "threads",
            instead: "`threads` of the server",
        },
        Own {
            short: 'p',
            long: "port",
            instead: "the load asks at this port",
        },
        Own {
            short: 'l',
            long: "listen",
            instead: "the load asks at this address",
        },
    ],
    flags: "AZMkhiVrvdLCSFXW",
};

/// The kind `memcached`.
pub static SERVER: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "memcached",
    summary: "memcached from PATH",
    keys: &[
        KeyDef::new("threads", "number", "`1`", "Worker threads (`-t`)."),
        KeyDef::new(
            "args",
            "list of words",
            "",
            "More arguments of the command line.",
        ),
    ],
    work: Work::for_params::<Memcached>(),
    tasks: &[Task::Process("memcached")],
    program: Some(Program {
        name: "memcached",
        version: Some("--version"),
        package: Some("memcached"),
    }),
};

/// memcached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memcached {
    /// Number of worker threads (`-t`).
    pub threads: u32,
    /// Further arguments of the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

impl Params for Memcached {
    fn read(keys: &mut Keys) -> Self {
        Memcached {
            threads: keys.get("threads").unwrap_or(1),
            args: keys.words("args").unwrap_or_default(),
        }
    }
}

impl ServerProgram for Memcached {
    fn check(&self) -> Result<(), Invalid> {
        check_count("threads", self.threads.into())?;
        OPTIONS.check("args", "memcached", &self.args)
    }

    fn command(&self) -> Vec<String> {
        [&words(&["memcached"]), &self.args[..]].concat()
    }

    fn least_threads(&self) -> u32 {
        self.threads
    }

    fn launch(&self, address: SocketAddr, client: Option<&OpenLoopParams>) -> Launch {
        let connections = client
            .map_or(0, |client| client.connections)
            .saturating_add(64)
            .max(USUAL_CONNECTIONS);
        let at = address.ip().to_string();
        let mut argv = words(&["memcached", "-l", &at, "-U", "0"]);
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        option("-p", address.port().to_string());
        option("-t", self.threads.to_string());
        option("-c", connections.to_string());
        if rustix::process::geteuid().is_root() {
            // It refuses to run as root otherwise.
            option("-u", "nobody".to_owned());
        }
        argv.extend(self.args.iter().cloned());
        Launch::new(argv)
    }
}
