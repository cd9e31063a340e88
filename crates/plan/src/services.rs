//! Services in the experiment file: the loads `http` and `memcached`, and the tables
//! `[workload.server]` and `[[workload.antagonist]]` with their placement.

use crate::check::{check_antagonist, check_placement, check_server};
use crate::error::PlanError;
use crate::file::{FilePolicy, read_policy};
use crate::stack::FileReady;
use crate::workloads::with_clients;
use load::units::{Duration, Percent};
use load::{Asks, Keys, KindDef};
use model::{
    Antagonist, AntagonistProgram, OpenLoopParams, Placement, Readiness, Server, ServerProgram,
    StopSignal, Workload,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

const SECOND_NS: u64 = 1_000_000_000;
const READY_LIMIT_NS: u64 = 10 * SECOND_NS;

/// The keys of an open-loop generator, with what holds where the file says nothing.
pub(crate) fn client(keys: &mut Keys) -> OpenLoopParams {
    OpenLoopParams {
        connections: keys.get("connections").unwrap_or(32),
        threads: keys.get("threads").unwrap_or(1),
        arrivals: keys.get("arrivals").unwrap_or_default(),
        timeout_ns: keys.duration("timeout").unwrap_or(SECOND_NS),
        load_cpus: keys.get("load-cpus"),
        busy_poll: keys.get("busy-poll").unwrap_or(false),
        allow_remote: keys.get("allow-remote").unwrap_or(false),
    }
}

/// A role: keys of its own, and where it runs. (serde's `flatten` would lose the
/// places of errors.)
macro_rules! role {
    ($name:ident { $($vis:vis $field:ident : $type:ty),* $(,)? }) => {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub(crate) struct $name {
            $($vis $field: $type,)*
            cpus: Option<String>,
            weight: Option<u32>,
            quota: Option<Percent>,
            nice: Option<i32>,
            policy: Option<Spanned<FilePolicy>>,
            memory_node: Option<u32>,
        }

        impl $name {
            pub(crate) fn placement(&mut self) -> Result<Placement, PlanError> {
                let placement = Placement {
                    cpus: self.cpus.take(),
                    weight: self.weight,
                    quota_percent: self.quota.map(|q| q.0),
                    nice: self.nice,
                    policy: self.policy.take().map(read_policy).transpose()?,
                    memory_node: self.memory_node,
                };
                check_placement(&placement)?;
                Ok(placement)
            }
        }
    };
}

role!(FileServer {
    kind: ServerKind,
    threads: Option<u32>,
    args: Option<Vec<String>>,
    command: Option<Vec<String>>,
    port: Option<u16>,
    ready: Option<FileReadiness>,
    ready_limit: Option<Duration>,
});

role!(FileService {
    pub(crate) name: String,
    pub(crate) command: Option<Vec<String>>,
    pub(crate) env: Option<BTreeMap<String, String>>,
    pub(crate) directory: Option<String>,
    pub(crate) files: Option<BTreeMap<String, String>>,
    pub(crate) before_start: Option<Vec<Vec<String>>>,
    pub(crate) when_ready: Option<Vec<Vec<String>>>,
    pub(crate) ports: Option<Vec<String>>,
    pub(crate) ready: Option<FileReady>,
    pub(crate) ready_limit: Option<Duration>,
    pub(crate) stop_signal: Option<StopSignal>,
    pub(crate) stop_limit: Option<Duration>,
});

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

role!(FileAntagonist {
    kind: AntagonistKind,
    name: Option<String>,
    threads: Option<u32>,
    args: Option<Vec<String>>,
    command: Option<Vec<String>>,
});

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AntagonistKind {
    Spinner,
    StressNg,
    Command,
}

/// A key that its kind does not have.
fn unused(present: bool, key: &str, what: &str) -> Result<(), PlanError> {
    if !present {
        return Ok(());
    }
    Err(PlanError::new(format!("{what} has no `{key}`"))
        .with_help("leave it out")
        .about(key))
}

/// Placed nowhere in particular.
pub(crate) fn usual_server(program: ServerProgram) -> Server {
    Server {
        program,
        placement: Placement::default(),
        ready_limit_ns: READY_LIMIT_NS,
    }
}

pub(crate) fn server(file: Spanned<FileServer>) -> Result<Server, PlanError> {
    let span = file.span();
    read_server(file.into_inner()).map_err(|e| e.at(span))
}

fn read_server(mut file: FileServer) -> Result<Server, PlanError> {
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
    let placement = file.placement()?;
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
        let near = crate::nearest(unknown, [PORT]).map(|_| "did you mean `{port}`?");
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

/// Names in braces. A word with spaces is a script, whose braces are its own; so are
/// those after a dollar sign.
pub(crate) fn placeholders(word: &str) -> Vec<&str> {
    let is_name = |name: &&str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits)
    };
    if word.contains(char::is_whitespace) {
        return Vec::new();
    }
    let mut opened = word.split('{');
    let mut before = opened.next().unwrap_or_default();
    let mut names = Vec::new();
    for rest in opened {
        let name = rest.split_once('}').map(|(name, _)| name);
        names.extend(name.filter(is_name).filter(|_| !before.ends_with('$')));
        before = rest;
    }
    names
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

pub(crate) fn argv(
    command: Option<Vec<String>>,
    role: &str,
    example: &str,
) -> Result<Vec<String>, PlanError> {
    match command {
        Some(argv) if !argv.is_empty() => Ok(argv),
        _ => Err(
            PlanError::new(format!("the {role} `command` needs its command"))
                .with_help(format!("command = {example}"))
                .about("command"),
        ),
    }
}

pub(crate) fn antagonists(
    files: Vec<Spanned<FileAntagonist>>,
) -> Result<Vec<Antagonist>, PlanError> {
    let mut antagonists: Vec<Antagonist> = Vec::new();
    for (index, file) in files.into_iter().enumerate() {
        let span = file.span();
        let place = format!("antagonist.{index}");
        let antagonist =
            read_antagonist(file.into_inner()).map_err(|e| e.at(span.clone()).within(&place))?;
        if antagonists.iter().any(|a| a.name == antagonist.name) {
            return Err(
                PlanError::new(format!("there are two antagonists `{}`", antagonist.name))
                    .with_help("give one of them another `name`")
                    .at(span),
            );
        }
        antagonists.push(antagonist);
    }
    Ok(antagonists)
}

fn read_antagonist(mut file: FileAntagonist) -> Result<Antagonist, PlanError> {
    let what = "this kind of antagonist";
    let kind = file.kind;
    unused(
        kind != AntagonistKind::Spinner && file.threads.is_some(),
        "threads",
        what,
    )?;
    unused(
        kind != AntagonistKind::StressNg && file.args.is_some(),
        "args",
        what,
    )?;
    unused(
        kind != AntagonistKind::Command && file.command.is_some(),
        "command",
        what,
    )?;
    let placement = file.placement()?;
    let (usual, program) = match kind {
        AntagonistKind::Spinner => (
            "spinner",
            AntagonistProgram::Spinner {
                threads: file.threads,
            },
        ),
        AntagonistKind::StressNg => (
            "stress-ng",
            AntagonistProgram::StressNg {
                args: argv(file.args, "antagonist", "…; args = [\"--cpu\", \"1\"]")?,
            },
        ),
        AntagonistKind::Command => (
            "command",
            AntagonistProgram::Command {
                argv: argv(file.command, "antagonist", "[\"my-batch-job\"]")?,
            },
        ),
    };
    let antagonist = Antagonist {
        name: file.name.unwrap_or_else(|| usual.to_owned()),
        program,
        placement,
    };
    check_antagonist(&antagonist)?;
    Ok(antagonist)
}

/// Who asks, and whom, must fit.
pub(crate) fn check_service(
    def: &KindDef,
    workload: &Workload,
    asks: &Asks,
) -> Result<(), PlanError> {
    let name = &workload.name;
    if def.client != workload.client.is_some() {
        let has = if def.client { "no client" } else { "a client" };
        return Err(PlanError::new(format!(
            "the workload `{name}` has {has}, but is of the kind `{}`",
            def.name
        )));
    }
    match (asks, &workload.server) {
        (Asks::Elsewhere, Some(_)) => Err(PlanError::new(format!(
            "the workload `{name}` has a server, but sends its requests elsewhere"
        ))
        .with_help("leave out the address, or the server")),
        (Asks::Nobody, Some(_)) if workload.services.is_empty() => Err(PlanError::new(format!(
            "the workload `{name}` has a server, but nothing asks it"
        ))
        .with_help(format!("only {} have servers", with_clients()))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_lower_case_names_in_braces_outside_of_scripts() {
        assert_eq!(placeholders("--listen=:{port}"), ["port"]);
        assert_eq!(placeholders("{prot}{port}"), ["prot", "port"]);
        for word in [
            "${HOME}",
            "${home}",
            "awk '{print}'",
            "{}",
            "{\"a\":1}",
            "{a",
            "port",
        ] {
            assert_eq!(placeholders(word), [""; 0], "{word}");
        }
    }

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
