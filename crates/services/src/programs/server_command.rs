//! Any program as a server.

use load::roles::{ProgramDef, Readiness, ServerProgram, needed};
use load::{Keys, Launch, Params, Work};
use model::check::check_argv;
use model::stack::{ADDRESS, PORT, bracket_address, fill_placeholders, find_placeholders};
use model::{Invalid, KeyDef, OpenLoopParams};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The kind `command`.
pub static SERVER: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "command",
    summary: "any program",
    keys: &[
        KeyDef::new(
            "command",
            "list of words",
            "needed",
            "Program with its arguments. `{port}` in them is the port that it shall listen on, and \
             `{target.address}` the address.",
        ),
        KeyDef::new(
            "port",
            "number",
            "a free one",
            "Port of a program that cannot be told one.",
        ),
        KeyDef::new(
            "ready",
            "table `{ path, status }`",
            "the port takes connections",
            "HTTP request that it answers when it is ready, with status 200 unless `status` says \
             otherwise.",
        ),
    ],
    work: Work::for_params::<ServerCommand>(),
    tasks: &[],
    program: None,
};

const EXAMPLE: &str = "[\"my-server\", \"--port\", \"{port}\"]";

/// Any program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerCommand {
    /// Program and arguments; `{port}` and `{target.address}` in them are replaced.
    pub argv: Vec<String>,
    /// `None`: a free one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Check by which the program counts as ready.
    pub ready: Readiness,
}

impl Params for ServerCommand {
    fn read(keys: &mut Keys) -> Self {
        ServerCommand {
            argv: needed(keys, "command", "server `command`", EXAMPLE),
            port: keys.get("port"),
            ready: readiness(keys),
        }
    }
}

/// `ready = { path = "/", status = 200 }`.
fn readiness(keys: &mut Keys) -> Readiness {
    let read = |keys: &mut Keys| (keys.get("path"), keys.get("status"));
    let Some((path, status)) = keys.table("ready", read) else {
        return Readiness::Tcp;
    };
    let Some(path) = path else {
        let missing = Invalid::new("ready", "`ready` has no `path`");
        keys.refuse(missing.with_remedy("ready = { path = \"/\", status = 200 }"));
        return Readiness::Tcp;
    };
    Readiness::Http {
        path,
        status: status.unwrap_or(200),
    }
}

impl ServerProgram for ServerCommand {
    fn check(&self) -> Result<(), Invalid> {
        check_argv("command", &self.argv)?;
        self.check_port()
    }

    fn command(&self) -> Vec<String> {
        self.argv.clone()
    }

    fn port(&self) -> Option<u16> {
        self.port
    }

    fn readiness(&self) -> Readiness {
        self.ready.clone()
    }

    fn launch(&self, address: SocketAddr, _: Option<&OpenLoopParams>) -> Launch {
        let value = |name: &str| match name {
            PORT => Some(address.port().to_string()),
            ADDRESS => Some(address.ip().to_string()),
            _ => None,
        };
        Launch::new(
            self.argv
                .iter()
                .map(|word| fill_placeholders(&bracket_address(word, address.ip()), value))
                .collect(),
        )
    }
}

impl ServerCommand {
    /// A server must learn the port that is chosen for it.
    fn check_port(&self) -> Result<(), Invalid> {
        let mut placeholders = self.argv.iter().flat_map(|word| find_placeholders(word));
        if let Some(unknown) = placeholders.find(|name| ![PORT, ADDRESS].contains(name)) {
            let what =
                format!("the server `command` has `{{{unknown}}}`, which stands for nothing");
            let near = model::find_nearest(unknown, [PORT, ADDRESS]);
            let remedy = match near {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => "`{port}` and `{target.address}` are the only placeholders".to_owned(),
            };
            return Err(Invalid::new("command", what).with_remedy(remedy));
        }
        if self.port.is_some() || self.argv.iter().any(|word| word.contains("{port}")) {
            return Ok(());
        }
        let what = "the server `command` does not say `{port}`, and schedlab chooses the port";
        let remedy = format!("command = {EXAMPLE}, or port = 8080");
        Err(Invalid::new("command", what).with_remedy(remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_command_must_take_the_port_that_is_chosen() {
        let check = |word: &str, port| {
            let server = ServerCommand {
                argv: vec!["serve".to_owned(), word.to_owned()],
                port,
                ready: Readiness::Tcp,
            };
            server.check().map_err(|e| e.to_string())
        };
        assert_eq!(check("{port}", None), Ok(()));
        assert_eq!(check("sh -c 'serve {port}'", None), Ok(()));
        assert_eq!(check("8080", Some(8080)), Ok(()));
        assert!(check("8080", None).is_err_and(|e| e.contains("does not say `{port}`")));
        assert!(check("{prot}", None).is_err_and(|e| e.contains("`{prot}`")));
        assert!(check("{prot}", Some(1)).is_err_and(|e| e.contains("`{prot}`")));
    }

    #[test]
    fn readiness_by_http_needs_a_path() {
        let read = |ready| {
            let written = json!({ "command": ["serve"], "ready": ready });
            let mut keys = Keys::new(written.as_object().cloned().unwrap());
            let server = ServerCommand::read(&mut keys);
            (server.ready, keys.into_fault().map(|fault| fault.key))
        };
        let http = |status| Readiness::Http {
            path: "/up".to_owned(),
            status,
        };
        assert_eq!(read(json!({"path": "/up"})), (http(200), None));
        assert_eq!(
            read(json!({"path": "/up", "status": 204})),
            (http(204), None)
        );
        let key = |ready| read(ready).1.unwrap_or_default();
        assert_eq!(key(json!({"status": 204})), "ready");
        assert_eq!(key(json!({"path": "/up", "statsu": 204})), "ready.statsu");
    }
}
