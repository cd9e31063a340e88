//! nginx from PATH, with a configuration of schedlab's own.

use load::roles::{ProgramDef, ServerProgram, words};
use load::{Keys, Launch, Params, Work};
use model::check::check_count;
use model::{Invalid, KeyDef, OpenLoopParams, Program, Task};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The kind `nginx`.
pub static SERVER: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "nginx",
    summary: "nginx from PATH, which answers every request with the same short text",
    keys: &[KeyDef::new(
        "threads",
        "number",
        "`1`",
        "Worker processes (`worker_processes`).",
    )],
    work: Work::for_params::<Nginx>(),
    tasks: &[Task::Process("nginx")],
    program: Some(Program {
        name: "nginx",
        version: Some("-v"),
        package: Some("nginx-light"),
    }),
};

/// nginx.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nginx {
    /// Number of worker processes (`worker_processes`).
    pub workers: u32,
}

impl Params for Nginx {
    fn read(keys: &mut Keys) -> Self {
        Nginx {
            workers: keys.get("threads").unwrap_or(1),
        }
    }
}

impl ServerProgram for Nginx {
    fn check(&self) -> Result<(), Invalid> {
        check_count("threads", self.workers.into())
    }

    fn command(&self) -> Vec<String> {
        words(&["nginx"])
    }

    /// Beside the workers there is the master.
    fn least_threads(&self) -> u32 {
        self.workers.saturating_add(1)
    }

    /// The configuration is a memory file; nothing is written to the disk.
    fn launch(&self, address: SocketAddr, _: Option<&OpenLoopParams>) -> Launch {
        Launch {
            stdin: configuration(self.workers, address),
            ..Launch::new(words(&["nginx", "-c", "/dev/stdin"]))
        }
    }
}

/// A constant answer, no logs, no limit on requests per connection. The file of its
/// process id is its standard output: nothing is left on the disk.
fn configuration(workers: u32, address: SocketAddr) -> String {
    format!(
        "daemon off;\n\
         worker_processes {workers};\n\
         pid /proc/self/fd/1;\n\
         error_log stderr;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n\
         \x20 access_log off;\n\
         \x20 keepalive_requests 1000000000;\n\
         \x20 keepalive_timeout 3600s;\n\
         \x20 server {{\n\
         \x20   listen {address} backlog=8192;\n\
         \x20   location / {{ default_type text/plain; return 200 \"ok\\n\"; }}\n\
         \x20 }}\n\
         }}\n"
    )
}
