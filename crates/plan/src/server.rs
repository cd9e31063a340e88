//! `[workload.server]`: the server that a client asks.

use crate::command::{argv, placeholders, unused};
use crate::error::PlanError;
use crate::placement::{check_placement, read_role};
use crate::table::Value;
use load::units::Duration;
use model::check::{check_argv, check_count};
use model::{Placement, Readiness, Server, ServerProgram};
use serde::Deserialize;

const SECOND_NS: u64 = 1_000_000_000;
const READY_LIMIT_NS: u64 = 10 * SECOND_NS;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileServer {
    kind: ServerKind,
    threads: Option<u32>,
    args: Option<Vec<String>>,
    command: Option<Vec<String>>,
    port: Option<u16>,
    ready: Option<FileReadiness>,
    ready_limit: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ServerKind {
    Echo,
    Memcached,
    Nginx,
    HttpEcho,
    Command,
}

/// `ready = { path = "/", status = 200 }`; without it the port must take connections.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileReadiness {
    path: String,
    status: Option<u16>,
}

/// Placed nowhere in particular.
pub(crate) fn usual_server(program: ServerProgram) -> Server {
    Server {
        program,
        placement: Placement::default(),
        ready_limit_ns: READY_LIMIT_NS,
    }
}

pub(crate) fn server(value: Value) -> Result<Server, PlanError> {
    let span = value.span();
    read_server(value).map_err(|e| e.at(span))
}

fn read_server(value: Value) -> Result<Server, PlanError> {
    let (placement, file): (_, FileServer) = read_role(value)?;
    let is = |kinds: &[ServerKind]| kinds.contains(&file.kind);
    let command = is(&[ServerKind::Command]);
    let what = "this kind of server";
    unused(
        !is(&[ServerKind::Memcached]) && file.args.is_some(),
        "args",
        what,
    )?;
    unused(!command && file.command.is_some(), "command", what)?;
    unused(!command && file.port.is_some(), "port", what)?;
    unused(!command && file.ready.is_some(), "ready", what)?;
    let threadless = is(&[ServerKind::Command, ServerKind::HttpEcho]);
    unused(threadless && file.threads.is_some(), "threads", what)?;
    let threads = file.threads.unwrap_or(1);
    let server = Server {
        placement,
        ready_limit_ns: file.ready_limit.map_or(READY_LIMIT_NS, |d| d.0),
        program: match file.kind {
            ServerKind::Echo => ServerProgram::Echo { threads },
            ServerKind::Memcached => ServerProgram::Memcached {
                threads,
                args: file.args.unwrap_or_default(),
            },
            ServerKind::Nginx => ServerProgram::Nginx { workers: threads },
            ServerKind::HttpEcho => ServerProgram::HttpEcho,
            ServerKind::Command => ServerProgram::Command {
                argv: argv(file.command, "server", SERVER_EXAMPLE)?,
                port: file.port,
                ready: readiness(file.ready),
            },
        },
    };
    check_server(&server)?;
    Ok(server)
}

const SERVER_EXAMPLE: &str = "[\"my-server\", \"--port\", \"{port}\"]";
const PORT: &str = "port";

/// A server must learn the port that is chosen for it.
pub(crate) fn check_placeholders(argv: &[String], port: Option<u16>) -> Result<(), PlanError> {
    let mut placeholders = argv.iter().flat_map(|word| placeholders(word));
    if let Some(unknown) = placeholders.find(|name| *name != PORT) {
        let near = model::nearest(unknown, [PORT]).map(|_| "did you mean `{port}`?");
        return Err(PlanError::new(format!(
            "the server `command` has `{{{unknown}}}`, which stands for nothing"
        ))
        .with_help(near.unwrap_or("`{port}` is the only placeholder")));
    }
    if port.is_some() || argv.iter().any(|word| word.contains("{port}")) {
        return Ok(());
    }
    Err(
        PlanError::new("the server `command` does not say `{port}`, and schedlab chooses the port")
            .with_help(format!("command = {SERVER_EXAMPLE}, or port = 8080")),
    )
}

fn readiness(file: Option<FileReadiness>) -> Readiness {
    match file {
        None => Readiness::Tcp,
        Some(file) => Readiness::Http {
            path: file.path,
            status: file.status.unwrap_or(200),
        },
    }
}

pub(crate) fn check_server(server: &Server) -> Result<(), PlanError> {
    check_placement(&server.placement)?;
    match &server.program {
        ServerProgram::Echo { threads }
        | ServerProgram::Memcached { threads, .. }
        | ServerProgram::Nginx { workers: threads } => {
            Ok(check_count("threads", (*threads).into())?)
        }
        ServerProgram::HttpEcho => Ok(()),
        ServerProgram::Command { argv, port, .. } => {
            check_argv("command", argv)?;
            check_placeholders(argv, *port).map_err(|e| e.about("command"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_command_must_take_the_port_that_is_chosen() {
        let check = |word: &str, port| {
            let argv = ["serve".to_owned(), word.to_owned()];
            check_placeholders(&argv, port).map_err(|e| e.to_string())
        };
        assert_eq!(check("{port}", None), Ok(()));
        assert_eq!(check("sh -c 'serve {port}'", None), Ok(()));
        assert_eq!(check("8080", Some(8080)), Ok(()));
        assert!(check("8080", None).is_err_and(|e| e.contains("does not say `{port}`")));
        assert!(check("{prot}", None).is_err_and(|e| e.contains("`{prot}`")));
        assert!(check("{prot}", Some(1)).is_err_and(|e| e.contains("`{prot}`")));
    }
}
